/* LOCKS TOP: the names with the most waiters, and those held longest. */
#include "cmd/acl/sight.h"
#include "cmd/handlers.h"
#include "engine/survey.h"

#include <stdlib.h>

/* Names that one call looks at; if there are more, each call sees another part. */
enum { TOP_SCAN_MAX = 16384 };

struct top {
    struct name_view rows[ARGS_TOP_MAX + 1];
    size_t count;
    size_t most;
    const struct command_ctx *ctx; /* who asks */
};

/* Orders by the number of waiters, then by how long the first has waited, then by how
 * long the name is held. */
static bool is_hotter(const struct name_view *a, const struct name_view *b)
{
    if (a->waiting != b->waiting) {
        return a->waiting > b->waiting;
    }
    if (a->longest_wait_ms != b->longest_wait_ms) {
        return a->longest_wait_ms > b->longest_wait_ms;
    }
    return a->newest.held_ms > b->newest.held_ms;
}

static void on_name(void *ctx, const struct name_view *view)
{
    struct top *top = ctx;
    size_t at = top->count;

    if (sight_of(top->ctx->cmd, top->ctx->client, view->name, 0) == SIGHT_NOTHING) {
        return;
    }
    if (at == top->most && !is_hotter(view, &top->rows[at - 1])) {
        return;
    }
    for (size_t i = 0; i < top->count; i++) {
        if (span_eq(top->rows[i].name, view->name)) {
            return;
        }
    }
    while (at > 0 && is_hotter(view, &top->rows[at - 1])) {
        top->rows[at] = top->rows[at - 1];
        at--;
    }
    top->rows[at] = *view;
    top->count += top->count < top->most;
}

struct finding {
    struct top *top;
    const struct engine *engine;
};

static void on_wait(void *ctx, const struct wait_view *view)
{
    const struct finding *f = ctx;
    struct name_view name;

    if (survey_name(f->engine, view->name, &name)) {
        on_name(f->top, &name);
    }
}

static void write_holder(struct buf *out, int proto, enum sight sight,
                         const struct name_view *row)
{
    const struct hold_view *h = &row->newest;

    if (row->holds == 0) {
        resp_null(out, proto);
        return;
    }
    resp_map(out, proto, 8);
    resp_bulk_str(out, "owner");
    resp_bulk(out, h->owner);
    write_kind(out, h->kind);
    resp_bulk_str(out, "token");
    write_id(out, proto, sight_token(sight, h->owner, h->token));
    resp_bulk_str(out, "client");
    write_id(out, proto, h->conn);
    resp_bulk_str(out, "held");
    resp_int(out, (int64_t)h->held_ms);
    resp_bulk_str(out, "left");
    resp_int(out, (int64_t)h->left_ms);
    resp_bulk_str(out, "renewed");
    resp_bulk_str(out, lease_kind_name(h->lease));
    resp_bulk_str(out, "local");
    resp_int(out, h->local);
}

void cmd_locks_top(struct command_ctx *ctx, size_t most)
{
    struct engine *engine = ctx->cmd->env.engine;
    struct top top = { .most = most, .ctx = ctx };
    struct finding finding = { &top, engine };
    struct cmd *c = ctx->cmd;

    /* The longest wait is always included, however many names there are. */
    survey_waits(engine, most, on_wait, &finding);
    c->top_cursor = survey_names(engine, c->top_cursor, TOP_SCAN_MAX, on_name, &top);
    resp_array(ctx->out, top.count);
    for (size_t i = 0; i < top.count; i++) {
        const struct name_view *row = &top.rows[i];

        resp_map(ctx->out, ctx->proto, 6);
        resp_bulk_str(ctx->out, "name");
        resp_bulk(ctx->out, row->name);
        resp_bulk_str(ctx->out, "waiting");
        resp_int(ctx->out, (int64_t)row->waiting);
        resp_bulk_str(ctx->out, "waited");
        resp_int(ctx->out, (int64_t)row->longest_wait_ms);
        resp_bulk_str(ctx->out, "holds");
        resp_int(ctx->out, (int64_t)row->holds);
        resp_bulk_str(ctx->out, "holder");
        write_holder(ctx->out, ctx->proto,
                     sight_of(ctx->cmd, ctx->client, row->name, 0), row);
        resp_bulk_str(ctx->out, "latch");
        resp_int(ctx->out, row->is_latch);
    }
}
