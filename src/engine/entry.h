/* entry: one granted LOCK of a hold, with the connections that keep it alive. The hold
 * owns its entries. Private to engine/. */
#ifndef LATCHD_ENGINE_ENTRY_H
#define LATCHD_ENGINE_ENTRY_H

#include "engine/acquire_spec.h"
#include "engine/effect.h"
#include "engine/objects.h"
#include "engine/timer.h"
#include "util/list.h"
#include "util/transition.h"

#include <stdbool.h>
#include <stdint.h>

struct attach {
    struct list in_session;
    struct session *session;
    struct list in_entry;
    struct entry *entry;
    uint64_t grant; /* the grant's number, for engine_on_undelivered() */
};

/* An entry's life, from its grant on; it ends by being freed.
 *
 *   HELD <──> OVERDUE ──> ENDING
 *    └──────── <──> ────────┘
 *
 * An entry goes back to HELD when its client comes back to it. */
enum entry_state {
    ENTRY_HELD,
    /* its fixed lease is over, while a request that may renew it waits for Redis */
    ENTRY_OVERDUE,
    ENTRY_ENDING, /* its release is pending, or was given up */
};

/* Whether Redis may have lost the entry, and what is done about that. */
enum entry_restore {
    ENTRY_KEPT,         /* Redis has it, as far as is known */
    ENTRY_MUST_RESTORE, /* Redis may have lost it: a RESTORE is to name it */
    ENTRY_RESTORING,    /* the RESTORE in flight names it */
};

extern const struct transitions ENTRY_TRANSITIONS, ENTRY_RESTORE_TRANSITIONS;

struct entry {
    struct entry *next; /* of the same hold; the newest entry is the first */
    struct hold *hold;
    struct acquire_spec *spec;
    /* when the entry ends by itself: grace, KEEP, or its own fixed lease */
    struct timer timer;
    uint64_t until;                  /* end of the entry's own fixed lease */
    struct request *request;         /* the request whose ID the entry has, or NULL */
    struct pending_release *release; /* the release in progress, or NULL */
    /* the member of an MLOCK that the entry was granted to, or NULL */
    struct mlock_member *member;
    uint64_t asked; /* when its client asked this daemon for it: see struct claim */
    uint64_t since; /* since when this daemon keeps the entry */
    enum entry_state state;
    enum entry_restore restore;
    enum lease_kind lease;
    /* Redis lacks the entry and does not say why; a renewal of another entry asks */
    bool missing;
    bool retained; /* granted for a client that is not connected */
    bool was_told; /* a connection that was sent the token is gone */
    /* perhaps taken over from another daemon, which may still believe in it */
    bool taken_over;
    struct list attaches; /* oldest first */
    /* room for one of them, which is all that most entries have; unused: no session */
    struct attach own_attach;
};

static inline bool entry_is_attached(const struct entry *e)
{
    return !list_empty(&e->attaches);
}

/* The attachments of an entry, the oldest first; NULL: no more. */
static inline struct attach *entry_first_attach(const struct entry *e)
{
    struct list *first = list_first(&e->attaches);

    return first == NULL ? NULL : container_of(first, struct attach, in_entry);
}

static inline struct attach *attach_next(const struct attach *a)
{
    struct list *next = a->in_entry.next;

    return next == &a->entry->attaches ? NULL
                                       : container_of(next, struct attach, in_entry);
}

static inline bool entry_is_ending(const struct entry *e)
{
    return e->state == ENTRY_ENDING;
}
/* How often each connection that keeps the entry has to say something, in ms; 0: never,
 * as after RENEW with LEASE. */
uint32_t entry_heartbeat(const struct entry *e);

/* Adds an entry to the hold, for the lease that the hold's last confirmation gave. */
struct entry *entry_new(struct engine *eng, struct hold *h, struct acquire_spec *spec);
/* The only ways to change these: they end the process if that may not follow. */
void entry_set_state(struct entry *e, enum entry_state state);
void entry_set_restore(struct entry *e, enum entry_restore restore);
/* Attaches a session's connection to an entry: the entry lives while one is attached.
 */
struct attach *entry_attach(struct engine *eng, struct entry *e, struct session *s);
/* The attachment of that session, or NULL. */
struct attach *entry_attach_of(const struct entry *e, const struct session *s);
/* Ends an attachment; of two ways, the first leaves its session to the caller, who may
 * be about to free that. */
void attach_drop(struct engine *eng, struct attach *a);
void attach_free(struct engine *eng, struct attach *a);
/* When the op was sent that gave an entry of a fixed lease its present lease. */
static inline uint64_t entry_lease_began(const struct entry *e)
{
    uint64_t was_held = lease_valid_until(0, e->spec->terms.lease_ms);
    uint64_t until = e->until;

    return until > was_held ? until - was_held : 0;
}

/* Whether that is the entry's ID, see spec_entry(). */
bool entry_has_id(const struct entry *e, struct span id);
/* Whether at least half of the entry's lease is left, as far as is known. */
bool entry_is_fresh(const struct engine *eng, const struct entry *e);
/* Whether an entry that is attached to a connection has come to the end of its fixed
 * lease. */
bool entry_has_run_out(const struct engine *eng, const struct entry *e);
/* Whether this daemon became the entry's keeper after something was asked at `sent`: an
 * answer to that, saying who kept the entry then, is out of date. */
bool entry_taken_since(const struct engine *eng, const struct entry *e, uint64_t sent);
/* Set what they name, and count the entry in the statistics. */
void entry_set_retained(struct engine *eng, struct entry *e, bool kept);
void entry_set_lease(struct engine *eng, struct entry *e, enum lease_kind lease);
/* Marks the entry's request as over; `answer` as in request_over(). */
void entry_over(struct engine *eng, struct entry *e, int64_t answer);
/* Makes the entry's request look as if it had never been granted. */
void entry_disown(struct engine *eng, struct entry *e);
/* Removes an entry from its hold and frees it. An empty hold is left to the caller. */
void entry_free(struct engine *eng, struct entry *e);

#endif
