/* op: what the lock engine asks of the store, and what the store answers. Data only.
 *
 * An op becomes one Lua script (backend/script/lua/); the simulator has a model of each
 * in C. Every op may be sent again after OP_UNKNOWN or OP_LATE: the same claim finds
 * its earlier grant, the same entry is counted once, and the same release removes
 * nothing twice.
 *
 * Names in Redis (N = lock name; `{N}` is N itself where N contains a `{`):
 *   N                        hash, Redisson's: owner field -> count of entries
 *   latchd:fence:{N}         string "<last token> <who>": who got the last token:
 *                            `a<request>`, or `f<instance><hash field>`, where the
 *                            instance (16 bytes) is the one that granted it (`a`: only
 *                            where the field follows from the token)
 *   latchd:entries:{N}       hash: entry id -> keeper instance (16 bytes), Redis time
 *                            when it took over (16 digits, us), owner
 *   latchd:keeper:{N}:<field>
 *                            string: instance that keeps an anonymous or ID hold that
 *                            another one took, Redis time when it took over (16
 *                            digits, us). Missing: the taker keeps it, which for
 *                            an ID hold is the instance in the fence key (neither
 *                            fits: no instance counts as the keeper)
 *   latchd:ended:{N}:<what>  string "<count left> <token>", for op_ended_ms(): this was
 *                            released, and with what answer. What: a field (anonymous,
 *                            ID), an entry id, or `owner:<name>` for its last entry
 *   redisson_lock__channel:{N}
 *                            channel: `0` is published when N becomes free
 *   redisson_lock_token:{N}  string, Redisson's: the last token of its RFencedLock.
 *                            A new token is above a number below 9007000000000000
 *                            there, and raises it; anything else is left alone
 *   latchd:moving:{N}        never there, but named by every script in a cluster
 * A hash field is `latchd:<token>` (anonymous), `latchd:id:<r>` (ID), as in
 * value_hold.h, or the owner's name. An entry id is `id:<r>` (ID) or `<instance>:<n>`.
 *
 * On a quorum of masters an anonymous hold has the same field on all of them, chosen
 * before it is asked for, `latchd:<instance>:<n>`, and is to each of them what an ID
 * hold is; and the token is proposed, not made (`propose`). What a fence key said
 * before is kept in it, ` <token> <who>`, as a token may be taken back. See
 * backend/quorum/quorum_coordinator.h.
 *
 * Fair queue, Redisson's; of plain and fair locks:
 *   redisson_lock_queue:{N}  list: who waits, in order. Our members are
 *                            `latchd:<instance>:<n>`, one for each waiter
 *   redisson_lock_timeout:{N}
 *                            zset: member -> Redis time in ms after which it counts as
 *                            dead and anybody removes it from the head
 *   latchd:fair:{N}          hash: Redis time in ms up to which scores say what they
 *                            should: instance -> of all its members, but for member ->
 *                            of one who came since. And Redisson member -> its W, and
 *                            at:<member> -> since when it waits, and whether it was
 *                            put back: once Redis lost members
 *   redisson_lock__channel:{N}:<member>
 *                            channel: `0` for that member, when it heads the queue of a
 *                            free lock. A daemon listens to all of its own by pattern
 * Scores, in ms of Redis's clock alone. T: the lock's PTTL, at least 0. F:
 * fair_wait_ms. S: the time since a latchd member's mark in latchd:fair, at least 0;
 * without a mark 0. W: what a Redisson member's grant will take off all scores: its
 * score less that of who is before it, or, if a latchd's that was moved on since, what
 * was found before that. Nobody before it: the most of what was found before (it may
 * have been away since), its score less now + T, and 300 s. A score is to be now + T,
 * and W for each of Redisson's before it, and F for each run of latchd's up to its own.
 * So who
 *   - is put back at the head, or has no score, gets now + T + F
 *   - joins behind a latchd member gets that one's score + S, at least now + T + F
 *   - joins behind Redisson's: F, and their W back to the first latchd member, and that
 *     one's score + S, at least now + T + F; none: now + T
 *   - is moved on gets what the whole list says
 * and the mark becomes now.
 *
 * In the queue is who has a score, or, having none, is in the list: then it gets one.
 * Stale is a head with a score <= now, or another latchd's with S >= T + F, unless it
 * is this instance's: who asks is alive. Removing stale ones moves no score. But when a
 * latchd member leaves, granted or not, and neither neighbour in the list is one, all
 * behind it get F less, and when some are put back at the head, and who is behind them
 * is none, all behind get F more: else those of a run that was thrown out, which come
 * back one by one, would each take F off, and throw out who is behind. Who takes the
 * last one out of the list deletes the zset and latchd:fair as well.
 *
 * Read/write locks, Redisson's: N is a hash with the field `mode` (`read`, `write`), a
 * field for each reader and one for the writer, which ends in `:write`:
 * `<owner>:write`, `latchd:id:<r>:write` or `latchd:<token>:write`. A reader's field is
 * the owner's name, `latchd:id:<r>`, or `latchd:<instance>:<n>` (anonymous: chosen
 * before it is asked for, as many grants run at once).
 *   - `{N}:<field>:rwlock_timeout:<i>`, string: a reader's token, for the i-th of its
 *     entries; all of them live as long as that reader's lease, the longest that one of
 *     its entries got. The last one goes with any entry. A reader is alive while one of
 *     them, of i <= count, is there
 *   - `latchd:reader:{N}:<token>`, string: the field of the reader with that token
 *   - `latchd:writer:{N}`, string as latchd:fence, but of the last writer only
 *   - `redisson_rwlock:{N}`, channel: `1` and then `0` when a writer has left (all may
 *     try; a Redisson thread that is about to sleep misses the `1`), `0` when the last
 *     reader has
 *
 * Fence, entries (with the hold's token, 16 digits, before the owner, which is the hash
 * field: an entry counts only for that hold), keeper and ended keys are as above; an ID
 * reader, or a found one, always has a keeper key. Reader and writer keys live as long
 * as a fence key. A hold without a known token (no hold key, or Redisson's `1` in it)
 * goes on under a new one when it is acquired again.
 *
 * Spans belong to the maker of the op or the result, and are valid during the call that
 * passes it. Times are milliseconds, tokens are positive and at most 2^53. */
