/* traces: a span for each long wait and each long hold, sent to a collector of
 * OpenTelemetry by OTLP/HTTP in JSON.
 *
 * A span is written as JSON into a queue at once. Once a second the queue becomes a
 * batch, which is posted over a connection of its own:
 *
 *   RESTING -> CONNECTING -> POSTED -> RESTING
 *
 * A batch that a collector did not take is posted again, after a pause; meanwhile the
 * queue fills up to its limit, and later spans are dropped and counted. So a collector
 * that is dead or slow costs that memory and one connection. */
#ifndef LATCHD_DAEMON_TRACES_H
#define LATCHD_DAEMON_TRACES_H

#include "engine/effect.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cmd;
struct io;

enum {
    TRACES_URL_MAX = 512,
    TRACES_QUEUE_MAX = 2048, /* spans.. */
    TRACES_QUEUE_BYTES =
        2 << 20,              /* ..and what they take, in the queue and a batch each */
    TRACES_ANSWER_MS = 10000, /* to connect, and to answer */
    TRACES_PAUSE_MAX_MS = 30000, /* after a failure; the first pause is a second */
};

/* A URL in parts. */
struct traces_url {
    char host[TRACES_URL_MAX + 1];
    char port[6];
    char authority[TRACES_URL_MAX + 1]; /* as in the URL */
    char path[TRACES_URL_MAX + 2];
};

/* Parses `http://`, a host, and perhaps a port and a path. */
bool traces_url_parse(const char *url, struct traces_url *ret);

/* W3C's trace context. The IDs are hex, not terminated. */
struct trace_parent {
    const char *trace_id; /* 32 digits */
    const char *span_id;  /* 16 digits */
    bool sampled;
};

/* Parses the value of a header `traceparent`. */
bool trace_parent_parse(struct span text, struct trace_parent *ret);

struct traces;

struct traces_options {
    char *url; /* the configuration's; empty: none */
    uint64_t min_ms;
};

struct traces_stats {
    uint64_t sent, dropped, queued; /* spans */
};

struct traces *traces_new(struct io *io, struct cmd *cmd, const char *instance);
/* Closes the connection; what is queued is dropped. Accepts NULL, as traces_free(). */
void traces_close(struct traces *t);
void traces_free(struct traces *t);
void traces_configure(struct traces *t, const struct traces_options *opt);
void traces_add_wait(struct traces *t, const struct effect_waited *waited);
void traces_add_hold(struct traces *t, const struct effect_held *held);
/* Called about once a second. */
void traces_tick(struct traces *t, uint64_t now_ms);
struct traces_stats traces_stats(const struct traces *t);

#endif
