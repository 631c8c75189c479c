#include "daemon/web.h"

#include "cmd/command_table.h"
#include "cmd/events.h"
#include "cmd/stats.h"
#include "daemon/process.h"
#include "daemon/server.h"
#include "http/http.h"
#include "http/prometheus.h"
#include "latchd-config.h"
#include "util/alloc.h"
#include "util/buf.h"
#include "util/hash.h"
#include "util/json.h"
#include "util/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Returns the quantile of the values that `now` has and `before` lacks, and brings
 * `before` up to date. */
static uint32_t quantile_since(struct histogram *before, const struct histogram *now,
                               unsigned per_mille)
{
    struct histogram diff = { .count = now->count - before->count,
                              .max_us = now->max_us };
    uint64_t us;

    if (diff.count == 0) {
        return 0;
    }
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        diff.buckets[i] = now->buckets[i] - before->buckets[i];
    }
    *before = *now;
    us = histogram_quantile(&diff, per_mille);
    return us < HISTORY_NONE ? (uint32_t)us : HISTORY_NONE - 1;
}

static uint32_t clip_u32(uint64_t value)
{
    return value < HISTORY_NONE ? (uint32_t)value : HISTORY_NONE - 1;
}

static void push_sample(struct history *h, const uint32_t *values)
{
    for (size_t i = 0; i < HISTORY_SERIES; i++) {
        h->points[i][h->end] = values[i];
    }
    h->end = (h->end + 1) % HISTORY_POINTS;
    h->count += h->count < HISTORY_POINTS;
}

void history_start(struct history *h, uint64_t now_ms,
                   const struct history_sample *sample)
{
    h->next_ms = now_ms + HISTORY_STEP_MS;
    h->grants = sample->grants;
    h->wait = *sample->wait;
    h->redis = *sample->redis;
}

/* Steps that passed without a point, as nobody ran: that is shown, too. */
static void push_gap(struct history *h, uint64_t now_ms)
{
    static const uint32_t NONE[HISTORY_SERIES] = {
        HISTORY_NONE, HISTORY_NONE, HISTORY_NONE,
        HISTORY_NONE, HISTORY_NONE, HISTORY_NONE,
    };
    uint64_t missed = (now_ms - h->next_ms) / HISTORY_STEP_MS;

    h->next_ms += missed * HISTORY_STEP_MS;
    for (uint64_t i = 0; i < missed && i < HISTORY_POINTS; i++) {
        push_sample(h, NONE);
    }
}

void history_add(struct history *h, uint64_t now_ms,
                 const struct history_sample *sample)
{
    uint32_t values[HISTORY_SERIES] = {
        [HISTORY_GRANTS] = clip_u32(sample->grants - h->grants),
        [HISTORY_HELD] = clip_u32(sample->held),
        [HISTORY_WAITING] = clip_u32(sample->waiting),
        [HISTORY_CONNECTIONS] = clip_u32(sample->connections),
        [HISTORY_WAIT_US] = quantile_since(&h->wait, sample->wait, 990),
        [HISTORY_REDIS_US] = quantile_since(&h->redis, sample->redis, 990),
    };

    h->grants = sample->grants;
    if (now_ms > h->next_ms) {
        push_gap(h, now_ms);
    }
    push_sample(h, values);
    h->next_ms += HISTORY_STEP_MS;
}

uint32_t history_at(const struct history *h, enum history_series series, size_t i)
{
    size_t first = (h->end + HISTORY_POINTS - h->count) % HISTORY_POINTS;

    return h->points[series][(first + i) % HISTORY_POINTS];
}

enum { SMOOTH = 4 /* a second counts for a quarter */ };

struct top_granted {
    struct top_granted_name names[TOP_GRANTED_SETS][TOP_GRANTED_WAYS];
};

struct top_granted *top_granted_new(void)
{
    return xcalloc(1, sizeof(struct top_granted));
}

