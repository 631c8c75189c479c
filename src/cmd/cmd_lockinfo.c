/* LOCKINFO, LOCKS, WAITERS: commands that look at locks. */
#include "cmd/cmd_lockinfo.h"

#include "cmd/cmd_lock.h"
#include "cmd/cmd_priv.h"
#include "engine/survey.h"

enum { ANSWER_MAX_MS = 5000 };

/* A LOCKS REDIS that Redis has not answered. Each connection has one at a time. */
struct redis_names {
    struct list in_all; /* cmd.redis_names, first come first */
    uint64_t id;
    struct call_ref to;
    uint64_t until_ms;
    bool has_match;
    size_t match_len;
    char match[];
};

static struct redis_names *names_of(struct list *it)
{
    return container_of(it, struct redis_names, in_all);
}

/* Ends the request; the answer is for its client. */
static struct effect_reply take_answer(struct redis_names *r, enum reply_kind kind,
                                       struct span text)
{
    struct effect_reply reply = {
        .kind = kind, .to = r->to, .error = LOCK_BACKEND, .text = text
    };

    list_del(&r->in_all);
    free(r);
    return reply;
}

/* Begins a LOCKS REDIS that looks at `count` keys. */
static void redis_names_ask(struct command_ctx *ctx, const struct lock_args *args,
                            size_t count)
{
    struct cmd *c = ctx->cmd;
    uint64_t id = c->env.scan_redis == NULL
                      ? 0
                      : c->env.scan_redis(c->env.ctx, args->cursor, count);
    struct redis_names *r;

    if (id == 0) {
        ctx_error(ctx, LATCHD_ERR_BACKEND, "Redis cannot be reached");
        return;
    }
    r = xcalloc(1, sizeof(*r) + args->match.len);
    r->id = id;
    r->to = ctx_wait(ctx);
    r->until_ms = c->env.now_ms(c->env.ctx) + ANSWER_MAX_MS;
    r->has_match = (args->terms.has & OPT_MATCH) != 0;
    r->match_len = args->match.len;
    if (args->match.len > 0) {
        memcpy(r->match, args->match.ptr, args->match.len);
    }
    list_append(&c->redis_names, &r->in_all);
}

static bool is_wanted(const struct cmd *c, const struct redis_names *r,
                      const struct client *client, struct span name)
{
    return name.len > 0 && name.len <= c->limits.max_name &&
           (!r->has_match || glob_match(span_of(r->match, r->match_len), name)) &&
           sight_of(c, client, name, 0) != SIGHT_NOTHING;
}

static void write_names(const struct cmd *c, const struct redis_names *r,
                        const struct client *client, const struct scanned_names *names,
                        struct buf *out)
{
    struct buf items = { 0 };
    char next[24];
    size_t count = 0;

    for (size_t i = 0; i < names->count; i++) {
        if (is_wanted(c, r, client, names->list[i])) {
            resp_bulk(&items, names->list[i]);
            count++;
        }
    }
    (void)snprintf(next, sizeof(next), "%" PRIu64, names->cursor);
    resp_array(out, 2);
    resp_bulk_str(out, next);
    resp_array(out, count);
    buf_add_span(out, buf_span(&items));
    buf_reset(&items);
}

bool redis_names_on_scanned(struct cmd *c, uint64_t id,
                            const struct scanned_names *names, struct buf *out,
                            struct effect_reply *ret)
{
    struct redis_names *r;

    LIST_EACH(r, &c->redis_names, in_all) {
        const struct conn *conn;

        if (r->id != id) {
            continue;
        }
        conn = net_find(c->env.net, r->to.conn);
        if (names->error.len != 0) {
            *ret = take_answer(r, REPLY_ERROR, names->error);
            return true;
        }
        if (conn != NULL) {
            write_names(c, r, conn_data(conn), names, out);
        }
        *ret = take_answer(r, REPLY_WRITTEN, buf_span(out));
        return true;
    }
    return false;
}

bool redis_names_on_time(struct cmd *c, uint64_t now_ms, struct effect_reply *ret)
{
    struct list *it = list_first(&c->redis_names);

    if (it == NULL || now_ms < names_of(it)->until_ms) {
        return false;
    }
    *ret = take_answer(names_of(it), REPLY_ERROR, SPAN("Redis did not answer in time"));
    return true;
}

