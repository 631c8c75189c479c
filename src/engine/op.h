/* op: what the lock engine asks of the store, and what the store answers. Data only.
 *
 * An op becomes one Lua script (backend/script/lua/), which the simulator runs as it
 * is. Every op may be sent again after OP_UNKNOWN or OP_LATE: the same claim finds
 * its earlier grant, the same entry is counted once, and the same release removes
 * nothing twice.
 *
 * Each kind of op says at its struct what the op does, and with which status and fields
 * it is answered (`-> OK ...`).
 *
 * docs/redis-schema.md has every key that an op reads or writes, and the rules by which
 * the scores of the fair queue move. A "hash field" is the field of the holder in the
 * hash `N`, an "entry" the ID of one entry of a named owner's hold.
 *
 * On a quorum of masters the token of a plain lock is proposed, not made (`propose`),
 * see backend/quorum/quorum_coordinator.h.
 *
 * Spans and lists belong to the maker of the op or the result, and are valid during the
 * call that passes it. Times are milliseconds, tokens are positive and at most 2^53. */
#ifndef LATCHD_ENGINE_OP_H
#define LATCHD_ENGINE_OP_H

#include "engine/lock_terms.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OP_INSTANCE_LEN = 16,      /* hex digits that name one run of one daemon */
    OP_RENEW_MAX = 100,        /* holds renewed by one script call */
    OP_ENDED_MS = 20000,       /* an unlock can be sent again for this long at least */
    OP_FENCE_TTL_MS = 3600000, /* see op_fence_ttl() */
    OP_QUEUE_MAX = 4096,       /* members named by one script call */
    OP_BATCH_MAX = 100,        /* names acquired by one script call */
    OP_BLOCK_MAX = 100000,     /* tokens that come with a loan */
    OP_RESTORE_ENTRIES_MAX = 1000, /* entries of one hold put back by one script call */
    OP_TEXT_MAX = 2048, /* bytes of a field or entry; latchd's own are shorter */
};

/* Instead of the time that a lease, or the TTL of a key, still has, as PTTL says it. */
enum {
    TTL_NONE = -1,   /* it does not end, or nobody knows when */
    TTL_ABSENT = -2, /* there is none: nobody holds the name */
};

/* The kind of owner of a hold. Value holds are ID. */
enum owner_kind {
    OWNER_ANONYMOUS,
    OWNER_ID,
    OWNER_NAMED,
    OWNER_REST, /* nobody: the name rests, see engine/hold.h */
};

struct claim {
    enum lock_kind lock_kind : 8;
    enum owner_kind owner_kind : 8;
    /* ANONYMOUS, plain: with a grant, the name is lent to this daemon, with a block of
     * at most so many tokens to give; one a us. 0: the name is not lent. See loan.h. */
    uint32_t block_us;
    uint32_t permits; /* PERMITS: how many */
    uint32_t limit;   /* PERMITS: of the semaphore, if there is none yet; 0: not said */
    /* the hash field; empty for OWNER_ANONYMOUS: the script makes it, but for READ,
     * where it is always given. WRITE: with its `:write` */
    struct span field;
    /* ANONYMOUS: the request, `<instance>:<n>`; NAMED: the entry id */
    struct span entry;
    struct span member; /* `latchd:<instance>:<n>`: its place in the fair queue */
    struct span data;   /* not READ, PERMITS: what others are to know of the hold */
    /* plain, no named owner's: for how long from the grant on the name stays taken,
     * whatever ends the hold; 0: no longer than the hold */
    uint64_t atleast_ms;
    uint64_t lease_ms;
    /* How long before the op its client asked: another instance that the client asked
     * since has it by now. 0: no longer ago than ASKED_AGAIN_MS. */
    uint64_t asked_ago_ms;
};

/* Which hold, or which entry of one, an op is about. A `token` that is not 0 must fit
 * as well. */
enum target_kind {
    TARGET_FIELD, /* `field`: an anonymous or ID hold */
    /* `entry`: the anonymous hold that this request was granted, if any */
    TARGET_REQUEST,
    /* The anonymous or ID hold with `token`, but no value hold; with `force` these and
     * a named owner's as well. */
    TARGET_TOKEN,
    TARGET_ID,    /* `field` = latchd:id:<r>, `entry` = id:<r>: the one that exists */
    TARGET_ENTRY, /* `entry` of the named owner `field` */
    /* The newest entry of the named owner `field`. On repetition that may be another
     * entry: for a release that is sent again, `entry` is an ID of the release itself,
     * under which a tombstone is left, too; empty: a repetition may remove one more. */
    TARGET_OWNER,
    TARGET_VALUE, /* the value hold that the pattern `field` fits; `entry` as OWNER's */
    TARGET_ANY,   /* all holders; only with `force` */
};

