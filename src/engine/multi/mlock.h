/* mlock: what the lock engine remembers of an MLOCK under way, and what its files offer
 * each other. Private to engine/. */
#ifndef LATCHD_ENGINE_MULTI_MLOCK_H
#define LATCHD_ENGINE_MULTI_MLOCK_H

#include "engine/effect.h"
#include "engine/engine.h"
#include "engine/timer.h"
#include "util/list.h"
#include "util/span.h"
#include "util/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct attach;
struct engine;
struct entry;
struct request;
struct session;
struct waiter;

/* One name of an MLOCK: waited for by an ordinary waiter, then held by an ordinary
 * entry. */
struct mlock_member {
    struct mlock *mlock;
    struct span name;      /* into its data */
    struct waiter *waiter; /* while it stands in that queue */
    struct entry *entry;   /* once it was granted */
    size_t place;          /* in the order in which the client named it */
    bool asked;            /* an answer to its call is to come */
    bool stale;            /* Redis is to confirm it once more */
    bool renewing;         /* it is asked to, though what it said last holds as well */
    bool token_sent;       /* its client has got the token, by an answer before */
    bool joined;           /* its connection has the entry only for this call */
};

/* MLOCK's life: TAKING -> answered (and with an ID remembered, while an entry is left)
 *               TAKING -> KEPT -> TAKING, or freed when KEEP is over */
enum mlock_state { MLOCK_TAKING, MLOCK_KEPT, MLOCK_ANSWERED };

struct mlock {
    struct table_node in_mlocks; /* by number */
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
    bool hindered;     /* others held what it has by now: its time went with that */
    enum lock_error error;
    struct span text;    /* lives until the engine returns */
    uint64_t pause;      /* nothing is asked before this */
    uint64_t refresh_at; /* when a fixed lease among those taken is to be renewed */
    size_t next;         /* the first that is not taken, as far as is known */
    size_t lost;         /* the first that was taken and is gone; or SIZE_MAX */
    size_t taken_over;   /* entries */
    size_t asking;       /* pieces that are asked for */
    size_t count;
    char *data;
    struct mlock_member members[]; /* in byte order of their names */
};

/* mlock.c */
void mlock_touch(struct engine *eng, struct mlock *ml);
void mlock_set_asked(struct mlock_member *p, bool asked);
/* What is next; may free it. */
void mlock_step(struct engine *eng, struct mlock *ml);
void mlock_on_timer(struct engine *eng, struct mlock *ml);
/* What happens to its waiters and entries, told by whoever changes them; `text` lives
 * until the engine returns. */
void mlock_on_null(struct engine *eng, struct mlock_member *p);
void mlock_on_error(struct engine *eng, struct mlock_member *p, enum lock_error error,
                    struct span text);
void mlock_on_grant(struct engine *eng, struct mlock_member *p, const struct attach *a);
void mlock_on_entry(struct engine *eng, struct mlock_member *p, struct entry *e);
/* That session was told of it by RENEW. */
void mlock_on_renewed(const struct entry *e, const struct session *s);
void mlock_on_waiter_gone(struct engine *eng, struct waiter *w);
void mlock_on_entry_gone(struct engine *eng, struct entry *e);

/* mlock_acquire.c */
/* The LOCK that this piece would be. */
struct lock_req mlock_request(const struct engine *eng, const struct mlock_member *p);
void mlock_ask_next(struct engine *eng, struct mlock *ml);
/* Redis is asked whether it is still held, and gives it its whole lease again. */
void mlock_confirm(struct engine *eng, struct mlock_member *p);
/* The same in time, while what was confirmed before holds: nothing waits for it. */
void mlock_renew(struct engine *eng, struct mlock_member *p);

/* request_mlock.c */
struct mlock *mlock_find(const struct engine *eng, uint64_t number);
struct mlock *mlock_of_id(const struct engine *eng, struct span id);
bool mlock_has_name(const struct mlock *ml, struct span name);
/* The number of the call that asks for this piece; and back. NULL: not (any more) one
 * of ours. */
uint64_t mlock_call(const struct mlock_member *p);
struct mlock_member *mlock_find_member(const struct engine *eng, struct call_ref ref);
bool mlock_is_call(struct call_ref ref);
/* That request belongs to an MLOCK that is under way. */
bool mlock_uses(const struct request *r);

/* mlock_end.c */
/* It and its entry have nothing to do with each other any more. */
void mlock_unlink_entry(struct mlock_member *p);
/* Nothing is to be heard any more of what was asked for those from `first` on. */
void mlock_drop_requests(struct engine *eng, struct mlock *ml, size_t first);
/* Back to before `first`: what comes behind it is given back, so that the order is
 * kept. */
void mlock_rewind(struct engine *eng, struct mlock *ml, size_t first);
void mlock_unbind(struct engine *eng, struct mlock *ml);
/* It has been answered: what it has is given back, or kept for KEEP. */
void mlock_end(struct engine *eng, struct mlock *ml, bool keep);
void mlock_free(struct engine *eng, struct mlock *ml);
void mlocks_free(struct engine *eng);
void mlock_conn_closed(struct engine *eng, struct session *s);
bool mlock_unblock(struct engine *eng, struct session *s, bool with_error);
/* Ends those that have this name among theirs; returns how many. */
size_t mlock_cancel(struct engine *eng, const struct hold_req *req, bool *ret_others);
void mlock_stop(struct engine *eng);

#endif