void top_granted_free(struct top_granted *h)
{
    free(h);
}

/* Returns the weight of a name: the lightest one makes room for a new one. */
static uint64_t name_weight(const struct top_granted_name *n)
{
    return n->len == 0 ? 0 : 1 + n->rate_milli + (uint64_t)n->count * 1000;
}

void top_granted_count(struct top_granted *h, struct span name)
{
    uint64_t hash = hash_bytes(name.ptr, name.len);
    struct top_granted_name *set = h->names[hash % TOP_GRANTED_SETS];
    struct top_granted_name *least = &set[0];

    if (name.len == 0 || name.len > TOP_GRANTED_NAME_MAX) {
        return;
    }
    for (size_t i = 0; i < TOP_GRANTED_WAYS; i++) {
        struct top_granted_name *n = &set[i];

        if (n->hash == hash && span_eq(span_of(n->name, n->len), name)) {
            n->count++;
            return;
        }
        if (name_weight(n) < name_weight(least)) {
            least = n;
        }
    }
    least->hash = hash;
    least->len = (uint16_t)name.len;
    memcpy(least->name, name.ptr, name.len);
    least->rate_milli = 0;
    least->count++;
}

void top_granted_second(struct top_granted *h)
{
    for (size_t i = 0; i < TOP_GRANTED_SETS; i++) {
        for (size_t j = 0; j < TOP_GRANTED_WAYS; j++) {
            struct top_granted_name *n = &h->names[i][j];
            uint64_t now = (uint64_t)n->count * 1000;

            n->rate_milli =
                (uint32_t)((n->rate_milli * (uint64_t)(SMOOTH - 1) + now) / SMOOTH);
            n->count = 0;
            if (n->rate_milli < 10) {
                n->len = 0;
                n->hash = 0;
            }
        }
    }
}

size_t top_granted_list(const struct top_granted *h,
                        const struct top_granted_name **ret, size_t max)
{
    size_t count = 0;

    for (size_t i = 0; i < (size_t)TOP_GRANTED_SETS * TOP_GRANTED_WAYS; i++) {
        const struct top_granted_name *n =
            &h->names[i / TOP_GRANTED_WAYS][i % TOP_GRANTED_WAYS];
        size_t at = count;

        if (n->len == 0 || n->rate_milli == 0) {
            continue;
        }
        while (at > 0 && ret[at - 1]->rate_milli < n->rate_milli) {
            at--;
        }
        if (at == max) {
            continue;
        }
        count += count < max;
        memmove(&ret[at + 1], &ret[at], (count - at - 1) * sizeof(*ret));
        ret[at] = n;
    }
    return count;
}

static void on_name(void *ctx, const struct name_view *view)
{
    struct top_waited_round *r = ctx;
    size_t at = r->count;

    if (view->waiting == 0 || view->name.len > LATCHD_NAME_MAX) {
        return;
    }
    while (at > 0 && r->names[at - 1].waiting < view->waiting) {
        at--;
    }
    if (at == TOP_WAITED_MAX) {
        return;
    }
    r->count += r->count < TOP_WAITED_MAX;
    memmove(&r->names[at + 1], &r->names[at],
            (r->count - at - 1) * sizeof(r->names[0]));
    r->names[at].waiting = view->waiting;
    r->names[at].len = view->name.len;
    memcpy(r->names[at].name, view->name.ptr, view->name.len);
}

void top_waited_step(struct top_waited *c, struct engine *engine, size_t count)
{
    c->cursor = survey_names(engine, c->cursor, count, on_name, &c->now);
    if (c->cursor == 0) {
        c->last = c->now;
        c->now.count = 0;
    }
}

/* --- telling ---------------------------------------------------------- */

/* Names of both rounds, and of those who wait longest: each once. */
struct gathering {
    const struct engine *engine;
    size_t count;
    struct name_view views[3 * TOP_WAITED_MAX];
};

