#include "sim/sim_redis.h"

#include "util/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct rtext rtext_of(struct span s)
{
    struct rtext t;

    if (s.len > RTEXT_MAX) {
        abort();
    }
    t.len = (unsigned char)s.len;
    if (s.len > 0) {
        memcpy(t.s, s.ptr, s.len);
    }
    t.s[s.len] = '\0';
    return t;
}

struct span rtext_span(const struct rtext *t)
{
    return span_of(t->s, t->len);
}

bool rtext_is(const struct rtext *t, struct span s)
{
    return span_eq(rtext_span(t), s);
}

struct rtext rtext_printf(const char *fmt, ...)
{
    struct rtext t;
    va_list ap;
    int len;

    va_start(ap, fmt);
    len = vsnprintf(t.s, sizeof(t.s), fmt, ap);
    va_end(ap);
    if (len < 0 || len > RTEXT_MAX) {
        abort();
    }
    t.len = (unsigned char)len;
    return t;
}

/* Room for one more in a growing array. */
#define MAKE_ROOM(array, count, room)                                                  \
    do {                                                                               \
        if ((count) == (room)) {                                                       \
            (room) = (room) == 0 ? 8 : (room)*2;                                       \
            (array) = xrealloc((array), (room) * sizeof(*(array)));                    \
        }                                                                              \
    } while (0)

void sim_redis_init(struct sim_redis *r)
{
    memset(r, 0, sizeof(*r));
}

static void name_fini(struct redis_name *n)
{
    free(n->entries);
    free(n->keepers);
    free(n->marks);
}

void sim_redis_fini(struct sim_redis *r)
{
    for (size_t i = 0; i < r->name_count; i++) {
        name_fini(&r->names[i]);
    }
    r->name_count = 0;
}

static void expire(const struct sim_redis *r, struct redis_name *n)
{
    uint64_t now = r->now_ms;

    if (n->field_count > 0 && n->expires != 0 && n->expires <= now) {
        redis_drop_hash(n);
    }
    if (n->fence_token != 0 && n->fence_expires <= now) {
        n->fence_token = 0;
        n->fence_who.len = 0;
    }
    for (size_t i = n->keeper_count; i-- > 0;) {
        if (n->keepers[i].expires <= now) {
            n->keepers[i] = n->keepers[--n->keeper_count];
        }
    }
    for (size_t i = n->mark_count; i-- > 0;) {
        if (n->marks[i].expires <= now) {
            n->marks[i] = n->marks[--n->mark_count];
        }
    }
}

struct redis_name *sim_redis_name(struct sim_redis *r, struct span name)
{
    struct redis_name *n;

    for (size_t i = 0; i < r->name_count; i++) {
        if (rtext_is(&r->names[i].name, name)) {
            expire(r, &r->names[i]);
            return &r->names[i];
        }
    }
    if (r->name_count == REDIS_NAMES_MAX) {
        abort();
    }
    n = &r->names[r->name_count++];
    n->name = rtext_of(name);
    return n;
}

struct redis_hash_field *redis_field(struct redis_name *n, struct span owner)
{
    for (size_t i = 0; i < n->field_count; i++) {
        if (rtext_is(&n->fields[i].owner, owner)) {
            return &n->fields[i];
        }
    }
    return NULL;
}

struct redis_entry *redis_entry(struct redis_name *n, struct span id)
{
    for (size_t i = 0; i < n->entry_count; i++) {
        if (rtext_is(&n->entries[i].id, id)) {
            return &n->entries[i];
        }
    }
    return NULL;
}

int64_t redis_pttl(const struct sim_redis *r, const struct redis_name *n)
{
    if (n->field_count == 0) {
        return -2;
    }
    return n->expires == 0 ? -1 : (int64_t)(n->expires - r->now_ms);
}

uint64_t redis_token_of(const struct redis_name *n, const struct rtext *field)
{
    if (strncmp(field->s, "latchd:", 7) == 0 &&
        strncmp(field->s, "latchd:id:", 10) != 0) {
        return strtoull(field->s + 7, NULL, 10);
    }
    return n->fence_token;
}

void redis_add_entry(struct sim_redis *r, struct redis_name *n, struct span id,
                     struct span owner, const char *keeper)
{
    struct redis_entry *e;

    MAKE_ROOM(n->entries, n->entry_count, n->entry_room);
    e = &n->entries[n->entry_count++];
    e->id = rtext_of(id);
    e->owner = rtext_of(owner);
    redis_keep_entry(r, e, keeper);
}

void redis_keep_entry(struct sim_redis *r, struct redis_entry *e, const char *keeper)
{
    memcpy(e->keeper, keeper, sizeof(e->keeper));
    e->since = r->now_ms;
    e->made = ++r->made;
}

void redis_del_entry(struct redis_name *n, struct redis_entry *e)
{
    *e = n->entries[--n->entry_count];
}

struct redis_keeper *redis_keeper(struct redis_name *n, const struct rtext *field)
{
    for (size_t i = 0; i < n->keeper_count; i++) {
        if (rtext_is(&n->keepers[i].field, rtext_span(field))) {
            return &n->keepers[i];
        }
    }
    return NULL;
}