#ifndef LATCHD_ENGINE_OP_H
#define LATCHD_ENGINE_OP_H

#include "util/span.h"

#include <stddef.h>

#include <stdbool.h>
#include <stdint.h>

enum {
    OP_INSTANCE_LEN = 16,      /* hex digits that name one run of one daemon */
    OP_RENEW_MAX = 100,        /* holds renewed by one script call */
    OP_ENDED_MS = 20000,       /* an unlock can be sent again for this long at least */
    OP_FENCE_TTL_MS = 3600000, /* a fence key outlives the lease of its lock by this */
    OP_QUEUE_MAX = 4096,       /* members named by one script call */
    OP_BATCH_MAX = 100,        /* names acquired by one script call */
    OP_RESTORE_ENTRIES_MAX = 1000, /* entries of one hold put back by one script call */
    OP_TEXT_MAX = 2048, /* bytes of a field or entry; latchd's own are shorter */
};

/* Plain and fair locks are one lock class, read and write locks the other; the classes
 * exclude each other. A hold is PLAIN, READ or WRITE: fair is only a way of waiting. */
enum lock_kind { KIND_PLAIN, KIND_FAIR, KIND_READ, KIND_WRITE };

/* The kind of owner of a hold. Value holds are ID. */
enum owner_kind { OWNER_ANONYMOUS, OWNER_ID, OWNER_NAMED };