static void gather_name(struct gathering *g, struct span name)
{
    struct name_view view;

    for (size_t i = 0; i < g->count; i++) {
        if (span_eq(g->views[i].name, name)) {
            return;
        }
    }
    if (g->count < sizeof(g->views) / sizeof(g->views[0]) &&
        survey_name(g->engine, name, &view) && view.waiting > 0) {
        g->views[g->count++] = view;
    }
}

static void gather_round(struct gathering *g, const struct top_waited_round *r)
{
    for (size_t i = 0; i < r->count; i++) {
        gather_name(g, span_of(r->names[i].name, r->names[i].len));
    }
}

static void gather_wait(void *ctx, const struct wait_view *view)
{
    gather_name(ctx, view->name);
}

static int most_first(const void *a, const void *b)
{
    const struct name_view *x = a;
    const struct name_view *y = b;

    if (x->waiting != y->waiting) {
        return x->waiting < y->waiting ? 1 : -1;
    }
    return (x->longest_wait_ms < y->longest_wait_ms) -
           (x->longest_wait_ms > y->longest_wait_ms);
}

void top_waited_each(const struct top_waited *c, const struct engine *engine,
                     size_t max, top_waited_fn *fn, void *ctx)
{
    struct gathering g = { .engine = engine };

    gather_round(&g, &c->now);
    gather_round(&g, &c->last);
    survey_waits(engine, TOP_WAITED_MAX, gather_wait, &g);
    qsort(g.views, g.count, sizeof(g.views[0]), most_first);
    for (size_t i = 0; i < g.count && i < max; i++) {
        fn(ctx, &g.views[i]);
    }
}

enum {
    NAME_ROOM = 96,
    TOP_GRANTED_SECOND_MS = 1000,
    WATCHED_MS = 10000,    /* a page that asked within this is being looked at */
    SWEEP_MS = 50,         /* between the steps through all names */
    ROWS = 25,             /* of a list of /status.json */
    DATA_SHOWN_MAX = 120,  /* bytes; LOCKINFO shows all */
    NAME_ROWS = 100,       /* holders of a name, and waiters */
    SEARCH_STEP = 2048,    /* names that one answer goes through, about */
    SEARCH_FOUND_MAX = 50, /* after so many an answer ends; a few more may be in it */
    CURSOR_ROOM = 24,
};

struct web {
    struct http *http;
    struct history history;
    uint64_t watched_until_ms;
    uint64_t sweep_at_ms;
    uint64_t second_at_ms;           /* of the rates */
    struct top_granted *top_granted; /* while somebody watches */
    struct top_waited top_waited;
};

struct row_writer {
    struct server *s;
    struct json *j;
};

/* --- health ----------------------------------------------------------- */

/* Whether grants are possible; `out` says "ok", or why not. */
static bool web_health(void *ctx, struct buf *out)
{
    const struct server *s = ctx;
    struct engine_stats stats;
    struct store_info info;

    engine_stats(s->engine, &stats);
    store_info(s->store, &info);
    if (s->phase >= SERVER_STOPPING) {
        buf_add_str(out, "stopping");
    } else if (info.why_not != NULL) {
        buf_printf(out, "Redis cannot be used: %s", info.why_not);
    } else if (!s->redis_answered) {
        buf_add_str(out, "starting: Redis has not answered yet");
    } else if (!stats.store_up) {
        buf_add_str(out, "Redis is out of reach");
    } else if (s->now_ms < s->no_grants_until_ms) {
        buf_printf(out, "after a power cut: locks are granted again in %" PRIu64 " s",
                   (s->no_grants_until_ms - s->now_ms + 999) / 1000);
    } else {
        buf_add_str(out, "ok");
        return true;
    }
    return false;
}

/* --- history and hot names -------------------------------------------- */

