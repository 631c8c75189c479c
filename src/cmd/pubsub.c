#include "cmd/pubsub.h"

#include "util/alloc.h"
#include "util/glob.h"
#include "util/hash.h"
#include "util/table.h"

#include <stdlib.h>

/* A channel or pattern; exists while it has subscribers. */
struct topic {
    struct table_node in_topics;
    enum pubsub_kind kind;
    struct list subs;
    size_t sub_count;
    uint32_t work; /* patterns: glob_work() */
    size_t len;
    char name[];
};

struct subscription {
    struct list in_subscriber;
    struct list in_topic;
    struct subscriber *subscriber;
    struct topic *topic;
};

struct pubsub {
    struct table topics[2]; /* by kind */
    size_t work;            /* of all patterns */
    pubsub_heard_fn *on_heard;
    void *ctx;
};

struct pubsub *pubsub_new(pubsub_heard_fn *fn, void *ctx)
{
    struct pubsub *p = xcalloc(1, sizeof(*p));

    p->on_heard = fn;
    p->ctx = ctx;
    return p;
}

void pubsub_free(struct pubsub *p)
{
    if (p != NULL) {
        table_fini(&p->topics[PUBSUB_CHANNEL]);
        table_fini(&p->topics[PUBSUB_PATTERN]);
        free(p);
    }
}

void subscriber_init(struct subscriber *s)
{
    *s = (struct subscriber){ 0 };
    list_init(&s->subs);
}

static struct topic *topic_of(struct table_node *n)
{
    return container_of(n, struct topic, in_topics);
}

static struct span topic_name(const struct topic *t)
{
    return span_of(t->name, t->len);
}

static struct topic *topic_find(const struct pubsub *p, enum pubsub_kind kind,
                                struct span name)
{
    uint64_t key = hash_bytes(name.ptr, name.len);
    struct table_node *n = table_find(&p->topics[kind], key);

    while (n != NULL && !span_eq(topic_name(topic_of(n)), name)) {
        n = table_next(n);
    }
    return n == NULL ? NULL : topic_of(n);
}

static struct topic *topic_get(struct pubsub *p, enum pubsub_kind kind,
                               struct span name)
{
    struct topic *t = topic_find(p, kind, name);

    if (t != NULL) {
        return t;
    }
    t = xcalloc(1, sizeof(*t) + name.len);
    t->kind = kind;
    t->work = kind == PUBSUB_PATTERN ? (uint32_t)glob_work(name) : 0;
    p->work += t->work;
    t->len = name.len;
    if (name.len != 0) {
        memcpy(t->name, name.ptr, name.len);
    }
    list_init(&t->subs);
    t->in_topics.key = hash_bytes(name.ptr, name.len);
    table_add(&p->topics[kind], &t->in_topics);
    return t;
}

/* Drops one subscription of a topic. */
static void topic_unref(struct pubsub *p, struct topic *t)
{
    if (--t->sub_count == 0) {
        p->on_heard(p->ctx, t->kind, topic_name(t), false);
        table_remove(&p->topics[t->kind], &t->in_topics);
        p->work -= t->work;
        free(t);
    }
}

static uint16_t *kind_count(struct subscriber *s, enum pubsub_kind kind)
{
    return kind == PUBSUB_CHANNEL ? &s->channels : &s->patterns;
}

/* Finds a subscription by walking the shorter of its two lists. */
static struct subscription *subscription_find(const struct subscriber *s,
                                              const struct topic *t)
{
    struct subscription *sub;

    if (t->sub_count < s->channels + s->patterns) {
        LIST_EACH(sub, &t->subs, in_topic) {
            if (sub->subscriber == s) {
                return sub;
            }
        }
        return NULL;
    }
    LIST_EACH(sub, &s->subs, in_subscriber) {
        if (sub->topic == t) {
            return sub;
        }
    }
    return NULL;
}

bool pubsub_affords(const struct pubsub *p, const struct subscriber *s,
                    const struct span *patterns, size_t count)
{
    size_t own = s->work, all = p->work;
    size_t topics = p->topics[PUBSUB_PATTERN].count;

    for (size_t i = 0; i < count; i++) {
        bool is_new = topic_find(p, PUBSUB_PATTERN, patterns[i]) == NULL;
        size_t work = glob_work(patterns[i]);

        own += work;
        all += is_new ? work : 0;
        topics += is_new;
    }
    return own <= PUBSUB_WORK_MAX && all <= PUBSUB_ALL_WORK_MAX &&
           topics <= PUBSUB_ALL_PATTERNS_MAX;
}

