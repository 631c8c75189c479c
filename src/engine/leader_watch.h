/* leader_watch: who leads, for LEADER and for the subscribers of `leader:<name>`.
 *
 * The leader of a name is who holds it alone. A lock has a watch (name_watch.h) while a
 * LEADER waits for its name, or a client of this daemon has subscribed. The watch looks
 * into Redis at a message on the lock's channel, a change of the hold of this daemon,
 * what another daemon tells (followed_names.h), the end of the lease; and once a
 * second, as Redisson tells nobody of a grant. Private to engine/. */
#ifndef LATCHD_ENGINE_LEADER_WATCH_H
#define LATCHD_ENGINE_LEADER_WATCH_H

#include "engine/effect.h"
#include "engine/name_watch.h"
#include "engine/objects.h"
#include "util/span.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    LEADER_LOOK_MS = 1000, /* a watch looks at least this often */
    /* ..and this often while another daemon has the name on loan: a daemon that hears
     * that the name is followed ends its loan within a window */
    LEADER_LENT_LOOK_MS = 20,
};

struct leader_watch {
    struct name_watch watch; /* on eng->leader_watches */
    uint64_t seen_here;      /* the token of the hold here when it looked last */
    uint64_t told_others_at; /* when other daemons were told that this one follows */
    struct leader leader;    /* while it is known; the watch owns the texts */
    struct leader told;      /* what subscribers were told last; owned, too */
    bool is_told;            /* there is such a thing */
    bool is_heard;           /* a client has subscribed */
    bool is_lent;            /* another daemon has the name on loan */
};

/* The watch of the lock, made if there is none. */
struct leader_watch *leader_watch_get(struct engine *eng, struct lock *lock);
/* Whether somebody waits for changes, so that it is worth while to be told of them.
 * Accepts NULL. */
bool leader_watch_lasts(const struct leader_watch *watch);
/* Another daemon has come, which is to know what is followed here. */
void leader_watches_announce(struct engine *eng);
/* A client has subscribed to the changes of that name, or none has any more. */
void leader_follow(struct engine *eng, struct span name, bool heard);
void leader_watch_free(struct engine *eng, struct lock *lock);
/* Something may have changed: the watch of the lock, if there is one, looks again. */
void leader_watch_note(struct engine *eng, struct lock *lock);
/* Sends what the watch of the lock needs, or frees a watch that nobody needs. */
void leader_watch_step(struct engine *eng, struct lock *lock);

#endif
