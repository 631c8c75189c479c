/* recent: things that are remembered for a while, and never more than a number of them:
 * who polls, what was released, which names are followed.
 *
 * They are in the order in which they were noted last, the oldest first. One too many
 * makes the oldest one go; recent_expire() makes those go that are too old. A thing is
 * a struct that begins with a struct recent_item. */
#ifndef LATCHD_UTIL_RECENT_H
#define LATCHD_UTIL_RECENT_H

#include "util/list.h"
#include "util/span.h"
#include "util/table.h"

#include <stddef.h>
#include <stdint.h>

struct pool;

struct recent_item {
    struct table_node by_key; /* if it has a key */
    struct list in_order;
    uint64_t at;      /* when it was noted last */
    uint32_t key_at;  /* the key is in the same block, so far behind its begin */
    uint32_t key_len; /* UINT32_MAX: it has none */
};

struct recent {
    size_t size; /* of a thing with a key */
    size_t max;
    struct pool *pool;            /* where the blocks are from; NULL: malloc() */
    void (*on_drop)(void *thing); /* frees what a thing owns; NULL: nothing */
    size_t count;
    struct table by_key;
    struct list order;
};

/* `pool` and `on_drop` may be set afterwards. */
void recent_init(struct recent *r, size_t size, size_t max);
/* Drops all things. */
void recent_clear(struct recent *r);
void recent_fini(struct recent *r);

/* Finds the thing with that key, or NULL. */
void *recent_find(const struct recent *r, struct span key);
/* Finds or adds the thing with that key, and makes it the newest. A new one is zeroed
 * behind its item. */
void *recent_note(struct recent *r, struct span key, uint64_t now);
/* Adds a zeroed thing of that size, without a key. */
void *recent_add(struct recent *r, size_t size, uint64_t now);
struct span recent_key(const void *thing);

/* Makes a thing the newest. */
void recent_renew(struct recent *r, void *thing, uint64_t now);
void recent_drop(struct recent *r, void *thing);
/* Drops things that were noted last `kept_ms` ago or earlier. */
void recent_expire(struct recent *r, uint64_t now, uint64_t kept_ms);

/* The oldest thing, and the next newer one than a thing; NULL: there is none. */
void *recent_oldest(const struct recent *r);
void *recent_newer(const struct recent *r, const void *thing);

#endif
