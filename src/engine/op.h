/* op: what the lock engine asks of the store, and what the store answers. Data only.
 *
 * An op becomes one Lua script (backend/script/lua/), the simulator has the same
 * meaning in C. Every op may be sent again after OP_UNKNOWN or OP_LATE: the same claim
 * finds what it was granted, the same entry is counted once, the same release removes
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
 *                            fits: nobody may act of its own accord)
 *   latchd:ended:{N}:<what>  string "<count left> <token>", for op_ended_ms(): this was
 *                            released, and with what answer. What: a field (anonymous,
 *                            ID), an entry id, or `owner:<name>` for its last entry
 *   redisson_lock__channel:{N}
 *                            channel: `0` is published when N becomes free
 *   redisson_lock_token:{N}  string, Redisson's: the last token of its RFencedLock.
 *                            A new token is above a number below 9007000000000000
 *                            there, and raises it; anything else is left alone
 *   latchd:moving:{N}        never there, but named by every script in a cluster
 * A hash field is `latchd:<token>` (anonymous), `latchd:id:<r>` (ID), or the owner's
 * name. An entry id is `id:<r>` (ID) or `<instance>:<n>`.
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
 * try; a Redisson thread that is about to sleep misses the `1`), `0` when the last
 * reader has
 *
 * Fence, entries (with the hold's token, 16 digits, before the owner, which is the hash
 * field: an entry counts only for that hold), keeper and ended keys are as above; an ID
 * reader, or a found one, always has a keeper key. Reader and writer keys live as long
 * as a fence key. A hold without a known token (no hold key, or Redisson's `1` in it)
 * goes on under a new one when it is acquired again.
 *
 * Spans belong to whoever made the op or the result, and are valid while it is handed
 * over. Times are milliseconds, tokens are positive and at most 2^53. */
#ifndef LATCHD_ENGINE_OP_H
#define LATCHD_ENGINE_OP_H

#include "util/span.h"

#include <stddef.h>

#include <stdbool.h>
#include <stdint.h>

enum {
    OP_INSTANCE_LEN = 16,      /* hex digits that name one run of one daemon */
    OP_RENEW_MAX = 100,        /* holds renewed by one script call */
    OP_ENDED_MS = 20000,       /* for so long at least an unlock can be repeated */
    OP_FENCE_TTL_MS = 3600000, /* a fence key outlives the lease of its lock by this */
    OP_QUEUE_MAX = 4096,       /* members named by one script call */
    OP_BATCH_MAX = 100,        /* names taken by one script call */
    OP_RESTORE_ENTRIES_MAX = 1000, /* entries of one hold put back by one script call */
    OP_TEXT_MAX = 1024, /* bytes of a field or entry: more than ours can have */
};

/* Plain and fair locks are one family, and exclude each other; read and write the
 * other. A hold is PLAIN, READ or WRITE: fair is only a way of waiting. */
enum lock_kind { KIND_PLAIN, KIND_FAIR, KIND_READ, KIND_WRITE };

/* Who is to hold. */
enum owner_kind { OWNER_ANONYMOUS, OWNER_ID, OWNER_NAMED };

struct claim {
    enum lock_kind lock_kind;
    enum owner_kind kind;
    struct span
        field; /* the hash field; empty for OWNER_ANONYMOUS: the script makes it, but
                  for READ, where it is always given. WRITE: with its `:write` */
    struct span
        entry; /* ANONYMOUS: the request, `<instance>:<n>`; NAMED: the entry id */
    struct span member; /* `latchd:<instance>:<n>`: its place in the fair queue */
    uint64_t lease_ms;
};

/* Which hold, or which entry of one, is meant. `token`, when not 0, must fit too. */
enum target_kind {
    TARGET_FIELD,   /* `field`: an anonymous or ID hold */
    TARGET_REQUEST, /* `entry`: the anonymous hold that this request got, if it got one
                     */
    /* The anonymous or ID hold with `token`; with `force` a named owner's as well. */
    TARGET_TOKEN,
    TARGET_ID, /* `field` = latchd:id:<r>, `entry` = id:<r>: whichever of them is there
                */
    TARGET_ENTRY, /* `entry` of the named owner `field` */
    /* The newest entry of the named owner `field`. That may be another one the second
     * time: for a release that is sent again, `entry` is an id of the release itself,
     * under which a mark is left as well; empty: it may remove one more. */
    TARGET_OWNER,
    TARGET_ANY, /* whoever holds; only with `force` */
};

