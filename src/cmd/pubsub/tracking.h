/* tracking: the connections that asked for invalidation messages by CLIENT TRACKING,
 * and the names that they have yet to be sent. A connection has a tracker while it
 * tracks. No I/O: tracking.c decides which connection is sent which name, and
 * writes. The registry does not own trackers; tracker_free() unlinks them. */
#ifndef LATCHD_CMD_PUBSUB_TRACKING_H
#define LATCHD_CMD_PUBSUB_TRACKING_H

#include "util/buf.h"
#include "util/list.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client;
struct cmd;
struct effect_notice;

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

/* Collects a notice for the connections that it concerns. */
void tracking_notice(struct cmd *c, const struct effect_notice *notice);
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

#endif
