/* The ACL commands. */
#include "cmd/cmd_priv.h"

void cmd_acl_whoami(struct command_ctx *ctx)
{
    const struct acl_user *user = ctx->client->user;

    resp_bulk(ctx->out, span_of(user->name, user->name_len));
}

/* --- CAT -------------------------------------------------------------- */

static void list_category(struct command_ctx *ctx, unsigned bit)
{
    size_t count = 0;

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        count += (COMMANDS[i].acl & bit) != 0;
    }
    resp_array(ctx->out, count);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if ((COMMANDS[i].acl & bit) != 0) {
            resp_bulk_str(ctx->out, COMMANDS[i].name);
        }
    }
}

void cmd_acl_cat(struct command_ctx *ctx)
{
    const struct acl_catalog *catalog = acl_catalog(ctx->cmd->users.acl);
    int number;

    if (ctx->argc > 3) {
        ctx_subcommand_error(ctx);
        return;
    }
    if (ctx->argc == 2) {
        resp_array(ctx->out, catalog->category_count);
        for (size_t i = 0; i < catalog->category_count; i++) {
            resp_bulk_str(ctx->out, catalog->categories[i] + 1);
        }
        return;
    }
    number = catalog_category(catalog, ctx->argv[2]);
    if (number == ACL_NOT_THERE) {
        ctx_error(ctx, LATCHD_ERR, "Unknown category '%.*s'",
                  span_quoted_len(ctx->argv[2]), ctx->argv[2].ptr);
    } else {
        list_category(ctx, 1U << number);
    }
}

/* --- GENPASS ---------------------------------------------------------- */

void cmd_acl_genpass(struct command_ctx *ctx)
{
    int64_t bits = SECRET_BITS_DEFAULT;
    struct buf text = { 0 };

    if (ctx->argc > 3) {
        ctx_subcommand_error(ctx);
        return;
    }
    if (ctx->argc == 3 && !ctx_arg_int(ctx, 2, &bits)) {
        return;
    }
    if (bits <= 0 || bits > SECRET_BITS_MAX) {
        ctx_error(ctx, LATCHD_ERR,
                  "ACL GENPASS argument must be the number of bits for the output "
                  "password, a positive number up to %d",
                  SECRET_BITS_MAX);
    } else if (!secret_random((size_t)bits, &text)) {
        ctx_error(ctx, LATCHD_ERR, "the system has no random bytes");
    } else {
        resp_bulk(ctx->out, buf_span(&text));
    }
    buf_reset(&text);
}

/* --- LOG -------------------------------------------------------------- */

static void write_denial(struct command_ctx *ctx, const struct denial *d)
{
    static const char *const REASONS[] = {
        [DENIAL_COMMAND] = "command",
        [DENIAL_NAME] = "key",
        [DENIAL_CHANNEL] = "channel",
        [DENIAL_LOGIN] = "auth",
    };
    uint64_t now = ctx->cmd->env.now_ms(ctx->cmd->env.ctx);
    struct buf *out = ctx->out;

    resp_map(out, ctx->proto, 7);
    resp_bulk_str(out, "count");
    resp_int(out, (int64_t)d->count);
    resp_bulk_str(out, "reason");
    resp_bulk_str(out, REASONS[d->reason]);
    resp_bulk_str(out, "context");
    resp_bulk_str(out, d->context);
    resp_bulk_str(out, "object");
    resp_bulk(out, d->object);
    resp_bulk_str(out, "username");
    resp_bulk(out, d->user);
    resp_bulk_str(out, "age-seconds");
    resp_double(out, ctx->proto, (double)(now - d->at_ms) / 1000);
    resp_bulk_str(out, "client-info");
    resp_bulk(out, d->client);
}

void cmd_acl_log(struct command_ctx *ctx)
{
    enum { COUNT_DEFAULT = 10 };
    struct denials *denials = ctx->cmd->users.denials;
    int64_t wanted = COUNT_DEFAULT;
    size_t count = denials_count(denials);

    if (ctx->argc > 3) {
        ctx_subcommand_error(ctx);
        return;
    }
    if (ctx_arg_is(ctx, 2, "RESET")) {
        denials_reset(denials);
        resp_simple(ctx->out, "OK");
        return;
    }
    if (ctx->argc == 3 && !ctx_arg_int(ctx, 2, &wanted)) {
        return;
    }
    wanted = wanted < 0 ? 0 : wanted;
    count = (uint64_t)wanted < count ? (size_t)wanted : count;
    resp_array(ctx->out, count);
    for (size_t i = 0; i < count; i++) {
        write_denial(ctx, denials_at(denials, i));
    }
}

