/* mlock: what the lock engine remembers of an MLOCK under way. Private to core/. */
#ifndef LATCHD_CORE_MLOCK_H
#define LATCHD_CORE_MLOCK_H

#include "core/state.h"

/* One name of an MLOCK: waited for by an ordinary waiter, then held by an ordinary
 * entry. */
struct piece {
    struct mlock *mlock;
    struct span name;      /* into its data */
    struct waiter *waiter; /* while it stands in that queue */
    struct entry *entry;   /* once it was granted */
    size_t place;          /* in the order in which the client named it */
    bool asked;            /* an answer to its call is to come */
    bool stale;            /* Redis is to confirm it once more */
    bool told;             /* its client has got the token, by an answer before */
};

/* MLOCK's life: TAKING -> answered (and with an ID remembered, while an entry is left)
 *               TAKING -> KEPT -> TAKING, or freed when KEEP is over */
enum mlock_state { MLOCK_TAKING, MLOCK_KEPT, MLOCK_ANSWERED };

struct mlock {
    UT_hash_handle hh;
    struct list in_session;
    struct list in_dirty;
    uint64_t number; /* never used twice; with the piece's it makes a call of ours */
    enum mlock_state state;
    struct session *session; /* TAKING */
    struct call_ref call;
    struct request *request; /* NULL: no ID */
    struct lock_req terms;   /* owner and id are in data; no name */
    struct timer timer;
    uint64_t since;
    uint64_t deadline; /* UINT64_MAX: none */
    bool once;         /* WAIT 0 */
    bool ended;        /* one of its waits ended without a grant, and so does it */
    bool refused;      /* with this error, not null */
    bool failing;      /* Redis did not confirm what was asked last */
    enum lock_error error;
    struct span text;    /* lives until the engine returns */
    uint64_t pause;      /* nothing is asked before this */
    uint64_t refresh_at; /* when a fixed lease among those taken is to be renewed */
    size_t next;         /* the first that is not taken, as far as is known */
    size_t lost;         /* the first that was taken and is gone; or SIZE_MAX */
    size_t taken;        /* entries */
    size_t asking;       /* pieces that are asked for */
    size_t count;
    char *data;
    struct piece pieces[]; /* in byte order of their names */
};

#endif
