/* ACL LIST, USERS, GETUSER, SETUSER, DELUSER, LOAD, SAVE. */
#include "cmd/acl/users.h"
#include "cmd/handlers.h"
#include "cmd/observe/log_identity.h"

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
