/* lock_args: parses the arguments of lock commands. Pure: spans in, numbers and spans
 * out. Every error names the argument and what is allowed; no value is clamped or
 * guessed. Times are milliseconds. */
#ifndef LATCHD_CMD_LOCK_LOCK_ARGS_H
#define LATCHD_CMD_LOCK_LOCK_ARGS_H

#include "engine/op.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cmd_limits;

enum {
    ARGS_ERROR_ROOM = 256, /* bytes of an error text */
    ARGS_COUNT_DEFAULT = 100,
    ARGS_COUNT_MAX = 1000,  /* COUNT of LOCKS and WAITERS */
    ARGS_TOP_MAX = 100,     /* TOP of LOCKS */
    ARGS_PATTERN_MAX = 528, /* bytes of a glob: the time of a match grows with it */
};

/* A longer WAIT than this (285,000 years) is refused as a mistake. */
#define ARGS_WAIT_MAX_MS 9007199254740992U

enum lock_option {
    OPT_FAIR = 1 << 0,
    OPT_READ = 1 << 1,
    OPT_WRITE = 1 << 2,
    OPT_WAIT = 1 << 3,
    OPT_LEASE = 1 << 4,
    OPT_OWNER = 1 << 5,
    OPT_ID = 1 << 6,
    OPT_KEEP = 1 << 7,
    OPT_GRACE = 1 << 8,
    OPT_TOKEN = 1 << 9,
    OPT_ANY = 1 << 10,
    OPT_CURSOR = 1 << 11,
    OPT_MATCH = 1 << 12,
    OPT_COUNT = 1 << 13,
    OPT_TOP = 1 << 14,
    OPT_VALUE = 1 << 15,
    OPT_LOCAL = 1 << 16,
    OPT_PERMITS = 1 << 17,
    OPT_OF = 1 << 18,
    OPT_HEARTBEAT = 1 << 19,
    OPT_TO = 1 << 20,
    OPT_DATA = 1 << 21,
    OPT_AFTER = 1 << 22,
    OPT_QUEUE = 1 << 23,
    OPT_PRIORITY = 1 << 24,
    OPT_ATLEAST = 1 << 25,
    OPT_REDIS = 1 << 26,

    OPT_KINDS = OPT_FAIR | OPT_READ | OPT_WRITE | OPT_PERMITS,
    /* what a LOCK that is granted from a loan can't have */
    OPT_NOT_LOCAL = OPT_KINDS | OPT_OWNER | OPT_ID | OPT_KEEP | OPT_DATA | OPT_ATLEAST,
    /* what one with ATLEAST can't have: nobody shares, enters again, or waits */
    OPT_NOT_ATLEAST = OPT_KINDS | OPT_OWNER | OPT_QUEUE | OPT_PRIORITY,
};

/* What a command allows besides its options: bits of lock_syntax.rules. */
enum lock_rule {
    RULE_NAME = 1 << 0,   /* the first argument is a lock's name */
    RULE_ONE_OF = 1 << 1, /* exactly one of the options must be given */
    /* without WAIT it waits for ever, but LEADER only with AFTER: max-wait demands WAIT
     */
    RULE_MAX_WAIT = 1 << 2,
    RULE_NAMES = 1 << 3, /* the count, then as many names, none of them twice */
    RULE_TAKES = 1 << 4, /* may begin a hold: some names are refused here only */
    /* the second argument is what a latch is set to */
    RULE_LATCH_COUNT = 1 << 5,
    /* in a Redis Cluster no name with a brace: Redisson's channel of a latch would be
     * in another slot */
    RULE_NO_BRACE = 1 << 6,
};

struct lock_syntax {
    const char *command; /* its name in error texts */
    unsigned options;
    unsigned rules;
};

extern const struct lock_syntax SYNTAX_LOCK, SYNTAX_UNLOCK, SYNTAX_RENEW, SYNTAX_CANCEL,
    SYNTAX_FORCEUNLOCK, SYNTAX_LATCH_AWAIT, SYNTAX_LEADER, SYNTAX_LOCKINFO,
    SYNTAX_LOCKS, SYNTAX_MLOCK, SYNTAX_WAITERS;

/* Spans point into the arguments. Options that were not given are 0 or empty. */
struct lock_args {
    unsigned has;
    enum lock_kind kind; /* PLAIN if none was given */
    struct span name;
    const struct span *names; /* of RULE_NAMES; point into `argv` */
    size_t name_count;
    struct span owner;
    struct span id;
    struct span to; /* the ID of the waiter that is to be next */
    struct span value;
    struct span data; /* what LEADER tells of the hold */
    struct span match;
    uint64_t wait_ms;
    uint64_t lease_ms;
    uint64_t keep_ms;
    uint64_t grace_ms;
    uint64_t heartbeat_ms;
    uint64_t atleast_ms;
    uint64_t token;
    uint64_t after; /* a token; 0: nobody's */
    uint64_t cursor;
    uint32_t permits;
    uint32_t limit; /* OF */
    uint32_t queue_max;
    uint8_t priority;
    int64_t latch_count;
    uint64_t count; /* ARGS_COUNT_DEFAULT if not given */
};

/* Parses `argv`, which begins after the command's name. False: reterr (ARGS_ERROR_ROOM
 * bytes) has the error, and *ret is undefined. */
bool lock_args_parse(const struct lock_syntax *syntax, const struct cmd_limits *limits,
                     const struct span *argv, size_t argc, struct lock_args *ret,
                     char *reterr) __attribute__((warn_unused_result));

/* Lock name: which names of locks would get in the way of other keys. Pure. */

#endif
