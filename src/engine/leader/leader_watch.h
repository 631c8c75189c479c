/* leader_watch: who leads, for LEADER and for the subscribers of `leader:<name>`.
 *
 * The leader of a name is who holds it alone. A lock has a watch while a LEADER waits
 * for its name, or a client of this daemon has subscribed. The watch looks into Redis
 * whenever something may have changed: a message on the lock's channel, a hold of this
 * daemon, what another daemon tells (followed_names.h), the end of the lease; and once
 * a second, as Redisson tells nobody of a grant. One look is on its way at a time, so
 * answers come in order. Private to engine/. */
#ifndef LATCHD_ENGINE_LEADER_LEADER_WATCH_H
#define LATCHD_ENGINE_LEADER_LEADER_WATCH_H

#include "engine/effect.h"
#include "engine/timer.h"
#include "util/list.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;
struct inflight_op;
struct lock;
struct op_result;

enum {
    LEADER_LOOK_MS = 1000, /* a watch looks at least this often, */
    /* but all watches together no more often than this in a second */
    LEADER_LOOKS_PER_S = 1000,
};

/* UNKNOWN: Redis cannot be asked, or another daemon may have a hold to put back. */
enum leader_state { LEADER_UNKNOWN, LEADER_KNOWN };

struct leader_watch {
    struct list in_all; /* on eng->leader_watches */
    struct lock *lock;
    struct list followers; /* LEADERs that wait: pending_request.in_waiting */
    struct timer timer;    /* the next look */
    struct inflight_op *look;
    uint64_t seen_here;      /* the token of the hold here when `look` was sent */
    uint64_t told_others_at; /* when other daemons were told that this one follows */
    enum leader_state state;
    struct leader leader; /* while KNOWN; the watch owns the texts */
    struct leader told;   /* what subscribers were told last; owned, too */
    bool is_told;         /* there is such a thing */
    bool is_heard;        /* a client has subscribed */
    bool is_due;          /* something may have changed since `look` was sent */
    uint64_t known_op;    /* the look that `leader` is from */
    uint64_t not_before;  /* no look before this, as Redis refused one */
};

/* The watch of the lock, made if there is none. */
struct leader_watch *leader_watch_get(struct engine *eng, struct lock *lock);
/* Whether somebody waits for changes, so that it is worth while to be told of them.
 * Accepts NULL. */
bool leader_watch_lasts(const struct leader_watch *w);
/* Another daemon has come, which is to know what is followed here. */
void leader_watches_announce(struct engine *eng);
/* A client has subscribed to the changes of that name, or none has any more. */
void leader_follow(struct engine *eng, struct span name, bool heard);
void leader_watch_free(struct engine *eng, struct lock *lock);
/* Something may have changed: the watch of the lock, if there is one, looks again. */
void leader_watch_note(struct engine *eng, struct lock *lock);
/* Nothing is known any more, of any name. */
void leader_watches_doubt(struct engine *eng);
/* Sends what the watch of the lock needs, or frees a watch that nobody needs. */
void leader_watch_step(struct engine *eng, struct lock *lock);
void leader_watch_on_timer(struct engine *eng, struct leader_watch *w);
void on_leader_look(struct engine *eng, struct inflight_op *w,
                    const struct op_result *r);

#endif