uint64_t redis_names_next_deadline(const struct cmd *c)
{
    struct list *it = list_first(&c->redis_names);

    return it == NULL ? UINT64_MAX : names_of(it)->until_ms;
}

void redis_names_free(struct cmd *c)
{
    struct list *it;

    while ((it = list_first(&c->redis_names)) != NULL) {
        list_del(it);
        free(names_of(it));
    }
}

enum {
    LOCKINFO_LOSSES_MAX = 10, /* newest; more of one name say no more */
    /* Of LOCKS: names times glob_work(), 10 ms at worst. Patterns of plain letters fit
     * with every COUNT. */
    SCAN_WORK_MAX = LATCHD_COUNT_MAX * (GLOB_WORK_PLAIN + 1),
};

/* 0: none, or not known. */
static void key_id(struct resp_pairs *m, const char *key, uint64_t id)
{
    resp_key(m, key);
    if (id == 0) {
        resp_null(m->out, m->proto);
    } else {
        resp_int(m->out, (int64_t)id);
    }
}

static void key_kind(struct resp_pairs *m, enum lock_kind lock_kind)
{
    resp_key_str(m, "kind", lock_kind_name(lock_kind));
}

/* Writes what only the daemon that keeps a hold knows. */
static void write_known(struct resp_pairs *m, const struct hold_view *hold)
{
    static const char *const KEYS[] = { "held", "left", "renewed", "local" };

    if (!hold->here) {
        for (size_t i = 0; i < sizeof(KEYS) / sizeof(KEYS[0]); i++) {
            resp_key(m, KEYS[i]);
            resp_null(m->out, m->proto);
        }
        return;
    }
    resp_key_int(m, KEYS[0], (int64_t)hold->held_ms);
    resp_key_int(m, KEYS[1], (int64_t)hold->left_ms);
    resp_key_str(m, KEYS[2], lease_kind_name(hold->lease));
    resp_key_int(m, KEYS[3], hold->local);
}

/* A hold in LOCKINFO and LOCKS TOP; new keys come last, as RESP2 clients may read by
 * position. `counts`: with the number of its entries, as LOCKINFO says it. */
static void write_hold(struct buf *out, int proto, enum sight sight,
                       const struct hold_view *hold, bool counts)
{
    struct resp_pairs m = resp_pairs(out, proto);

    resp_key_bulk(&m, "owner", hold->owner);
    key_kind(&m, hold->lock_kind);
    if (counts) {
        resp_key_int(&m, "count", hold->count);
    }
    key_id(&m, "token", sight_token(sight, hold->owner, hold->token));
    key_id(&m, "client", hold->conn);
    write_known(&m, hold);
    resp_key_bulk(&m, "data", hold->terms.data);
    resp_key_int(&m, "atleast", (int64_t)hold->terms.atleast_ms);
    resp_pairs_end(&m);
}

/* One LOCKINFO's reply while it is written. */
struct lockinfo_reply {
    const struct cmd *cmd;
    struct resp_pairs map;
    enum sight sight;
};

/* `whole`: not only what a hold that expired has, too. */
static void write_loss(struct lockinfo_reply *r, const struct loss *loss, bool whole)
{
    uint64_t now_ms = r->cmd->env.now_ms(r->cmd->env.ctx);
    struct resp_pairs m = resp_pairs(r->map.out, r->map.proto);

    resp_key_bulk(&m, "owner", loss_owner(loss));
    key_id(&m, "token", sight_token(r->sight, loss_owner(loss), loss->token));
    key_id(&m, "client", loss->client);
    resp_key_int(&m, "ago", (int64_t)(now_ms - loss->at_ms));
    if (whole) {
        resp_key_str(&m, "cause", loss_cause_word(loss->cause));
        resp_key_bulk(&m, "taker", loss_taker(loss));
        key_id(&m, "forced_by", loss->forced_by);
        resp_key_str(&m, "forced_from", loss->forced_from);
    }
    resp_pairs_end(&m);
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
    resp_key(&r->map, key);
    resp_array(r->map.out, count);
    for (size_t i = 0; i < count; i++) {
        write_loss(r, found[i], whole);
    }
}

static void write_holds(struct lockinfo_reply *r, const struct lock_info *info)
{
    resp_key(&r->map, "holds");
    resp_array(r->map.out, info->hold_count);
    for (size_t i = 0; i < info->hold_count; i++) {
        write_hold(r->map.out, r->map.proto, r->sight, &info->holds[i], true);
    }
}