struct target {
    enum target_kind kind;
    /* of a read/write lock: READ, WRITE, or PLAIN: not said, the one that exists */
    enum lock_kind lock_kind;
    struct span field; /* a writer's with or without its `:write` */
    struct span entry;
    uint64_t token;
};

enum op_kind {
    OP_ACQUIRE,       /* op.acquire */
    OP_ACQUIRE_BATCH, /* op.batch */
    OP_RELEASE,       /* op.release */
    OP_RENEW,         /* op.renew */
    OP_ATTACH,        /* op.attach */
    OP_RESTORE,       /* op.restore */
    OP_INSPECT,       /* reads, changes nothing */
    OP_QUEUE,         /* op.queue */
    OP_LEAVE,         /* op.queue */
    OP_LIMIT,         /* op.limit */
    OP_LATCH,         /* op.latch */
    OP_SCAN,          /* op.scan; not the engine's, see store_seek_part() */
};

/* The result of INSPECT: OK lock_kind fields[] queue[] ttl token who data atleast.
 *
 * Every op that removes the head of the fair queue of a free lock, and does not grant
 * the lock, publishes to the head that is there in the end, once. ACQUIRE with `fair`,
 * and QUEUE, also publish to another instance's head that was there before: that
 * instance may not know that it is its turn, as not every release looks at the queue.
 * `fair` of a result: there is a fair queue now. BUSY sets it, and so do a RELEASE that
 * freed or moved the lock, QUEUE, LEAVE, and ACQUIRE with `fair`. */

/* ACQUIRE takes the lock for `claim` if the lock is free, or if the claim holds it
 * already: then a named owner gets a new entry (the TTL is raised, never lowered), and
 * an earlier grant of the claim is found again. An ID, or an ID's entry, that another
 * instance kept is attached: this instance becomes the keeper (result: `attached`),
 * unless the client asked there later than here: ELSEWHERE, nothing happened.
 *
 * READ is granted beside other readers too, and under the same owner's WRITE. WRITE of
 * an owner who only reads, and is alive: UPGRADE, nothing happened.
 *
 * With `fair` (plain and fair locks) the rules of the fair queue apply. The script
 *   - looks for a grant of the claim, as without `fair`
 *   - removes stale heads, and gives a score to a head without one
 *   - grants a free lock only if nobody waits, or if the head is any of this instance's
 *     members (the engine decides their order)
 *   - takes the member of a claim that is granted, now or before, out of the queue
 * A free lock that is another's turn: BUSY, with the time after which that head counts
 * as dead. A free lock with a fair queue, asked for without `fair`: BUSY -2 fair,
 * nothing happened.
 *
 * PERMITS are granted if that many are free; `limit` makes the semaphore, if there is
 * none. BUSY and an OK that leaves none free say after which time permits come back by
 * themselves.
 *
 * With `atleast_ms` the TTL of a new hold is that at least, and the name's fence key
 * tells when that is over; a grant that is found again changes neither.
 *
 * A hold has the data of the claim that began it. An ID's claim has to have the same
 * data each time, a named owner's the same or none: else OTHER_DATA, nothing happened.
 *
 * -> OK token count attached elsewhere fair permits, BUSY ttl fair, OVER (there is a
 * tombstone), ELSEWHERE, UPGRADE, OTHER_DATA, BEHIND token, WRONGTYPE, NOSEMAPHORE,
 * BEYOND */
struct op_acquire {
    struct claim claim;
    /* Plain, not anonymous: the token of a grant, if `propose` is above the last token;
     * else BEHIND, nothing happened. 0: the script makes the token. */
    uint64_t propose;
    /* with `propose`: no client was sent the claim's tokens from this one on; or 0 */
    uint64_t retract_from;
    /* with `propose`: a grant that is found again gets that token, too */
    bool raise_token;
    /* with `propose`: a hold that another instance keeps stays that instance's (result:
     * `elsewhere`; the token is 0 if it is not known) */
    bool leave_keeper;
    /* Leaves a free lock free, and joins other readers only if this owner holds. */
    bool reenter_only;
    bool fair;
    bool enqueue; /* with `fair`: a claim that is not granted joins the tail */
    /* With `fair`: the member has been in the queue. If the queue lacks the member, it
     * is put back at the head first of all. */
    bool was_queued;
};

