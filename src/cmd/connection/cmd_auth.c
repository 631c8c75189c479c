/* AUTH, and the login of HELLO. Failures are counted, logged without the password, and
 * slow the address down. */
#include "cmd/acl/users.h"
#include "cmd/handlers.h"
#include "cmd/observe/log_identity.h"

#include <stdio.h>

/* --- the address of a client ------------------------------------------ */

/* The length of an IPv6 address without its last 64 bits, which a customer can choose
 * freely. */
static size_t network_len(struct span address)
{
    size_t colons = 0, i = 0;

    if (span_starts(address, SPAN("::ffff:"))) {
        return address.len; /* IPv4 */
    }
    for (; i < address.len; i++) {
        colons += address.ptr[i] == ':';
        if (colons == 4 ||
            (i > 0 && address.ptr[i] == ':' && address.ptr[i - 1] == ':')) {
            break;
        }
    }
    return i;
}

/* "192.0.2.1:4711" without its port, "[2001:db8::1]:4711" as its network. */
static struct span peer_origin(struct span peer)
{
    size_t end = peer.len;

    while (end > 0 && peer.ptr[end - 1] != ':') {
        end--;
    }
    if (end < 2) {
        return peer; /* a unix socket */
    }
    peer.len = end - 1;
    if (peer.ptr[0] != '[') {
        return peer;
    }
    peer = span_of(peer.ptr + 1, peer.len - 2);
    return span_of(peer.ptr, network_len(peer));
}

/* --- logging in ------------------------------------------------------- */

static bool is_slowed_down(struct command_ctx *ctx)
{
    struct throttle *t = ctx->cmd->users.throttle;
    struct conn_info info;

    if (throttle_count(t) == 0) {
        return false;
    }
    conn_info(ctx->conn, &info);
    if (throttle_allows(t, peer_origin(span_str(info.peer)),
                        ctx->cmd->env.now_ms(ctx->cmd->env.ctx))) {
        return false;
    }
    ctx_error(ctx, LATCHD_ERR_LIMIT,
              "too many failed logins from this address: try again in a second");
    return true;
}

/* Users type passwords where a name is expected: only names that exist are logged. */
static void on_login_failed(struct command_ctx *ctx, struct span name)
{
    const struct acl_user *user = acl_find(ctx->cmd->users.acl, name);
    struct span shown =
        user == NULL ? SPAN("(unknown)") : span_of(user->name, user->name_len);
    struct conn_info info;

    conn_info(ctx->conn, &info);
    throttle_take(ctx->cmd->users.throttle, peer_origin(span_str(info.peer)),
                  ctx->cmd->env.now_ms(ctx->cmd->env.ctx));
    acl_check_denied(ctx, DENIAL_LOGIN,
                     ctx->command->run == cmd_auth ? SPAN("AUTH") : SPAN("HELLO"),
                     shown);
    log_about_client(ctx, LOG_NOTICE, SPAN_NONE, "failed to log in as %s%.*s",
                     user == NULL ? "a user that is not there" : "",
                     (int)(user == NULL ? 0 : shown.len), shown.ptr);
    if (++ctx->client->failed_logins >= LOGIN_TRIES_MAX) {
        conn_set_end(ctx->conn, END_LOGIN);
        ctx_close_after(ctx);
    }
}

bool ctx_log_in(struct command_ctx *ctx, struct span name, struct span password)
{
    struct acl_user *user;

    if (is_slowed_down(ctx)) {
        return false;
    }
    user = acl_login(ctx->cmd->users.acl, name, password);
    if (user == NULL) {
        on_login_failed(ctx, name);
        ctx_error(ctx, LATCHD_ERR_WRONGPASS,
                  "invalid username-password pair or user is disabled.");
        return false;
    }
    client_set_user(ctx->client, user);
    ctx->client->authenticated = true;
    ctx->client->failed_logins = 0;
    return true;
}

void cmd_auth(struct command_ctx *ctx)
{
    const struct acl_user *standard = acl_default(ctx->cmd->users.acl);

    if (ctx->argc > 3) {
        ctx_syntax_error(ctx);
    } else if (ctx->argc == 2 && (standard->terms.flags & PERM_NOPASS) != 0) {
        ctx_error(
            ctx, LATCHD_ERR,
            "AUTH <password> called without any password configured for the default "
            "user. Are you sure your configuration is correct?");
    } else if (ctx_log_in(ctx, ctx->argc == 3 ? ctx->argv[1] : SPAN("default"),
                          ctx->argv[ctx->argc - 1])) {
        resp_simple(ctx->out, "OK");
    }
}