static void write_permits(struct lockinfo_reply *r, const struct lock_info *info)
{
    resp_key_int(&r->map, "limit", info->limit);
    resp_key_int(&r->map, "free", info->free);
}

static void write_waiting(struct lockinfo_reply *r, const struct lock_info *info)
{
    resp_key_int(&r->map, "waiting", (int64_t)info->waiting);
}

/* SEMAPHORE INFO */
static void write_semaphore(struct lockinfo_reply *r, const struct lock_info *info)
{
    write_permits(r, info);
    resp_key_int(&r->map, "held", (int64_t)info->limit - info->free);
    write_waiting(r, info);
    write_holds(r, info);
}

static void write_lock(struct lockinfo_reply *r, const struct lock_info *info)
{
    static const char *const STATES[] = {
        [INFO_STATE_FREE] = "free",           [INFO_STATE_HELD] = "held",
        [INFO_STATE_UNCERTAIN] = "uncertain", [INFO_STATE_WITHHELD] = "withheld",
        [INFO_STATE_LENT] = "lent",           [INFO_STATE_LENT_ELSEWHERE] = "lent",
        [INFO_STATE_RESTING] = "resting",
    };

    resp_key_bulk(&r->map, "name", info->name);
    key_kind(&r->map, info->lock_kind);
    resp_key_str(&r->map, "state", STATES[info->state]);
    resp_key_int(&r->map, "ttl", info->ttl_ms);
    write_holds(r, info);
    write_waiting(r, info);
    resp_key(&r->map, "queue");
    resp_array(r->map.out, info->queue_count);
    for (size_t i = 0; i < info->queue_count; i++) {
        resp_bulk(r->map.out, info->queue[i]);
    }
    write_losses(r, "losses", r->cmd->losses, info->name);
    if (info->lock_kind == KIND_PERMITS) {
        write_permits(r, info);
    }
    write_losses(r, "expired", r->cmd->expired, info->name);
}

void lockinfo_write(const struct cmd *c, const struct client *client, struct buf *out,
                    const struct lock_info *info)
{
    struct lockinfo_reply r = { c, resp_pairs(out, client->proto),
                                sight_of(c, client, info->name, 0) };

    if (info->scope == INFO_OF_SEMAPHORE) {
        write_semaphore(&r, info);
    } else {
        write_lock(&r, info);
    }
    resp_pairs_end(&r.map);
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
    struct name_view rows[LATCHD_TOP_MAX + 1];
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
        struct resp_pairs m = resp_pairs(ctx->out, ctx->proto);

        resp_key_bulk(&m, "name", row->name);
        resp_key_int(&m, "waiting", (int64_t)row->waiting);
        resp_key_int(&m, "waited", (int64_t)row->longest_wait_ms);
        resp_key_int(&m, "holds", (int64_t)row->holds);
        resp_key(&m, "holder");
        if (row->holds == 0) {
            resp_null(ctx->out, ctx->proto);
        } else {
            write_hold(ctx->out, ctx->proto,
                       sight_of(ctx->cmd, ctx->client, row->name, 0), &row->newest,
                       false);
        }
        resp_key_int(&m, "latch", row->is_latch);
        resp_pairs_end(&m);
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
    struct resp_pairs m = resp_pairs(&l->items, l->ctx->proto);
    struct conn *conn =
        info->conn == 0 ? NULL : net_find(l->ctx->cmd->env.net, info->conn);

    resp_key_bulk(&m, "owner", info->owner);
    key_kind(&m, info->terms.lock_kind);
    resp_key_int(&m, "waited", (int64_t)info->waited_ms);
    resp_key(&m, "left");
    if (info->left_ms == UINT64_MAX) {
        resp_null(m.out, m.proto);
    } else {
        resp_int(m.out, (int64_t)info->left_ms);
    }
    key_id(&m, "client", info->conn);
    resp_key(&m, "address");
    if (conn == NULL) {
        resp_null(m.out, m.proto);
    } else {
        struct conn_info ci;

        conn_info(conn, &ci);
        resp_bulk_str(m.out, ci.peer);
    }
    resp_key_int(&m, "local", info->local);
    resp_key_int(&m, "priority", (int64_t)info->terms.priority);
    resp_pairs_end(&m);
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
