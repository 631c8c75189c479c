/* LOCKINFO, LOCKS, WAITERS: commands that look at locks. */
#include "cmd/handlers.h"

#include "cmd/acl/sight.h"
#include "cmd/lock/redis_names.h"
#include "engine/survey.h"
#include "util/glob.h"

#include <inttypes.h>

enum {
    LOCKINFO_LOSSES_MAX = 10, /* newest; more of one name say no more */
    /* Of LOCKS: names times glob_work(), 10 ms at worst. Patterns of plain letters fit
     * with every COUNT. */
    SCAN_WORK_MAX = ARGS_COUNT_MAX * (GLOB_WORK_PLAIN + 1),
};

static void write_kind(struct buf *out, enum lock_kind kind)
{
    resp_bulk_str(out, "kind");
    resp_bulk_str(out, lock_kind_name(kind));
}

static void write_id(struct buf *out, int proto, uint64_t id)
{
    if (id == 0) {
        resp_null(out, proto);
    } else {
        resp_int(out, (int64_t)id);
    }
}

/* Writes what only the daemon that keeps a hold knows. */
static void write_known(struct buf *out, int proto, const struct info_hold *hold)
{
    static const char *const KEYS[] = { "held", "left", "renewed", "local" };

    if (!hold->here) {
        for (size_t i = 0; i < sizeof(KEYS) / sizeof(KEYS[0]); i++) {
            resp_bulk_str(out, KEYS[i]);
            resp_null(out, proto);
        }
        return;
    }
    resp_bulk_str(out, KEYS[0]);
    resp_int(out, (int64_t)hold->held_ms);
    resp_bulk_str(out, KEYS[1]);
    resp_int(out, (int64_t)hold->left_ms);
    resp_bulk_str(out, KEYS[2]);
    resp_bulk_str(out, lease_kind_name(hold->lease));
    resp_bulk_str(out, KEYS[3]);
    resp_int(out, hold->local);
}

/* One LOCKINFO's reply while it is written. */
struct lockinfo_reply {
    const struct cmd *cmd;
    struct buf *out;
    int proto;
    enum sight sight;
};

static void write_token(struct lockinfo_reply *r, struct span owner, uint64_t token)
{
    resp_bulk_str(r->out, "token");
    write_id(r->out, r->proto, sight_token(r->sight, owner, token));
}

static void write_hold(struct lockinfo_reply *r, const struct info_hold *hold)
{
    resp_map(r->out, r->proto, 11);
    resp_bulk_str(r->out, "owner");
    resp_bulk(r->out, hold->owner);
    write_kind(r->out, hold->kind);
    resp_bulk_str(r->out, "count");
    resp_int(r->out, hold->count);
    write_token(r, hold->owner, hold->token);
    resp_bulk_str(r->out, "client");
    write_id(r->out, r->proto, hold->client);
    write_known(r->out, r->proto, hold);
    resp_bulk_str(r->out, "data");
    resp_bulk(r->out, hold->data);
    resp_bulk_str(r->out, "atleast");
    resp_int(r->out, (int64_t)hold->atleast_ms);
}

/* `whole`: not only what a hold that expired has, too. */
static void write_loss(struct lockinfo_reply *r, const struct loss *loss, bool whole)
{
    uint64_t now_ms = r->cmd->env.now_ms(r->cmd->env.ctx);

    resp_map(r->out, r->proto, whole ? 8 : 4);
    resp_bulk_str(r->out, "owner");
    resp_bulk(r->out, loss_owner(loss));
    write_token(r, loss_owner(loss), loss->token);
    resp_bulk_str(r->out, "client");
    write_id(r->out, r->proto, loss->client);
    resp_bulk_str(r->out, "ago");
    resp_int(r->out, (int64_t)(now_ms - loss->at_ms));
    if (!whole) {
        return;
    }
    resp_bulk_str(r->out, "cause");
    resp_bulk_str(r->out, loss_cause_word(loss->cause));
    resp_bulk_str(r->out, "taker");
    resp_bulk(r->out, loss_taker(loss));
    resp_bulk_str(r->out, "forced_by");
    write_id(r->out, r->proto, loss->forced_by);
    resp_bulk_str(r->out, "forced_from");
    resp_bulk_str(r->out, loss->forced_from);
}

