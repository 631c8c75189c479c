/* tracking: which connections asked by CLIENT TRACKING to be told of names, and which
 * names they are still to be told. A connection has a tracker while it tracks.
 *
 * Pure memory, no I/O: tracking_push.c decides who is told of what, and writes. The
 * registry does not own the trackers; tracker_free() takes them off it. */
#ifndef LATCHD_CMD_PUBSUB_TRACKING_H
#define LATCHD_CMD_PUBSUB_TRACKING_H

#include "util/buf.h"
#include "util/list.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TRACK_PREFIXES_MAX = 64, /* per connection; each is compared with every name */
    TRACK_PREFIX_MAX = 512,  /* bytes; as long as a name */
    TRACK_NAMES_MAX = 1000,  /* in one push */
};

struct tracking {
    struct list bcast; /* trackers that are told of any name */
    struct list dirty; /* trackers that have names to be told */
    size_t count;
};

struct tracker {
    uint64_t conn;
    bool bcast;                 /* told of any name, not of this connection's holds */
    bool optin, optout, noloop; /* accepted; only CLIENT TRACKINGINFO tells of them */
    bool caching;               /* the same */
    struct list in_bcast;
    struct list in_dirty;
    struct list prefixes; /* BCAST; an empty one: all names */
    size_t prefix_count;
    struct buf names; /* bulk strings, as they are to be sent */
    size_t name_count;
};

struct track_prefix {
    struct list in_tracker;
    size_t len;
    char text[];
};

void tracking_init(struct tracking *t);

struct tracker *tracker_new(struct tracking *t, uint64_t conn);
/* Accepts NULL. */
void tracker_free(struct tracking *t, struct tracker *tr);
/* From now on it is told of names that begin with that: BCAST. */
void tracker_add_prefix(struct tracking *t, struct tracker *tr, struct span prefix);
/* A prefix of this tracker that is the beginning of that one, or the other way round.
 */
bool tracker_overlaps(const struct tracker *tr, struct span prefix, struct span *ret);
bool tracker_wants(const struct tracker *tr, struct span name);

/* One more name to be told. True: as many as one push may have. */
bool tracker_note(struct tracking *t, struct tracker *tr, struct span name);
/* They have been told, or are not to be. */
void tracker_clear(struct tracker *tr);

/* Whether one of the two begins with the other. */
bool prefixes_overlap(struct span a, struct span b);

#endif