static void take_sample(const struct server *s, struct history_sample *ret)
{
    struct engine_stats stats;
    struct net_stats net;
    struct store_info info;

    engine_stats(s->engine, &stats);
    net_stats(s->net, &net);
    store_info(s->store, &info);
    *ret = (struct history_sample){
        .grants = stats.grants,
        .held = stats.holds,
        .waiting = stats.waiters + stats.awaits,
        .connections = net.open,
        .wait = &engine_timings(s->engine)->wait,
        .redis = info.round_trips,
    };
}

static bool is_watched(const struct server *s, const struct web *w)
{
    return s->now_ms < w->watched_until_ms;
}

static void web_watched(struct server *s)
{
    struct web *w = s->web;

    if (w->top_granted == NULL) {
        w->top_granted = s->top_granted = top_granted_new();
        top_waited_step(&w->top_waited, s->engine, TOP_WAITED_FIRST);
        w->sweep_at_ms = w->second_at_ms = s->now_ms;
    }
    w->watched_until_ms = s->now_ms + WATCHED_MS;
}

static void forget_watch(struct server *s)
{
    struct web *w = s->web;

    s->top_granted = NULL;
    top_granted_free(w->top_granted);
    w->top_granted = NULL;
    w->top_waited = (struct top_waited){ 0 };
}

uint64_t web_next_ms(const struct server *s)
{
    const struct web *w = s->web;

    if (w == NULL) {
        return UINT64_MAX;
    }
    return w->top_granted != NULL && w->sweep_at_ms < w->history.next_ms
               ? w->sweep_at_ms
               : w->history.next_ms;
}

static void look_at_clock(struct server *s)
{
    struct web *w = s->web;

    if (!is_watched(s, w)) {
        forget_watch(s);
        return;
    }
    if (s->now_ms >= w->second_at_ms) {
        w->second_at_ms = s->now_ms + TOP_GRANTED_SECOND_MS;
        top_granted_second(w->top_granted);
    }
    top_waited_step(&w->top_waited, s->engine, TOP_WAITED_STEP);
    w->sweep_at_ms = s->now_ms + SWEEP_MS;
}

void web_tick(struct server *s)
{
    struct web *w = s->web;
    struct history_sample sample;

    if (w == NULL) {
        return;
    }
    if (s->now_ms >= w->history.next_ms) {
        take_sample(s, &sample);
        history_add(&w->history, s->now_ms, &sample);
    }
    if (w->top_granted != NULL && s->now_ms >= w->sweep_at_ms) {
        look_at_clock(s);
    }
}

/* --- a hold, a waiter, a name or a loss, as JSON -------------------------- */

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
    json_text(w->j, "kind", lock_kind_name(v->lock_kind));
    json_uint(w->j, "token", v->token);
    json_uint(w->j, "held_ms", v->held_ms);
    json_uint(w->j, "left_ms", v->left_ms);
    json_bool(w->j, "fixed", v->lease == LEASE_FIXED);
    json_bool(w->j, "endless", v->lease == LEASE_ENDLESS);
    json_bool(w->j, "uncertain", v->uncertain);
    json_bool(w->j, "local", v->local);
    json_bool(w->j, "rests", v->rests);
    json_uint(w->j, "atleast_ms", v->terms.atleast_ms);
    json_uint(w->j, "permits", v->terms.permits);
    write_data(w, v->terms.data);
    write_client(w, v->conn);
}

static void write_hold_row(void *ctx, const struct hold_view *v)
{
    struct row_writer *w = ctx;

    json_open(w->j, NULL, '{');
    json_bytes(w->j, "name", v->name);
    write_holder(w, v);
    json_close(w->j, '}');
}

static void write_wait_row(void *ctx, const struct wait_view *v)
{
    struct row_writer *w = ctx;

    json_open(w->j, NULL, '{');
    json_bytes(w->j, "name", v->name);
    json_bytes(w->j, "owner", v->waiter.owner);
    json_text(w->j, "kind", lock_kind_name(v->waiter.terms.lock_kind));
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
    json_uint(w->j, "permits", v->waiter.terms.permits);
    json_uint(w->j, "priority", v->waiter.terms.priority);
    write_client(w, v->waiter.conn);
    json_close(w->j, '}');
}

