/* engine_limits: times and limits of the engine. Private to engine/. */
#ifndef LATCHD_ENGINE_ENGINE_LIMITS_H
#define LATCHD_ENGINE_ENGINE_LIMITS_H

enum {
    NEVER = 0,
    TICK_MS = 50,           /* what "one scheduling tick" may be */
    ENGINE_STALL_MS = 1000, /* standing still for longer makes holds uncertain */
    PULSE_MS = 500,         /* how often stalls are looked for while there are holds */
    SUB_LINGER_MS = 1000,   /* a channel is kept for the next waiter for this long */
    INFO_DOUBT_MS = 50,     /* LOCKINFO waits for Redis while a hold is uncertain */
    RETRY_PAUSE_MS = 10,    /* before an op that was late or overtaken is sent anew */
    ERROR_PAUSE_MS = 200,   /* before something that Redis refused is tried again */
    HANDOFF_WINDOW_MS = 10, /* others get a chance after this, if they listen */
    HANDOFF_ALWAYS_MS = 1000, /* and in any case after this */
    CHECK_LEASE_MS = 1,       /* a renewal that only looks */
    LOOK_PART = 8, /* what is left to run out is looked at in the last part of it */
    LOOK_MS = 500, /* and no more than this before its end */
    FREED_LOOK_MS = 200, /* no sooner after it was confirmed is it, for a message */
    RESTORE_IN_FLIGHT_MAX = 20000,
    RELEASE_TRIES_MAX = 1000,
    ENDED_RENEWALS = 2,    /* that an ended mark waits for: one may get no answer */
    OVER_MAX = 262144,     /* requests remembered as over */
    SESSION_LOST_MAX = 64, /* names remembered as lost, per connection */
    GRACE_SLACK_MS = 1000, /* Redis keeps a hold in grace a bit longer than we do */
};

#endif
