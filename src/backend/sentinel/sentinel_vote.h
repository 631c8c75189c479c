/* sentinel_vote: which master to use, by what several Sentinels say.
 *
 * A calculator: it takes who said what and when, and gives the outcome. Every failover
 * makes a higher epoch, so the highest epoch ever seen wins, and a Sentinel with a
 * lower one is behind: no vote leads back to an old master. There is one exception:
 * when the chosen master cannot be used and a majority of all Sentinels has long been
 * naming another one, the majority is right, whatever the epochs (the Sentinels' memory
 * was deleted, or a single one is wrong).
 *
 * The caller numbers the Sentinels, below SENTINELS_MAX. Milliseconds, of any clock. A
 * zeroed struct is empty and valid. */
#ifndef LATCHD_BACKEND_SENTINEL_SENTINEL_VOTE_H
#define LATCHD_BACKEND_SENTINEL_SENTINEL_VOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SENTINELS_MAX = 32,
    SENTINEL_HOST_MAX = 255,
    SENTINEL_FRESH_MS = 5000,     /* older claims do not count */
    SENTINEL_FIRST_MS = 1000,     /* how long others may take before the first answer */
    SENTINEL_OUTVOTED_MS = 10000, /* how long a majority has to insist */
};

struct sentinel_claim {
    char host[SENTINEL_HOST_MAX + 1];
    char port[8];
    uint64_t epoch;
    uint64_t heard_ms;
};

enum sentinel_state {
    SENTINEL_NOBODY, /* no Sentinel has this number */
    SENTINEL_ASKED,  /* no answer yet */
    SENTINEL_SILENT, /* cannot be reached, or does not know the master */
    SENTINEL_CLAIMS,
};

struct sentinel_vote {
    struct {
        enum sentinel_state state;
        struct sentinel_claim claim; /* also when it is silent: its last claim */
    } sentinels[SENTINELS_MAX];
    bool knows;
    struct sentinel_claim master;
    bool ignores; /* the `ignored` one, which was outvoted */
    struct sentinel_claim ignored;
    uint64_t first_ms; /* the first claim came; 0: none */
    /* A majority insists since then on that one; 0: it does not. */
    uint64_t insists_ms;
    struct sentinel_claim insisted;
};

/* Adds a Sentinel, or removes one. */
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

/* `usable`: the chosen master works as one. The choice is in b->master afterwards. */
enum sentinel_verdict sentinel_vote_decide(struct sentinel_vote *b, uint64_t now_ms,
                                           bool usable);

/* How many Sentinels there are, or how many of them answer. */
size_t sentinel_vote_count(const struct sentinel_vote *b, bool only_heard);

bool sentinel_claim_same_address(const struct sentinel_claim *a,
                                 const struct sentinel_claim *b);

#endif