struct claim {
    enum lock_kind lock_kind;
    enum owner_kind kind;
    /* the hash field; empty for OWNER_ANONYMOUS: the script makes it, but for READ,
     * where it is always given. WRITE: with its `:write` */
    struct span field;
    /* ANONYMOUS: the request, `<instance>:<n>`; NAMED: the entry id */
    struct span entry;
    struct span member; /* `latchd:<instance>:<n>`: its place in the fair queue */
    uint64_t lease_ms;
};

/* Which hold, or which entry of one, an op is about. A `token` that is not 0 must fit
 * as well. */
enum target_kind {
    TARGET_FIELD, /* `field`: an anonymous or ID hold */
    /* `entry`: the anonymous hold that this request was granted, if any */
    TARGET_REQUEST,
    /* The anonymous or ID hold with `token`; with `force` a named owner's as well. */
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
    /* Takes the lock for `claim` if it is free, or if the claim holds already: then a
     * named owner gets a new entry (the TTL is raised, never lowered), and an earlier
     * grant of the claim is found again. `reenter_only`: leaves a free lock free, and
     * joins other readers only if this owner holds already. An ID, or an ID's entry,
     * that another instance kept is attached: this instance becomes the keeper (result:
     * `attached`), unless that one took over after this op was sent: ELSEWHERE, nothing
     * happened.
     * READ: also beside other readers, and under the same owner's WRITE. WRITE of an
     * owner who only reads, and is alive: UPGRADE, nothing happened.
     * `fair` (plain and fair): by the rules of the fair queue. A grant of the claim is
     * looked for first, as without `fair`. Then stale heads are removed, and a head
     * without a score gets one. A free lock is granted only if nobody waits, or if the
     * head is any of this instance's members (the engine decides their order). The
     * member of a claim that is granted, now or before, leaves the queue. Otherwise,
     * with `enqueue`, the member is put at the tail unless it is in the queue. `known`,
     * not 0: the member has been in the queue; if it is missing, it is first of all put
     * back at the head. A free lock that is another's turn: BUSY with the time after
     * which that head counts as dead. Without `fair` a free lock with a fair queue is
     * BUSY -2 fair, nothing happened.
     * `propose` (plain, not anonymous): the token of a grant, if it is above the last
     * one; else BEHIND, nothing happened. With `level` a grant that is found again gets
     * that token, too. `untold`: no client was sent the claim's tokens from that one
     * on. `look`: a hold that another instance keeps stays as it is (result:
     * `elsewhere`; the token is 0 if it is not known).
     * -> OK token count attached elsewhere fair, BUSY ttl fair, OVER (there is a
     * tombstone), ELSEWHERE, UPGRADE, BEHIND token, WRONGTYPE */
    OP_ACQUIRE,
    /* OP_ACQUIRE, plain and not fair, of `many` names in that order, until one is not
     * granted. -> OK many[], as many as were tried: all but the last are OK */
    OP_ACQUIRE_BATCH,
    /* Removes `target`: a hold, or one entry of a named owner. If that was the last
     * entry and `next` is set, the lock moves to that claim under a new token (never
     * when `yield` forbids it, nor, unless `if_keeper`, to the very request that ends),
     * else the lock is deleted and `0` is published.
     * `bury` (ENTRY, ID): leaves the tombstones even if the target is not there.
     * `if_keeper`: only if this instance keeps the target, else ELSEWHERE.
     * `untold` (with `if_keeper`): if the hold is not a named owner's, and its token is
     * that one or later, no client was sent it: the name's last token is the one
     * before. `force`: the whole hold, whatever its count; no tombstone. `mark`: leaves
     * a tombstone, so that the same release, sent again, gets its answer. Without
     * `mark`, too, a release that is neither `if_keeper` nor `force` leaves a tombstone
     * if another instance keeps the entry, or there is a keeper key. A target that is
     * not there: OK moved if `next` holds already (this op ran before), else ENDED
     * count (if there is a tombstone), else NOTHELD. If there is a fair queue when the
     * last entry goes, stale heads are removed, and `next` gets the lock only if nobody
     * waits then, or if the head is one of this instance's members; the member of
     * `next` leaves the queue, also if `next` holds already. Else the lock is freed,
     * and published on its channel and the head's. `rw`: a reader's field goes with its
     * last entry; other readers stay (freed and moved are false). The lock's TTL is
     * then the longest of the readers' that are alive (dead readers are removed), but
     * under a writer it is left alone. A writer who still reads leaves a read lock (TTL
     * as above): `shared`, and `1` is published; if no reader is alive, the lock is
     * free. `next` gets a lock that became free; if `next` is a reader and a writer
     * left, `1` is published as well. The owner both reads and writes and lock_kind
     * does not say which: AMBIGUOUS. ANY: all holders. A lock of the other class: ENDED
     * if there is a tombstone, else WRONGTYPE.
     * -> OK count token(of next) moved freed shared fair, ENDED count, NOTHELD,
     * ELSEWHERE, AMBIGUOUS, WRONGTYPE */
    OP_RELEASE,
    /* Gives the `items` their lease: raises the TTL to `lease_ms`, never lowers it,
     * unless `exact`. A reader's lease is that of its hold keys and of the lock.
     * `exact` never takes from the lock what another reader that is alive, or a writer,
     * has. If the keeper of a hold is not known, the instance that asks is taken for
     * it.
     * -> OK items[], one renew_result each */
    OP_RENEW,
    /* A client comes back to `target`: makes this instance the keeper, and gives the
     * target `lease_ms` (`exact`: no more than that, unless other entries share the
     * hold). The ttl of a reader is the smaller one of its hold keys' and the lock's.
     * ELSEWHERE: another instance took over after this op was sent; nothing happened.
     * -> OK owner(field) lock_kind entry token ttl, NOTHELD, ELSEWHERE, AMBIGUOUS,
     * WRONGTYPE */
    OP_ATTACH,
    /* Puts back a hold that this instance keeps, as Redis may have lost it: `claim`
     * (its field always; `entry`: the request of an anonymous hold, if known) under its
     * `token`, with the entries `kept`; `keeper`: the hold has a keeper key. TTLs are
     * raised to the lease, never lowered. What other instances took over later than
     * this one stays theirs. The first of these that applies decides:
     *   - the hold is there (under this token, or its token is not known): missing
     *     entries are added, except those with a tombstone. If none of `kept` is left
     *     then: ENDED, or, if others have some of them now, ELSEWHERE
     *   - the hold has a tombstone: ENDED
     *   - the name has a later token that was not granted beside this hold: NOTHELD
     *   - `level` (plain, a named owner's): an older hold of the same field is this
     * one, for which another entry got a later token: as if that hold had this token
     *   - the holds in the way have lower tokens, each known, and all who count in an
     *     owner's hold left an entry: these were over when this hold was granted, and
     *     go. An older hold of the same field goes in any case
     *   - the lock is free, or has other readers, or only its own owner's holds: the
     *     hold is made anew, and `restored`; the name's last token is raised to this
     * one
     *   - another owner holds: NOTHELD
     * -> OK token count restored, NOTHELD, ENDED, ELSEWHERE, WRONGTYPE */
    OP_RESTORE,
    /* Reads, changes nothing. -> OK lock_kind fields[] queue[] ttl token who */
    OP_INSPECT,
    /* Names this instance's waiters in the fair queue, in order: `members`. In this
     * order: duplicates go (the first stays); with `whole`, `members` are all of this
     * instance's, and its other members leave; stale heads are removed; with `whole`,
     * scores are moved on, or the marks go if there are no members. The first `known`
     * of `members` have been in the list before: those that are missing were thrown
     * out, and are put back at the head, in order. The other missing ones are put at
     * the tail, and a member in the list stays where it is. Any member of the list
     * without a score gets one, and a score without a place in the list goes.
     * `waited_ms` (with `whole`), how long each has waited: Redis may have lost
     * members, so a missing one goes behind the last one that is known to have waited
     * longer, if there is one; a member that was put back so takes its place among
     * those that are named later.
     * -> OK ttl (-2: free) fair, WRONGTYPE */
    OP_QUEUE,
    /* `members` leave the fair queue, whatever the lock has become, then stale heads
     * are removed. -> OK fair, WRONGTYPE */
    OP_LEAVE,
};
/* Every op that takes the head out of the queue of a free lock, and does not grant,
 * publishes to the head that is there in the end, once. ACQUIRE with `fair` and QUEUE
 * also publish to another instance's head that was there before: that one may not know
 * that it is its turn, as not every release looks at the queue. `fair` of a result:
 * there is a fair queue now; set by BUSY, by RELEASE that freed or moved, by QUEUE and
 * LEAVE, and by ACQUIRE with `fair`. */

