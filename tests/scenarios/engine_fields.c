#include "scenarios/engine_fields.h"

#include "engine/survey.h"

#include <check.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

void set_engine_config(struct engine_config *config, const char *word)
{
    static const struct scn_field FIELDS[] = {
        SCN_FIELD(struct engine_config, watchdog_ms),
        SCN_FIELD(struct engine_config, redis_timeout_ms),
        SCN_FIELD(struct engine_config, fair_wait_ms),
        SCN_FIELD(struct engine_config, fair_window),
        SCN_FIELD(struct engine_config, recheck_ms),
        SCN_FIELD(struct engine_config, handover_limit),
        SCN_FIELD(struct engine_config, handover_pause_ms),
        SCN_FIELD(struct engine_config, grace_ms),
        SCN_FIELD(struct engine_config, endless_lease_ms),
        SCN_FIELD(struct engine_config, max_waiters),
        SCN_FIELD(struct engine_config, max_holds),
        SCN_FIELD(struct engine_config, long_wait_ms),
        SCN_FIELD(struct engine_config, long_hold_ms),
        SCN_FIELD(struct engine_config, quarantine_ms),
        SCN_FIELD(struct engine_config, fence_ttl_ms),
        SCN_FIELD(struct engine_config, local_window_ms),
        SCN_FIELD(struct engine_config, priority_aging_ms),
    };

    scn_set_field(config, FIELDS, COUNT(FIELDS), word);
}

void put_engine_stats(struct value *map, const struct engine *eng)
{
    static const struct scn_field FIELDS[] = {
        SCN_FIELD(struct engine_stats, locks),
        SCN_FIELD(struct engine_stats, holds),
        SCN_FIELD(struct engine_stats, waiters),
        SCN_FIELD(struct engine_stats, ops_in_flight),
        SCN_FIELD(struct engine_stats, resting),
        SCN_FIELD(struct engine_stats, grants),
        SCN_FIELD(struct engine_stats, handovers),
        SCN_FIELD(struct engine_stats, releases),
        SCN_FIELD(struct engine_stats, lost),
        SCN_FIELD(struct engine_stats, timeouts),
        SCN_FIELD(struct engine_stats, renewals),
        SCN_FIELD(struct engine_stats, expired),
        SCN_FIELD(struct engine_stats, watched),
        SCN_FIELD(struct engine_stats, watch_looks),
        SCN_FIELD(struct engine_stats, yields),
        SCN_FIELD(struct engine_stats, lent),
        SCN_FIELD(struct engine_stats, loans),
        SCN_FIELD(struct engine_stats, settled),
        SCN_FIELD(struct engine_stats, returned),
        SCN_FIELD(struct engine_stats, loan_renewals),
        SCN_FIELD(struct engine_stats, local_grants),
        SCN_FIELD(struct engine_stats, uncertain),
        SCN_FIELD(struct engine_stats, entries),
        SCN_FIELD(struct engine_stats, fixed_entries),
        SCN_FIELD(struct engine_stats, retained_entries),
        SCN_FIELD(struct engine_stats, permits),
        SCN_FIELD(struct engine_stats, retained_waiters),
        SCN_FIELD(struct engine_stats, oldest_wait_ms),
        SCN_FIELD(struct engine_stats, doubts),
        SCN_FIELD(struct engine_stats, unanswered),
        SCN_FIELD(struct engine_stats, queue_refusals),
        SCN_FIELD(struct engine_stats, unacked_grants),
        SCN_FIELD(struct engine_stats, unacked_renewals),
        SCN_FIELD(struct engine_stats, failovers),
        SCN_FIELD(struct engine_stats, restoring),
        SCN_FIELD(struct engine_stats, restored),
        SCN_FIELD(struct engine_stats, lost_failover),
        SCN_FIELD(struct engine_stats, quarantine_left_ms),
        SCN_FIELD(struct engine_stats, other_daemons),
        SCN_FIELD(struct engine_stats, followers),
        SCN_FIELD(struct engine_stats, followed_names),
        SCN_FIELD(struct engine_stats, awaits),
        SCN_FIELD(struct engine_stats, awaited_latches),
        SCN_FIELD(struct engine_stats, latch_counts),
        SCN_FIELD(struct engine_stats, store_up),
    };
    struct engine_stats stats;

    engine_stats(eng, &stats);
    scn_put_fields(map, &stats, FIELDS, COUNT(FIELDS));
}

static void put_times(struct value *map, const char *name, const struct histogram *h)
{
    const struct {
        const char *what;
        uint64_t value;
    } numbers[] = { { "count", h->count },
                    { "sum_us", h->sum_us },
                    { "max_us", h->max_us } };

    for (size_t i = 0; i < COUNT(numbers); i++) {
        char key[SCN_NAME_MAX];

        (void)snprintf(key, sizeof key, "%s_%s", name, numbers[i].what);
        scn_put_int(map, key, (int64_t)numbers[i].value);
    }
}

void put_engine_timings(struct value *map, const struct engine *eng)
{
    const struct engine_timings *t = engine_timings(eng);

    put_times(map, "wait", &t->wait);
    put_times(map, "hold", &t->hold);
    put_times(map, "renewal_lag", &t->renewal_lag);
}

/* --- surveys -------------------------------------------------------------------- */

/* The rows of a survey, one after the other. */
static char rows[4096];
static size_t row_count;

__attribute__((format(printf, 2, 3))) static void add_row(struct span name,
                                                          const char *fmt, ...)
{
    size_t len = strlen(rows);
    va_list ap;

    len += (size_t)snprintf(rows + len, sizeof rows - len, "%s%.*s",
                            row_count++ == 0 ? "" : "; ", (int)name.len, name.ptr);
    va_start(ap, fmt);
    len += (size_t)vsnprintf(rows + len, sizeof rows - len, fmt, ap);
    va_end(ap);
    ck_assert_uint_lt(len, sizeof rows);
}