struct batch_item {
    struct span name;
    struct claim claim;
};

/* ACQUIRE_BATCH is ACQUIRE, plain and not fair, of several names in that order, until
 * one of them is not granted. -> OK batch[], as many as were tried: all but the last
 * are OK, or with `all_or_none` all but the last are SKIPPED */
struct op_acquire_batch {
    const struct batch_item *items; /* at most OP_BATCH_MAX */
    size_t count;
    bool reenter_only;
    /* IDs' claims only: looks at all names first, and takes none if one of them is
     * somebody else's, or has a fair queue. */
    bool all_or_none;
};

enum yield {
    YIELD_NEVER,     /* hand over to `next` */
    YIELD_IF_OTHERS, /* free the lock if somebody else listens on the channel */
    YIELD_ALWAYS,    /* release truly */
};

/* The tombstones that a RELEASE leaves if its target is not there, so that nobody puts
 * the target back. Of FIELD, ENTRY, ID, TOKEN. */
enum tombstone_if_missing {
    TOMBSTONE_NONE,
    TOMBSTONE_OF_ANSWER, /* a release of the target ran before: its answer is found */
    /* Nobody knows whether there was something to end, until a RESTORE tells by finding
     * them: no release takes them for its answer before. */
    TOMBSTONE_OF_DOUBT,
};

/* RELEASE removes `target`: a hold, or one entry of a named owner. If that was the last
 * entry, and `has_next`, the lock moves to the claim `next` under a new token (never
 * when `yield` forbids that, nor, unless `if_keeper`, to the very request that ends);
 * otherwise the lock is deleted, and `0` is published.
 *
 * Tombstones are left where `leave_tombstone` says so. A release that is neither
 * `if_keeper` nor `force` leaves them too if another instance keeps the entry, or if
 * there is a keeper key.
 *
 * A target that is not there: OK moved if `next` holds already (this op ran before),
 * else ENDED count if there is a tombstone, else NOTHELD.
 *
 * If there is a fair queue when the last entry goes, stale heads are removed. Then
 * `next` gets the lock only if nobody waits, or if the head is one of this instance's
 * members; the member of `next` leaves the queue, also if `next` holds already.
 * Otherwise the lock is freed, and that is published on its channel and the head's.
 *
 * A read/write lock: a reader's field goes with its last entry; other readers stay
 * (`freed` and `moved` are false). The TTL of the lock is then the longest of the
 * readers that are alive (dead readers are removed), but under a writer it stays. A
 * writer who still reads leaves a read lock (with that TTL): `shared`, and `1` is
 * published; if no reader is alive, the lock is free. `next` gets a lock that became
 * free; if `next` is a reader and a writer left, `1` is published as well. The owner
 * both reads and writes, and lock_kind does not say which: AMBIGUOUS. A lock of the
 * other class: ENDED if there is a tombstone, else WRONGTYPE.
 *
 * Permits go back to the semaphore, and `next` gets those that it wants if so many are
 * free then. `permits` tells what is left; the new number is published if it is above
 * 0.
 *
 * While ATLEAST of a hold that ends is not over, and somebody was told of the hold, the
 * name rests: a field of the rest takes the place of the hold's, with that end as its
 * TTL, nobody is next, and nothing is published (result: `rest_ms`, and the token of
 * the hold that ended; also if this op ran before). `force` ends a hold without a rest,
 * and ends a rest by the token of its hold.
 *
 * -> OK count token(of next) moved freed shared fair own_head permits rest_ms, ENDED
 * count, NOTHELD, ELSEWHERE, AMBIGUOUS, WRONGTYPE */
