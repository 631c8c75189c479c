/* op_result: what the store answers to an op. Data only; op.h says which kind of op
 * gets which status and fields.
 *
 * Spans and lists belong to the maker of the result, and are valid during the call that
 * passes it. Times are milliseconds, tokens are positive and at most 2^53. */
#ifndef LATCHD_ENGINE_OP_RESULT_H
#define LATCHD_ENGINE_OP_RESULT_H

#include "engine/lock_kind.h"
#include "engine/op.h"

enum op_status {
    OP_OK,
    OP_BUSY,
    OP_NOTHELD,
    OP_ENDED,
    OP_OVER,
    OP_ELSEWHERE,
    OP_UPGRADE,     /* the owner reads, and may not wait to write */
    OP_AMBIGUOUS,   /* READ or WRITE has to be said */
    OP_UNTRIED,     /* of a batch: not asked for, as another name cannot be had */
    OP_NOSEMAPHORE, /* there is none, and the claim has no limit to make it with */
    OP_BEYOND,      /* the semaphore has fewer permits than the claim wants */
    OP_OTHER_DATA,  /* the claim's owner holds already, with other data */
    OP_FULL,        /* the latch remembers as many requests as it may */
    OP_BEHIND,      /* `propose` is not above the last token, which is `token` */
    /* the name is a lock of another class, or other data */
    OP_WRONGTYPE,
    OP_LATE, /* the op's deadline in Redis time had passed: it did nothing */
    /* the op ran or not, and will not run any more: its links were killed */
    OP_UNKNOWN,
    OP_ERROR, /* Redis refused, `text` says why; the op may have run half way */
    /* The op ran as if OK, but too few replicas acknowledged it: a failover may take it
     * back. Only for ops that extend a lease, see op_extends_lease(). */
    OP_NOREPLICAS,
};

enum renew_result {
    RENEW_OK,
    RENEW_GONE, /* lost: expired, deleted, or another owner's */
    /* the owner released it elsewhere: there is a tombstone with its token */
    RENEW_ENDED,
    RENEW_ELSEWHERE, /* another instance keeps the hold; its TTL was not touched */
    RENEW_WRONGTYPE, /* the name is of another type by now: lost */
    /* a loan: others queue for the name or listen to its channel; nothing happened */
    RENEW_WANTED,
    RENEW_UNKNOWN, /* too few masters of a quorum could be asked about it */
};

/* LOST: the latch was set, is not there any more, and nobody saw it end: Redisson has
 * opened or deleted it, or Redis has lost it. */
enum latch_state { LATCH_NONE, LATCH_SET, LATCH_OPEN, LATCH_GONE, LATCH_LOST };

/* What a LATCH op found or made. */
struct latch_told {
    int64_t value;
    enum latch_state state;
    uint64_t generation; /* 0: none is known */
    uint64_t last_gone;  /* of those before, the last one that was deleted.. */
    uint64_t last_lost;  /* ..and the last one that was LOST */
};

/* One owner found by OP_INSPECT. */
struct op_field {
    enum lock_kind lock_kind;
    struct span owner; /* the hash field */
    int64_t count;
    uint64_t token; /* of a reader or writer; 0: not known */
};

/* The answer to an op: first what several kinds answer, or is asked of the answer to
 * any kind; then a part for each kind that answers more, read for that kind only. */
struct op_result {
    uint64_t id;
    enum op_status status;
    enum lock_kind lock_kind; /* INSPECT: of the lock; ATTACH: of the hold */
    /* the token of the claim granted, or of the hold attached; INSPECT: the last token
     */
    uint64_t token;
    /* ACQUIRE, RELEASE, OK: the name is lent: `token` begins a block of tokens that
     * ends below this one, in whose field the holder stands; ATTACH: the name was lent
     * when the hold began; 0: it is, or was, not lent */
    uint64_t loan_token;
    /* PTTL: -1 no TTL, -2 not there; INSPECT, WRONGTYPE: of the other data */
    int64_t ttl_ms;
    int64_t count; /* entries that are left, or that the owner has now */
    /* ERROR: Redis's words; LATE: the same, if Redis would not run the op; INSPECT,
     * WRONGTYPE: the string that is there */
    struct span text;
    /* the claim's hold was there, and may have been another instance's */
    bool attached;
    /* ACQUIRE with `leave_keeper`, OK: the hold is there, and another instance keeps it
     */
    bool elsewhere;
    bool moved; /* RELEASE: `next` holds now */
    bool fair;  /* there is a fair queue now */
    /* ACQUIRE, BUSY: the lock is free, but nobody is granted it for `ttl_ms`; INSPECT:
     * the same, should the lock be free */
    bool withheld;
    /* ACQUIRE, BUSY: somebody holds the lock as a string, and will tell nobody when it
     * is free */
    bool foreign;
    /* ACQUIRE, RELEASE, OK, of a semaphore: */
    struct {
        int64_t free;   /* permits that are free now */
        uint32_t limit; /* of the semaphore */
    } permits;
    bool is_lock;               /* WRONGTYPE: the name is a lock.. */
    enum lock_class lock_class; /* ..of that class */
    union {
        struct {
            const struct op_result *results;
            size_t count;
        } batch; /* ACQUIRE_BATCH */
        struct {
            bool freed;       /* nobody holds now, `0` was published */
            bool shared;      /* a read lock is left where a writer was */
            uint64_t rest_ms; /* for so long the name rests now; 0: it does not */
        } release;
        struct latch_told latch;
        struct {
            uint64_t cursor; /* 0: that was the last step */
            const struct span *names;
            size_t count;
        } scan;
        struct {
            bool restored; /* the hold was missing */
        } restore;
        struct {
            const enum renew_result *items; /* as many as the op had */
            size_t count;
        } renew;
        struct {
            struct span field;   /* the hash field */
            struct span entry;   /* of a named owner */
            uint32_t permits;    /* of a hold of PERMITS */
            struct span data;    /* see struct claim */
            uint64_t atleast_ms; /* what is left of it */
        } attach;
        struct {
            struct span who;               /* of the fence key */
            struct span data;              /* of the hold with `token`, or the writer */
            uint64_t atleast_ms;           /* what is left of it, of the same hold */
            const struct op_field *fields; /* none: free */
            size_t field_count;
            const struct span *queue; /* the fair queue's members, in order */
            size_t queue_count;
            bool is_string; /* WRONGTYPE: a short string, which `text` tells */
        } inspect;
    };
};

/* The class to try next after the wrong guess `tried`, in *ret. False: none is. What is
 * no lock to a script of the plain class, as it is no hash, may be a semaphore. */
static inline bool op_result_tells_class(const struct op_result *r,
                                         enum lock_class tried, enum lock_class *ret)
{
    *ret = r->is_lock ? r->lock_class : CLASS_SEMAPHORE;
    return *ret != tried && (r->is_lock || tried == CLASS_PLAIN);
}

#endif