static void add_hold(void *ctx, const struct hold_view *v)
{
    add_row(v->name,
            " token %" PRIu64 " by %" PRIu64 " for %" PRIu64 " left %" PRIu64
            " %s%s%s%.*s",
            v->token, v->conn, v->held_ms, v->left_ms, lease_kind_name(v->lease),
            v->uncertain ? " uncertain" : "", v->terms.data.len > 0 ? " data " : "",
            (int)v->terms.data.len, v->terms.data.ptr);
}

static const char *of_latch(const struct waiter_info *w)
{
    return w->terms.lock_kind == KIND_LATCH ? " latch" : "";
}

static void add_wait(void *ctx, const struct wait_view *v)
{
    add_row(v->name, "%s of '%.*s' by %" PRIu64 " for %" PRIu64 " behind %zu%s",
            of_latch(&v->waiter), (int)v->held_by.len, v->held_by.ptr, v->waiter.conn,
            v->waiter.waited_ms, v->ahead, v->lent && v->waiter.local ? " local" : "");
}

void put_survey(struct value *ret, const struct engine *eng, const char *what,
                size_t most, struct span name)
{
    rows[0] = '\0';
    row_count = 0;
    if (strcmp(what, "holds") == 0) {
        survey_holds(eng, most, add_hold, NULL);
    } else if (strcmp(what, "waits") == 0) {
        survey_waits(eng, most, add_wait, NULL);
    } else if (strcmp(what, "holds-of") == 0) {
        survey_holds_of(eng, name, most, add_hold, NULL);
    } else if (strcmp(what, "waits-of") == 0) {
        survey_waits_of(eng, name, most, add_wait, NULL);
    } else {
        scn_fail("there is no survey of %s", what);
    }
    scn_text(ret, "%s", rows);
}

/* Columns of a table of waiters, as texts with a blank between two of them. */
struct waiter_columns {
    char conns[1024], kinds[1024], owners[1024], waited_ms[1024], left_ms[1024],
        local[1024];
};

__attribute__((format(printf, 2, 3))) static void add_cell(char column[1024],
                                                           const char *fmt, ...)
{
    size_t len = strlen(column);
    va_list ap;

    if (len > 0) {
        column[len++] = ' ';
    }
    va_start(ap, fmt);
    (void)vsnprintf(column + len, 1024 - len, fmt, ap);
    va_end(ap);
}

static void add_waiter(void *ctx, const struct waiter_info *w)
{
    struct waiter_columns *c = ctx;

    add_cell(c->conns, "%" PRIu64, w->conn);
    add_cell(c->kinds, "%s", lock_kind_name(w->terms.lock_kind));
    add_cell(c->owners, "%.*s", w->owner.len > 0 ? (int)w->owner.len : 1,
             w->owner.len > 0 ? w->owner.ptr : "-");
    add_cell(c->waited_ms, "%" PRIu64, w->waited_ms);
    add_cell(c->left_ms, "%" PRId64, (int64_t)w->left_ms);
    add_cell(c->local, "%d", w->local);
}

void put_waiters(struct value *map, struct engine *eng, struct span name, size_t most)
{
    struct waiter_columns c = { 0 };

    engine_waiters(eng, name, most, add_waiter, &c);
    scn_put_text(map, "", "%s", c.conns);
    scn_put_text(map, "kinds", "%s", c.kinds);
    scn_put_text(map, "owners", "%s", c.owners);
    scn_put_text(map, "waited_ms", "%s", c.waited_ms);
    scn_put_text(map, "left_ms", "%s", c.left_ms);
    scn_put_text(map, "local", "%s", c.local);
}

void put_name(struct value *map, const struct engine *eng, struct span name)
{
    struct name_view v;

    if (!survey_name(eng, name, &v)) {
        return;
    }
    scn_put_int(map, "", 1);
    scn_put_int(map, "holds", (int64_t)v.holds);
    scn_put_int(map, "waiting", (int64_t)v.waiting);
    scn_put_int(map, "longest_wait_ms", (int64_t)v.longest_wait_ms);
    scn_put_int(map, "is_latch", v.is_latch);
    scn_put_int(map, "lent", v.lent);
    if (v.holds > 0) {
        scn_put_text(map, "owner", "%.*s", (int)v.newest.owner.len, v.newest.owner.ptr);
        scn_put_int(map, "token", (int64_t)v.newest.token);
        scn_put_int(map, "local", v.newest.local);
    }
}

struct counted {
    size_t names, holds, waiting;
};

static void count_name(void *ctx, const struct name_view *v)
{
    struct counted *c = ctx;

    c->names++;
    c->holds += v->holds;
    c->waiting += v->waiting;
}

static void count_listed(void *ctx, struct span name)
{
    ++*(size_t *)ctx;
}

void put_names(struct value *map, struct engine *eng)
{
    struct counted c = { 0 };
    size_t steps = 0, most = 0, listed = 0;
    uint64_t cursor = 0;

    do {
        size_t before = c.names;

        cursor = survey_names(eng, cursor, 10, count_name, &c);
        most = c.names - before > most ? c.names - before : most;
        steps++;
    } while (cursor != 0);
    do {
        cursor = engine_scan(eng, cursor, 10, count_listed, &listed);
    } while (cursor != 0);
    scn_put_int(map, "", (int64_t)c.names);
    scn_put_int(map, "holds", (int64_t)c.holds);
    scn_put_int(map, "waiting", (int64_t)c.waiting);
    scn_put_int(map, "steps", (int64_t)steps);
    scn_put_int(map, "most", (int64_t)most);
    scn_put_int(map, "listed", (int64_t)listed);
}
