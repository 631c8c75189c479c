/* differ: two readings of engine/op.h side by side: the scripts of store/lua on a real
 * redis-server, and the simulator's model of Redis. Each step is done to both; their
 * answers, the messages and every key are compared after it.
 *
 * Times are compared loosely, as a real server's clock runs; so leases, scores and
 * marks differ by minutes where they differ. Nothing expires: keys are deleted instead.
 */
#ifndef LATCHD_TESTS_DIFFER_H
#define LATCHD_TESTS_DIFFER_H

#include "integration/backend/script/scripts_peer.h"
#include "sim/dice.h"
#include "sim/sim_redis.h"

enum {
    DIFFER_NAMES = 2,
    DIFFER_TEXT_MAX = 400,
    DIFFER_SAID_MAX = 2000,
    DIFFER_LINES_MAX = 300,
    DIFFER_MESSAGES_MAX = 12,
    DIFFER_LOG = 12,
    DIFFER_SLACK_MS = 4000,    /* by which times may differ */
    DIFFER_FAIR_WAIT = 200000, /* of latchd's waiters */
};

/* What a schedule is made of. */
struct differ_mix {
    bool plain, fair, rw;
    unsigned foreign, faults; /* permille of steps */
};

struct differ_line {
    char text[DIFFER_TEXT_MAX];
    int64_t number; /* compared loosely */
};

struct differ_lines {
    struct differ_line line[DIFFER_LINES_MAX];
    size_t count;
};

struct differ {
    struct dice dice;
    struct differ_mix mix;
    struct sim_redis model;
    redisContext *listener;    /* hears everything */
    redisContext *channels[2]; /* a subscriber that latchd must let have its turn */
    uint64_t seed, step, start_ms, serial;
    struct differ_lines heard; /* by the model */
    char log[DIFFER_LOG][DIFFER_SAID_MAX];
    char texts[64][120];
    size_t text_count; /* of this step */
};

extern const char *const DIFFER_NAME[DIFFER_NAMES];

/* Text that lives as long as the step. */
const char *differ_text(struct differ *d, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* What the step does, for a failure's report. */
void differ_say(struct differ *d, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Fails the test: with the last steps and both states of `name`. */
void differ_fail(struct differ *d, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void differ_add(struct differ_lines *lines, int64_t number, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The model's view, with its clock at Redis's time. */
struct redis_name *differ_name(struct differ *d, const char *name);
/* `{N}`, or N if it has a brace. */
const char *differ_tagged(struct differ *d, const char *name);

/* --- differ_state.c --- */
void differ_compare(struct differ *d, const char *name);
void differ_compare_messages(struct differ *d, const char *name);
void differ_dump(struct differ *d, const char *name, struct differ_lines *real,
                 struct differ_lines *model);

/* --- differ_ops.c --- */
void differ_op(struct differ *d, const char *name);

/* --- differ_others.c --- */
void differ_foreign(struct differ *d, const char *name);
void differ_fault(struct differ *d, const char *name);

#endif