struct target {
    enum target_kind kind;
    /* Of a read/write lock: READ, WRITE, or PLAIN: not said, whichever is there. */
    enum lock_kind lock_kind;
    struct span field; /* a writer's with or without its `:write` */
    struct span entry;
    uint64_t token;
};

enum op_kind {
    /* Take the lock for `claim` if it is free, or if it is the claim's own already:
     * then a new entry of a named owner is added (TTL raised, never lowered), and what
     * was granted before is found again. `reenter_only`: if it is free, leave it (nor
     * join other readers, unless this owner holds already). An ID
     * or ID entry that is there but was kept by another instance is attached: the
     * keeper becomes this instance (result: `attached`).
     * Nothing happens if that one took over after this op was sent: ELSEWHERE.
     * READ: also beside other readers, and under the same owner's WRITE. WRITE for an
     * owner who only reads, and is alive: UPGRADE, nothing happened.
     * `fair` (plain and fair): by the rules of the fair queue. What the claim has is
     * looked for first, as without. Then stale heads are removed, and a head without a
     * score gets one; a free lock is given only if nobody waits, or the head is one of
     * this instance's members (whichever: their order is the engine's business). The
     * member of a claim that is granted, now or found so, leaves the queue. Else, with
     * `enqueue`, it is put at the tail, if it is not in the queue. `known`, not 0: it
     * has been in it before, and if it is not, is put back at the head first of all. A
     * free lock that is another's turn: BUSY with the time in which that head will
     * count as dead. Without `fair` a free lock with a fair queue is BUSY -2 fair,
     * nothing happened.
     * `propose` (plain, not anonymous): the token of a grant, if it is above the last
     * one; else BEHIND, nothing happened. With `level` what is found again gets it,
     * too. `untold`: the claim's tokens from that one on were told to nobody. `look`: a
     * hold that another instance keeps stays as it is (result: `elsewhere`; the token
     * is 0 if nothing tells it).
     * -> OK token count attached elsewhere fair, BUSY ttl fair, OVER (an ended mark
     * exists), ELSEWHERE, UPGRADE, BEHIND token, WRONGTYPE */
    OP_ACQUIRE,
    /* OP_ACQUIRE, plain and not fair, of `many` names in that order, until one is not
     * granted. -> OK many[], as many as were tried: all but the last are OK */
    OP_ACQUIRE_BATCH,
    /* Remove `target`: a hold, or one entry of a named owner. When that was the last
     * entry and `next` is set, the lock moves to that claim under a new token (never
     * when yield says otherwise, nor, unless of own accord, to the very request that
     * ends), else it is deleted and `0` is published.
     * `bury` (ENTRY, ID): leave its marks although it is not there.
     * `own_accord`: only if this instance keeps it, else ELSEWHERE.
     * `untold` (own accord): if the hold's token is that or a later one, and not of a
     * named owner, nobody was told of it: the last token of the name is the one before.
     * `force`: the whole hold, whatever its count; no ended mark.
     * `mark`: leave an ended mark so that the same release, sent again, has its answer.
     * One is left without it, too, if it is not of own accord or by force, and another
     * instance keeps the entry, or there is a keeper key.
     * A target that is not there: OK moved if `next` holds already (this op ran
     * before), else ENDED count (with the mark), else NOTHELD.
     * If there is a fair queue when the last entry goes, stale heads are removed, and
     * `next` gets the lock only if nobody waits then, or the head is one of this
     * instance's members; its own member leaves the queue, also if it holds already.
     * Else the lock is freed, and published on its channel and on that of the head.
     * `rw`: a reader's field goes with its last entry; other readers stay (freed and
     * moved are false). The lock's TTL is then the longest of the readers' that are
     * alive (dead ones are removed), but under a writer it is left alone. A writer who
     * still reads leaves a read lock (TTL as above): `shared`, and `1` is published;
     * if nobody who reads is alive, it is free. `next` gets a lock that became free; if
     * it is a reader and a writer left, `1` is published as well. The owner both reads
     * and writes and lock_kind does not say which: AMBIGUOUS. ANY: all who hold.
     * A lock of the other family: ENDED if there is a mark, else WRONGTYPE.
     * -> OK count token(of next) moved freed shared fair, ENDED count, NOTHELD,
     * ELSEWHERE, AMBIGUOUS, WRONGTYPE */
    OP_RELEASE,
    /* Give the `items` their lease: raise the TTL to `lease_ms`, never lower it, unless
     * `exact`. Of a reader: of its hold keys, and of the lock. `exact` never takes from
     * the lock what another reader that is alive, or a writer, has. Where nothing tells
     * who keeps a hold, who asks does.
     * -> OK items[], one renew_result each */
    OP_RENEW,
    /* A client comes back to `target`: make this instance its keeper, and give it
     * `lease_ms` (`exact`: just that much, unless other entries share the hold). The
     * ttl of a reader is the smaller one of its hold keys' and of the lock's.
     * ELSEWHERE: another instance took over after this op was sent; nothing happened.
     * -> OK owner(field) lock_kind entry token ttl, NOTHELD, ELSEWHERE, AMBIGUOUS,
     * WRONGTYPE */
    OP_ATTACH,
    /* Put back a hold that this instance keeps, as Redis may have lost it: `claim` (its
     * field always; `entry`: the request of an anonymous one, if that is known) under
     * its `token`, with the entries `kept`; `keeper`: it has a keeper key. TTLs are
     * raised to the lease, never lowered. What other instances took over later than
     * this one is theirs. Looked for in this order:
     *   - it is there (under this token, or none is known): missing entries are added,
     *     but those with an ended mark. None of `kept` is left then: ENDED, or, if
     *     others have some of them now, ELSEWHERE
     *   - it has an ended mark: ENDED
     *   - the name has a later token, and it was not given beside this hold: NOTHELD
     *   - `level` (plain, a named owner's): an older hold of the same field is this
     * one, which another entry got a later token for: as if it had this token
     *   - what is in the way has lower tokens, each known, and all who count in it left
     *     an entry, if it is an owner's: it was over when this was granted, and goes.
     *     An older hold of the same field goes in any case
     *   - free, or other readers are there, or only its own owner's: it is made anew,
     *     and `restored`; the last token of the name is this one, if it was lower
     *   - somebody else holds: NOTHELD
     * -> OK token count restored, NOTHELD, ENDED, ELSEWHERE, WRONGTYPE */
    OP_RESTORE,
    /* Look, change nothing. -> OK lock_kind fields[] queue[] ttl token who */
    OP_INSPECT,
    /* Our waiters in the fair queue, in order: `members`. In this order: duplicates go
     * (the first stays); with `whole` these are all of this instance's, others of its
     * leave; stale heads are removed; with `whole` scores are moved on, or the marks
     * go if there are no members. Of `members` the first `known` have been in the
     * list before: who of them is missing in it was thrown out, and is put back at the
     * head, in order; the others are put at the tail. Whoever is in it already stays.
     * Any member of the list without a score gets one, and a score without a place in
     * the list goes.
     * `waited_ms` (with `whole`), for how long each waits: Redis may have lost them, so
     * who is missing goes behind the last one that is known to wait for longer, if
     * there is one; and who was put back so takes its place among those that are named
     * later.
     * -> OK ttl (-2: free) fair, WRONGTYPE */
    OP_QUEUE,
    /* `members` leave the fair queue, whatever the lock has become, then stale heads
     * are removed. -> OK fair, WRONGTYPE */
    OP_LEAVE,
};
/* Every op that takes the head out of the queue of a free lock, and does not grant,
 * publishes to the head that is there in the end, once; ACQUIRE with `fair` and QUEUE
 * also to a head of others that was there before: it may not know that it is its turn,
 * as not all who release look at the queue. `fair` of a result: there is a
 * fair queue now; told by BUSY, by RELEASE when it freed or moved, by QUEUE and LEAVE,
 * and by ACQUIRE with `fair`. */

