/* engine_limits: times and limits of the engine. Private to engine/. */
#ifndef LATCHD_ENGINE_ENGINE_LIMITS_H
#define LATCHD_ENGINE_ENGINE_LIMITS_H

#include <stddef.h>
#include <stdint.h>

enum {
    NEVER = 0,
    TICK_MS = 50,           /* the length of a scheduling tick */
    ENGINE_STALL_MS = 1000, /* a stop of this process that makes holds uncertain */
    PULSE_MS = 500,         /* how often stalls are checked for while there are holds */
    SUB_LINGER_MS = 1000,   /* how long a channel without waiters stays subscribed */
    /* how long LOCKINFO waits for Redis while a hold is uncertain */
    INFO_DOUBT_MS = 50,
    /* the pause before an op that was late or overtaken is sent again */
    RETRY_PAUSE_MS = 10,
    /* the same, while another daemon may put a hold back */
    RESTORE_PAUSE_MS = 100,
    /* A client that sends a LOCK again, through another daemon, takes longer than
     * daemons disagree about Redis's clock. */
    ASKED_AGAIN_MS = 1000,
    /* the pause before an op that Redis refused is tried again */
    ERROR_PAUSE_MS = 200,
    HANDOVER_WINDOW_MS = 10,   /* after this, others get a chance if they listen */
    HANDOVER_ALWAYS_MS = 1000, /* after this, others get a chance in any case */
    /* after yields in vain the head stands back for so long at most.. */
    YIELD_PAUSE_MAX_MS = 128,
    YIELD_PART = 3,     /* ..and for such a part of the time */
    CHECK_LEASE_MS = 1, /* the lease of a renewal that only looks */
    /* a hold that is left to run out is checked in the last such part of its lease */
    LOOK_PART = 8,
    LOOK_MS = 500, /* ..and at most this long before the end */
    /* after a message, no check sooner than this after the last confirmation */
    FREED_LOOK_MS = 200,
    /* how long a hold lasts before it is watched: most are over sooner */
    WATCH_AGE_MS = 1000,
    /* holds that are looked at when any of them may have been changed */
    WATCH_PROBES = 100,
    RESTORE_IN_FLIGHT_MAX = 20000,
    RESTORE_COST_MAX = 400000, /* of what is put back at a time, see op_cost() */
    RELEASE_TRIES_MAX = 1000,
    /* releases that may be pending before an outage makes their clients wait: a client
     * with an answer at once sends the next one at once */
    RELEASES_AT_ONCE_MAX = 65536,
    /* renewals that a tombstone outlives: one may get no answer */
    ENDED_RENEWALS = 2,
    LOAN_LOG_MAX = 65536, /* loans whose tokens are remembered */
    /* names of which it is known how often they are asked for with LOCAL */
    RECENT_ASKS_MAX = 65536,
    LOAN_IDLE_MIN_MS = 2, /* an idle loan is kept for this long at least, */
    LOAN_IDLE_GAPS = 4, /* and this many times as long as the last LOCKs were apart, */
    LOAN_OTHERS_MS = 1000, /* unless others were seen to hold the name since this */
    /* in the last of so many parts of a window a grant has the loan renewed, */
    LOAN_LAST_PART = 4,
    LOAN_WINDOWS_MAX = 3, /* for so many windows in all; others get their chance then */
    /* a LOCK that tries once waits so long for a loan of another daemon to end, */
    LENT_WAIT_MS = 250,
    LENT_LOOK_MS = 10, /* and asks this often meanwhile */
    OVER_MAX = 262144, /* finished requests that are remembered */
    /* How soon the head asks again for a lock that a foreign library holds as a string,
     * whose release no message tells: after such a part of the time since the name was
     * seen held so, within these bounds, but no more than so many times a second for
     * all such names. */
    FOREIGN_LOOK_PART = 8,
    FOREIGN_LOOK_MS = 50,
    FOREIGN_LOOK_MAX_MS = 500,
    FOREIGN_LOOKS_MAX = 1000,
    POLLER_PASSES_MAX = 128, /* waiters that one that polls passes when it comes back */
    SESSION_LOST_MAX = 64,   /* lost names that are remembered for each connection */
    /* how much longer Redis keeps a hold in grace than this daemon */
    GRACE_SLACK_MS = 1000,
};

/* --- the cost of an op ---------------------------------------------------- */

/* How long an op keeps Redis from everybody else, about, in us of a busy
 * machine. What leaves together in one script call is bounded by that, not by its
 * number: one hold may have a thousand permits, or entries, or a long value. */
enum {
    /* One script call takes no more holds than cost this much. A hold that costs more
     * has a call of its own, which LATCHD_PERMITS_MAX and OP_RESTORE_ENTRIES_MAX
     * bound. */
    OP_COST_MAX = 1000,
    OP_COST_HOLD = 20,
    OP_COST_PERMIT = 3,
    OP_COST_ENTRY = 2,
    OP_COST_BYTES = 64, /* so many bytes of names and texts cost 1 */
};

/* Of one hold of an op. `permits`: 0 of a lock; `entries`: of a named owner. */
static inline uint64_t op_cost(size_t permits, size_t entries, size_t bytes)
{
    return OP_COST_HOLD + (uint64_t)OP_COST_PERMIT * permits +
           (uint64_t)OP_COST_ENTRY * entries + bytes / OP_COST_BYTES;
}

#endif
