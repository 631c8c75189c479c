/* slowlog: the commands that kept the daemon busy for long, and apart from them the
 * waits for locks that were long: newest first, each stored as the RESP text of its
 * entry. Owns its entries. */
#ifndef LATCHD_CMD_SLOWLOG_H
#define LATCHD_CMD_SLOWLOG_H

#include "util/buf.h"
#include "util/list.h"

#include <stddef.h>
#include <stdint.h>

struct cmd;
struct command_ctx;
struct effect_waited;

/* latency: the events behind LATENCY: what took longer than it should, and when. Each
 * kind of event has a ring of samples, one per second with the worst in it. No I/O, no
 * clock. */

enum latency_event {
    LATENCY_COMMAND, /* a handler */
    LATENCY_LOOP,    /* a turn of the loop */
    LATENCY_REDIS,   /* from asking Redis to its answer */
    LATENCY_RENEWAL, /* how late a renewal was confirmed */
    LATENCY_EVENT_COUNT
};

enum { LATENCY_SAMPLES = 160 };

struct latency_sample {
    uint64_t at_s; /* wall clock */
    uint64_t ms;
};

struct latency_series {
    struct latency_sample samples[LATENCY_SAMPLES];
    size_t next; /* index of the next sample */
    size_t count;
    uint64_t max_ms; /* since the start or LATENCY RESET */
};

struct latency {
    struct latency_series of[LATENCY_EVENT_COUNT];
};

void latency_add(struct latency_series *s, uint64_t at_s, uint64_t ms);
/* Sample `i` of a series; 0 is the oldest. */
const struct latency_sample *latency_sample(const struct latency_series *s, size_t i);

/* Reports how long an event took. It is recorded if it reaches latency_ms. */
void cmd_latency(struct cmd *c, enum latency_event event, uint64_t ms);

struct slowlog {
    struct list entries;
    size_t count;
    uint64_t next_id;
};

void slowlog_init(struct slowlog *log);
void slowlog_fini(struct slowlog *log);
/* Drops the oldest entries until `max` are left. */
void slowlog_trim(struct slowlog *log, size_t max);

/* Adds a command that ran for `us` microseconds, if that is slow. */
void slowlog_note(const struct command_ctx *ctx, uint64_t us);

/* "granted"..., or the word of the error. */
const char *wait_outcome(const struct effect_waited *w);
/* The engine tells how long a request waited. */
void cmd_waited(struct cmd *c, const struct effect_waited *waited);

#endif
