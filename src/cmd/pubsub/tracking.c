#include "cmd/pubsub/tracking.h"

#include "cmd/acl/sight.h"
#include "cmd/cmd_priv.h"
#include "resp/writer.h"
#include "util/alloc.h"

#include <stdlib.h>

/* Informs connections that track about their holds, by `invalidate` pushes. The names
 * of one turn are collected per connection, and sent together. */

static void tracker_free(struct tracking *t, struct tracker *tr);
static bool tracker_note(struct tracking *t, struct tracker *tr, struct span name);
static void tracker_clear(struct tracker *tr);

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

void tracking_init(struct tracking *t)
{
    *t = (struct tracking){ 0 };
    list_init(&t->bcast);
    list_init(&t->dirty);
}

struct tracker *tracker_new(struct tracking *t, uint64_t conn)
{
    struct tracker *tr = xcalloc(1, sizeof(*tr));

    tr->conn = conn;
    list_init(&tr->in_bcast);
    list_init(&tr->in_dirty);
    list_init(&tr->prefixes);
    t->count++;
    return tr;
}

/* Unlinks and frees a tracker. Accepts NULL. */
static void tracker_free(struct tracking *t, struct tracker *tr)
{
    struct list *it, *tmp;

    if (tr == NULL) {
        return;
    }
    LIST_FOREACH_SAFE(it, tmp, &tr->prefixes)
    {
        free(container_of(it, struct track_prefix, in_tracker));
    }
    list_del(&tr->in_bcast);
    list_del(&tr->in_dirty);
    buf_reset(&tr->names);
    t->count--;
    free(tr);
}

bool prefixes_overlap(struct span a, struct span b)
{
    return span_starts(a, b) || span_starts(b, a);
}

static struct span text_of(const struct list *it)
{
    const struct track_prefix *p = container_of(it, struct track_prefix, in_tracker);

    return span_of(p->text, p->len);
}

bool tracker_overlaps(const struct tracker *tr, struct span prefix, struct span *ret)
{
    struct list *it;

    LIST_FOREACH(it, &tr->prefixes)
    {
        *ret = text_of(it);
        if (prefixes_overlap(*ret, prefix)) {
            return true;
        }
    }
    return false;
}

void tracker_add_prefix(struct tracking *t, struct tracker *tr, struct span prefix)
{
    struct track_prefix *p = xmalloc(sizeof(*p) + prefix.len);

    p->len = prefix.len;
    if (prefix.len != 0) {
        memcpy(p->text, prefix.ptr, prefix.len);
    }
    list_append(&tr->prefixes, &p->in_tracker);
    tr->prefix_count++;
    if (!tr->bcast) {
        tr->bcast = true;
        list_append(&t->bcast, &tr->in_bcast);
    }
}

bool tracker_wants(const struct tracker *tr, struct span name)
{
    struct list *it;

    LIST_FOREACH(it, &tr->prefixes)
    {
        if (span_starts(name, text_of(it))) {
            return true;
        }
    }
    return false;
}

/* Adds a name to be sent. True: the push is full now. */
static bool tracker_note(struct tracking *t, struct tracker *tr, struct span name)
{
    if (list_empty(&tr->in_dirty)) {
        list_append(&t->dirty, &tr->in_dirty);
    }
    resp_bulk(&tr->names, name);
    return ++tr->name_count >= TRACK_NAMES_MAX;
}

/* Forgets the unsent names. */
static void tracker_clear(struct tracker *tr)
{
    list_del(&tr->in_dirty);
    buf_reset(&tr->names);
    tr->name_count = 0;
}