void redis_set_keeper(struct sim_redis *r, struct redis_name *n,
                      const struct rtext *field, const char *instance)
{
    struct redis_keeper *k = redis_keeper(n, field);

    if (k == NULL) {
        MAKE_ROOM(n->keepers, n->keeper_count, n->keeper_room);
        k = &n->keepers[n->keeper_count++];
        k->field = *field;
    }
    memcpy(k->instance, instance, sizeof(k->instance));
    k->since = r->now_ms;
    k->expires = n->expires;
}

void redis_prolong_keeper(struct sim_redis *r, struct redis_name *n,
                          const struct rtext *field, const char *instance)
{
    struct redis_keeper *k = redis_keeper(n, field);

    if (k == NULL) {
        redis_set_keeper(r, n, field, instance);
    } else {
        k->expires = n->expires;
    }
}

struct redis_mark *redis_mark(struct redis_name *n, struct span key)
{
    for (size_t i = 0; i < n->mark_count; i++) {
        if (rtext_is(&n->marks[i].key, key)) {
            return &n->marks[i];
        }
    }
    return NULL;
}

void redis_set_mark(struct redis_name *n, const struct rtext *key, int64_t left,
                    uint64_t token, uint64_t expires)
{
    struct redis_mark *m = redis_mark(n, rtext_span(key));

    if (m == NULL) {
        MAKE_ROOM(n->marks, n->mark_count, n->mark_room);
        m = &n->marks[n->mark_count++];
        m->key = *key;
    }
    m->left = left;
    m->token = token;
    m->expires = expires;
}

void redis_drop_hash(struct redis_name *n)
{
    n->field_count = 0;
    n->expires = 0;
    n->entry_count = 0;
    n->keeper_count = 0;
}

void redis_publish(struct sim_redis *r, struct redis_name *n)
{
    if (r->hooks.published != NULL) {
        r->hooks.published(r->hooks.ctx, n);
    }
}

bool redis_foreign_take(struct sim_redis *r, struct redis_name *n, struct span owner,
                        uint64_t lease_ms)
{
    struct redis_hash_field *f = redis_field(n, owner);

    if (n->is_string || (n->field_count > 0 && f == NULL)) {
        return false;
    }
    if (f == NULL) {
        redis_drop_hash(n);
        f = &n->fields[n->field_count++];
        f->owner = rtext_of(owner);
        f->count = 0;
    }
    f->count++;
    n->expires = r->now_ms + lease_ms;
    return true;
}

bool redis_foreign_release(struct sim_redis *r, struct redis_name *n, struct span owner,
                           bool publish)
{
    struct redis_hash_field *f = redis_field(n, owner);

    if (f == NULL) {
        return false;
    }
    if (--f->count > 0) {
        return true;
    }
    redis_drop_hash(n);
    if (publish) {
        redis_publish(r, n);
    }
    return true;
}

void redis_operator_del(struct redis_name *n)
{
    /* Our helper keys stay: an operator deletes what he sees. */
    n->field_count = 0;
    n->expires = 0;
}

void redis_flushall(struct sim_redis *r)
{
    for (size_t i = 0; i < r->name_count; i++) {
        struct redis_name *n = &r->names[i];

        redis_drop_hash(n);
        n->is_string = false;
        n->fence_token = 0;
        n->fence_who.len = 0;
        n->mark_count = 0;
    }
}

bool redis_set_string(struct sim_redis *r, struct redis_name *n)
{
    if (n->is_string || n->field_count > 0) {
        return false;
    }
    n->is_string = true;
    return true;
}

void redis_del_string(struct redis_name *n)
{
    n->is_string = false;
}

void redis_drop_subscriber(struct sim_redis *r, size_t daemon)
{
    for (size_t i = 0; i < r->name_count; i++) {
        r->names[i].subscribed[daemon] = false;
    }
}

static void *copy_array(void *old, const void *from, size_t count, size_t size)
{
    old = xrealloc(old, (count + 1) * size);
    if (count > 0) {
        memcpy(old, from, count * size);
    }
    return old;
}

/* The data of a name; who listens stays as it is. */
static void copy_name(struct redis_name *to, const struct redis_name *from)
{
    struct redis_name old = *to;

    *to = *from;
    memcpy(to->subscribed, old.subscribed, sizeof(to->subscribed));
    to->foreign_subscribers = old.foreign_subscribers;
    to->entries = copy_array(old.entries, from->entries, from->entry_count,
                             sizeof(*from->entries));
    to->entry_room = from->entry_count + 1;
    to->keepers = copy_array(old.keepers, from->keepers, from->keeper_count,
                             sizeof(*from->keepers));
    to->keeper_room = from->keeper_count + 1;
    to->marks =
        copy_array(old.marks, from->marks, from->mark_count, sizeof(*from->marks));
    to->mark_room = from->mark_count + 1;
}

void sim_redis_save(const struct sim_redis *r, struct sim_redis **copy)
{
    if (*copy == NULL) {
        *copy = xcalloc(1, sizeof(**copy));
    }
    for (size_t i = 0; i < r->name_count; i++) {
        copy_name(&(*copy)->names[i], &r->names[i]);
    }
    (*copy)->name_count = r->name_count;
}

void sim_redis_restore(struct sim_redis *r, const struct sim_redis *copy)
{
    redis_flushall(r);
    for (size_t i = 0; i < copy->name_count; i++) {
        copy_name(&r->names[i], &copy->names[i]);
    }
}
