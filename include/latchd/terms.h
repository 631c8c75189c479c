/* terms: the numbers of the options in terms.def, for all who include that. */
#ifndef LATCHD_TERMS_H
#define LATCHD_TERMS_H

/* The commands that share the options. */
enum lock_command {
    FOR_LOCK = 1 << 0,
    FOR_MLOCK = 1 << 1,
    FOR_UNLOCK = 1 << 2,
    FOR_RENEW = 1 << 3,
    FOR_CANCEL = 1 << 4,
    FOR_FORCEUNLOCK = 1 << 5,
    FOR_LEADER = 1 << 6,
    FOR_LOCKS = 1 << 7,
    FOR_WAITERS = 1 << 8,
    FOR_LATCH_SET = 1 << 9,
    FOR_LATCH_COUNT = 1 << 10,
    FOR_LATCH_AWAIT = 1 << 11,
};

enum {
#define TERM(word, ...) OPTION_AT_##word,
#define OPTION(word, ...) OPTION_AT_##word,
#include "latchd/terms.def"
    OPTION_COUNT,
};

/* A set of options; the first ones are those of terms.def, in its order. */
enum lock_option {
#define TERM(word, ...) OPT_##word = 1 << OPTION_AT_##word,
#define OPTION(word, ...) OPT_##word = 1 << OPTION_AT_##word,
#include "latchd/terms.def"
    /* instead of LEASE, of a lock library: renewed as long as the daemon runs, whether
     * a connection is there or not */
    OPT_ENDLESS = 1 << OPTION_COUNT,

    OPT_KINDS = OPT_FAIR | OPT_READ | OPT_WRITE | OPT_PERMITS,
};

/* NOT_WITH_<word>: the options that do not go with that one. */
enum {
#define TERM(word, type, field, min, max, limit, commands, needs, without, ...)        \
    NOT_WITH_##word = (without),
#define OPTION(...) TERM(__VA_ARGS__)
#include "latchd/terms.def"
};

#endif
