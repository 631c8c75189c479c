/* events: what happened to locks, to the clients that subscribed to it; and the
 * channels of lock libraries, whose messages go by way of Redis. */
#ifndef LATCHD_CMD_EVENTS_H
#define LATCHD_CMD_EVENTS_H

#include "cmd/pubsub.h"
#include "engine/effect.h"
#include "latchd/protocol.h"
#include "util/buf.h"
#include "util/list.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client;
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
/* The holds that were lost last and those that expired last. */
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

/* tracking: the connections that asked for invalidation messages by CLIENT TRACKING,
 * and the names that they have yet to be sent. A connection has a tracker while it
 * tracks. No I/O: events.c decides which connection is sent which name, and
 * writes. The registry does not own trackers; tracker_free() unlinks them. */

enum {
    TRACK_PREFIXES_MAX = 64, /* per connection; each is compared with every name */
    TRACK_PREFIX_MAX = 512,  /* bytes; as long as a name */
    TRACK_NAMES_MAX = 1000,  /* in one push */
};

struct tracking {
    struct list bcast; /* trackers with BCAST */
    struct list dirty; /* trackers with unsent names */
    size_t count;
};

struct tracker {
    uint64_t conn;
    bool bcast;         /* sent any name, not only those of the connection's holds */
    bool optin, noloop; /* accepted, and only reported by CLIENT TRACKINGINFO */
    bool caching;       /* the same */
    struct list in_bcast;
    struct list in_dirty;
    struct list prefixes; /* of BCAST; an empty one matches all names */
    size_t prefix_count;
    struct buf names; /* unsent names, encoded as bulk strings */
    size_t name_count;
};

struct track_prefix {
    struct list in_tracker;
    size_t len;
    char text[];
};

void tracking_init(struct tracking *t);
/* Writes the collected notices to this client now. */
void tracking_push(struct cmd *c, struct client *client);
/* Ends CLIENT TRACKING for the client, if it is on. */
void client_untrack(struct cmd *c, struct client *client);
/* Writes the collected notices to all clients. */
void cmd_push(struct cmd *c);

struct tracker *tracker_new(struct tracking *t, uint64_t conn);
/* BCAST: adds a prefix. */
void tracker_add_prefix(struct tracking *t, struct tracker *tr, struct span prefix);
/* Whether a prefix of the tracker overlaps with `prefix`; *ret is the one that does. */
bool tracker_overlaps(const struct tracker *tr, struct span prefix, struct span *ret);
bool tracker_wants(const struct tracker *tr, struct span name);

/* Whether one of the two prefixes begins with the other. */
bool prefixes_overlap(struct span a, struct span b);

/* losses: the holds that were lost last, or that expired last, for LOCKINFO and the
 * status page.
 *
 * A ring of fixed size: of more than LOSSES_MAX the oldest is forgotten. */

enum {
    LOSSES_MAX = 100,
    LOSSES_LATELY_MS = 10 * 60 * 1000, /* what is younger needs a look */
    LOSSES_PEER_MAX = 128,             /* an address; what is longer is cut */
    LOSSES_OWNER_MAX = 160,            /* any of ours; what is longer is cut */
};

struct loss {
    uint64_t at_ms;
    uint64_t token;
    uint64_t client;       /* one that kept it; 0: none did */
    enum loss_cause cause; /* means nothing of a hold that expired */
    uint64_t forced_by;    /* the connection; 0: not known */
    uint16_t name_len, owner_len, taker_len;
    char name[LATCHD_NAME_MAX];
    char owner[LOSSES_OWNER_MAX];
    char taker[LOSSES_OWNER_MAX];
    char forced_from[LOSSES_PEER_MAX]; /* its address */
};

struct losses {
    uint64_t count; /* ever */
    struct loss ring[LOSSES_MAX];
};

/* A zeroed struct is empty. `forced_from`: the address of notice->forced_by, or "". */
void losses_add(struct losses *l, uint64_t now_ms, const struct effect_notice *notice,
                const char *forced_from);
/* How many there are to tell, and the one that has `newer` newer ones. */
size_t losses_known(const struct losses *l);
const struct loss *losses_at(const struct losses *l, size_t newer);
/* How many of those known were lost lately. */
size_t losses_lately(const struct losses *l, uint64_t now_ms);

/* "gone", "taken"...: what LOCKINFO and the status page call it. */
const char *loss_cause_word(enum loss_cause cause);
struct span loss_name(const struct loss *loss);
struct span loss_owner(const struct loss *loss);
struct span loss_taker(const struct loss *loss);

#endif
