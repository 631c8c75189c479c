#include "sim/redis/keyspace.h"

#include "sim/redis/keyspace_priv.h"
#include "util/alloc.h"

#include <stdlib.h>

static uint32_t hash_of(struct span s)
{
    uint64_t h = s.len;
    uint64_t word;

    for (; s.len >= sizeof(word); s = span_after(s, sizeof(word))) {
        memcpy(&word, s.ptr, sizeof(word));
        h = (h ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        h ^= h >> 29;
    }
    word = 0;
    if (s.len > 0) {
        memcpy(&word, s.ptr, s.len);
    }
    h = (h ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(h >> 32);
}

static struct key **slot_of(struct keyspace *ks, struct span name)
{
    uint32_t hash = hash_of(name);
    struct key **at = &ks->buckets[hash % KEYSPACE_BUCKETS];

    while (*at != NULL &&
           ((*at)->hash != hash || !span_eq(key_span(&(*at)->name), name))) {
        at = &(*at)->next;
    }
    return at;
}

struct key *keyspace_find(const struct keyspace *ks, struct span name)
{
    return *slot_of((struct keyspace *)ks, name);
}

/* --- text and items ------------------------------------------------------- */

void key_set_text(struct key_text *t, struct span s)
{
    if (s.len > t->room || t->ptr == NULL) {
        t->room = (uint32_t)s.len + 8;
        t->ptr = xrealloc(t->ptr, t->room);
    }
    if (s.len > 0) {
        memmove(t->ptr, s.ptr, s.len);
    }
    t->len = (uint32_t)s.len;
}

static void free_item(struct key_item *item)
{
    free(item->text.ptr);
    free(item->value.ptr);
}

size_t key_item_at(const struct key *k, struct span text)
{
    for (size_t i = 0; i < k->count; i++) {
        if (span_eq(key_span(&k->items[i].text), text)) {
            return i;
        }
    }
    return KEY_NONE;
}

struct key_item *key_insert(struct key *k, size_t at, struct span text)
{
    struct key_item *item;

    if (k->count == k->room) {
        k->room = k->room == 0 ? 4 : 2 * k->room;
        k->items = xrealloc(k->items, k->room * sizeof(*k->items));
    }
    item = &k->items[at];
    memmove(item + 1, item, (k->count++ - at) * sizeof(*item));
    *item = (struct key_item){ 0 };
    key_set_text(&item->text, text);
    return item;
}

void key_remove(struct key *k, size_t at)
{
    free_item(&k->items[at]);
    k->count--;
    memmove(&k->items[at], &k->items[at + 1], (k->count - at) * sizeof(*k->items));
}

const struct key_text *keyspace_field(const struct key *hash, struct span field)
{
    size_t at =
        hash == NULL || hash->type != KEY_HASH ? KEY_NONE : key_item_at(hash, field);

    return at == KEY_NONE ? NULL : &hash->items[at].value;
}

/* --- keys ----------------------------------------------------------------- */

static void free_key(struct key *k)
{
    for (size_t i = 0; i < k->count; i++) {
        free_item(&k->items[i]);
    }
    free(k->items);
    free(k->name.ptr);
    free(k->string.ptr);
    free(k);
}

static void delete_at(struct key **at)
{
    struct key *k = *at;

    *at = k->next;
    free_key(k);
}

void keyspace_delete(struct keyspace *ks, struct span name)
{
    struct key **at = slot_of(ks, name);

    if (*at != NULL) {
        delete_at(at);
    }
}

struct key *key_make(struct keyspace *ks, struct span name, enum key_type type)
{
    struct key **at = slot_of(ks, name);
    struct key *k = xcalloc(1, sizeof(*k));

    if (*at != NULL) {
        delete_at(at);
        at = slot_of(ks, name);
    }
    k->hash = hash_of(name);
    k->type = type;
    key_set_text(&k->name, name);
    *at = k;
    return k;
}

void key_drop_if_empty(struct keyspace *ks, struct key *k)
{
    if (k->count == 0) {
        keyspace_delete(ks, key_span(&k->name));
    }
}

void key_set_expires(struct keyspace *ks, struct key *k, uint64_t expires)
{
    k->expires = expires;
    if (expires != 0 && (ks->sweep_at == 0 || expires < ks->sweep_at)) {
        ks->sweep_at = expires;
    }
}

bool keyspace_sweep(struct keyspace *ks)
{
    bool swept = false;

    if (ks->sweep_at == 0 || ks->now_ms <= ks->sweep_at) {
        return false;
    }
    ks->sweep_at = 0;
    for (size_t i = 0; i < KEYSPACE_BUCKETS; i++) {
        struct key **at = &ks->buckets[i];

        while (*at != NULL) {
            struct key *k = *at;

            if (k->expires != 0 && ks->now_ms > k->expires) {
                delete_at(at);
                swept = true;
            } else {
                key_set_expires(ks, k, k->expires);
                at = &k->next;
            }
        }
    }
    return swept;
}

void keyspace_clear(struct keyspace *ks)
{
    for (size_t i = 0; i < KEYSPACE_BUCKETS; i++) {
        while (ks->buckets[i] != NULL) {
            delete_at(&ks->buckets[i]);
        }
    }
    ks->sweep_at = 0;
}

void keyspace_fini(struct keyspace *ks)
{
    keyspace_clear(ks);
    free(ks->pool);
    free(ks->popped.ptr);
    ks->pool = NULL;
    ks->pool_room = 0;
    ks->popped = (struct key_text){ 0 };
}

static struct key *copy_key(const struct key *from)
{
    struct key *k = xcalloc(1, sizeof(*k));

    k->hash = from->hash;
    k->type = from->type;
    k->expires = from->expires;
    key_set_text(&k->name, key_span(&from->name));
    if (from->type == KEY_STRING) {
        key_set_text(&k->string, key_span(&from->string));
    }
    for (size_t i = 0; i < from->count; i++) {
        const struct key_item *old = &from->items[i];
        struct key_item *item = key_insert(k, i, key_span(&old->text));

        item->score = old->score;
        if (from->type == KEY_HASH) {
            key_set_text(&item->value, key_span(&old->value));
        }
    }
    return k;
}

void keyspace_copy(struct keyspace *to, const struct keyspace *from)
{
    keyspace_clear(to);
    to->sweep_at = from->sweep_at;
    for (size_t i = 0; i < KEYSPACE_BUCKETS; i++) {
        struct key **at = &to->buckets[i];

        for (const struct key *k = from->buckets[i]; k != NULL; k = k->next) {
            *at = copy_key(k);
            at = &(*at)->next;
        }
    }
}
