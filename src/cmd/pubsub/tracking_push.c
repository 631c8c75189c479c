/* Informs connections that track about their holds, by `invalidate` pushes. The names
 * of one turn are collected per connection, and sent together. */
#include "cmd/acl/sight.h"
#include "cmd/cmd_priv.h"

static void write_names(struct conn *conn, const struct tracker *tr)
{
    struct buf *out = conn_out(conn);

    resp_push(out, 3, 2);
    resp_bulk_str(out, "invalidate");
    resp_array(out, tr->name_count);
    buf_add_span(out, buf_span(&tr->names));
}

static void push_names(struct conn *conn, struct tracker *tr)
{
    if (tr->name_count > 0 && conn != NULL && !conn_overflows(conn)) {
        write_names(conn, tr);
    }
    tracker_clear(tr);
}

static void note_name(struct cmd *c, uint64_t id, bool bcast, struct span name)
{
    struct conn *conn = net_find(c->env.net, id);
    const struct client *client = conn == NULL ? NULL : conn_data(conn);
    struct tracker *tr = client == NULL ? NULL : client->tracker;

    /* RESP2 has no pushes. HELLO 2 does not end the tracking: HELLO 3 goes on with it,
     * as in Redis. */
    if (tr != NULL && tr->bcast == bcast && client->proto == 3 &&
        (!bcast || sight_of(c, client, name, 0) != SIGHT_NOTHING) &&
        tracker_note(&c->tracking, tr, name)) {
        push_names(conn, tr);
    }
}

void tracking_notice(struct cmd *c, const struct effect_notice *notice)
{
    struct list *it;

    if (c->tracking.count == 0 || notice->kind == NOTICE_GRANTED ||
        notice->kind == NOTICE_RELEASED) {
        return;
    }
    for (size_t i = 0; i < notice->conn_count; i++) {
        note_name(c, notice->conns[i], false, notice->name);
    }
    LIST_FOREACH(it, &c->tracking.bcast)
    {
        const struct tracker *tr = container_of(it, struct tracker, in_bcast);

        if (tracker_wants(tr, notice->name)) {
            note_name(c, tr->conn, true, notice->name);
        }
    }
}

void tracking_push(struct cmd *c, struct client *client)
{
    if (client->tracker != NULL && client->tracker->name_count > 0) {
        push_names(net_find(c->env.net, client->id), client->tracker);
    }
}

void cmd_push(struct cmd *c)
{
    struct list *it;

    c->answered_us = 0;
    while ((it = list_first(&c->tracking.dirty)) != NULL) {
        struct tracker *tr = container_of(it, struct tracker, in_dirty);

        push_names(net_find(c->env.net, tr->conn), tr);
    }
}

void client_untrack(struct cmd *c, struct client *client)
{
    tracker_free(&c->tracking, client->tracker);
    client->tracker = NULL;
}
