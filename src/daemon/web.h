/* web: what the daemon serves over HTTP, and what it keeps for that: the history, and
 * the hot names while somebody looks at the page.
 *
 * Opened with the other sockets if http-port is set, and closed with the links. Without
 * it nothing is kept. */
#ifndef LATCHD_DAEMON_WEB_H
#define LATCHD_DAEMON_WEB_H

#include "engine/survey.h"
#include "latchd/protocol.h"
#include "util/buf.h"
#include "util/histogram.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct server;
struct top_granted;

/* False: it was wanted, and cannot be; the log says why. */
bool web_open(struct server *s);
void web_close(struct server *s);
/* The socket that it listens on; -1: it does not. */
int web_fd(const struct server *s);
/* Takes no connection any more; those that are open are served. */
void web_stop_listening(struct server *s);
/* When it next wants a web_tick(); UINT64_MAX: never. */
uint64_t web_next_ms(const struct server *s);
void web_tick(struct server *s);

/* The bodies of /metrics and /status.json. */
void web_metrics(void *ctx, struct buf *out);
void web_status(void *ctx, struct buf *out);
/* /names.json: one step of a search from `cursor` on; /name.json: one name. */
void web_names(void *ctx, struct span find, uint64_t cursor, struct buf *out);
void web_name(void *ctx, struct span name, struct buf *out);

/* history: the last ten minutes in numbers, so that a page that is opened shows what
 * was. A ring of fixed size; adding a point costs the same however much goes on. */

enum { HISTORY_STEP_MS = 2000, HISTORY_POINTS = 300 };

enum history_series {
    HISTORY_GRANTS, /* in the step */
    HISTORY_HELD,   /* at its end, as all of these */
    HISTORY_WAITING,
    HISTORY_CONNECTIONS,
    HISTORY_WAIT_US,  /* 99 of 100 grants of the step had waited so long or less */
    HISTORY_REDIS_US, /* 99 of 100 answers of the step took so long or less */
    HISTORY_SERIES,
};

#define HISTORY_NONE UINT32_MAX /* nobody looked in that step */

/* The numbers at the end of a step; counters since the start. */
struct history_sample {
    uint64_t grants, held, waiting, connections;
    const struct histogram *wait, *redis;
};

struct history {
    uint64_t next_ms; /* when the next point is due */
    size_t end;       /* where it goes */
    size_t count;
    uint64_t grants; /* at the last point */
    struct histogram wait, redis;
    uint32_t points[HISTORY_SERIES][HISTORY_POINTS];
};

/* A zeroed struct is empty; `now_ms` begins its first step. */
void history_start(struct history *h, uint64_t now_ms,
                   const struct history_sample *sample);
/* To be called when next_ms has come. */
void history_add(struct history *h, uint64_t now_ms,
                 const struct history_sample *sample);
/* Point `i` of `count`, oldest first. */
uint32_t history_at(const struct history *h, enum history_series series, size_t i);

/* top_granted: the names that are granted most, without counting all names.
 *
 * A table of fixed size, in sets: a name that is new to a full set takes the place of
 * the one that was granted least, with its count, so that a busy name gets in and stays
 * in. Rates are thus right for names that are busy, and an upper bound for others.
 * Kept only while somebody looks. */

enum { TOP_GRANTED_SETS = 64, TOP_GRANTED_WAYS = 8, TOP_GRANTED_NAME_MAX = 512 };

struct top_granted_name {
    uint64_t hash;
    uint32_t count;      /* grants in this second, or inherited */
    uint32_t rate_milli; /* a second, smoothed, times 1000 */
    uint16_t len;        /* 0: free */
    char name[TOP_GRANTED_NAME_MAX];
};

struct top_granted *top_granted_new(void);
void top_granted_free(struct top_granted *h);
/* Counts a grant of that name. Names of more than TOP_GRANTED_NAME_MAX bytes are not
 * counted.
 */
void top_granted_count(struct top_granted *h, struct span name);
/* A second has passed. */
void top_granted_second(struct top_granted *h);
/* The busiest at most `max`, busiest first, into `ret`; returns how many. */
size_t top_granted_list(const struct top_granted *h,
                        const struct top_granted_name **ret, size_t max);

/* top_waited: the names that most wait for, found by going through all names, a bounded
 * step at a time. A round through very many names takes its time; what is found on the
 * way counts at once. */

enum {
    TOP_WAITED_MAX = 32,
    TOP_WAITED_STEP = 512,    /* names to a step */
    TOP_WAITED_FIRST = 16384, /* to the first, so that a page that is opened has some */
};

struct top_waited_name {
    size_t waiting; /* when it was seen */
    size_t len;
    char name[LATCHD_NAME_MAX];
};

/* The best of a round, most first. */
struct top_waited_round {
    size_t count;
    struct top_waited_name names[TOP_WAITED_MAX];
};

struct top_waited {
    uint64_t cursor;
    struct top_waited_round last, now;
};

/* `count`: names to go through, about. */
void top_waited_step(struct top_waited *c, struct engine *engine, size_t count);
typedef void top_waited_fn(void *ctx, const struct name_view *view);
/* As they are now: those that are waited for, most first, each once, at most `max`.
 * Also looks at the names of those who wait longest. */
void top_waited_each(const struct top_waited *c, const struct engine *engine,
                     size_t max, top_waited_fn *fn, void *ctx);

#endif