static void write_name_fields(struct row_writer *w, const struct name_view *v)
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

static void write_name_row(void *ctx, const struct name_view *v)
{
    struct row_writer *w = ctx;

    json_open(w->j, NULL, '{');
    json_bytes(w->j, "name", v->name);
    write_name_fields(w, v);
    json_close(w->j, '}');
}

static void write_loss_row(struct row_writer *w, const struct loss *loss)
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

/* --- /status.json: lists end after ROWS, the counts include all ----------- */

static void add_busy(struct row_writer *t)
{
    const struct top_granted_name *busy[ROWS];
    size_t count = top_granted_list(t->s->web->top_granted, busy, ROWS);

    for (size_t i = 0; i < count; i++) {
        struct span name = span_of(busy[i]->name, busy[i]->len);
        struct name_view view = { 0 };

        json_open(t->j, NULL, '{');
        json_bytes(t->j, "name", name);
        json_uint(t->j, "rate_milli", busy[i]->rate_milli);
        (void)survey_name(t->s->engine, name, &view);
        write_name_fields(t, &view);
        json_close(t->j, '}');
    }
}

/* Newest first. */
static void add_losses(struct row_writer *t)
{
    const struct losses *l = cmd_losses(t->s->cmd);

    json_uint(t->j, "lost_lately", losses_lately(l, t->s->now_ms));
    json_uint(t->j, "lately_ms", LOSSES_LATELY_MS);
    json_open(t->j, "losses", '[');
    for (size_t i = 0; i < losses_known(l); i++) {
        write_loss_row(t, losses_at(l, i));
    }
    json_close(t->j, ']');
}

static void add_lists(struct row_writer *t)
{
    json_open(t->j, "crowded", '[');
    top_waited_each(&t->s->web->top_waited, t->s->engine, ROWS, write_name_row, t);
    json_close(t->j, ']');
    json_open(t->j, "waits", '[');
    survey_waits(t->s->engine, ROWS, write_wait_row, t);
    json_close(t->j, ']');
    json_open(t->j, "holds", '[');
    survey_holds(t->s->engine, ROWS, write_hold_row, t);
    json_close(t->j, ']');
    json_open(t->j, "busy", '[');
    add_busy(t);
    json_close(t->j, ']');
}

/* The numbers of an object, which is open. */
static void add_numbers(struct json *j, const struct stats *stats, const char *object)
{
    size_t len = strlen(object);

    for (size_t i = 0; i < STAT_COUNT; i++) {
        const char *name = STATS[i].json;

        if (stats->of[i].known && strncmp(name, object, len) == 0 && name[len] == '.') {
            json_uint(j, name + len + 1, stats->of[i].number);
        }
    }
}

static void add_now(struct json *j, const struct stats *stats)
{
    static const char *const OBJECTS[] = { "now", "total", "max" };

    for (size_t i = 0; i < sizeof(OBJECTS) / sizeof(OBJECTS[0]); i++) {
        json_open(j, OBJECTS[i], '{');
        add_numbers(j, stats, OBJECTS[i]);
        json_close(j, '}');
    }
}

static void add_redis(struct server *s, struct json *j, const struct stats *stats)
{
    struct store_info info;

    store_info(s->store, &info);
    json_open(j, "redis", '{');
    json_text(j, "kind", s->embedded != NULL ? "embedded" : info.topology);
    json_text(j, "address", info.address);
    json_text(j, "version", info.version);
    json_bool(j, "up", info.up);
    add_numbers(j, stats, "redis");
    json_close(j, '}');
}

