/* ACL LIST, USERS, GETUSER, SETUSER, DELUSER, LOAD, SAVE. */
#include "cmd/acl/users.h"
#include "cmd/handlers.h"
#include "cmd/observe/log_identity.h"

/* --- looking ---------------------------------------------------------------------- */

static void list_name(void *ctx, struct acl_user *user)
{
    struct command_ctx *call = ctx;

    resp_bulk(call->out, span_of(user->name, user->name_len));
}

void cmd_acl_users(struct command_ctx *call)
{
    resp_array(call->out, acl_count(call->cmd->users.acl));
    acl_each(call->cmd->users.acl, list_name, call);
}

static void list_line(void *ctx, struct acl_user *user)
{
    struct command_ctx *call = ctx;
    struct buf line = { 0 };

    acl_describe(call->cmd->users.acl, user, &line);
    resp_bulk(call->out, buf_span(&line));
    buf_reset(&line);
}

void cmd_acl_list(struct command_ctx *call)
{
    resp_array(call->out, acl_count(call->cmd->users.acl));
    acl_each(call->cmd->users.acl, list_line, call);
}

static void write_flags(struct command_ctx *call, const struct permissions *t)
{
    const char *words[4];
    size_t count = permissions_flag_words(t, words);

    resp_bulk_str(call->out, "flags");
    resp_set(call->out, call->proto, count);
    for (size_t i = 0; i < count; i++) {
        resp_bulk_str(call->out, words[i]);
    }
}

static void write_passwords(struct command_ctx *call, const struct permissions *t)
{
    struct buf hex = { 0 };

    resp_bulk_str(call->out, "passwords");
    resp_array(call->out, t->password_count);
    for (size_t i = 0; i < t->password_count; i++) {
        buf_clear(&hex);
        secret_add_hex(&t->passwords[i], &hex);
        resp_bulk(call->out, buf_span(&hex));
    }
    buf_reset(&hex);
}

void cmd_acl_getuser(struct command_ctx *call)
{
    const struct acl *acl = call->cmd->users.acl;
    const struct acl_user *user = acl_find(acl, call->argv[2]);
    struct buf text = { 0 };

    if (user == NULL) {
        ctx_null(call);
        return;
    }
    resp_map(call->out, call->proto, 6);
    write_flags(call, &user->terms);
    write_passwords(call, &user->terms);
    resp_bulk_str(call->out, "commands");
    permissions_add_commands(&user->terms, acl_catalog(acl), &text);
    resp_bulk(call->out, buf_span(&text));
    buf_clear(&text);
    resp_bulk_str(call->out, "keys");
    permissions_add_names(&user->terms, &text);
    resp_bulk(call->out, buf_span(&text));
    buf_clear(&text);
    resp_bulk_str(call->out, "channels");
    permissions_add_channels(&user->terms, &text);
    resp_bulk(call->out, buf_span(&text));
    resp_bulk_str(call->out, "selectors");
    resp_array(call->out, 0);
    buf_reset(&text);
}

/* --- changing --------------------------------------------------------------------- */

void cmd_acl_setuser(struct command_ctx *call)
{
    struct span name = call->argv[2];
    char reason[ACL_REASON_MAX];

    if (acl_set(call->cmd->users.acl, name, call->argv + 3, call->argc - 3, reason,
                sizeof(reason)) == NULL) {
        ctx_error(call, LATCHD_ERR, "%s", reason);
        return;
    }
    log_about_client(call, LOG_NOTICE, SPAN_NONE, "ACL SETUSER sets up user %.*s",
                     (int)name.len, name.ptr);
    users_kick(call->cmd, call);
    resp_simple(call->out, "OK");
}

void cmd_acl_deluser(struct command_ctx *call)
{
    int64_t count = 0;

    for (size_t i = 2; i < call->argc; i++) {
        if (span_eq(call->argv[i], SPAN("default"))) {
            ctx_error(call, LATCHD_ERR, "The 'default' user cannot be removed");
            return;
        }
    }
    for (size_t i = 2; i < call->argc; i++) {
        if (acl_delete(call->cmd->users.acl, call->argv[i])) {
            log_about_client(call, LOG_NOTICE, SPAN_NONE,
                             "ACL DELUSER removes user %.*s", (int)call->argv[i].len,
                             call->argv[i].ptr);
            count++;
        }
    }
    users_kick(call->cmd, call);
    resp_int(call->out, count);
}

/* --- the file --------------------------------------------------------------------- */

static bool has_file(struct command_ctx *call)
{
    const struct cmd_env *env = &call->cmd->env;

    if (env->acl_file != NULL && env->acl_file(env->ctx)[0] != '\0') {
        return true;
    }
    ctx_error(call, LATCHD_ERR,
              "This Redis instance is not configured to use an ACL file: set aclfile, "
              "and start again");
    return false;
}

void cmd_acl_load(struct command_ctx *call)
{
    const struct cmd_env *env = &call->cmd->env;
    struct buf text = { 0 }, reason = { 0 };

    if (!has_file(call)) {
        return;
    }
    if (!env->acl_read(env->ctx, &text, &reason) ||
        !cmd_load_users(call->cmd, env->acl_file(env->ctx), buf_span(&text), call,
                        &reason)) {
        ctx_error(call, LATCHD_ERR, "%.*s", (int)buf_len(&reason), buf_ptr(&reason));
    } else {
        log_about_client(call, LOG_NOTICE, SPAN_NONE, "ACL LOAD reads the users again");
        resp_simple(call->out, "OK");
    }
    buf_reset(&text);
    buf_reset(&reason);
}

void cmd_acl_save(struct command_ctx *call)
{
    const struct cmd_env *env = &call->cmd->env;
    struct buf text = { 0 };

    if (!has_file(call)) {
        return;
    }
    acl_save(call->cmd->users.acl, &text);
    if (env->acl_write(env->ctx, buf_span(&text))) {
        resp_simple(call->out, "OK");
    } else {
        ctx_error(call, LATCHD_ERR,
                  "There was an error trying to save the ACLs. Please check the server "
                  "logs for more information");
    }
    buf_reset(&text);
}