/* --- DRYRUN ----------------------------------------------------------- */

static void write_verdict(struct command_ctx *ctx, enum acl_verdict verdict,
                          struct span object)
{
    static const char *const TEXTS[][2] = {
        [ACL_NO_COMMAND] = { "run", "command" },
        [ACL_NO_NAME] = { "access", "key" },
        [ACL_NO_CHANNEL] = { "access", "channel" },
    };
    struct buf text = { 0 };

    if (verdict == ACL_ALLOWED) {
        resp_simple(ctx->out, "OK");
        return;
    }
    buf_printf(&text, "This user has no permissions to %s the '", TEXTS[verdict][0]);
    buf_add_span(&text, object);
    buf_printf(&text, "' %s", TEXTS[verdict][1]);
    resp_bulk(ctx->out, buf_span(&text));
    buf_reset(&text);
}

void cmd_acl_dryrun(struct command_ctx *ctx)
{
    const struct acl_user *user = acl_find(ctx->cmd->users.acl, ctx->argv[2]);
    const struct command *c = command_resolve(ctx->argv + 3, ctx->argc - 3);
    struct span object = SPAN_NONE;

    if (user == NULL) {
        ctx_error(ctx, LATCHD_ERR, "User '%.*s' not found",
                  span_quoted_len(ctx->argv[2]), ctx->argv[2].ptr);
    } else if (c == NULL) {
        ctx_error(ctx, LATCHD_ERR, "Command '%.*s' not found",
                  span_quoted_len(ctx->argv[3]), ctx->argv[3].ptr);
    } else if (!command_arity_fits(c, ctx->argc - 3)) {
        ctx_error(ctx, LATCHD_ERR, "wrong number of arguments for '%s' command",
                  c->name);
    } else {
        write_verdict(ctx,
                      acl_check_command(user, c, ctx->argv + 3, ctx->argc - 3, &object),
                      object);
    }
}

/* ACL LIST, USERS, GETUSER, SETUSER, DELUSER, LOAD, SAVE. */

/* --- LIST, USERS, GETUSER --------------------------------------------- */

static void list_name(void *arg, struct acl_user *user)
{
    struct command_ctx *ctx = arg;

    resp_bulk(ctx->out, span_of(user->name, user->name_len));
}

void cmd_acl_users(struct command_ctx *ctx)
{
    resp_array(ctx->out, acl_count(ctx->cmd->users.acl));
    acl_each(ctx->cmd->users.acl, list_name, ctx);
}

static void list_line(void *arg, struct acl_user *user)
{
    struct command_ctx *ctx = arg;
    struct buf line = { 0 };

    acl_describe(ctx->cmd->users.acl, user, &line);
    resp_bulk(ctx->out, buf_span(&line));
    buf_reset(&line);
}

void cmd_acl_list(struct command_ctx *ctx)
{
    resp_array(ctx->out, acl_count(ctx->cmd->users.acl));
    acl_each(ctx->cmd->users.acl, list_line, ctx);
}

static void write_flags(struct command_ctx *ctx, const struct permissions *t)
{
    const char *words[4];
    size_t count = permissions_flag_words(t, words);

    resp_bulk_str(ctx->out, "flags");
    resp_set(ctx->out, ctx->proto, count);
    for (size_t i = 0; i < count; i++) {
        resp_bulk_str(ctx->out, words[i]);
    }
}

static void write_passwords(struct command_ctx *ctx, const struct permissions *t)
{
    struct buf hex = { 0 };

    resp_bulk_str(ctx->out, "passwords");
    resp_array(ctx->out, t->password_count);
    for (size_t i = 0; i < t->password_count; i++) {
        buf_clear(&hex);
        secret_add_hex(&t->passwords[i], &hex);
        resp_bulk(ctx->out, buf_span(&hex));
    }
    buf_reset(&hex);
}

