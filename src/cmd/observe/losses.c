#include "cmd/observe/losses.h"

#include <stdio.h>
#include <string.h>

static uint16_t copy_cut(char *to, size_t room, struct span from)
{
    size_t len = from.len < room ? from.len : room;

    if (len > 0) {
        memcpy(to, from.ptr, len);
    }
    return (uint16_t)len;
}

void losses_add(struct losses *l, uint64_t now_ms, const struct effect_notice *notice,
                const char *forced_from)
{
    struct loss *loss = &l->ring[l->count++ % LOSSES_MAX];

    loss->at_ms = now_ms;
    loss->token = notice->token;
    loss->client = notice->conn_count == 0 ? 0 : notice->conns[0];
    loss->cause = notice->cause;
    loss->forced_by = notice->forced_by;
    loss->name_len = copy_cut(loss->name, sizeof(loss->name), notice->name);
    loss->owner_len = copy_cut(loss->owner, sizeof(loss->owner), notice->owner);
    loss->taker_len = copy_cut(loss->taker, sizeof(loss->taker), notice->taker);
    (void)snprintf(loss->forced_from, sizeof(loss->forced_from), "%s", forced_from);
}

size_t losses_known(const struct losses *l)
{
    return l->count < LOSSES_MAX ? (size_t)l->count : LOSSES_MAX;
}

const struct loss *losses_at(const struct losses *l, size_t newer)
{
    return &l->ring[(l->count - 1 - newer) % LOSSES_MAX];
}

size_t losses_lately(const struct losses *l, uint64_t now_ms)
{
    size_t known = losses_known(l), n = 0;

    while (n < known && now_ms - losses_at(l, n)->at_ms < LOSSES_LATELY_MS) {
        n++;
    }
    return n;
}

const char *loss_cause_word(enum loss_cause cause)
{
    static const char *const WORDS[] = {
        [LOSS_GONE] = "gone",
        [LOSS_TAKEN] = "taken",
        [LOSS_FORCED] = "forced",
        [LOSS_UNCONFIRMED] = "unconfirmed",
    };

    return WORDS[cause];
}

struct span loss_name(const struct loss *loss)
{
    return span_of(loss->name, loss->name_len);
}

struct span loss_owner(const struct loss *loss)
{
    return span_of(loss->owner, loss->owner_len);
}

struct span loss_taker(const struct loss *loss)
{
    return span_of(loss->taker, loss->taker_len);
}
