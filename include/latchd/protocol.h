/* latchd's wire protocol: the constants that a client may rely on.
 *
 * latchd speaks RESP2 and RESP3; `man 7 latchd-protocol` is the contract. This header
 * is used by the daemon itself, so it cannot drift from it. */
#ifndef LATCHD_PROTOCOL_H
#define LATCHD_PROTOCOL_H

#define LATCHD_DEFAULT_PORT 5625 /* LOCK on a phone keypad */

/* First words of error replies. DEADLOCK: the wait was not begun, as named owners would
 * wait for each other in a cycle, or a reader for itself. WRONGTYPE: the name is a
 * lock of another class (plain and fair, read and write, semaphores), or other data. */
#define LATCHD_ERR "ERR"
#define LATCHD_ERR_DENIED "DENIED" /* protected mode; the connection is closed */
#define LATCHD_ERR_NOAUTH "NOAUTH"
#define LATCHD_ERR_WRONGPASS "WRONGPASS"
#define LATCHD_ERR_NOPERM "NOPERM"
#define LATCHD_ERR_NOPROTO "NOPROTO"
#define LATCHD_ERR_WRONGTYPE "WRONGTYPE"
#define LATCHD_ERR_NOTHELD "NOTHELD"
#define LATCHD_ERR_DEADLOCK "DEADLOCK"
#define LATCHD_ERR_BACKEND "BACKEND"
#define LATCHD_ERR_NOREPLICAS "NOREPLICAS"
#define LATCHD_ERR_CROSSSLOT "CROSSSLOT" /* of a lock library's keys, in a Cluster */
#define LATCHD_ERR_LIMIT "LIMIT"
#define LATCHD_ERR_GOAWAY "GOAWAY"
#define LATCHD_ERR_UNBLOCKED "UNBLOCKED"
#define LATCHD_ERR_NOSCRIPT "NOSCRIPT"   /* EVALSHA of a script that is not here */
#define LATCHD_ERR_EXECABORT "EXECABORT" /* a command was refused after MULTI */

/* Sizes in bytes, times in milliseconds. */
#define LATCHD_NAME_MAX 512
#define LATCHD_OWNER_MAX 128
#define LATCHD_ID_MIN 16
#define LATCHD_ID_MAX 64
#define LATCHD_WAIT_MAX_MS 9007199254740992 /* 285,000 years: longer is a mistake */
#define LATCHD_LEASE_MIN_MS 100
#define LATCHD_KEEP_DEFAULT_MS 2000
#define LATCHD_HEARTBEAT_MIN_MS 200
#define LATCHD_HEARTBEAT_MAX_MS 60000        /* of 16 bits */
#define LATCHD_DATA_MAX 4096                 /* of LOCK ... DATA */
#define LATCHD_MLOCK_MAX 1000                /* names of one MLOCK */
#define LATCHD_PRIORITY_MAX 9                /* of LOCK ... PRIORITY */
#define LATCHD_TRACE_MIN 55                  /* of LOCK ... TRACE: a traceparent.. */
#define LATCHD_TRACE_MAX 128                 /* ..whose later versions may be longer */
#define LATCHD_QUEUE_MAX 1000000000          /* of LOCK ... QUEUE */
#define LATCHD_COUNT_MAX 1000                /* of LOCKS and WAITERS ... COUNT */
#define LATCHD_TOP_MAX 100                   /* of LOCKS TOP */
#define LATCHD_PATTERN_MAX 528               /* of a glob: its length costs time */
#define LATCHD_VALUE_MAX 512                 /* of a lock library, not escaped */
#define LATCHD_PERMITS_MAX 1000              /* permits of one LOCK */
#define LATCHD_LIMIT_MAX 2147483647          /* permits of one semaphore */
#define LATCHD_LATCH_MAX 9223372036854775807 /* what a latch is set to: a long */
#define LATCHD_COUNTED_MAX 100000            /* IDs that one latch remembers */
#define LATCHD_TOKEN_MAX 9007199254740992    /* 2^53: exact in every JSON number */

/* A request is remembered as over for this long by the daemon that ended it. */
#define LATCHD_OVER_MS 300000
/* An UNLOCK with ID or TOKEN can be sent again for this long. */
#define LATCHD_UNLOCK_AGAIN_MS 20000

/* Lock names must not begin with these. */
#define LATCHD_RESERVED_NAME_1 "latchd:"
#define LATCHD_RESERVED_NAME_2 "redisson_"
/* Nor may a name that is to be taken end in this and a number. */
#define LATCHD_RESERVED_NAME_MIDDLE ":rwlock_timeout:"
/* Owners must not be, begin with, or end in these: they are fields of Redisson's
 * hashes, or ours. */
#define LATCHD_RESERVED_OWNER "mode"
#define LATCHD_RESERVED_OWNER_PREFIX "latchd:"
#define LATCHD_RESERVED_OWNER_SUFFIX ":write"
/* While a name rests, this and the token of the hold that ended is its owner. */
#define LATCHD_REST_OWNER_PREFIX "latchd:rest:"

/* GET of a lock that is no value hold: this and its token. No value begins so. */
#define LATCHD_VALUE_OF_OTHERS "latchd:held:"

/* Event channels for SUBSCRIBE: the prefix, then the lock's name. The payload is
 * `<owner> <token>`, where nothing else is said. */
#define LATCHD_CHANNEL_GRANTED "granted:"
#define LATCHD_CHANNEL_RELEASED "released:"
#define LATCHD_CHANNEL_UNCERTAIN "uncertain:"
#define LATCHD_CHANNEL_LOST "lost:"
#define LATCHD_CHANNEL_EXPIRED "expired:"
/* `<token> <owner> <data>`, of who holds the name alone from now on; `0`: nobody does.
 */
#define LATCHD_CHANNEL_LEADER "leader:"

#endif