struct op_release {
    struct target target;
    struct claim next; /* if has_next */
    /* after which the hold ends by itself, 0: not known */
    uint64_t ends_in_ms;
    uint64_t tombstone_ms; /* see op_tombstone_ms() */
    /* With `if_keeper`: if the hold is not a named owner's, and its token is this one
     * or later, no client was sent that: the name's last token becomes the one before.
     */
    uint64_t retract_from;
    enum yield yield;
    bool has_next;
    bool subscribed; /* for YIELD_IF_OTHERS: this daemon listens on the channel */
    bool if_keeper;  /* only if this instance keeps the target, else ELSEWHERE */
    bool force;      /* the whole hold, whatever its count; no tombstone */
    /* the same release, sent again, is to find its answer */
    bool leave_tombstone;
    enum tombstone_if_missing tombstone_if_missing;
    bool may_rest;   /* the target may have ATLEAST; always so where it is not known */
    bool skips_rest; /* nobody was told of the hold */
    bool was_held;   /* the hold was certain when this was first sent; for a quorum */
};

struct renew_item {
    struct span name;
    enum lock_kind lock_kind;
    enum owner_kind owner_kind;
    struct span field;
    struct span entry; /* NAMED: the entry whose keeper is checked */
    uint64_t lease_ms;
    uint64_t token;
    /* PERMITS: of the semaphore, should its counter be gone; 0: not known */
    uint32_t limit;
    /* The hold may still stand in the field of the loan that has this token, and gets a
     * field of its own then. 0: no. */
    uint64_t loan_token;
    bool exact;
    bool fence;          /* raise the fence key's TTL as well */
    bool has_keeper_key; /* a keeper key exists and must live as long as the hold */
    bool subscribed;     /* a loan: this daemon listens on the channel */
};

/* RENEW gives the items their lease: the TTL is raised to `lease_ms`, and never
 * lowered, unless `exact`. A reader's lease is that of its hold keys and of the lock.
 * `exact` never takes from the lock what a writer, or another reader that is alive,
 * has, nor what is left of ATLEAST. If the keeper of a hold is not known, the instance
 * that asks is taken for the keeper.
 *
 * Loans get their lease only if nobody queues for the name, and nobody but this daemon
 * listens to its channel: else WANTED. What others have by now is GONE.
 *
 * -> OK items[], one renew_result each */
struct op_renew {
    const struct renew_item *items; /* at most OP_RENEW_MAX */
    size_t count;
    /* The items are loans, see loan.h: their tokens, plain, with one lease. */
    bool loans;
};

/* ATTACH: a client comes back to `target`. This instance becomes the keeper, and the
 * target gets `lease_ms` (`exact`: no more than that, unless other entries share the
 * hold); the TTL stays above what is left of ATLEAST. The ttl of a reader is the
 * smaller one of its hold keys' and the lock's. ELSEWHERE: another instance took over
 * after this op was sent; nothing happened.
 * -> OK owner(field) lock_kind entry token ttl permits data atleast, ENDED (it is not
 * there, and there is a tombstone), NOTHELD, ELSEWHERE, AMBIGUOUS, WRONGTYPE */
struct op_attach {
    struct target target;
    uint64_t lease_ms;
    uint64_t asked_ago_ms; /* as a claim's, of the client that comes back */
    bool exact;
};

/* The part of a hold that this instance keeps: one entry of a named owner, or an
 * anonymous or ID hold. */
struct restore_entry {
    struct span entry; /* NAMED */
    uint64_t for_ms;   /* since the client asked this instance for it */
};

/* RESTORE puts back a hold that this instance keeps, as Redis may have lost the hold:
 * `claim` under its `token`, with the entries. TTLs are raised to the lease, never
 * lowered. What other instances took over later than this one stays theirs. The first
 * of these that applies decides:
 *   - the hold is there (under this token, or its token is not known): missing entries
 *     are added, except those with a tombstone. If none of `entries` is left then:
 *     ENDED, or, if others have some of them now, ELSEWHERE
 *   - the hold has a tombstone: ENDED, and the loan in whose field it stood goes
 *   - the name has a later token that was not granted beside this hold: NOTHELD
 *   - `raise_token`: an older hold of the same field is taken for this one, as if it
 *     had this token
 *   - the holds in the way have lower tokens, each known, and all who count in an
 *     owner's hold left an entry: these were over when this hold was granted, and go.
 *     An older hold of the same field goes in any case
 *   - the lock is free, or has other readers, or only its own owner's holds: the hold
 *     is made anew, and `restored`; the name's last token is raised to this one
 *   - a rest, and the hold that it came after is there: the rest takes its place. But
 *     if it is `presumed`, and another instance keeps the hold: ELSEWHERE, and the hold
 *     lasts as long as the rest, at least. The other way round: ENDED
 *   - another owner holds: NOTHELD
 *   - PERMITS: too few are free: BUSY, as releases that Redis has lost, too, may free
 *     some
 * -> OK token count restored, BUSY, NOTHELD, ENDED, ELSEWHERE, WRONGTYPE */
