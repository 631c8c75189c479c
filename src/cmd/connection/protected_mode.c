/* Protected mode: without a password, only clients on this machine may connect. */
#include "cmd/cmd_priv.h"
#include "util/log.h"

enum { SAY_AGAIN_MS = 60000 };

static const char WHY[] =
    "latchd is in protected mode: the user default has no password, so only clients of "
    "the same machine are served, on the loopback or a unix socket. Set requirepass or "
    "an aclfile; or, where nobody but your clients can reach this port, start latchd "
    "with --protected-mode no, or say CONFIG SET protected-mode no on that machine.";

static void log_refusal(struct cmd *c, const struct conn *conn)
{
    uint64_t now_ms = c->env.now_ms(c->env.ctx);
    struct conn_info info;

    if (c->protect_said_ms != 0 && now_ms < c->protect_said_ms + SAY_AGAIN_MS) {
        return;
    }
    c->protect_said_ms = now_ms;
    conn_info(conn, &info);
    log_warning(
        "client",
        "protected mode: %s was refused, as clients of other machines are while "
        "there is no password: set requirepass or aclfile",
        info.peer);
}

bool protect_lets_in(struct cmd *c, struct conn *conn)
{
    if (!c->limits.protected_mode || !acl_is_open(c->users.acl) ||
        conn_is_local(conn)) {
        return true;
    }
    log_refusal(c, conn);
    resp_error(conn_out(conn), LATCHD_ERR_DENIED, SPAN(WHY));
    return false;
}
