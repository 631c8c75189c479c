#include "cmd/observe/redaction.h"

#include "cmd/cmd_priv.h"

#include <stdio.h>

/* Every key that may hold a password has `pass` in its name, except the URL. */
static bool is_secret_key(struct span key)
{
    static const char WORD[] = "pass";
    enum { LEN = sizeof(WORD) - 1 };

    for (size_t i = 0; i + LEN <= key.len; i++) {
        if (span_eq_nocase(span_of(key.ptr + i, LEN), SPAN(WORD))) {
            return true;
        }
    }
    return span_eq_nocase(key, SPAN("redis"));
}

/* HELLO version [AUTH user password] [SETNAME name]. A user or client may be named
 * AUTH, too: then one argument too many is hidden. */
static bool is_secret_of_hello(const struct command_ctx *ctx, size_t at)
{
    for (size_t i = 2; i < at && i < ctx->argc; i++) {
        if (ctx_arg_is(ctx, i, "AUTH") && at <= i + 2) {
            return true;
        }
    }
    return false;
}

static bool is_secret(const struct command_ctx *ctx, size_t at)
{
    const char *name = ctx->command->name;

    if (strcmp(name, "auth") == 0) {
        return at >= 1;
    }
    if (strcmp(name, "hello") == 0) {
        return is_secret_of_hello(ctx, at);
    }
    if (strcmp(name, "acl|setuser") == 0) {
        return at >= 2;
    }
    if (strcmp(name, "acl|dryrun") == 0) {
        return at >= 4; /* the arguments of any command, AUTH's as well */
    }
    return strcmp(name, "config|set") == 0 && at >= 3 && at % 2 == 1 &&
           is_secret_key(ctx->argv[at - 1]);
}

struct span redacted_arg(const struct command_ctx *ctx, size_t at)
{
    return is_secret(ctx, at) ? SPAN("(redacted)") : ctx->argv[at];
}

void redacted_peer(const struct conn *conn, char out[REDACTED_PEER_ROOM])
{
    struct conn_info info;

    conn_info(conn, &info);
    (void)snprintf(out, REDACTED_PEER_ROOM, "%s", info.peer);
}