enum yield {
    YIELD_NEVER,     /* hand over to `next` */
    YIELD_IF_OTHERS, /* release truly if somebody else listens on the channel */
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
    bool kept;  /* a keeper key exists and must live as long */
};

enum renew_result {
    RENEW_OK,
    RENEW_GONE,      /* lost: expired, deleted, or somebody else's */
    RENEW_ENDED,     /* its owner released it elsewhere: an ended mark with its token */
    RENEW_ELSEWHERE, /* another instance keeps it; its TTL was not touched */
    RENEW_WRONGTYPE, /* the name is something else by now: lost */
    RENEW_UNKNOWN,   /* of a quorum too few could be asked about it */
};

struct batch_item {
    struct span name;
    struct claim claim;
};

/* What this instance keeps of a hold: one entry, or an anonymous or ID hold. */
struct restore_entry {
    struct span entry; /* NAMED */
    uint64_t for_ms;   /* since it took over */
};

struct op {
    enum op_kind kind;
    uint64_t id;        /* chosen by the engine, never used twice */
    struct span name;   /* not for OP_RENEW and OP_ACQUIRE_BATCH */
    bool grouped;       /* names are kept in groups, apart from each other */
    uint32_t group;     /* then: of all names of this op */
    struct claim claim; /* ACQUIRE; RELEASE: the next one, if has_next */
    struct target target;
    uint64_t lease_ms;   /* ATTACH; RELEASE: in which the hold ends by itself, 0: not
                            known */
    uint64_t ended_ms;   /* RELEASE: see op_ended_ms() */
    uint64_t seen_token; /* a new token is greater than this */
    uint64_t propose;    /* ACQUIRE: the new token, 0: it is made there */
    uint64_t untold;     /* ACQUIRE with `propose`, RELEASE: a token, or 0 */
    bool level, look;
    enum yield yield;
    bool subscribed; /* this daemon listens on the channel itself (for YIELD_IF_OTHERS)
                      */
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
    const struct batch_item *batch; /* ACQUIRE_MANY: at most OP_BATCH_MAX */
    size_t batch_count;
    uint64_t token;                   /* RESTORE */
    bool keeper;                      /* RESTORE */
    const struct restore_entry *kept; /* RESTORE: 1 to OP_RESTORE_ENTRIES_MAX */
    size_t kept_count;
};

