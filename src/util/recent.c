#include "util/recent.h"

#include "util/alloc.h"
#include "util/hash.h"

#include <stdlib.h>
#include <string.h>

enum { NO_KEY = UINT32_MAX };

static void *thing_in(const struct recent *r, struct list *node)
{
    return node == &r->order ? NULL : container_of(node, struct recent_item, in_order);
}

void recent_init(struct recent *r, size_t size, size_t max)
{
    *r = (struct recent){ .size = size, .max = max };
    list_init(&r->order);
}

void recent_clear(struct recent *r)
{
    struct recent_item *oldest;

    while (r->count > 0 && (oldest = recent_oldest(r)) != NULL) {
        recent_drop(r, oldest);
    }
}

void recent_fini(struct recent *r)
{
    recent_clear(r);
    table_fini(&r->by_key);
}

struct span recent_key(const void *thing)
{
    const struct recent_item *item = thing;

    return span_of((const char *)thing + item->key_at, item->key_len);
}

static void *find_hash(const struct recent *r, struct span key, uint64_t hash)
{
    struct table_node *n = table_find(&r->by_key, hash);

    while (n != NULL &&
           !span_eq(recent_key(container_of(n, struct recent_item, by_key)), key)) {
        n = table_next(n);
    }
    return n == NULL ? NULL : container_of(n, struct recent_item, by_key);
}

void *recent_find(const struct recent *r, struct span key)
{
    return r->count == 0 ? NULL : find_hash(r, key, hash_bytes(key.ptr, key.len));
}

void *recent_add(struct recent *r, size_t size, uint64_t now)
{
    struct recent_item *item;
    struct recent_item *oldest = recent_oldest(r);

    if (oldest != NULL && r->count >= r->max) {
        recent_drop(r, oldest);
    }
    item = r->pool == NULL ? xcalloc(1, size) : pool_alloc(r->pool, size);
    item->at = now;
    item->key_len = NO_KEY;
    list_append(&r->order, &item->in_order);
    r->count++;
    return item;
}

void *recent_note(struct recent *r, struct span key, uint64_t now)
{
    uint64_t hash = hash_bytes(key.ptr, key.len);
    struct recent_item *item = find_hash(r, key, hash);

    if (item != NULL) {
        recent_renew(r, item, now);
        return item;
    }
    item = recent_add(r, r->size + key.len, now);
    item->key_at = (uint32_t)r->size;
    item->key_len = (uint32_t)key.len;
    if (key.len > 0) {
        memcpy((char *)item + r->size, key.ptr, key.len);
    }
    item->by_key.key = hash;
    table_add(&r->by_key, &item->by_key);
    return item;
}

void recent_renew(struct recent *r, void *thing, uint64_t now)
{
    struct recent_item *item = thing;

    item->at = now;
    list_del(&item->in_order);
    list_append(&r->order, &item->in_order);
}

void recent_drop(struct recent *r, void *thing)
{
    struct recent_item *item = thing;

    if (r->on_drop != NULL) {
        r->on_drop(thing);
    }
    if (item->key_len != NO_KEY) {
        table_remove(&r->by_key, &item->by_key);
    }
    list_del(&item->in_order);
    r->count--;
    if (r->pool == NULL) {
        free(item);
    } else {
        pool_free(r->pool, item);
    }
}

void recent_expire(struct recent *r, uint64_t now, uint64_t kept_ms)
{
    struct recent_item *oldest;

    while ((oldest = recent_oldest(r)) != NULL && now - oldest->at >= kept_ms) {
        recent_drop(r, oldest);
    }
}

void *recent_oldest(const struct recent *r)
{
    return thing_in(r, r->order.next);
}

void *recent_newer(const struct recent *r, const void *thing)
{
    const struct recent_item *item = thing;

    return thing_in(r, item->in_order.next);
}