static void add_history(struct server *s, struct json *j)
{
    static const char *const WORDS[HISTORY_SERIES] = {
        [HISTORY_GRANTS] = "grants",   [HISTORY_HELD] = "held",
        [HISTORY_WAITING] = "waiting", [HISTORY_CONNECTIONS] = "connections",
        [HISTORY_WAIT_US] = "wait_us", [HISTORY_REDIS_US] = "redis_us",
    };
    const struct history *h = &s->web->history;

    json_open(j, "history", '{');
    json_uint(j, "step_ms", HISTORY_STEP_MS);
    json_uint(j, "points", HISTORY_POINTS);
    json_uint(j, "next_in_ms", h->next_ms > s->now_ms ? h->next_ms - s->now_ms : 0);
    for (unsigned k = 0; k < HISTORY_SERIES; k++) {
        json_open(j, WORDS[k], '[');
        for (size_t i = 0; i < h->count; i++) {
            uint32_t value = history_at(h, (enum history_series)k, i);

            if (value == HISTORY_NONE) {
                json_null(j, NULL);
            } else {
                json_uint(j, NULL, value);
            }
        }
        json_close(j, ']');
    }
    json_close(j, '}');
}

void web_status(void *ctx, struct buf *out)
{
    struct server *s = ctx;
    struct json j = { .out = out };
    struct row_writer t = { s, &j };
    struct buf why = { 0 };
    struct stats stats;
    bool ready;

    stats_read(s->cmd, false, &stats);
    web_watched(s);
    ready = web_health(s, &why);
    json_open(&j, NULL, '{');
    json_text(&j, "version", LATCHD_VERSION);
    json_text(&j, "instance", s->instance);
    json_uint(&j, "uptime_ms", s->now_ms - s->started_ms);
    json_bool(&j, "ready", ready);
    json_bytes(&j, "health", buf_span(&why));
    add_redis(s, &j, &stats);
    add_now(&j, &stats);
    add_history(s, &j);
    add_losses(&t);
    add_lists(&t);
    json_close(&j, '}');
    buf_add_str(out, "\n");
    buf_reset(&why);
}

/* --- /names.json: a search, /name.json: one name -------------------------- */

struct search {
    struct row_writer *w;
    struct span find;
    size_t found, seen;
};

static bool name_contains(struct span name, struct span text)
{
    return text.len == 0 || memmem(name.ptr, name.len, text.ptr, text.len) != NULL;
}

static void search_name(void *ctx, const struct name_view *v)
{
    struct search *search = ctx;

    search->seen++;
    if (name_contains(v->name, search->find)) {
        search->found++;
        write_name_row(search->w, v);
    }
}

void web_names(void *ctx, struct span find, uint64_t cursor, struct buf *out)
{
    struct server *s = ctx;
    struct json j = { .out = out };
    struct row_writer w = { s, &j };
    struct search search = { .w = &w, .find = find };
    char next[CURSOR_ROOM];

    json_open(&j, NULL, '{');
    json_bytes(&j, "find", find);
    json_open(&j, "names", '[');
    do {
        cursor = survey_names(s->engine, cursor, 1, search_name, &search);
        search.seen++; /* an empty place in the table costs, too */
    } while (cursor != 0 && search.found < SEARCH_FOUND_MAX &&
             search.seen < SEARCH_STEP);
    json_close(&j, ']');
    /* As text, since a browser's numbers are exact only up to 2^53. */
    (void)snprintf(next, sizeof(next), "%" PRIu64, cursor);
    json_text(&j, "cursor", next);
    json_close(&j, '}');
    buf_add_str(out, "\n");
}

static void write_losses_of(struct row_writer *w, const char *key,
                            const struct losses *l, struct span name)
{
    json_open(w->j, key, '[');
    for (size_t i = 0; i < losses_known(l); i++) {
        const struct loss *loss = losses_at(l, i);

        if (span_eq(loss_name(loss), name)) {
            write_loss_row(w, loss);
        }
    }
    json_close(w->j, ']');
}