/* How many things the op is about, where they may be several. */
static inline size_t op_item_count(const struct op *op)
{
    return op->kind == OP_ACQUIRE_BATCH ? op->batch_count : op->item_count;
}

/* How long the marks of a RELEASE live: while the same release may be sent again, and
 * until other instances that believe in the hold have renewed it. */
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
    OP_UPGRADE,   /* it reads, and may not wait to write */
    OP_AMBIGUOUS, /* READ or WRITE has to be said */
    OP_BEHIND,    /* `propose` is not above the last token, which is `token` */
    OP_WRONGTYPE, /* `rw`, `plain`: it is a lock of that family; neither: other data */
    OP_LATE,      /* its deadline in Redis time had passed: it did nothing */
    OP_UNKNOWN,   /* it ran or not, and will not run any more: links are dead and killed
                   */
    OP_ERROR,     /* Redis refused, `text` says why; it may have run half way */
    /* It ran, and the result says OK's, but too few replicas acknowledged it: a
     * failover may take it back. Only of ops that vouch, see op_extends_lease(). */
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
    uint64_t
        token; /* of the claim granted, of the hold attached; INSPECT: the last one */
    int64_t ttl_ms; /* PTTL: -1 no TTL, -2 not there */
    int64_t count;  /* entries that are left, or that the owner now has */
    bool attached;
    bool elsewhere;    /* ACQUIRE with `look`, OK: it is there, and another's */
    bool restored;     /* RESTORE: it was not there any more */
    bool moved;        /* RELEASE: `next` holds now */
    bool freed;        /* RELEASE: nobody holds now, `0` was published */
    struct span owner; /* ATTACH: the hash field; INSPECT: `who` of the fence key */
    struct span entry; /* ATTACH: of a named owner */
    struct span text; /* ERROR: Redis's words; LATE: the same, if it would not run it */
    const enum renew_result *items; /* RENEW: as many as the op had */
    size_t item_count;
    const struct op_field *fields; /* INSPECT: none = free */
    size_t field_count;
    enum lock_kind lock_kind; /* INSPECT: of the lock; ATTACH: of the hold */
    bool fair;                /* there is a fair queue now */
    bool withheld;  /* ACQUIRE, BUSY: nobody holds it, but it is granted to nobody for
                       `ttl_ms`; INSPECT: should it be free, it is the same */
    bool shared;    /* RELEASE: a read lock is left where a writer was */
    bool rw, plain; /* WRONGTYPE: the family that it is of */
    const struct span *queue; /* INSPECT: the fair queue's members, in order */
    size_t queue_count;
    const struct op_result *batch; /* ACQUIRE_MANY */
    size_t batch_count;
};

#endif
