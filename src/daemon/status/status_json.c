/* The JSON for the status page. Lists end after ROWS; the counts include all. */
#include "cmd/observe/stats.h"
#include "daemon/server_state.h"
#include "daemon/status/json_rows.h"
#include "daemon/status/web_priv.h"
#include "latchd-config.h"
#include "util/json.h"

#include <string.h>

enum { ROWS = 25 };

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

/* --- numbers ---------------------------------------------------------- */

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