void web_name(void *ctx, struct span name, struct buf *out)
{
    struct server *s = ctx;
    struct json j = { .out = out };
    struct row_writer w = { s, &j };
    struct name_view view = { 0 };

    (void)survey_name(s->engine, name, &view);
    json_open(&j, NULL, '{');
    json_bytes(&j, "name", name);
    json_uint(&j, "holds", view.holds);
    json_uint(&j, "waiting", view.waiting);
    json_bool(&j, "lent", view.lent);
    json_bool(&j, "latch", view.is_latch);
    json_open(&j, "holders", '[');
    survey_holds_of(s->engine, name, NAME_ROWS, write_hold_row, &w);
    json_close(&j, ']');
    json_open(&j, "waits", '[');
    survey_waits_of(s->engine, name, NAME_ROWS, write_wait_row, &w);
    json_close(&j, ']');
    write_losses_of(&w, "losses", cmd_losses(s->cmd), name);
    write_losses_of(&w, "expired", cmd_expired(s->cmd), name);
    json_close(&j, '}');
    buf_add_str(out, "\n");
}

/* --- /metrics: names of locks are never labels, as there are too many ----- */

static void add_metrics(const struct server *s, struct buf *out)
{
    struct stats stats;

    stats_read(s->cmd, false, &stats);
    for (size_t i = 0; i < STAT_COUNT; i++) {
        const struct stat_row *row = &STATS[i];
        const struct stat_value *v = &stats.of[i];

        if (!v->known || row->metric[0] == '\0') {
            continue;
        }
        if (row->type == STAT_TIMES) {
            prom_histogram(out, row->metric, row->help,
                           (struct prom_range){ row->first, row->last }, v->times);
        } else if (row->type == STAT_MS) {
            prom_family(out, row->metric, "gauge", row->help);
            prom_seconds(out, row->metric, NULL, v->number * 1000);
        } else if (row->type == STAT_COUNTER) {
            prom_counter(out, row->metric, row->help, v->number);
        } else {
            prom_gauge(out, row->metric, row->help, v->number);
        }
    }
}

static void add_command_metric(void *ctx, const struct cmd_stats *stats)
{
    struct buf *out = ctx;

    for (size_t i = 0; i < stats->outcome_count; i++) {
        struct buf labels = { 0 };

        prom_label(&labels, "command", span_str(stats->name));
        prom_label(&labels, "outcome", span_str(stats->outcomes[i].word));
        prom_uint(out, "latchd_commands_total", &labels, stats->outcomes[i].count);
        buf_reset(&labels);
    }
}

static void add_commands(const struct server *s, struct buf *out)
{
    prom_family(out, "latchd_commands_total", "counter",
                "Commands by what became of them: ok, null, gone (its client left), or "
                "the first word of the error.");
    cmd_stats_each(s->cmd, add_command_metric, out);
}

static void add_daemon(struct server *s, struct buf *out)
{
    struct store_info info;
    struct buf why = { 0 };
    struct buf labels = { 0 };

    prom_label(&labels, "version", SPAN(LATCHD_VERSION));
    store_info(s->store, &info);
    prom_label(&labels, "redis",
               s->embedded != NULL ? SPAN("embedded") : span_str(info.topology));
    prom_family(out, "latchd_build_info", "gauge", "1; what this is.");
    prom_uint(out, "latchd_build_info", &labels, 1);
    prom_gauge(out, "latchd_ready", "1 while locks are granted; see /healthz.",
               web_health(s, &why));
    buf_reset(&labels);
    buf_reset(&why);
}