struct op_restore {
    /* with its field always; `entry`: the request of an anonymous hold, if known */
    struct claim claim;
    uint64_t token;
    const struct restore_entry *entries; /* 1 to OP_RESTORE_ENTRIES_MAX */
    size_t entry_count;
    bool has_keeper_key;
    /* a rest whose hold may be another instance's by now: nobody released the hold, or
     * Redis has not said that it ended */
    bool presumed;
    /* The loan that the hold was granted from, and in whose field it may still stand;
     * its daemon might give tokens up to this one. 0: none. */
    uint64_t loan_token;
    /* plain, a named owner's: another entry of the older hold got a later token */
    bool raise_token;
};

/* QUEUE names this instance's waiters in the fair queue, in order. The script
 *   - removes duplicates (the first stays)
 *   - with `whole`: makes members that are not named leave, if they are this instance's
 *   - removes stale heads
 *   - with `whole`: moves scores on, or removes the marks if no members are named
 *   - puts those of the first `known` members that are missing back at the head, in
 *     order: they have been in the list before, and were thrown out
 *   - puts the other missing ones at the tail; a member in the list stays where it is
 *   - gives a score to any member of the list without one, and removes a score without
 *     a place in the list
 * -> OK ttl (-2: free) fair, WRONGTYPE
 *
 * LEAVE: `members` leave the fair queue, whatever the lock has become, then stale heads
 * are removed. LEAVE uses no other field. -> OK fair, WRONGTYPE */
struct op_queue {
    const struct span *members; /* at most OP_QUEUE_MAX */
    size_t count;
    size_t known;
    bool whole; /* `members` are all that this instance has */
    /* With `whole`, or NULL: how long each member has waited, as Redis may have lost
     * members. A missing one goes behind the last one that is known to have waited
     * longer, if there is one; a member that was put back so takes its place among
     * those that are named later. */
    const uint64_t *waited_ms;
};

/* LIMIT sets how many permits a semaphore has, and makes one that is not there. What is
 * free may fall below 0; what is held stays. A limit of 0 deletes a semaphore whose
 * permits are all free.
 * -> OK permits, NOSEMAPHORE (to delete), BUSY (to delete: some are out), WRONGTYPE */
struct op_limit {
    uint32_t limit;
};

/* LATCH changes a latch, or looks at it. The counter of a latch is Redisson's: without
 * one, the latch is open, or there is none. Beside it is a mark of latchd's, which has
 * the generation of the latch, a number that grows each time that one is set.
 *   SET     sets a latch to `count`, if none is set. -> value 1; 0: one is there
 *   COUNT   counts down by one, once for each `request`, in whatever generation the
 *           request came first. The last one opens the latch, and `0` is published.
 *           -> value: what is left of that generation; -1: there is no latch, and the
 *           request has not counted
 *   DELETE  -> value 1; 0: there is none. `0` is published, so that Redisson's clients
 *           wait no more
 *   LOOK    changes no latch. -> value: what is left
 *
 * SET, COUNT and DELETE of a `request` that has run before give the answer of then, as
 * far as that is still true.
 * -> OK latch, FULL (SET, COUNT: the latch remembers too many requests), WRONGTYPE */
enum latch_verb { LATCH_TO_SET, LATCH_TO_COUNT, LATCH_TO_DELETE, LATCH_TO_LOOK };

struct op_latch {
    enum latch_verb verb;
    struct span request;   /* `id:<r>`, or `<instance>:<n>`; not LOOK */
    int64_t count;         /* SET: from 1 */
    uint32_t most_counted; /* SET, COUNT: requests that the latch may remember */
    /* COUNT: counts in this generation only; LOOK: this one was heard to be opened, and
     * is noted as open if its counter is gone. 0: not said. */
    uint64_t generation;
    bool only_tells; /* LOOK: nobody awaits it: nothing is changed, not even a mark */
};

/* SCAN lists names that somebody holds: one step over the keys of one server, as
 * Redis's SCAN makes it. It has no name, and goes to the server that has `group` now.
 * -> OK scan */
struct op_scan {
    uint64_t cursor;
    uint32_t count; /* keys to look at */
};

