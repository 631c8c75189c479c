#include "backend/sentinel/sentinel_vote.h"

#include <string.h>

bool sentinel_claim_same_address(const struct sentinel_claim *a,
                                 const struct sentinel_claim *b)
{
    return strcmp(a->host, b->host) == 0 && strcmp(a->port, b->port) == 0;
}

static bool is_same(const struct sentinel_claim *a, const struct sentinel_claim *b)
{
    return a->epoch == b->epoch && sentinel_claim_same_address(a, b);
}

void sentinel_vote_add(struct sentinel_vote *b, size_t who)
{
    b->sentinels[who].state = SENTINEL_ASKED;
}

void sentinel_vote_remove(struct sentinel_vote *b, size_t who)
{
    b->sentinels[who].state = SENTINEL_NOBODY;
}

void sentinel_vote_hear(struct sentinel_vote *b, size_t who,
                        const struct sentinel_claim *claim)
{
    b->sentinels[who].state = SENTINEL_CLAIMS;
    b->sentinels[who].claim = *claim;
    if (b->first_ms == 0) {
        b->first_ms = claim->heard_ms;
    }
}

void sentinel_vote_silent(struct sentinel_vote *b, size_t who)
{
    b->sentinels[who].state = SENTINEL_SILENT;
}

size_t sentinel_vote_count(const struct sentinel_vote *b, bool only_heard)
{
    size_t count = 0;

    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        enum sentinel_state state = b->sentinels[i].state;

        count += state == SENTINEL_CLAIMS || (!only_heard && state != SENTINEL_NOBODY);
    }
    return count;
}

/* The claim of Sentinel `i`; NULL: none that counts. */
static const struct sentinel_claim *claim_of(const struct sentinel_vote *b, size_t i,
                                             uint64_t now_ms)
{
    const struct sentinel_claim *claim = &b->sentinels[i].claim;

    if (b->sentinels[i].state != SENTINEL_CLAIMS ||
        now_ms - claim->heard_ms > SENTINEL_FRESH_MS) {
        return NULL;
    }
    return claim;
}

/* How many Sentinels name the same address as `claim`, whatever the epoch. */
static size_t count_supporters(const struct sentinel_vote *b,
                               const struct sentinel_claim *claim, uint64_t now_ms)
{
    size_t count = 0;

    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        const struct sentinel_claim *other = claim_of(b, i, now_ms);

        count += other != NULL && sentinel_claim_same_address(other, claim);
    }
    return count;
}

static bool is_majority(const struct sentinel_vote *b, size_t count)
{
    return count * 2 > sentinel_vote_count(b, false);
}

static bool is_ignored(const struct sentinel_vote *b,
                       const struct sentinel_claim *claim, uint64_t now_ms)
{
    return b->ignores && is_same(&b->ignored, claim) &&
           !is_majority(b, count_supporters(b, claim, now_ms));
}

/* The claim with the highest epoch; among equals, the one of most Sentinels. NULL:
 * there is none. */
static const struct sentinel_claim *newest_claim(const struct sentinel_vote *b,
                                                 uint64_t now_ms)
{
    const struct sentinel_claim *best = NULL;

    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        const struct sentinel_claim *claim = claim_of(b, i, now_ms);

        if (claim == NULL || is_ignored(b, claim, now_ms)) {
            continue;
        }
        if (best == NULL || claim->epoch > best->epoch ||
            (claim->epoch == best->epoch &&
             count_supporters(b, claim, now_ms) > count_supporters(b, best, now_ms))) {
            best = claim;
        }
    }
    return best;
}

/* The first answer may come from a Sentinel that is behind: others get a moment. */
static bool may_begin(const struct sentinel_vote *b, uint64_t now_ms)
{
    size_t unheard = 0;

    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        unheard += b->sentinels[i].state == SENTINEL_ASKED;
    }
    return unheard == 0 || is_majority(b, sentinel_vote_count(b, true)) ||
           now_ms - b->first_ms >= SENTINEL_FIRST_MS;
}

/* The claim of a majority that names another master than ours; NULL: none. */
static const struct sentinel_claim *opposed_claim(const struct sentinel_vote *b,
                                                  uint64_t now_ms)
{
    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        const struct sentinel_claim *claim = claim_of(b, i, now_ms);

        if (claim != NULL && is_majority(b, count_supporters(b, claim, now_ms))) {
            return sentinel_claim_same_address(claim, &b->master) ? NULL : claim;
        }
    }
    return NULL;
}

static bool is_outvoted(struct sentinel_vote *b, uint64_t now_ms, bool usable)
{
    const struct sentinel_claim *claim = usable ? NULL : opposed_claim(b, now_ms);

    if (claim == NULL) {
        b->insists_ms = 0;
        return false;
    }
    if (b->insists_ms == 0 || !sentinel_claim_same_address(claim, &b->insisted)) {
        b->insists_ms = now_ms;
    }
    b->insisted = *claim;
    return now_ms - b->insists_ms >= SENTINEL_OUTVOTED_MS;
}

enum sentinel_verdict sentinel_vote_decide(struct sentinel_vote *b, uint64_t now_ms,
                                           bool usable)
{
    const struct sentinel_claim *best = newest_claim(b, now_ms);
    struct sentinel_claim before = b->master;

    if (best == NULL || (!b->knows && !may_begin(b, now_ms))) {
        return SENTINEL_STAYS;
    }
    if (!b->knows) {
        b->knows = true;
        b->master = *best;
        return SENTINEL_MOVED;
    }
    if (best->epoch > b->master.epoch) {
        b->master = *best;
        b->insists_ms = 0;
        return sentinel_claim_same_address(best, &before) ? SENTINEL_CONFIRMED
                                                          : SENTINEL_MOVED;
    }
    if (is_outvoted(b, now_ms, usable)) {
        b->ignores = true;
        b->ignored = before;
        b->master = b->insisted;
        b->insists_ms = 0;
        return SENTINEL_OVERRULED;
    }
    return SENTINEL_STAYS;
}
