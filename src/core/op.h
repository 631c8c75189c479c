/* op: what the lock engine asks of the store, and what the store answers. Data only.
 *
 * An op becomes one Lua script (store/lua/), the simulator has the same meaning in C.
 * Every op may be sent again after OP_UNKNOWN or OP_LATE: the same claim finds what it
 * was granted, the same entry is counted once, the same release removes nothing twice.
 *
 * Names in Redis (N = lock name; `{N}` is N itself where N contains a `{`):
 *   N                        hash, Redisson's: owner field -> count of entries
 *   latchd:fence:{N}         string "<last token> <who>": who got the last token:
 *                            `a<request>`, or `f<instance><hash field>`, where the
 *                            instance (16 bytes) is the one that granted it
 *   latchd:entries:{N}       hash: entry id -> keeper instance (16 bytes), Redis time
 *                            when it took over (16 digits, us), owner
 *   latchd:keeper:{N}:<field>
 *                            string: instance that keeps an anonymous or ID hold that
 *                            another one took, Redis time when it took over (16
 *                            digits, us). Missing: the taker keeps it, which for
 *                            an ID hold is the instance in the fence key (neither
 *                            fits: nobody may act of its own accord)
 *   latchd:ended:{N}:<what>  string "<count left> <token>", for ENDED_MS: this was
 *                            released, and with what answer. What: a field (anonymous,
 *                            ID), an entry id, or `owner:<name>` for its last entry
 *   redisson_lock__channel:{N}
 *                            channel: `0` is published when N becomes free
 * A hash field is `latchd:<token>` (anonymous), `latchd:id:<r>` (ID), or the owner's
 * name. An entry id is `id:<r>` (ID) or `<instance>:<n>`.
 *
 * Spans belong to whoever made the op or the result, and are valid while it is handed
 * over. Times are milliseconds, tokens are positive and at most 2^53. */
#ifndef LATCHD_CORE_OP_H
#define LATCHD_CORE_OP_H

#include "util/span.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    OP_INSTANCE_LEN = 16,      /* hex digits that name one run of one daemon */
    OP_RENEW_MAX = 100,        /* holds renewed by one script call */
    OP_ENDED_MS = 20000,       /* how long an unlock can be repeated */
    OP_FENCE_TTL_MS = 3600000, /* a fence key outlives the lease of its lock by this */
};

/* Who is to hold. */
enum owner_kind { OWNER_ANONYMOUS, OWNER_ID, OWNER_NAMED };

struct claim {
    enum owner_kind kind;
    struct span
        field; /* the hash field; empty for OWNER_ANONYMOUS: the script makes it */
    struct span
        entry; /* ANONYMOUS: the request, `<instance>:<n>`; NAMED: the entry id */
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
    struct span field;
    struct span entry;
    uint64_t token;
};

enum op_kind {
    /* Take the lock for `claim` if it is free, or if it is the claim's own already:
     * then a new entry of a named owner is added (TTL raised, never lowered), and what
     * was granted before is found again. `reenter_only`: if it is free, leave it. An ID
     * or ID entry that is there but was kept by another instance is attached: the
     * keeper becomes this instance (result: `attached`).
     * Nothing happens if that one took over after this op was sent: ELSEWHERE.
     * -> OK token count attached, BUSY ttl, OVER (an ended mark exists), ELSEWHERE,
     *    WRONGTYPE */
    OP_ACQUIRE,
    /* Remove `target`: a hold, or one entry of a named owner. When that was the last
     * entry and `next` is set, the lock moves to that claim under a new token (never
     * when yield says otherwise), else it is deleted and `0` is published.
     * `own_accord`: only if this instance keeps it, else ELSEWHERE.
     * `force`: the whole hold, whatever its count; no ended mark.
     * `mark`: leave an ended mark so that the same release, sent again, has its answer.
     * A target that is not there: OK moved if `next` holds already (this op ran
     * before), else ENDED count (with the mark), else NOTHELD.
     * -> OK count token(of next) moved freed, ENDED count, NOTHELD, ELSEWHERE,
     * WRONGTYPE */
    OP_RELEASE,
    /* Give the `items` their lease: raise the TTL to `lease_ms`, never lower it, unless
     * `exact`. -> OK items[], one renew_result each */
    OP_RENEW,
    /* A client comes back to `target`: make this instance its keeper, and give it
     * `lease_ms` (`exact`: just that much, unless other entries share the hold).
     * ELSEWHERE: another instance took over after this op was sent; nothing happened.
     * -> OK owner entry token ttl, NOTHELD, ELSEWHERE, WRONGTYPE */
    OP_ATTACH,
    /* Look, change nothing. -> OK fields[] ttl token who */
    OP_INSPECT,
};

enum yield {
    YIELD_NEVER,     /* hand over to `next` */
    YIELD_IF_OTHERS, /* release truly if somebody else listens on the channel */
    YIELD_ALWAYS,    /* release truly */
};

struct renew_item {
    struct span name;
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
};

struct op {
    enum op_kind kind;
    uint64_t id;        /* chosen by the engine, never used twice */
    struct span name;   /* not for OP_RENEW */
    struct claim claim; /* ACQUIRE; RELEASE: the next one, if has_next */
    struct target target;
    uint64_t lease_ms;   /* ATTACH */
    uint64_t seen_token; /* a new token is greater than this */
    enum yield yield;
    bool subscribed; /* this daemon listens on the channel itself (for YIELD_IF_OTHERS)
                      */
    bool has_next;
    bool reenter_only;
    bool own_accord;
    bool force;
    bool mark;
    bool exact;
    const struct renew_item *items; /* RENEW */
    size_t item_count;
};

enum op_status {
    OP_OK,
    OP_BUSY,
    OP_NOTHELD,
    OP_ENDED,
    OP_OVER,
    OP_ELSEWHERE,
    OP_WRONGTYPE,
    OP_LATE,    /* its deadline in Redis time had passed: it did nothing */
    OP_UNKNOWN, /* it ran or not, and will not run any more: links are dead and killed
                 */
    OP_ERROR,   /* Redis refused, `text` says why; it may have run half way */
};

/* One owner found by OP_INSPECT. */
struct op_field {
    struct span owner;
    int64_t count;
};

struct op_result {
    uint64_t id;
    enum op_status status;
    uint64_t
        token; /* of the claim granted, of the hold attached; INSPECT: the last one */
    int64_t ttl_ms; /* PTTL: -1 no TTL, -2 not there */
    int64_t count;  /* entries that are left, or that the owner now has */
    bool attached;
    bool moved;        /* RELEASE: `next` holds now */
    bool freed;        /* RELEASE: nobody holds now, `0` was published */
    struct span owner; /* ATTACH: the hash field; INSPECT: `who` of the fence key */
    struct span entry; /* ATTACH: of a named owner */
    struct span text;  /* ERROR: Redis's words */
    const enum renew_result *items; /* RENEW: as many as the op had */
    size_t item_count;
    const struct op_field *fields; /* INSPECT: none = free */
    size_t field_count;
};

#endif
