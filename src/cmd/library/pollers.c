#include "cmd/library/pollers.h"

/* Noted when it was answered last; its key is its hash. */
struct poller {
    struct recent_item item;
    uint64_t since_ms;
};

static struct span key_of(const uint64_t *poller)
{
    return span_of((const char *)poller, sizeof(*poller));
}

void pollers_init(struct recent *p)
{
    recent_init(p, sizeof(struct poller), POLLERS_MAX);
}

uint64_t pollers_since(const struct recent *p, uint64_t poller, uint64_t now_ms)
{
    const struct poller *found = recent_find(p, key_of(&poller));

    return found == NULL || now_ms - found->item.at > POLLER_KNOWN_MS ? 0
                                                                      : found->since_ms;
}

void pollers_remember(struct recent *p, uint64_t poller, uint64_t since_ms,
                      uint64_t now_ms)
{
    struct poller *found = recent_note(p, key_of(&poller), now_ms);

    found->since_ms = since_ms;
}

void pollers_forget(struct recent *p, uint64_t poller)
{
    struct poller *found = recent_find(p, key_of(&poller));

    if (found != NULL) {
        recent_drop(p, found);
    }
}

void pollers_expire(struct recent *p, uint64_t now_ms)
{
    recent_expire(p, now_ms, POLLER_KNOWN_MS + 1);
}
