#include "daemon/status/json_rows.h"

#include "daemon/server_state.h"

enum { DATA_SHOWN_MAX = 120 };

static void write_client(struct row_writer *w, uint64_t id)
{
    struct conn *c = id == 0 ? NULL : net_find(w->s->net, id);
    struct conn_info info;

    if (c == NULL) {
        json_null(w->j, "from");
        return;
    }
    conn_info(c, &info);
    json_uint(w->j, "client", id);
    json_text(w->j, "from", info.peer);
}

/* The page shows the beginning; LOCKINFO tells all. */
static void write_data(struct row_writer *w, struct span data)
{
    bool is_cut = data.len > DATA_SHOWN_MAX;

    json_bytes(w->j, "data", is_cut ? span_of(data.ptr, DATA_SHOWN_MAX) : data);
    json_bool(w->j, "data_is_cut", is_cut);
}

static void write_holder(struct row_writer *w, const struct hold_view *v)
{
    json_bytes(w->j, "owner", v->owner);
    json_text(w->j, "kind", lock_kind_name(v->kind));
    json_uint(w->j, "token", v->token);
    json_uint(w->j, "held_ms", v->held_ms);
    json_uint(w->j, "left_ms", v->left_ms);
    json_bool(w->j, "fixed", v->lease == LEASE_FIXED);
    json_bool(w->j, "endless", v->lease == LEASE_ENDLESS);
    json_bool(w->j, "uncertain", v->uncertain);
    json_bool(w->j, "local", v->local);
    json_bool(w->j, "rests", v->rests);
    json_uint(w->j, "atleast_ms", v->atleast_ms);
    json_uint(w->j, "permits", v->permits);
    write_data(w, v->data);
    write_client(w, v->conn);
}

void write_hold_row(void *ctx, const struct hold_view *v)
{
    struct row_writer *w = ctx;

    json_open(w->j, NULL, '{');
    json_bytes(w->j, "name", v->name);
    write_holder(w, v);
    json_close(w->j, '}');
}

void write_wait_row(void *ctx, const struct wait_view *v)
{
    struct row_writer *w = ctx;

    json_open(w->j, NULL, '{');
    json_bytes(w->j, "name", v->name);
    json_bytes(w->j, "owner", v->waiter.owner);
    json_text(w->j, "kind", lock_kind_name(v->waiter.kind));
    json_uint(w->j, "waited_ms", v->waiter.waited_ms);
    if (v->waiter.left_ms == UINT64_MAX) {
        json_null(w->j, "left_ms");
    } else {
        json_uint(w->j, "left_ms", v->waiter.left_ms);
    }
    json_bytes(w->j, "held_by", v->held_by);
    json_uint(w->j, "ahead", v->ahead);
    json_bool(w->j, "lent", v->lent);
    json_bool(w->j, "local", v->waiter.local);
    json_uint(w->j, "permits", v->waiter.permits);
    json_uint(w->j, "priority", v->waiter.priority);
    write_client(w, v->waiter.conn);
    json_close(w->j, '}');
}

void write_name_fields(struct row_writer *w, const struct name_view *v)
{
    json_uint(w->j, "waiting", v->waiting);
    json_uint(w->j, "longest_ms", v->longest_wait_ms);
    json_uint(w->j, "holds", v->holds);
    json_bool(w->j, "lent", v->lent);
    json_bool(w->j, "latch", v->is_latch);
    if (v->holds > 0) {
        write_holder(w, &v->newest);
    }
}

void write_name_row(void *ctx, const struct name_view *v)
{
    struct row_writer *w = ctx;

    json_open(w->j, NULL, '{');
    json_bytes(w->j, "name", v->name);
    write_name_fields(w, v);
    json_close(w->j, '}');
}

void write_loss_row(struct row_writer *w, const struct loss *loss)
{
    json_open(w->j, NULL, '{');
    json_bytes(w->j, "name", loss_name(loss));
    json_bytes(w->j, "owner", loss_owner(loss));
    json_uint(w->j, "token", loss->token);
    json_uint(w->j, "ago_ms", w->s->now_ms - loss->at_ms);
    json_uint(w->j, "client", loss->client);
    json_text(w->j, "cause", loss_cause_word(loss->cause));
    json_bytes(w->j, "taker", loss_taker(loss));
    json_uint(w->j, "forced_by", loss->forced_by);
    json_text(w->j, "forced_from", loss->forced_from);
    json_close(w->j, '}');
}
