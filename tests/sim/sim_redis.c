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

void sim_redis_init(struct sim_redis *r)
{
    memset(r, 0, sizeof(*r));
}

static void name_fini(struct redis_name *n)
{
    free(n->entries);
    free(n->keepers);
    free(n->marks);
    free(n->queue);
    free(n->scores);
    free(n->waits);
    free(n->hold_keys);
    free(n->reader_keys);
}

void sim_redis_fini(struct sim_redis *r)
{
    for (size_t i = 0; i < r->name_count; i++) {
        name_fini(&r->names[i]);
    }
    r->name_count = 0;
}

/* Drops what is over of an array of things that have an `expires`. */
#define DROP_EXPIRED(array, count, now)                                                \
    do {                                                                               \
        for (size_t i_ = (count); i_-- > 0;) {                                         \
            if ((array)[i_].expires <= (now)) {                                        \
                (array)[i_] = (array)[--(count)];                                      \
            }                                                                          \
        }                                                                              \
    } while (0)

static void expire(const struct sim_redis *r, struct redis_name *n)
{
    uint64_t now = r->now_ms;

    if (n->field_count > 0 && n->expires != 0 && n->expires <= now) {
        redis_drop_hash(n);
    }
    if (n->fence_token != 0 && n->fence_expires <= now) {
        n->fence_token = 0;
        n->fence_who.len = 0;
        n->has_before = false;
    }
    if (n->writer_token != 0 && n->writer_expires <= now) {
        n->writer_token = 0;
        n->writer_who.len = 0;
    }
    DROP_EXPIRED(n->keepers, n->keeper_count, now);
    DROP_EXPIRED(n->marks, n->mark_count, now);
    DROP_EXPIRED(n->hold_keys, n->hold_key_count, now);
    DROP_EXPIRED(n->reader_keys, n->reader_key_count, now);
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
    if (strncmp(field->s, "latchd:", 7) == 0 && strchr(field->s + 7, ':') == NULL) {
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

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
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
    k->expires = n->expires + OP_FENCE_TTL_MS;
}

void redis_prolong_keeper(struct sim_redis *r, struct redis_name *n,
                          const struct rtext *field, const char *instance)
{
    struct redis_keeper *k = redis_keeper(n, field);

    if (k == NULL) {
        redis_set_keeper(r, n, field, instance);
    } else {
        k->expires = max_u64(k->expires, n->expires + OP_FENCE_TTL_MS);
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
    n->mode = MODE_NONE;
    n->expires = 0;
    n->entry_count = 0;
    n->keeper_count = 0;
}

static void publish(struct sim_redis *r, struct redis_message m)
{
    if (r->hooks.published != NULL) {
        r->hooks.published(r->hooks.ctx, &m);
    }
}

void redis_publish(struct sim_redis *r, struct redis_name *n)
{
    publish(r, (struct redis_message){ n, CHANNEL_PLAIN, SPAN_NONE, '0' });
}

void redis_publish_rw(struct sim_redis *r, struct redis_name *n, char payload)
{
    publish(r, (struct redis_message){ n, CHANNEL_RW, SPAN_NONE, payload });
}

void redis_publish_head(struct sim_redis *r, struct redis_name *n)
{
    if (n->queue_count > 0) {
        publish(r, (struct redis_message){ n, CHANNEL_MEMBER, rtext_span(&n->queue[0]),
                                           '0' });
    }
}

void redis_operator_del(struct redis_name *n)
{
    /* Our helper keys stay: an operator deletes what he sees. */
    n->field_count = 0;
    n->mode = MODE_NONE;
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
        n->has_before = false;
        n->counted = 0;
        n->mark_count = 0;
        n->queue_count = n->score_count = n->wait_count = 0;
        n->hold_key_count = n->reader_key_count = 0;
        n->writer_token = 0;
        n->writer_who.len = 0;
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

void redis_add_subscriber(struct sim_redis *r, size_t daemon, const char *instance)
{
    memcpy(r->patterns[daemon], instance, sizeof(r->patterns[daemon]));
}

void redis_drop_subscriber(struct sim_redis *r, size_t daemon)
{
    r->patterns[daemon][0] = '\0';
    for (size_t i = 0; i < r->name_count; i++) {
        r->names[i].subscribed[0][daemon] = false;
        r->names[i].subscribed[1][daemon] = false;
    }
}

bool redis_hears(const struct sim_redis *r, size_t daemon,
                 const struct redis_message *m)
{
    if (m->channel != CHANNEL_MEMBER) {
        return m->name->subscribed[m->channel == CHANNEL_RW][daemon];
    }
    return r->patterns[daemon][0] != '\0' &&
           redis_member_of(m->member, r->patterns[daemon]);
}

static void *copy_array(void *old, const void *from, size_t count, size_t size)
{
    old = xrealloc(old, (count + 1) * size);
    if (count > 0) {
        memcpy(old, from, count * size);
    }
    return old;
}

#define COPY(what, count, room)                                                        \
    do {                                                                               \
        to->what = copy_array(old.what, from->what, from->count, sizeof(*from->what)); \
        to->room = from->count + 1;                                                    \
    } while (0)

/* The data of a name; who listens stays as it is. */
static void copy_name(struct redis_name *to, const struct redis_name *from)
{
    struct redis_name old = *to;

    *to = *from;
    memcpy(to->subscribed, old.subscribed, sizeof(to->subscribed));
    to->foreign_subscribers = old.foreign_subscribers;
    to->foreign_rw_subscribers = old.foreign_rw_subscribers;
    COPY(entries, entry_count, entry_room);
    COPY(keepers, keeper_count, keeper_room);
    COPY(marks, mark_count, mark_room);
    COPY(queue, queue_count, queue_room);
    COPY(scores, score_count, score_room);
    COPY(waits, wait_count, wait_room);
    COPY(hold_keys, hold_key_count, hold_key_room);
    COPY(reader_keys, reader_key_count, reader_key_room);
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