enum yield {
    YIELD_NEVER,     /* hand over to `next` */
    YIELD_IF_OTHERS, /* free the lock if somebody else listens on the channel */
    YIELD_ALWAYS,    /* release truly */
};

struct renew_item {
    struct span name;
    enum lock_kind lock_kind;
    enum owner_kind kind;
    struct span field;
    struct span entry; /* NAMED: the entry whose keeper is checked */
    uint64_t lease_ms;
    uint64_t token;
    bool exact;
    bool fence; /* raise the fence key's TTL as well */
    bool kept;  /* a keeper key exists and must live as long as the hold */
};

enum renew_result {
    RENEW_OK,
    RENEW_GONE, /* lost: expired, deleted, or another owner's */
    /* the owner released it elsewhere: there is a tombstone with its token */
    RENEW_ENDED,
    RENEW_ELSEWHERE, /* another instance keeps the hold; its TTL was not touched */
    RENEW_WRONGTYPE, /* the name is of another type by now: lost */
    RENEW_UNKNOWN,   /* too few masters of a quorum could be asked about it */
};

struct batch_item {
    struct span name;
    struct claim claim;
};

/* What this instance keeps of a hold: one entry of a named owner, or an anonymous or
 * ID hold. */
struct restore_entry {
    struct span entry; /* NAMED */
    uint64_t for_ms;   /* since this instance took over */
};