/* Newest first. */
static void write_losses(struct lockinfo_reply *r, const char *key,
                         const struct losses *l, struct span name)
{
    bool whole = l == r->cmd->losses;
    const struct loss *found[LOCKINFO_LOSSES_MAX];
    size_t count = 0;

    for (size_t i = 0; i < losses_known(l) && count < LOCKINFO_LOSSES_MAX; i++) {
        if (span_eq(loss_name(losses_at(l, i)), name)) {
            found[count++] = losses_at(l, i);
        }
    }
    resp_bulk_str(r->out, key);
    resp_array(r->out, count);
    for (size_t i = 0; i < count; i++) {
        write_loss(r, found[i], whole);
    }
}

static void write_holds(struct lockinfo_reply *r, const struct lock_info *info)
{
    resp_bulk_str(r->out, "holds");
    resp_array(r->out, info->hold_count);
    for (size_t i = 0; i < info->hold_count; i++) {
        write_hold(r, &info->holds[i]);
    }
}

static void write_permits(struct lockinfo_reply *r, const struct lock_info *info)
{
    resp_bulk_str(r->out, "limit");
    resp_int(r->out, info->limit);
    resp_bulk_str(r->out, "free");
    resp_int(r->out, info->free);
}

static void write_waiting(struct lockinfo_reply *r, const struct lock_info *info)
{
    resp_bulk_str(r->out, "waiting");
    resp_int(r->out, (int64_t)info->waiting);
}

/* SEMAPHORE INFO */
static void write_semaphore(struct lockinfo_reply *r, const struct lock_info *info)
{
    resp_map(r->out, r->proto, 5);
    write_permits(r, info);
    resp_bulk_str(r->out, "held");
    resp_int(r->out, (int64_t)info->limit - info->free);
    write_waiting(r, info);
    write_holds(r, info);
}

void lockinfo_write(const struct cmd *c, const struct client *client, struct buf *out,
                    const struct lock_info *info)
{
    static const char *const STATES[] = {
        [LOCK_STATE_FREE] = "free",           [LOCK_STATE_HELD] = "held",
        [LOCK_STATE_UNCERTAIN] = "uncertain", [LOCK_STATE_WITHHELD] = "withheld",
        [LOCK_STATE_LENT] = "lent",           [LOCK_STATE_LENT_ELSEWHERE] = "lent",
        [LOCK_STATE_RESTING] = "resting",
    };
    struct lockinfo_reply r = { c, out, client->proto,
                                sight_of(c, client, info->name, 0) };

    if (info->scope == INFO_OF_SEMAPHORE) {
        write_semaphore(&r, info);
        return;
    }
    resp_map(out, r.proto, info->kind == KIND_PERMITS ? 11 : 9);
    resp_bulk_str(out, "name");
    resp_bulk(out, info->name);
    write_kind(out, info->kind);
    resp_bulk_str(out, "state");
    resp_bulk_str(out, STATES[info->state]);
    resp_bulk_str(out, "ttl");
    resp_int(out, info->ttl_ms);
    write_holds(&r, info);
    write_waiting(&r, info);
    resp_bulk_str(out, "queue");
    resp_array(out, info->queue_count);
    for (size_t i = 0; i < info->queue_count; i++) {
        resp_bulk(out, info->queue[i]);
    }
    write_losses(&r, "losses", c->losses, info->name);
    if (info->kind == KIND_PERMITS) {
        write_permits(&r, info);
    }
    write_losses(&r, "expired", c->expired, info->name);
}

void cmd_lockinfo(struct command_ctx *ctx)
{
    struct lock_args args;

    if (ctx_lock_args(ctx, &SYNTAX_LOCKINFO, &args)) {
        engine_lock_info(ctx->cmd->env.engine, ctx_wait(ctx), args.name);
    }
}