static void add_process(const struct server *s, struct buf *out)
{
    struct process p;
    struct net_stats n;

    net_stats(s->net, &n);
    process_look(&p, n.open);
    prom_family(out, "process_cpu_seconds_total", "counter",
                "Processor time, user and system.");
    prom_seconds(out, "process_cpu_seconds_total", NULL, p.cpu_us);
    prom_family(out, "process_start_time_seconds", "gauge",
                "When the process started, since 1970.");
    prom_seconds(out, "process_start_time_seconds", NULL, s->started_wall_us);
    prom_gauge(out, "process_resident_memory_bytes", "Resident memory.",
               p.resident_bytes);
    prom_gauge(out, "process_virtual_memory_bytes", "Virtual memory.", p.virtual_bytes);
    prom_gauge(out, "process_max_fds", "Limit of open files.", p.max_fds);
    if (p.open_fds != 0) {
        prom_gauge(out, "process_open_fds", "Open files.", p.open_fds);
    }
}

void web_metrics(void *ctx, struct buf *out)
{
    struct server *s = ctx;

    add_daemon(s, out);
    add_metrics(s, out);
    add_commands(s, out);
    add_process(s, out);
}

/* --- open and close --------------------------------------------------- */

#if LATCHD_HTTP

/* A connection for the commands of one request. */
static int open_guest(void *ctx, const char *peer, bool is_local)
{
    struct server *s = ctx;
    int pair[2];

    if (s->phase >= SERVER_STOPPING ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0) {
        return -1;
    }
    if (!net_add_guest(s->net, pair[1], peer, is_local)) {
        (void)close(pair[0]);
        return -1;
    }
    return pair[0];
}

static struct http *open_http(struct server *s)
{
    char name[NAME_ROOM];
    char err[CONFIG_ERROR_MAX];
    struct http_setup setup = {
        .loop = &s->loop,
        .address = s->config.http_bind,
        .port = (unsigned)s->config.http_port,
        .fd = s->http_fd,
        .ctx = s,
        .health = web_health,
        .metrics = web_metrics,
        .status = web_status,
        .names = web_names,
        .name = web_name,
        .connect = s->config.http_api ? open_guest : NULL,
    };
    struct http *h = http_open(&setup, name, sizeof(name), err, sizeof(err));

    s->http_fd = -1;
    if (h == NULL) {
        log_error("http", "cannot listen on %s: %s", s->config.http_bind, err);
        return NULL;
    }
    log_notice("http", "listening on http://%s/", name);
    if (!http_is_local(h)) {
        log_warning(
            "http",
            "there is no password: every program that reaches %s sees the names of "
            "all locks, their owners and the addresses of clients: admit only those "
            "that may",
            name);
    }
    if (s->config.http_api && !http_is_local(h)) {
        log_warning(
            "http",
            "http-api sends passwords and tokens in the clear: put a proxy with "
            "TLS in front of it");
    }
    return h;
}

static void close_http(struct http *h)
{
    http_close(h);
}

int web_fd(const struct server *s)
{
    return s->web == NULL ? -1 : http_fd(s->web->http);
}

void web_stop_listening(struct server *s)
{
    if (s->web != NULL) {
        http_stop_listening(s->web->http);
    }
}

#else

static struct http *open_http(struct server *s)
{
    log_error("http", "http-port is set, but this latchd was built without HTTP");
    return NULL;
}

static void close_http(struct http *h)
{
}

int web_fd(const struct server *s)
{
    return -1;
}

void web_stop_listening(struct server *s)
{
}

#endif

bool web_open(struct server *s)
{
    struct history_sample sample;
    struct http *h;

    if (s->config.http_port == 0) {
        /* Nobody would answer those that connect to the old latchd's socket. */
        if (s->http_fd >= 0) {
            (void)close(s->http_fd);
            s->http_fd = -1;
        }
        return true;
    }
    h = open_http(s);
    if (h == NULL) {
        return false;
    }
    s->web = xcalloc(1, sizeof(*s->web));
    s->web->http = h;
    take_sample(s, &sample);
    history_start(&s->web->history, s->now_ms, &sample);
    return true;
}

void web_close(struct server *s)
{
    if (s->web != NULL) {
        close_http(s->web->http);
        forget_watch(s);
        free(s->web);
        s->web = NULL;
    }
}
