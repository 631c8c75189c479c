/* mlock_member: an MLOCK and its names, and what the waiter and the entry of a name
 * report to it. A report changes only the MLOCK, and marks it dirty, so that nothing
 * changes under the code that reports; mlock.c does what follows. Private to engine/.
 */
#ifndef LATCHD_ENGINE_MLOCK_MEMBER_H
#define LATCHD_ENGINE_MLOCK_MEMBER_H

#include "engine/effect.h"
#include "engine/engine.h"
#include "engine/objects.h"
#include "engine/timer.h"
#include "util/list.h"
#include "util/span.h"
#include "util/table.h"
#include "util/transition.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One name of an MLOCK: first an ordinary waiter waits for it, then an ordinary entry
 * holds it. */
struct mlock_member {
    struct mlock *mlock;
    struct span name;      /* points into mlock->data */
    struct waiter *waiter; /* while the member waits */
    struct entry *entry;   /* once the member was granted */
    uint64_t confirmed;    /* when the last op that found this entry there was sent */
    size_t place;          /* in the order in which the client named it */
    bool asked;            /* the answer to the member's LOCK or RENEW is to come */
    bool stale;            /* Redis has to confirm the entry once more */
    /* a confirmation is asked for, though the last one still counts */
    bool renewing;
    /* the client has been sent the token, by an earlier answer */
    bool token_sent;
    bool joined; /* its connection has the entry only for this call */
};

/* An MLOCK's life, which ends by being freed:
 *
 *   RETAINED <──> ACQUIRING <──> ANSWERED
 *
 * An MLOCK goes back to ACQUIRING when its ID comes again. */
enum mlock_state {
    MLOCK_ACQUIRING,
    MLOCK_RETAINED, /* kept for KEEP, no client waits */
    MLOCK_ANSWERED, /* with an ID: remembered while an entry is left */
};

/* How an MLOCK ends that a member's wait has ended, without a grant. */
enum mlock_outcome {
    MLOCK_OPEN, /* no wait has ended so */
    MLOCK_NULL,
    MLOCK_REFUSED, /* with `error` */
};

extern const struct transitions MLOCK_TRANSITIONS;

struct mlock {
    struct table_node in_mlocks; /* by number */
    struct list in_session;
    struct list in_dirty;
    /* never used twice; with a member's place it makes the `call` of the member's
     * request */
    uint64_t number;
    enum mlock_state state;
    struct session *session; /* ACQUIRING */
    struct call_ref call;
    struct request *request; /* NULL: no ID */
    struct lock_terms terms; /* its texts point into data */
    struct span trace;       /* as these */
    uint64_t polls_since;    /* see lock_req */
    struct timer timer;
    uint64_t since;
    uint64_t deadline; /* UINT64_MAX: none */
    bool once;         /* WAIT 0 */
    enum mlock_outcome outcome;
    bool failing; /* Redis did not confirm the last request */
    /* others held a name that the MLOCK has by now, which cost it time */
    bool hindered;
    enum lock_error error;
    struct span text; /* the error's text; lives until the engine returns */
    uint64_t pause;   /* no member asks before this */
    /* when a fixed lease among the acquired members has to be renewed */
    uint64_t refresh_at;
    uint64_t last_taken; /* when the op that took the newest entry was sent */
    size_t next;         /* the first member that is not acquired, as far as is known */
    size_t lost;         /* the first member whose entry is gone, or SIZE_MAX */
    size_t taken_over;   /* entries taken over from another daemon */
    size_t asking;       /* members with `asked` */
    size_t count;
    char *data;
    struct mlock_member members[]; /* in the byte order of the names */
};

/* Marks the MLOCK dirty: engine_settle() runs mlock_step() for it. */
void mlock_touch(struct engine *eng, struct mlock *ml);
/* The only way to change the state: ends the process if that may not follow. */
void mlock_set_state(struct mlock *ml, enum mlock_state state);
struct mlock *mlock_find(const struct engine *eng, uint64_t number);
/* Whether the MLOCK has a fixed lease. */
bool mlock_has_lease(const struct mlock *ml);
void mlock_set_asked(struct mlock_member *m, bool asked);
/* Makes a member and its entry forget each other. */
void mlock_unlink_entry(struct mlock_member *m);

/* The call number of a member's request, and the member of such a call. NULL: the call
 * is not, or not any more, one of an MLOCK. */
uint64_t mlock_member_call(const struct mlock_member *m);
struct mlock_member *mlock_find_member(const struct engine *eng, struct call_ref ref);
bool mlock_is_call(struct call_ref ref);
/* Whether that request belongs to an MLOCK that is under way. */
bool mlock_uses(const struct request *request);

/* Answers a LOCK: its client, or the MLOCK of whose names it is one. `sent`: when the
 * op that found the entry was sent. */
void mlock_answer_null(struct engine *eng, struct call_ref to);
void mlock_answer_error(struct engine *eng, struct call_ref to, enum lock_error error,
                        struct span text);
void mlock_answer_grant(struct engine *eng, struct call_ref to, const struct attach *a,
                        uint64_t sent);

/* The code that changes a member's waiter or entry reports it here. `text` lives until
 * the engine returns. */
void mlock_on_null(struct engine *eng, struct mlock_member *m);
void mlock_on_error(struct engine *eng, struct mlock_member *m, enum lock_error error,
                    struct span text);
void mlock_on_entry(struct engine *eng, struct mlock_member *m, struct entry *e,
                    uint64_t sent);
/* RENEW told the session of that entry. */
void mlock_on_renewed(const struct entry *e, const struct session *s);
void mlock_on_waiter_gone(struct engine *eng, struct waiter *w);
void mlock_on_entry_gone(struct engine *eng, struct entry *e);

#endif