void cmd_acl_getuser(struct command_ctx *ctx)
{
    const struct acl *acl = ctx->cmd->users.acl;
    const struct acl_user *user = acl_find(acl, ctx->argv[2]);
    struct buf text = { 0 };

    if (user == NULL) {
        ctx_null(ctx);
        return;
    }
    resp_map(ctx->out, ctx->proto, 6);
    write_flags(ctx, &user->terms);
    write_passwords(ctx, &user->terms);
    resp_bulk_str(ctx->out, "commands");
    permissions_add_commands(&user->terms, acl_catalog(acl), &text);
    resp_bulk(ctx->out, buf_span(&text));
    buf_clear(&text);
    resp_bulk_str(ctx->out, "keys");
    permissions_add_names(&user->terms, &text);
    resp_bulk(ctx->out, buf_span(&text));
    buf_clear(&text);
    resp_bulk_str(ctx->out, "channels");
    permissions_add_channels(&user->terms, &text);
    resp_bulk(ctx->out, buf_span(&text));
    resp_bulk_str(ctx->out, "selectors");
    resp_array(ctx->out, 0);
    buf_reset(&text);
}

/* --- SETUSER, DELUSER ------------------------------------------------- */

void cmd_acl_setuser(struct command_ctx *ctx)
{
    struct span name = ctx->argv[2];
    char reason[ACL_REASON_MAX];

    if (acl_set(ctx->cmd->users.acl, name, ctx->argv + 3, ctx->argc - 3, reason,
                sizeof(reason)) == NULL) {
        ctx_error(ctx, LATCHD_ERR, "%s", reason);
        return;
    }
    log_about_client(ctx, LOG_NOTICE, SPAN_NONE, "ACL SETUSER sets up user %.*s",
                     (int)name.len, name.ptr);
    users_changed(ctx->cmd, ctx);
    resp_simple(ctx->out, "OK");
}

void cmd_acl_deluser(struct command_ctx *ctx)
{
    int64_t count = 0;

    for (size_t i = 2; i < ctx->argc; i++) {
        if (span_eq(ctx->argv[i], SPAN("default"))) {
            ctx_error(ctx, LATCHD_ERR, "The 'default' user cannot be removed");
            return;
        }
    }
    for (size_t i = 2; i < ctx->argc; i++) {
        if (acl_delete(ctx->cmd->users.acl, ctx->argv[i])) {
            log_about_client(ctx, LOG_NOTICE, SPAN_NONE,
                             "ACL DELUSER removes user %.*s", (int)ctx->argv[i].len,
                             ctx->argv[i].ptr);
            count++;
        }
    }
    users_changed(ctx->cmd, ctx);
    resp_int(ctx->out, count);
}

/* --- LOAD, SAVE ------------------------------------------------------- */

static bool has_file(struct command_ctx *ctx)
{
    const struct cmd_env *env = &ctx->cmd->env;

    if (env->acl_file != NULL && env->acl_file(env->ctx)[0] != '\0') {
        return true;
    }
    ctx_error(ctx, LATCHD_ERR,
              "This Redis instance is not configured to use an ACL file: set aclfile, "
              "and start again");
    return false;
}

void cmd_acl_load(struct command_ctx *ctx)
{
    const struct cmd_env *env = &ctx->cmd->env;
    struct buf text = { 0 }, reason = { 0 };

    if (!has_file(ctx)) {
        return;
    }
    if (!env->acl_read(env->ctx, &text, &reason) ||
        !cmd_load_users(ctx->cmd, env->acl_file(env->ctx), buf_span(&text), ctx,
                        &reason)) {
        ctx_error(ctx, LATCHD_ERR, "%.*s", (int)buf_len(&reason), buf_ptr(&reason));
    } else {
        log_about_client(ctx, LOG_NOTICE, SPAN_NONE, "ACL LOAD reads the users again");
        resp_simple(ctx->out, "OK");
    }
    buf_reset(&text);
    buf_reset(&reason);
}

void cmd_acl_save(struct command_ctx *ctx)
{
    const struct cmd_env *env = &ctx->cmd->env;
    struct buf text = { 0 };

    if (!has_file(ctx)) {
        return;
    }
    acl_save(ctx->cmd->users.acl, &text);
    if (env->acl_write(env->ctx, buf_span(&text))) {
        resp_simple(ctx->out, "OK");
    } else {
        ctx_error(ctx, LATCHD_ERR,
                  "There was an error trying to save the ACLs. Please check the server "
                  "logs for more information");
    }
    buf_reset(&text);
}
