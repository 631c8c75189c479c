/* lock_args: parses the arguments of lock commands. Pure: spans in, numbers and spans
 * out. Every error names the argument and what is allowed; no value is clamped or
 * guessed. Times are milliseconds. */
#ifndef LATCHD_CMD_LOCK_ARGS_H
#define LATCHD_CMD_LOCK_ARGS_H

#include "engine/lock_terms.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cmd_limits;

enum {
    ARGS_ERROR_ROOM = 256, /* bytes of an error text */
    ARGS_COUNT_DEFAULT = 100,
};

/* The rules of a command besides its options: bits of lock_syntax.rules. */
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
    unsigned takes;      /* one of FOR_*; 0: no options */
    unsigned rules;
};

extern const struct lock_syntax SYNTAX_LOCK, SYNTAX_UNLOCK, SYNTAX_RENEW, SYNTAX_CANCEL,
    SYNTAX_FORCEUNLOCK, SYNTAX_LATCH_AWAIT, SYNTAX_LEADER, SYNTAX_LOCKINFO,
    SYNTAX_LOCKS, SYNTAX_MLOCK, SYNTAX_WAITERS;

/* OPT_* of the options that the command takes. */
unsigned lock_syntax_options(const struct lock_syntax *syntax);

/* Spans point into the arguments. Options that were not given are 0 or empty. */
struct lock_args {
    struct lock_terms terms;
    struct span name;
    const struct span *names; /* of RULE_NAMES; point into `argv` */
    size_t name_count;
    int64_t latch_count;
    uint64_t token;
    uint64_t after; /* a token; 0: nobody's */
    uint64_t cursor;
    uint64_t count; /* ARGS_COUNT_DEFAULT if not given */
    struct span to; /* the ID of the waiter that is to be next */
    struct span value;
    struct span match;
    struct span trace;
};

/* Parses `argv`, which begins after the command's name. False: reterr (ARGS_ERROR_ROOM
 * bytes) has the error, and *ret is undefined. */
bool lock_args_parse(const struct lock_syntax *syntax, const struct cmd_limits *limits,
                     const struct span *argv, size_t argc, struct lock_args *ret,
                     char *reterr) __attribute__((warn_unused_result));

#endif
