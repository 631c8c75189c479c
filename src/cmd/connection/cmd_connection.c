/* Commands about the connection itself: AUTH, HELLO, PING, SELECT, QUIT, RESET, ... */
#include "cmd/acl/users.h"
#include "cmd/handlers.h"
#include "cmd/observe/log_identity.h"
#include "cmd/observe/refusals.h"
#include "util/clock.h"
#include "util/text.h"

#include <inttypes.h>
#include <stdio.h>

/* --- AUTH, and the login of HELLO ------------------------------------- */

/* A login that fails is counted, logged without the password, and slows its address
 * down. */

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

/* Logs the client in, or replies with the error. */
static bool ctx_log_in(struct command_ctx *ctx, struct span name, struct span password)
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

/* --- HELLO ------------------------------------------------------------ */

struct hello {
    int proto;
    bool has_name;
    bool has_auth;
    struct span name;
    struct span user;
    struct span password;
};

static bool hello_read(struct command_ctx *ctx, struct hello *ret)
{
    int64_t version;

    *ret = (struct hello){ .proto = ctx->proto };
    if (ctx->argc > 1) {
        if (!parse_i64(ctx->argv[1], &version)) {
            ctx_error(ctx, LATCHD_ERR,
                      "Protocol version is not an integer or out of range");
            return false;
        }
        if (version != 2 && version != 3) {
            ctx_error(ctx, LATCHD_ERR_NOPROTO, "unsupported protocol version");
            return false;
        }
        ret->proto = (int)version;
    }
    for (size_t at = 2; at < ctx->argc; at++) {
        if (ctx_arg_is(ctx, at, "AUTH") && at + 2 < ctx->argc) {
            ret->has_auth = true;
            ret->user = ctx->argv[at + 1];
            ret->password = ctx->argv[at + 2];
            at += 2;
        } else if (ctx_arg_is(ctx, at, "SETNAME") && at + 1 < ctx->argc) {
            ret->has_name = true;
            ret->name = ctx->argv[++at];
        } else {
            ctx_error(ctx, LATCHD_ERR, "Syntax error in HELLO option '%.*s'",
                      span_quoted_len(ctx->argv[at]), ctx->argv[at].ptr);
            return false;
        }
    }
    return true;
}

static void hello_write(struct command_ctx *ctx)
{
    struct buf *out = ctx->out;

    resp_map(out, ctx->proto, 7);
    resp_bulk_str(out, "server");
    resp_bulk_str(out, "latchd");
    resp_bulk_str(out, "version");
    resp_bulk_str(out, REDIS_COMPAT_VERSION);
    resp_bulk_str(out, "proto");
    resp_int(out, ctx->proto);
    resp_bulk_str(out, "id");
    resp_int(out, (int64_t)ctx->client->id);
    resp_bulk_str(out, "mode");
    resp_bulk_str(out, "standalone");
    resp_bulk_str(out, "role");
    resp_bulk_str(out, "master");
    resp_bulk_str(out, "modules");
    resp_array(out, 0);
}

void cmd_hello(struct command_ctx *ctx)
{
    struct hello hello;

    if (!hello_read(ctx, &hello)) {
        return;
    }
    if (hello.has_auth && !ctx_log_in(ctx, hello.user, hello.password)) {
        return;
    }
    if (client_needs_auth(ctx->cmd, ctx->client)) {
        ctx_error(
            ctx, LATCHD_ERR_NOAUTH,
            "HELLO must be called with the client already authenticated, otherwise "
            "the HELLO <proto> AUTH <user> <pass> option can be used to "
            "authenticate the client and select the RESP protocol version at the "
            "same time");
        return;
    }
    if (hello.has_name && !ctx_set_name(ctx, hello.name)) {
        return;
    }
    ctx->client->proto = ctx->proto = hello.proto;
    hello_write(ctx);
}

/* --- short commands --------------------------------------------------- */

void cmd_ping(struct command_ctx *ctx)
{
    struct span text = ctx->argc == 2 ? ctx->argv[1] : SPAN("");

    if (ctx->argc > 2) {
        ctx_arity_error(ctx);
    } else if (ctx->proto == 2 && client_is_subscribed(ctx->client)) {
        resp_array(ctx->out, 2);
        resp_bulk_str(ctx->out, "pong");
        resp_bulk(ctx->out, text);
    } else if (ctx->argc == 2) {
        resp_bulk(ctx->out, text);
    } else {
        resp_simple(ctx->out, "PONG");
    }
}

void cmd_echo(struct command_ctx *ctx)
{
    resp_bulk(ctx->out, ctx->argv[1]);
}

/* 0 is what clients select that care for no number. */
bool ctx_has_database(struct command_ctx *ctx, int64_t index)
{
    unsigned database = ctx->cmd->limits.database;

    if (index == 0 || index == database) {
        return true;
    }
    ctx_refuse(
        ctx, LATCHD_ERR,
        "DB index is out of range: this latchd keeps its locks in database %u of "
        "its Redis; connect with that number or without one, or to a latchd "
        "whose option redis names the other database",
        database);
    return false;
}

void cmd_select(struct command_ctx *ctx)
{
    int64_t index;

    if (ctx_arg_int(ctx, 1, &index) && ctx_has_database(ctx, index)) {
        resp_simple(ctx->out, "OK");
    }
}

void cmd_quit(struct command_ctx *ctx)
{
    resp_simple(ctx->out, "OK");
    conn_set_end(ctx->conn, END_QUIT);
    conn_drain(ctx->conn);
}

void cmd_reset(struct command_ctx *ctx)
{
    pubsub_remove_all(ctx->cmd->pubsub, &ctx->client->sub);
    client_untrack(ctx->cmd, ctx->client);
    client_reset(ctx->client);
    conn_set_exempt(ctx->conn, false);
    client_set_user(ctx->client, acl_default(ctx->cmd->users.acl));
    ctx->client->authenticated = acl_is_open(ctx->cmd->users.acl);
    ctx->out = conn_out(ctx->conn);
    resp_simple(ctx->out, "RESET");
}

void cmd_readonly(struct command_ctx *ctx)
{
    resp_simple(ctx->out, "OK");
}

void cmd_time(struct command_ctx *ctx)
{
    uint64_t now = clock_wall_us();
    char text[24];

    resp_array(ctx->out, 2);
    (void)snprintf(text, sizeof(text), "%" PRIu64, now / 1000000);
    resp_bulk_str(ctx->out, text);
    (void)snprintf(text, sizeof(text), "%" PRIu64, now % 1000000);
    resp_bulk_str(ctx->out, text);
}

void cmd_role(struct command_ctx *ctx)
{
    resp_array(ctx->out, 3);
    resp_bulk_str(ctx->out, "master");
    resp_int(ctx->out, 0);
    resp_array(ctx->out, 0);
}

/* WAIT: latchd has no replicas that could acknowledge. */
void cmd_wait(struct command_ctx *ctx)
{
    int64_t replicas, timeout;

    if (!ctx_arg_int(ctx, 1, &replicas)) {
        return;
    }
    if (!parse_i64(ctx->argv[2], &timeout)) {
        ctx_error(ctx, LATCHD_ERR, "timeout is not an integer or out of range");
    } else if (timeout < 0) {
        ctx_error(ctx, LATCHD_ERR, "timeout is negative");
    } else {
        resp_int(ctx->out, 0);
    }
}
