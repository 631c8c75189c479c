/* losses: the holds that were lost last, or that expired last, for LOCKINFO and the
 * status page.
 *
 * A ring of fixed size: of more than LOSSES_MAX the oldest is forgotten. */
#ifndef LATCHD_CMD_OBSERVE_LOSSES_H
#define LATCHD_CMD_OBSERVE_LOSSES_H

#include "engine/effect.h"

#include "latchd/protocol.h"

enum {
    LOSSES_MAX = 100,
    LOSSES_LATELY_MS = 10 * 60 * 1000, /* what is younger needs a look */
    LOSSES_PEER_MAX = 128,             /* an address; what is longer is cut */
    LOSSES_OWNER_MAX = 160,            /* any of ours; what is longer is cut */
};

struct loss {
    uint64_t at_ms;
    uint64_t token;
    uint64_t client;       /* one that kept it; 0: none did */
    enum loss_cause cause; /* means nothing of a hold that expired */
    uint64_t forced_by;    /* the connection; 0: not known */
    uint16_t name_len, owner_len, taker_len;
    char name[LATCHD_NAME_MAX];
    char owner[LOSSES_OWNER_MAX];
    char taker[LOSSES_OWNER_MAX];
    char forced_from[LOSSES_PEER_MAX]; /* its address */
};

struct losses {
    uint64_t count; /* ever */
    struct loss ring[LOSSES_MAX];
};

/* A zeroed struct is empty. `forced_from`: the address of notice->forced_by, or "". */
void losses_add(struct losses *l, uint64_t now_ms, const struct effect_notice *notice,
                const char *forced_from);
/* How many there are to tell, and the one that has `newer` newer ones. */
size_t losses_known(const struct losses *l);
const struct loss *losses_at(const struct losses *l, size_t newer);
/* How many of those known were lost lately. */
size_t losses_lately(const struct losses *l, uint64_t now_ms);

/* "gone", "taken"...: what LOCKINFO and the status page call it. */
const char *loss_cause_word(enum loss_cause cause);
struct span loss_name(const struct loss *loss);
struct span loss_owner(const struct loss *loss);
struct span loss_taker(const struct loss *loss);

#endif
