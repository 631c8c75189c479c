/* sentinel_vote: which master to believe in, of what several Sentinels say.
 *
 * A calculator: it is told who said what and when, and asked for the outcome. Every
 * failover makes a higher epoch, so the highest that was ever heard of wins, and who
 * says less is behind: it never leads back to an old master. But for one thing: when
 * what it believes cannot be used and a majority of all Sentinels has long been naming
 * another master, the majority is right, whatever the epochs (their memory was deleted,
 * or a single one is wrong).
 *
 * Sentinels are numbered by the caller, below SENTINELS_MAX. Milliseconds, of whatever
 * clock. A zeroed one is empty and valid. */
#ifndef LATCHD_BACKEND_SENTINEL_SENTINEL_VOTE_H
#define LATCHD_BACKEND_SENTINEL_SENTINEL_VOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SENTINELS_MAX = 32,
    SENTINEL_HOST_MAX = 255,
    SENTINEL_FRESH_MS = 5000,     /* what was said longer ago does not count */
    SENTINEL_FIRST_MS = 1000,     /* as long others may take before the first answer */
    SENTINEL_OUTVOTED_MS = 10000, /* as long a majority has to insist */
};

struct sentinel_claim {
    char host[SENTINEL_HOST_MAX + 1];
    char port[8];
    uint64_t epoch;
    uint64_t heard_ms;
};

enum sentinel_state {
    SENTINEL_NOBODY, /* no Sentinel has this number */
    SENTINEL_ASKED,  /* not heard yet */
    SENTINEL_SILENT, /* cannot be reached, or does not know the master */
    SENTINEL_CLAIMS,
};

struct sentinel_vote {
    struct {
        enum sentinel_state state;
        struct sentinel_claim claim; /* also when it is silent: what it said last */
    } sentinels[SENTINELS_MAX];
    bool knows;
    struct sentinel_claim master;
    bool ignores; /* this one: it was outvoted */
    struct sentinel_claim ignored;
    uint64_t first_ms; /* the first claim came; 0: none */
    /* A majority insists since then on that one; 0: it does not. */
    uint64_t insists_ms;
    struct sentinel_claim insisted;
};

/* There is one more, or it is gone. */
void sentinel_vote_add(struct sentinel_vote *b, size_t who);
void sentinel_vote_remove(struct sentinel_vote *b, size_t who);
void sentinel_vote_hear(struct sentinel_vote *b, size_t who,
                        const struct sentinel_claim *claim);
void sentinel_vote_silent(struct sentinel_vote *b, size_t who);

enum sentinel_verdict {
    SENTINEL_STAYS,
    SENTINEL_CONFIRMED, /* the same master, but of a newer epoch */
    SENTINEL_MOVED,     /* another address, or the first one */
    SENTINEL_OVERRULED, /* another address, of no higher epoch: the majority insisted */
};

/* `usable`: the master that is believed in works as one. What is believed then stands
 * in b->master. */
enum sentinel_verdict sentinel_vote_decide(struct sentinel_vote *b, uint64_t now_ms,
                                           bool usable);

/* How many Sentinels there are, and how many are heard. */
size_t sentinel_vote_count(const struct sentinel_vote *b, bool only_heard);

bool sentinel_claim_same_address(const struct sentinel_claim *a,
                                 const struct sentinel_claim *b);

#endif
