#include "util/throttle.h"

#include "util/alloc.h"
#include "util/recent.h"

#include <stdlib.h>

struct bucket {
    struct recent_item item; /* noted at each take */
    uint64_t taken_ms;       /* what was taken out, in ms of refilling */
};

struct throttle {
    struct recent buckets;
    struct bucket shared;
    uint64_t one_ms;  /* one take, in ms of refilling */
    uint64_t full_ms; /* a bucket is full again after so long at most */
};

struct throttle *throttle_new(const struct throttle_limits *limits)
{
    struct throttle *t = xcalloc(1, sizeof(*t));

    t->one_ms = 1000 / limits->per_second;
    t->full_ms = (uint64_t)limits->burst * 1000 / limits->per_second;
    recent_init(&t->buckets, sizeof(struct bucket), limits->keys_max);
    return t;
}

void throttle_free(struct throttle *t)
{
    if (t != NULL) {
        recent_fini(&t->buckets);
        free(t);
    }
}

/* The part of a key that counts. */
static struct span cut_key(struct span key)
{
    return span_of(key.ptr, key.len < THROTTLE_KEY_MAX ? key.len : THROTTLE_KEY_MAX);
}

static uint64_t bucket_level(const struct bucket *b, uint64_t now_ms)
{
    uint64_t since = now_ms - b->item.at;

    return b->taken_ms > since ? b->taken_ms - since : 0;
}

bool throttle_allows(struct throttle *t, struct span key, uint64_t now_ms)
{
    const struct bucket *b = recent_find(&t->buckets, cut_key(key));

    if (b == NULL && t->buckets.count < t->buckets.max) {
        return true;
    }
    return bucket_level(b == NULL ? &t->shared : b, now_ms) + t->one_ms <= t->full_ms;
}

void throttle_take(struct throttle *t, struct span key, uint64_t now_ms)
{
    struct bucket *b;
    uint64_t level;

    recent_expire(&t->buckets, now_ms, t->full_ms); /* they are full again */
    b = recent_find(&t->buckets, cut_key(key));
    if (b == NULL && t->buckets.count >= t->buckets.max) {
        b = &t->shared;
    }
    level = (b == NULL ? 0 : bucket_level(b, now_ms)) + t->one_ms;
    if (b == &t->shared) {
        b->item.at = now_ms;
    } else {
        b = recent_note(&t->buckets, cut_key(key), now_ms);
    }
    b->taken_ms = level < t->full_ms ? level : t->full_ms;
}

size_t throttle_count(const struct throttle *t)
{
    return t->buckets.count;
}
