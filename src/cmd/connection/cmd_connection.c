/* Who a connection is and how it talks: AUTH, HELLO, PING, SELECT, QUIT, RESET, ... */
#include "cmd/handlers.h"

#include "util/clock.h"
#include "util/parse.h"

#include <inttypes.h>

/* --- HELLO -------------------------------------------------------------------------
 */

struct hello {
    int proto;
    bool has_name;
    bool has_auth;
    struct span name;
    struct span user;
    struct span password;
};

static bool hello_read(struct command_ctx *call, struct hello *ret)
{
    int64_t version;

    *ret = (struct hello){ .proto = call->proto };
    if (call->argc > 1) {
        if (!parse_i64(call->argv[1], &version)) {
            ctx_error(call, LATCHD_ERR,
                      "Protocol version is not an integer or out of range");
            return false;
        }
        if (version != 2 && version != 3) {
            ctx_error(call, LATCHD_ERR_NOPROTO, "unsupported protocol version");
            return false;
        }
        ret->proto = (int)version;
    }
    for (size_t at = 2; at < call->argc; at++) {
        if (ctx_arg_is(call, at, "AUTH") && at + 2 < call->argc) {
            ret->has_auth = true;
            ret->user = call->argv[at + 1];
            ret->password = call->argv[at + 2];
            at += 2;
        } else if (ctx_arg_is(call, at, "SETNAME") && at + 1 < call->argc) {
            ret->has_name = true;
            ret->name = call->argv[++at];
        } else {
            ctx_error(call, LATCHD_ERR, "Syntax error in HELLO option '%.*s'",
                      span_shown(call->argv[at]), call->argv[at].ptr);
            return false;
        }
    }
    return true;
}

static void hello_write(struct command_ctx *call)
{
    struct buf *out = call->out;

    resp_map(out, call->proto, 7);
    resp_bulk_str(out, "server");
    resp_bulk_str(out, "latchd");
    resp_bulk_str(out, "version");
    resp_bulk_str(out, REDIS_COMPAT_VERSION);
    resp_bulk_str(out, "proto");
    resp_int(out, call->proto);
    resp_bulk_str(out, "id");
    resp_int(out, (int64_t)call->client->id);
    resp_bulk_str(out, "mode");
    resp_bulk_str(out, "standalone");
    resp_bulk_str(out, "role");
    resp_bulk_str(out, "master");
    resp_bulk_str(out, "modules");
    resp_array(out, 0);
}

void cmd_hello(struct command_ctx *call)
{
    struct hello hello;

    if (!hello_read(call, &hello)) {
        return;
    }
    if (hello.has_auth && !ctx_log_in(call, hello.user, hello.password)) {
        return;
    }
    if (client_needs_auth(call->cmd, call->client)) {
        ctx_error(
            call, LATCHD_ERR_NOAUTH,
            "HELLO must be called with the client already authenticated, otherwise "
            "the HELLO <proto> AUTH <user> <pass> option can be used to "
            "authenticate the client and select the RESP protocol version at the "
            "same time");
        return;
    }
    if (hello.has_name && !ctx_set_name(call, hello.name)) {
        return;
    }
    call->client->proto = call->proto = hello.proto;
    hello_write(call);
}

/* --- small ones --------------------------------------------------------------------
 */

void cmd_ping(struct command_ctx *call)
{
    struct span text = call->argc == 2 ? call->argv[1] : SPAN("");

    if (call->argc > 2) {
        ctx_arity_error(call);
    } else if (call->proto == 2 && client_is_subscribed(call->client)) {
        resp_array(call->out, 2);
        resp_bulk_str(call->out, "pong");
        resp_bulk(call->out, text);
    } else if (call->argc == 2) {
        resp_bulk(call->out, text);
    } else {
        resp_simple(call->out, "PONG");
    }
}

void cmd_echo(struct command_ctx *call)
{
    resp_bulk(call->out, call->argv[1]);
}

void cmd_select(struct command_ctx *call)
{
    int64_t index;

    if (!ctx_arg_int(call, 1, &index)) {
        return;
    }
    if (index != 0) {
        ctx_error(call, LATCHD_ERR, "DB index is out of range");
        return;
    }
    resp_simple(call->out, "OK");
}

void cmd_quit(struct command_ctx *call)
{
    resp_simple(call->out, "OK");
    conn_set_end(call->conn, END_QUIT);
    conn_drain(call->conn);
}

void cmd_reset(struct command_ctx *call)
{
    pubsub_remove_all(call->cmd->pubsub, &call->client->sub);
    client_untrack(call->cmd, call->client);
    client_reset(call->client);
    conn_spare(call->conn, false);
    client_set_user(call->client, acl_default(call->cmd->users.acl));
    call->client->authed = acl_is_open(call->cmd->users.acl);
    call->out = conn_out(call->conn);
    resp_simple(call->out, "RESET");
}

void cmd_readonly(struct command_ctx *call)
{
    resp_simple(call->out, "OK");
}

void cmd_time(struct command_ctx *call)
{
    uint64_t now = clock_wall_us();
    char text[24];

    resp_array(call->out, 2);
    (void)snprintf(text, sizeof(text), "%" PRIu64, now / 1000000);
    resp_bulk_str(call->out, text);
    (void)snprintf(text, sizeof(text), "%" PRIu64, now % 1000000);
    resp_bulk_str(call->out, text);
}

void cmd_role(struct command_ctx *call)
{
    resp_array(call->out, 3);
    resp_bulk_str(call->out, "master");
    resp_int(call->out, 0);
    resp_array(call->out, 0);
}

/* This daemon has no replicas: nobody can acknowledge. */
void cmd_wait(struct command_ctx *call)
{
    int64_t replicas, timeout;

    if (!ctx_arg_int(call, 1, &replicas)) {
        return;
    }
    if (!parse_i64(call->argv[2], &timeout)) {
        ctx_error(call, LATCHD_ERR, "timeout is not an integer or out of range");
    } else if (timeout < 0) {
        ctx_error(call, LATCHD_ERR, "timeout is negative");
    } else {
        resp_int(call->out, 0);
    }
}