struct op {
    enum op_kind kind;
    uint64_t id;                /* chosen by the engine, never used twice */
    struct span name;           /* not for OP_RENEW and OP_ACQUIRE_BATCH */
    enum lock_class lock_class; /* of all items of a RENEW */
    bool grouped;               /* names are in groups, apart from each other */
    uint32_t group;             /* then: of all names of this op */
    uint64_t seen_token;        /* a new token is greater than this */
    uint64_t fair_wait_ms;      /* what a waiter adds to the queue's deadlines */
    uint64_t fence_ttl_ms;      /* see op_fence_ttl() */
    union {
        struct op_acquire acquire;
        struct op_acquire_batch batch;
        struct op_release release;
        struct op_renew renew;
        struct op_attach attach;
        struct op_restore restore;
        struct op_queue queue;
        struct op_limit limit;
        struct op_latch latch;
        struct op_scan scan;
    };
};

/* The number of items or names of an op on several; 0: the op is on one. */
static inline size_t op_item_count(const struct op *op)
{
    return op->kind == OP_ACQUIRE_BATCH ? op->batch.count
           : op->kind == OP_RENEW       ? op->renew.count
                                        : 0;
}

/* The name of the i-th item; of an op on one name, that name. */
static inline struct span op_name_at(const struct op *op, size_t i)
{
    return op_item_count(op) == 0         ? op->name
           : op->kind == OP_ACQUIRE_BATCH ? op->batch.items[i].name
                                          : op->renew.items[i].name;
}

/* The claim that the op may grant, or puts back; NULL: none. */
static inline const struct claim *op_claim(const struct op *op)
{
    return op->kind == OP_ACQUIRE                           ? &op->acquire.claim
           : op->kind == OP_RESTORE                         ? &op->restore.claim
           : op->kind == OP_RELEASE && op->release.has_next ? &op->release.next
                                                            : NULL;
}

/* By how much the helper keys of a lock, and the fence key above all, outlive its lease
 * when they are written. A fence key is raised again before half of that is over, so
 * it outlives its lock by half of that at least. */
static inline uint64_t op_fence_ttl(const struct op *op)
{
    return op->fence_ttl_ms != 0 ? op->fence_ttl_ms : OP_FENCE_TTL_MS;
}

/* How long the tombstones of a RELEASE live: while the same release may be sent again,
 * and until other instances that believe in the hold have renewed. */
static inline uint64_t op_tombstone_ms(const struct op *op)
{
    return op->release.tombstone_ms > OP_ENDED_MS ? op->release.tombstone_ms
                                                  : OP_ENDED_MS;
}

/* --- results -------------------------------------------------------------------- */

enum op_status {
    OP_OK,
    OP_BUSY,
    OP_NOTHELD,
    OP_ENDED,
    OP_OVER,
    OP_ELSEWHERE,
    OP_UPGRADE,     /* the owner reads, and may not wait to write */
    OP_AMBIGUOUS,   /* READ or WRITE has to be said */
    OP_SKIPPED,     /* of a batch: not asked for, as another name cannot be had */
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

/* The latch that a LATCH op found or made. */
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
    /* of the lock; INSPECT, WRONGTYPE: of the other data. Below 0: TTL_* */
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
    /* ACQUIRE, BUSY: who holds was granted the lock by a latchd, for certain */
    bool by_latchd;
    /* ACQUIRE, BUSY, by_latchd: the name is lent to a latchd, and perhaps nobody holds
     * it
     */
    bool lent;
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
            bool freed;  /* nobody holds now, `0` was published */
            bool shared; /* a read lock is left where a writer was */
            /* freed, and the head of its fair queue is a member of this instance */
            bool own_head;
            /* freed, as that many others listened; 0: not known */
            uint32_t listeners;
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

/* --- copies and leases ---------------------------------------------------------- */

/* An op with all that it points to, in one block of memory for free(). */
struct op *op_clone(const struct op *op);
/* A result that outlives the call that passes it. What it points to is in *ret_memory,
 * for free(); NULL: nothing. */
struct op_result op_result_copy(const struct op_result *r, enum op_kind kind,
                                void **ret_memory);

/* Whether the op may grant or extend a lease, or change a latch: with `min-replicas`
 * replicas must acknowledge it, and it can be OP_NOREPLICAS. */
bool op_extends_lease(const struct op *op);
/* Whether the op ran, and its OK did so. */
bool op_result_extends_lease(enum op_kind kind, const struct op_result *r);

#endif