struct op {
    enum op_kind kind;
    uint64_t id;        /* chosen by the engine, never used twice */
    struct span name;   /* not for OP_RENEW and OP_ACQUIRE_BATCH */
    bool grouped;       /* names are in groups, apart from each other */
    uint32_t group;     /* then: of all names of this op */
    struct claim claim; /* ACQUIRE; RELEASE: the next one, if has_next */
    struct target target;
    /* ATTACH; RELEASE: after which the hold ends by itself, 0: not known */
    uint64_t lease_ms;
    uint64_t ended_ms;   /* RELEASE: see op_ended_ms() */
    uint64_t seen_token; /* a new token is greater than this */
    uint64_t propose;    /* ACQUIRE: the new token, 0: the script makes it */
    uint64_t untold;     /* ACQUIRE with `propose`, RELEASE: a token, or 0 */
    bool level, look;
    enum yield yield;
    bool subscribed; /* for YIELD_IF_OTHERS: this daemon listens on the channel */
    bool has_next;
    bool reenter_only;
    bool if_keeper;
    bool force;
    bool mark, bury;
    bool exact;
    bool rw; /* a read/write lock; of all items of a RENEW */
    bool fair;
    bool enqueue;
    bool whole;
    uint64_t fair_wait_ms;          /* what a waiter adds to the queue's deadlines */
    const struct renew_item *items; /* RENEW */
    size_t item_count;
    const struct span *members; /* QUEUE, LEAVE: at most OP_QUEUE_MAX */
    const uint64_t *waited_ms;  /* QUEUE: as many; or NULL */
    size_t member_count;
    size_t known;
    const struct batch_item *batch; /* ACQUIRE_BATCH: at most OP_BATCH_MAX */
    size_t batch_count;
    uint64_t token;                   /* RESTORE */
    bool keeper;                      /* RESTORE */
    const struct restore_entry *kept; /* RESTORE: 1 to OP_RESTORE_ENTRIES_MAX */
    size_t kept_count;
};

