/* pubsub: the registry of subscriptions. It owns channels, patterns and subscriptions;
 * subscribers are embedded in clients. No I/O: publishing calls a function for each
 * subscriber. */
#ifndef LATCHD_CMD_PUBSUB_H
#define LATCHD_CMD_PUBSUB_H

#include "util/list.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PUBSUB_CHANNELS_MAX = 8192, /* per subscriber */
    PUBSUB_PATTERNS_MAX = 128,  /* per subscriber; each costs a match per event */
    PUBSUB_NAME_MAX = 528,      /* bytes of a channel or pattern */
    /* glob_work() of one subscriber's patterns: about a millisecond per event. */
    PUBSUB_WORK_MAX = PUBSUB_PATTERNS_MAX * 4,
    /* Of all subscribers together; a pattern that several share counts once. */
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

/* Called when a channel or pattern gets its first subscriber, and when its last one has
 * left. */
typedef void pubsub_heard_fn(void *ctx, enum pubsub_kind kind, struct span name,
                             bool heard);

struct pubsub *pubsub_new(pubsub_heard_fn *fn, void *ctx);
/* Frees a registry from which all subscribers were removed. Accepts NULL. */
void pubsub_free(struct pubsub *p);

void subscriber_init(struct subscriber *s);

/* Whether these patterns may be added without exceeding the limits on matching cost. */
bool pubsub_affords(const struct pubsub *p, const struct subscriber *s,
                    const struct span *patterns, size_t count);
/* Adds a subscription. False: it exists already. */
bool pubsub_add(struct pubsub *p, struct subscriber *s, enum pubsub_kind kind,
                struct span name);
/* Removes a subscription. False: there was none. */
bool pubsub_remove(struct pubsub *p, struct subscriber *s, enum pubsub_kind kind,
                   struct span name);

/* Removes one subscription of the kind, and calls `fn` with its name. False: none is
 * left. */
typedef void pubsub_name_fn(void *ctx, struct span name);
bool pubsub_remove_one(struct pubsub *p, struct subscriber *s, enum pubsub_kind kind,
                       pubsub_name_fn *fn, void *ctx);
/* Removes all subscriptions of a subscriber. */
void pubsub_remove_all(struct pubsub *p, struct subscriber *s);

/* Calls `fn` for each subscription of a subscriber. */
typedef void pubsub_each_fn(void *ctx, enum pubsub_kind kind, struct span name);
void pubsub_each_of(const struct subscriber *s, pubsub_each_fn *fn, void *ctx);

/* Calls `fn` for each subscriber of a channel; `pattern` is SPAN_NONE if it subscribed
 * to the channel itself. */
typedef void pubsub_deliver_fn(void *ctx, struct subscriber *s, struct span pattern);
void pubsub_publish(struct pubsub *p, struct span channel, pubsub_deliver_fn *fn,
                    void *ctx);

/* The same for the subscribers of one channel, or of one pattern, alone. */
void pubsub_deliver(struct pubsub *p, enum pubsub_kind kind, struct span name,
                    pubsub_deliver_fn *fn, void *ctx);

/* Calls `fn` for each channel that has subscribers. */
void pubsub_each_channel(struct pubsub *p, pubsub_name_fn *fn, void *ctx);
size_t pubsub_count(const struct pubsub *p, struct span channel);
size_t pubsub_total(const struct pubsub *p, enum pubsub_kind kind);

#endif
