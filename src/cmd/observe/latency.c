#include "cmd/observe/latency.h"

#include "cmd/cmd_priv.h"
#include "util/clock.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    GRAPH_COLUMNS = 80,
    GRAPH_ROWS = 4,
    AGE_ROOM = 24,
};

static const struct {
    const char *name;
    const char *advice;
} EVENTS[LATENCY_EVENT_COUNT] = {
    [LATENCY_COMMAND] = { "command",
                          "one command kept the daemon busy. SLOWLOG GET shows which; "
                          "ask LOCKS and WAITERS with a smaller COUNT, send shorter "
                          "pipelines." },
    [LATENCY_LOOP] = { "loop",
                       "one turn of the event loop took long, and everybody waited. "
                       "See whether the machine lacks CPU or swaps, and whether "
                       "clients send very long pipelines." },
    [LATENCY_REDIS] = { "redis",
                        "Redis answered late. Look at its SLOWLOG and LATENCY, its "
                        "disk (appendfsync, BGSAVE) and the network between; every "
                        "lock that is not handed over here waits for it." },
    [LATENCY_RENEWAL] = { "renewal",
                          "a lease was renewed later than it should be. If this comes "
                          "with `redis` or `loop`, mend those first; otherwise a "
                          "longer watchdog-timeout gives more room." },
};

const char *latency_name(enum latency_event event)
{
    return EVENTS[event].name;
}

void latency_add(struct latency_series *s, uint64_t at_s, uint64_t ms)
{
    struct latency_sample *last =
        &s->samples[(s->next + LATENCY_SAMPLES - 1) % LATENCY_SAMPLES];

    s->max_ms = ms > s->max_ms ? ms : s->max_ms;
    if (s->count > 0 && last->at_s == at_s) {
        last->ms = ms > last->ms ? ms : last->ms;
        return;
    }
    s->samples[s->next] = (struct latency_sample){ at_s, ms };
    s->next = (s->next + 1) % LATENCY_SAMPLES;
    s->count += s->count < LATENCY_SAMPLES;
}

const struct latency_sample *latency_sample(const struct latency_series *s, size_t i)
{
    return &s->samples[(s->next + LATENCY_SAMPLES - s->count + i) % LATENCY_SAMPLES];
}

void cmd_latency(struct cmd *c, enum latency_event event, uint64_t ms)
{
    if (c->limits.latency_ms != 0 && ms >= c->limits.latency_ms) {
        latency_add(&c->latency->of[event], clock_wall_us() / 1000000, ms);
    }
}

/* --- GRAPH ------------------------------------------------------------ */

struct range {
    uint64_t low, high, sum;
};

/* Of the samples from number `first` on, of which there are some. */
static struct range range_of(const struct latency_series *s, size_t first)
{
    struct range r = { .low = UINT64_MAX };

    for (size_t i = first; i < s->count; i++) {
        uint64_t ms = latency_sample(s, i)->ms;

        r.low = ms < r.low ? ms : r.low;
        r.high = ms > r.high ? ms : r.high;
        r.sum += ms;
    }
    return r;
}

static void format_age(uint64_t seconds, char out[AGE_ROOM])
{
    static const struct {
        uint64_t seconds;
        char unit;
    } UNITS[] = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' }, { 1, 's' } };
    size_t i = 0;

    while (i < 3 && seconds < UNITS[i].seconds) {
        i++;
    }
    (void)snprintf(out, AGE_ROOM, "%" PRIu64 "%c", seconds / UNITS[i].seconds,
                   UNITS[i].unit);
}

/* What one sample has in a row; row 0 is the lowest. */
static char graph_cell(uint64_t ms, struct range r, unsigned row)
{
    static const char SHADES[] = "_o#";
    uint64_t steps = GRAPH_ROWS * 3 - 1;
    uint64_t step = r.high == r.low ? 0 : (ms - r.low) * steps / (r.high - r.low);

    if (step / 3 > row) {
        return '|';
    }
    return step / 3 == row ? SHADES[step % 3] : ' ';
}

/* The ages stand upright below their columns. True: some age was that long. */
static bool add_age_row(const struct latency_series *s, size_t first, uint64_t now_s,
                        size_t row, struct buf *out)
{
    char age[AGE_ROOM];
    bool any = false;

    for (size_t i = first; i < s->count; i++) {
        uint64_t at = latency_sample(s, i)->at_s;

        format_age(now_s > at ? now_s - at : 0, age);
        any = any || strlen(age) > row;
        buf_add(out, strlen(age) > row ? age + row : " ", 1);
    }
    return any;
}

void latency_graph(const struct latency_series *s, const char *name, uint64_t now_s,
                   struct buf *out)
{
    size_t first = s->count > GRAPH_COLUMNS ? s->count - GRAPH_COLUMNS : 0;
    struct range r = range_of(s, first);

    buf_printf(out,
               "%s - high %" PRIu64 " ms, low %" PRIu64 " ms (all time high %" PRIu64
               " ms)\n",
               name, r.high, r.low, s->max_ms);
    for (int i = 0; i < GRAPH_COLUMNS; i++) {
        buf_add(out, "-", 1);
    }
    buf_add(out, "\n", 1);
    for (unsigned row = GRAPH_ROWS; row-- > 0;) {
        for (size_t i = first; i < s->count; i++) {
            char ch = graph_cell(latency_sample(s, i)->ms, r, row);

            buf_add(out, &ch, 1);
        }
        buf_add(out, "\n", 1);
    }
    buf_add(out, "\n", 1);
    for (size_t row = 0; add_age_row(s, first, now_s, row, out); row++) {
        buf_add(out, "\n", 1);
    }
    buf_add(out, "\n", 1);
}

/* --- DOCTOR ----------------------------------------------------------- */

static void report_one(const struct latency_series *s, enum latency_event event,
                       int number, struct buf *out)
{
    struct range r = range_of(s, 0);
    uint64_t from = latency_sample(s, 0)->at_s;
    uint64_t until = latency_sample(s, s->count - 1)->at_s;

    buf_printf(out,
               "%d. %s: %zu spike%s, average %" PRIu64 " ms, worst of all time %" PRIu64
               " ms, over %" PRIu64 " s.\n   What it is: %s\n",
               number, EVENTS[event].name, s->count, s->count == 1 ? "" : "s",
               r.sum / s->count, s->max_ms, until > from ? until - from : 0,
               EVENTS[event].advice);
}

void latency_report(const struct latency *l, uint64_t threshold_ms, struct buf *out)
{
    int number = 0;

    if (threshold_ms == 0) {
        buf_add_str(out, "The latency monitor is off: CONFIG SET "
                         "latency-monitor-threshold <milliseconds> switches it on.\n");
        return;
    }
    for (int i = 0; i < LATENCY_EVENT_COUNT; i++) {
        if (l->of[i].count > 0) {
            report_one(&l->of[i], (enum latency_event)i, ++number, out);
        }
    }
    if (number == 0) {
        buf_printf(out, "Nothing has taken %" PRIu64 " ms or longer. All is well.\n",
                   threshold_ms);
    }
}