/* The number of items or names of an op on several. */
static inline size_t op_item_count(const struct op *op)
{
    return op->kind == OP_ACQUIRE_BATCH ? op->batch_count : op->item_count;
}

/* How long the tombstones of a RELEASE live: while the same release may be sent again,
 * and until other instances that believe in the hold have renewed. */
static inline uint64_t op_ended_ms(const struct op *op)
{
    return op->ended_ms > OP_ENDED_MS ? op->ended_ms : OP_ENDED_MS;
}

enum op_status {
    OP_OK,
    OP_BUSY,
    OP_NOTHELD,
    OP_ENDED,
    OP_OVER,
    OP_ELSEWHERE,
    OP_UPGRADE,   /* the owner reads, and may not wait to write */
    OP_AMBIGUOUS, /* READ or WRITE has to be said */
    OP_BEHIND,    /* `propose` is not above the last token, which is `token` */
    /* `rw`, `plain`: the name is a lock of that class; neither: other data */
    OP_WRONGTYPE,
    OP_LATE, /* the op's deadline in Redis time had passed: it did nothing */
    /* the op ran or not, and will not run any more: its links were killed */
    OP_UNKNOWN,
    OP_ERROR, /* Redis refused, `text` says why; the op may have run half way */
    /* The op ran as if OK, but too few replicas acknowledged it: a failover may take it
     * back. Only for ops that extend a lease, see op_extends_lease(). */
    OP_NOREPLICAS,
};

/* One owner found by OP_INSPECT. */
struct op_field {
    enum lock_kind lock_kind;
    struct span owner; /* the hash field */
    int64_t count;
    uint64_t token; /* of a reader or writer; 0: not known */
};

struct op_result {
    uint64_t id;
    enum op_status status;
    /* the token of the claim granted, or of the hold attached; INSPECT: the last token
     */
    uint64_t token;
    int64_t ttl_ms; /* PTTL: -1 no TTL, -2 not there */
    int64_t count;  /* entries that are left, or that the owner has now */
    bool attached;
    /* ACQUIRE with `look`, OK: the hold is there, and another instance keeps it */
    bool elsewhere;
    bool restored;     /* RESTORE: the hold was missing */
    bool moved;        /* RELEASE: `next` holds now */
    bool freed;        /* RELEASE: nobody holds now, `0` was published */
    struct span owner; /* ATTACH: the hash field; INSPECT: `who` of the fence key */
    struct span entry; /* ATTACH: of a named owner */
    /* ERROR: Redis's words; LATE: the same, if Redis would not run the op */
    struct span text;
    const enum renew_result *items; /* RENEW: as many as the op had */
    size_t item_count;
    const struct op_field *fields; /* INSPECT: none = free */
    size_t field_count;
    enum lock_kind lock_kind; /* INSPECT: of the lock; ATTACH: of the hold */
    bool fair;                /* there is a fair queue now */
    /* ACQUIRE, BUSY: the lock is free, but nobody is granted it for `ttl_ms`; INSPECT:
     * the same, should the lock be free */
    bool withheld;
    bool shared;              /* RELEASE: a read lock is left where a writer was */
    bool rw, plain;           /* WRONGTYPE: the lock class of the name */
    const struct span *queue; /* INSPECT: the fair queue's members, in order */
    size_t queue_count;
    const struct op_result *batch; /* ACQUIRE_BATCH */
    size_t batch_count;
};

#endif