/* --- LOCKS ------------------------------------------------------------ */

/* Collects names or waiters, as their number is known only afterwards. */
struct listing {
    struct command_ctx *ctx;
    struct span match;
    bool filter;
    struct buf items;
    size_t count;
};

static void list_name(void *ctx, struct span name)
{
    struct listing *l = ctx;

    if ((!l->filter || glob_match(l->match, name)) &&
        sight_of(l->ctx->cmd, l->ctx->client, name, 0) != SIGHT_NOTHING) {
        resp_bulk(&l->items, name);
        l->count++;
    }
}

/* COUNT is a hint: a pattern that is expensive to match is compared with fewer names.
 */
static size_t count_of(const struct lock_args *args)
{
    size_t work = (args->terms.has & OPT_MATCH) != 0 ? glob_work(args->match) : 0;
    size_t most = SCAN_WORK_MAX / (work + 1); /* a pattern is shorter than that */

    return args->count < most ? (size_t)args->count : most;
}

/* LOCKS TOP: the names with the most waiters, and those held longest. */

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

static void list_top(struct command_ctx *ctx, size_t most)
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

void cmd_locks(struct command_ctx *ctx)
{
    struct listing l = { .ctx = ctx };
    struct lock_args args;
    char next[24];
    uint64_t cursor;

    if (!ctx_lock_args(ctx, &SYNTAX_LOCKS, &args)) {
        return;
    }
    if ((args.terms.has & OPT_TOP) != 0) {
        list_top(ctx, (size_t)args.count);
        return;
    }
    if ((args.terms.has & OPT_REDIS) != 0) {
        redis_names_ask(ctx, &args, count_of(&args));
        return;
    }
    l.match = args.match;
    l.filter = (args.terms.has & OPT_MATCH) != 0;
    cursor =
        engine_scan(ctx->cmd->env.engine, args.cursor, count_of(&args), list_name, &l);
    (void)snprintf(next, sizeof(next), "%" PRIu64, cursor);
    resp_array(ctx->out, 2);
    resp_bulk_str(ctx->out, next);
    resp_array(ctx->out, l.count);
    buf_add_span(ctx->out, buf_span(&l.items));
    buf_reset(&l.items);
}

/* --- WAITERS ---------------------------------------------------------- */

static void list_waiter(void *ctx, const struct waiter_info *info)
{
    struct listing *l = ctx;
    struct buf *out = &l->items;
    int proto = l->ctx->proto;
    struct conn *conn =
        info->conn == 0 ? NULL : net_find(l->ctx->cmd->env.net, info->conn);

    resp_map(out, proto, 8);
    resp_bulk_str(out, "owner");
    resp_bulk(out, info->owner);
    write_kind(out, info->kind);
    resp_bulk_str(out, "waited");
    resp_int(out, (int64_t)info->waited_ms);
    resp_bulk_str(out, "left");
    if (info->left_ms == UINT64_MAX) {
        resp_null(out, proto);
    } else {
        resp_int(out, (int64_t)info->left_ms);
    }
    resp_bulk_str(out, "client");
    write_id(out, proto, info->conn);
    resp_bulk_str(out, "address");
    if (conn == NULL) {
        resp_null(out, proto);
    } else {
        struct conn_info ci;

        conn_info(conn, &ci);
        resp_bulk_str(out, ci.peer);
    }
    resp_bulk_str(out, "local");
    resp_int(out, info->local);
    resp_bulk_str(out, "priority");
    resp_int(out, info->priority);
    l->count++;
}

void cmd_waiters(struct command_ctx *ctx)
{
    struct listing l = { .ctx = ctx };
    struct lock_args args;

    if (!ctx_lock_args(ctx, &SYNTAX_WAITERS, &args)) {
        return;
    }
    engine_waiters(ctx->cmd->env.engine, args.name, (size_t)args.count, list_waiter,
                   &l);
    resp_array(ctx->out, l.count);
    buf_add_span(ctx->out, buf_span(&l.items));
    buf_reset(&l.items);
}
