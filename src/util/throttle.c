#include "util/throttle.h"

#include "util/alloc.h"
#include "util/list.h"
#include "util/map.h"

#include <stdlib.h>

struct bucket {
    UT_hash_handle hh;
    struct list in_order; /* ordered by the last take */
    uint64_t taken_ms;    /* what was taken out, in ms of refilling */
    uint64_t at_ms;
    size_t len;
    char key[THROTTLE_KEY_MAX];
};

struct throttle {
    struct bucket *buckets;
    struct list order;
    struct bucket shared;
    uint64_t one_ms;  /* one take, in ms of refilling */
    uint64_t full_ms; /* a bucket is full again after so long at most */
    size_t keys_max;
};

struct throttle *throttle_new(const struct throttle_limits *limits)
{
    struct throttle *t = xcalloc(1, sizeof(*t));

    t->one_ms = 1000 / limits->per_second;
    t->full_ms = (uint64_t)limits->burst * 1000 / limits->per_second;
    t->keys_max = limits->keys_max;
    list_init(&t->order);
    list_init(&t->shared.in_order);
    return t;
}

static void bucket_free(struct throttle *t, struct bucket *b)
{
    HASH_DEL(t->buckets, b);
    list_del(&b->in_order);
    free(b);
}

void throttle_free(struct throttle *t)
{
    struct list *first;

    if (t == NULL) {
        return;
    }
    while ((first = list_first(&t->order)) != NULL) {
        bucket_free(t, container_of(first, struct bucket, in_order));
    }
    free(t);
}

static struct bucket *bucket_find(struct throttle *t, struct span key)
{
    size_t len = key.len < THROTTLE_KEY_MAX ? key.len : THROTTLE_KEY_MAX;
    struct bucket *b = NULL;

    HASH_FIND(hh, t->buckets, key.ptr, len, b);
    return b;
}

static uint64_t bucket_level(const struct bucket *b, uint64_t now_ms)
{
    uint64_t since = now_ms - b->at_ms;

    return b->taken_ms > since ? b->taken_ms - since : 0;
}

bool throttle_allows(struct throttle *t, struct span key, uint64_t now_ms)
{
    struct bucket *b = bucket_find(t, key);

    if (b == NULL && throttle_count(t) < t->keys_max) {
        return true;
    }
    return bucket_level(b == NULL ? &t->shared : b, now_ms) + t->one_ms <= t->full_ms;
}

/* Drops buckets that are full again; the oldest are in front. */
static void buckets_expire(struct throttle *t, uint64_t now_ms)
{
    struct list *first;

    while ((first = list_first(&t->order)) != NULL) {
        struct bucket *b = container_of(first, struct bucket, in_order);

        if (b->at_ms + t->full_ms > now_ms) {
            break;
        }
        bucket_free(t, b);
    }
}

static struct bucket *bucket_add(struct throttle *t, struct span key, uint64_t now_ms)
{
    struct bucket *b;

    if (throttle_count(t) >= t->keys_max) {
        return &t->shared;
    }
    b = xcalloc(1, sizeof(*b));
    b->len = key.len < THROTTLE_KEY_MAX ? key.len : THROTTLE_KEY_MAX;
    if (b->len != 0) {
        memcpy(b->key, key.ptr, b->len);
    }
    b->at_ms = now_ms;
    list_init(&b->in_order);
    HASH_ADD_KEYPTR(hh, t->buckets, b->key, b->len, b);
    return b;
}

void throttle_take(struct throttle *t, struct span key, uint64_t now_ms)
{
    struct bucket *b;

    buckets_expire(t, now_ms);
    b = bucket_find(t, key);
    b = b == NULL ? bucket_add(t, key, now_ms) : b;
    b->taken_ms = bucket_level(b, now_ms) + t->one_ms;
    b->taken_ms = b->taken_ms < t->full_ms ? b->taken_ms : t->full_ms;
    b->at_ms = now_ms;
    if (b != &t->shared) {
        list_del(&b->in_order);
        list_append(&t->order, &b->in_order);
    }
}

size_t throttle_count(const struct throttle *t)
{
    return HASH_COUNT(t->buckets);
}
