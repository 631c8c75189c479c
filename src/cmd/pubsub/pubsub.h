/* pubsub: who listens to what. Channels and patterns on one side, subscribers (embedded
 * in clients) on the other; the subscriptions between them belong to the registry.
 *
 * Pure memory, no I/O: publishing calls a function for each subscriber. */
#ifndef LATCHD_CMD_PUBSUB_PUBSUB_H
#define LATCHD_CMD_PUBSUB_PUBSUB_H

#include "util/list.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PUBSUB_CHANNELS_MAX = 8192, /* per subscriber */
    PUBSUB_PATTERNS_MAX = 128,  /* per subscriber; each costs a match per event */
    PUBSUB_NAME_MAX = 528,      /* bytes of a channel or pattern */
    /* glob_work() of a subscriber's patterns: about a millisecond for an event. */
    PUBSUB_WORK_MAX = PUBSUB_PATTERNS_MAX * 4,
    /* Of all subscribers together; patterns that several have count once. */
    PUBSUB_ALL_PATTERNS_MAX = 16384,
    PUBSUB_ALL_WORK_MAX = 8 * PUBSUB_WORK_MAX,
};

enum pubsub_kind { PUBSUB_CHANNEL, PUBSUB_PATTERN };

struct pubsub;

struct subscriber {
    struct list subs;
    uint16_t channels;
    uint16_t patterns;
    uint32_t work; /* glob_work() of its patterns */
};

struct pubsub *pubsub_new(void);
/* All subscribers must have been removed. Accepts NULL. */
void pubsub_free(struct pubsub *p);

void subscriber_init(struct subscriber *s);

/* Whether so many more patterns may be added, by what they cost to match. */
bool pubsub_affords(const struct pubsub *p, const struct subscriber *s,
                    const struct span *patterns, size_t count);
/* False: it had subscribed already. */
bool pubsub_add(struct pubsub *p, struct subscriber *s, enum pubsub_kind kind,
                struct span name);
/* False: it had not subscribed. */
bool pubsub_remove(struct pubsub *p, struct subscriber *s, enum pubsub_kind kind,
                   struct span name);

/* Removes some subscription of that kind and calls fn with its name. False: none left.
 */
typedef void pubsub_name_fn(void *ctx, struct span name);
bool pubsub_remove_one(struct pubsub *p, struct subscriber *s, enum pubsub_kind kind,
                       pubsub_name_fn *fn, void *ctx);
/* Removes all of them. */
void pubsub_remove_all(struct pubsub *p, struct subscriber *s);

/* Its subscriptions. */
typedef void pubsub_each_fn(void *ctx, enum pubsub_kind kind, struct span name);
void pubsub_each_of(const struct subscriber *s, pubsub_each_fn *fn, void *ctx);

/* `pattern` is SPAN_NONE for a subscription to the channel itself. */
typedef void pubsub_deliver_fn(void *ctx, struct subscriber *s, struct span pattern);
void pubsub_publish(struct pubsub *p, struct span channel, pubsub_deliver_fn *fn,
                    void *ctx);

/* Channels somebody subscribed to. */
void pubsub_each_channel(struct pubsub *p, pubsub_name_fn *fn, void *ctx);
size_t pubsub_count(const struct pubsub *p, struct span channel);
size_t pubsub_total(const struct pubsub *p, enum pubsub_kind kind);

#endif