bool pubsub_add(struct pubsub *p, struct subscriber *s, enum pubsub_kind kind,
                struct span name)
{
    struct topic *t = topic_get(p, kind, name);
    struct subscription *sub;

    if (subscription_find(s, t) != NULL) {
        return false;
    }
    sub = xcalloc(1, sizeof(*sub));
    sub->subscriber = s;
    sub->topic = t;
    list_append(&s->subs, &sub->in_subscriber);
    list_append(&t->subs, &sub->in_topic);
    if (t->sub_count++ == 0) {
        p->on_heard(p->ctx, t->kind, topic_name(t), true);
    }
    s->work += t->work;
    ++*kind_count(s, kind);
    return true;
}

static void subscription_free(struct pubsub *p, struct subscription *sub)
{
    struct topic *t = sub->topic;

    list_del(&sub->in_subscriber);
    list_del(&sub->in_topic);
    --*kind_count(sub->subscriber, t->kind);
    sub->subscriber->work -= t->work;
    free(sub);
    topic_unref(p, t);
}

bool pubsub_remove(struct pubsub *p, struct subscriber *s, enum pubsub_kind kind,
                   struct span name)
{
    struct topic *t = topic_find(p, kind, name);
    struct subscription *sub = t == NULL ? NULL : subscription_find(s, t);

    if (sub == NULL) {
        return false;
    }
    subscription_free(p, sub);
    return true;
}

bool pubsub_remove_one(struct pubsub *p, struct subscriber *s, enum pubsub_kind kind,
                       pubsub_name_fn *fn, void *ctx)
{
    struct subscription *sub;

    LIST_EACH(sub, &s->subs, in_subscriber) {
        if (sub->topic->kind == kind) {
            struct topic *t = sub->topic;

            t->sub_count++; /* the name must outlive the subscription */
            subscription_free(p, sub);
            fn(ctx, topic_name(t));
            topic_unref(p, t);
            return true;
        }
    }
    return false;
}

void pubsub_remove_all(struct pubsub *p, struct subscriber *s)
{
    struct subscription *sub;

    LIST_EACH_SAFE(sub, &s->subs, in_subscriber) {
        subscription_free(p, sub);
    }
}

void pubsub_each_of(const struct subscriber *s, pubsub_each_fn *fn, void *ctx)
{
    struct subscription *sub;

    LIST_EACH(sub, &s->subs, in_subscriber) {
        const struct topic *t = sub->topic;

        fn(ctx, t->kind, topic_name(t));
    }
}

static void deliver_to_topic(const struct topic *t, struct span pattern,
                             pubsub_deliver_fn *fn, void *ctx)
{
    struct subscription *sub;

    LIST_EACH(sub, &t->subs, in_topic) {
        fn(ctx, sub->subscriber, pattern);
    }
}

void pubsub_publish(struct pubsub *p, struct span channel, pubsub_deliver_fn *fn,
                    void *ctx)
{
    struct topic *t = topic_find(p, PUBSUB_CHANNEL, channel);
    struct topic *topic;

    if (t != NULL) {
        deliver_to_topic(t, SPAN_NONE, fn, ctx);
    }
    TABLE_EACH(topic, &p->topics[PUBSUB_PATTERN], in_topics) {
        t = topic;
        if (glob_match(topic_name(t), channel)) {
            deliver_to_topic(t, topic_name(t), fn, ctx);
        }
    }
}

void pubsub_deliver(struct pubsub *p, enum pubsub_kind kind, struct span name,
                    pubsub_deliver_fn *fn, void *ctx)
{
    struct topic *t = topic_find(p, kind, name);

    if (t != NULL) {
        deliver_to_topic(t, kind == PUBSUB_PATTERN ? topic_name(t) : SPAN_NONE, fn,
                         ctx);
    }
}

void pubsub_each_channel(struct pubsub *p, pubsub_name_fn *fn, void *ctx)
{
    struct topic *topic;

    TABLE_EACH(topic, &p->topics[PUBSUB_CHANNEL], in_topics) {
        fn(ctx, topic_name(topic));
    }
}

size_t pubsub_count(const struct pubsub *p, struct span channel)
{
    const struct topic *t = topic_find(p, PUBSUB_CHANNEL, channel);

    return t == NULL ? 0 : t->sub_count;
}

size_t pubsub_total(const struct pubsub *p, enum pubsub_kind kind)
{
    return p->topics[kind].count;
}
