/* unauthenticated: connections that have not logged in yet. They have a limited time
 * for it, and when maxclients is reached, the oldest of them makes room for a new
 * connection: clients without a password cannot keep out those who have one. */
#include "net/net_priv.h"
#include "resp/writer.h"

void conn_become_known(struct conn *c)
{
    if (!c->known && c->state != CONN_CLOSED) {
        c->known = true;
        c->net->stats.unauthenticated--;
        list_del(&c->all);
        list_append(&c->net->conns, &c->all);
    }
}

static bool is_unauthenticated(const struct net *n, struct conn *c)
{
    if (n->handler.is_unauthenticated != NULL &&
        n->handler.is_unauthenticated(n->handler.ctx, c)) {
        return true;
    }
    conn_become_known(c);
    return false;
}

bool net_evict_unauthenticated(struct net *n)
{
    struct list *node;

    while ((node = list_first(&n->unauthenticated)) != NULL) {
        struct conn *c = container_of(node, struct conn, all);

        if (is_unauthenticated(n, c)) {
            conn_set_end(c, END_UNAUTH_EVICTED);
            conn_close(c);
            n->stats.evicted_unauthenticated++;
            return true;
        }
    }
    return false;
}

static struct conn *next_late(const struct net *n)
{
    struct list *node = list_first(&n->unauthenticated);
    struct conn *c = node == NULL ? NULL : container_of(node, struct conn, all);

    return c == NULL || n->limits.login_ms == 0 || n->ticked_ms <= c->opened_ms ||
                   n->ticked_ms - c->opened_ms <= n->limits.login_ms
               ? NULL
               : c;
}

bool net_has_late(const struct net *n)
{
    return next_late(n) != NULL;
}

void net_show_out(struct net *n)
{
    struct conn *c;

    for (; n->ends < TURN_ENDS && (c = next_late(n)) != NULL; n->ends++) {
        if (!is_unauthenticated(n, c)) {
            continue;
        }
        conn_become_known(c); /* otherwise it would be the next one again */
        if (c->state == CONN_OPEN) {
            n->stats.late++;
            conn_set_end(c, END_UNAUTHENTICATED);
            resp_error(conn_out(c), "NOAUTH",
                       SPAN("Authentication required: it took too long"));
            conn_drain(c);
        }
    }
}
