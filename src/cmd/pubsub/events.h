/* events: what happened to locks, to the clients that subscribed to it; and the
 * channels of lock libraries, whose messages go by way of Redis. */
#ifndef LATCHD_CMD_PUBSUB_EVENTS_H
#define LATCHD_CMD_PUBSUB_EVENTS_H

#include "cmd/pubsub/pubsub.h"
#include "engine/effect.h"
#include "latchd/protocol.h"
#include "util/span.h"

#include <stdbool.h>

struct cmd;
struct losses;

/* Effects of the engine for clients. Notices for connections that track are collected;
 * cmd_push() writes them, and must follow in the same turn. */
void cmd_leader_changed(struct cmd *c, const struct effect_leader *change);
void cmd_notice(struct cmd *c, const struct effect_notice *notice);
/* Redis has sent a message of a lock library: to the subscribers of the pattern that it
 * came for, or of its channel (SPAN_NONE). */
void cmd_published(struct cmd *c, struct span pattern, struct span channel,
                   struct span text);
/* The holds that were lost last (cmd/observe/losses.h), and those that expired last. */
const struct losses *cmd_losses(const struct cmd *c);
const struct losses *cmd_expired(const struct cmd *c);
/* Whether any client is subscribed to anything. */
bool cmd_has_subscribers(const struct cmd *c);

/* Whether a channel may be one of a lock library: none of latchd's, and none on which
 * Redis, Redisson or latchds talk at Redis. Of a pattern, which must not begin with a
 * wildcard, whether all channels with its beginning may. */
bool channel_is_of_library(enum pubsub_kind kind, struct span name);
/* The name whose leader that channel tells of; empty: none. */
static inline struct span leader_channel_name(struct span channel)
{
    const struct span prefix = SPAN(LATCHD_CHANNEL_LEADER);

    return span_starts(channel, prefix) && channel.len > prefix.len &&
                   channel.len <= prefix.len + LATCHD_NAME_MAX
               ? span_after(channel, prefix.len)
               : SPAN_NONE;
}

/* Publishes at Redis, and tells those subscribers who will not hear of it by that. */
void cmd_publish(struct cmd *c, struct span channel, struct span text);
/* For pubsub_new(). */
pubsub_heard_fn events_follow;

#endif
