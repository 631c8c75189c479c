/* entry: one granted LOCK of a hold, with the connections that keep it. The hold owns
 * it. Private to engine/. */
#ifndef LATCHD_ENGINE_LOCK_ENTRY_H
#define LATCHD_ENGINE_LOCK_ENTRY_H

#include "engine/timer.h"
#include "util/list.h"

#include <stdbool.h>
#include <stdint.h>

struct acquire_spec;
struct engine;
struct hold;
struct mlock_member;
struct pending_release;
struct request;
struct session;

struct attach {
    struct attach *next; /* of the same entry; the newest is the last */
    struct list in_session;
    struct entry *entry;
    struct session *session;
    uint64_t grant; /* names it in engine_on_undelivered() */
};

struct entry {
    struct entry *next; /* of the same hold; the newest is the first */
    struct attach *attaches;
    struct hold *hold;
    struct acquire_spec *spec;
    struct request *request;
    struct pending_release *release; /* its release, or NULL */
    struct mlock_member *member;     /* of an MLOCK, that it was granted to; or NULL */
    struct timer timer; /* when it goes by itself: grace, KEEP, its own fixed lease */
    uint64_t until;     /* end of its own fixed lease */
    uint64_t since;     /* kept by this daemon */
    unsigned informed;  /* connections that learnt of it, as far as is known */
    bool needs_restore : 1; /* Redis may have lost it */
    bool named : 1;         /* by the RESTORE in flight */
    bool fixed : 1;
    bool ending : 1;   /* its release is on the way */
    bool missing : 1;  /* Redis knows it no more, nor why: it asks by another entry */
    bool late : 1;     /* its time ran out while somebody was coming back to it */
    bool retained : 1; /* granted for a client that is not there yet */
    bool
        taken_over : 1; /* perhaps from another daemon, which may believe in it still */
};

struct attach *entry_attach(struct engine *eng, struct entry *e, struct session *s);
struct attach *entry_attach_of(const struct entry *e, const struct session *s);
void attach_free(struct engine *eng, struct attach *a);
/* The attach's connection is gone. */
void entry_detach(struct engine *eng, struct attach *a);
/* When the op was sent that gave this entry of a fixed lease what it has. */
uint64_t entry_lease_began(const struct entry *e);
/* At least half of its lease is left, as far as is known. */
bool entry_is_fresh(const struct engine *eng, const struct entry *e);
/* A connection has it, and its fixed lease is over. */
bool entry_has_run_out(const struct engine *eng, const struct entry *e);
/* This daemon became its keeper after something else was asked at `sent`: an answer to
 * that, of who kept it then, is out of date. */
bool entry_taken_since(const struct engine *eng, const struct entry *e, uint64_t sent);
void entry_retain(struct engine *eng, struct entry *e);
/* What they say, and the numbers of such entries. */
void entry_set_retained(struct engine *eng, struct entry *e, bool kept);
void entry_set_fixed(struct engine *eng, struct entry *e, bool fixed);
/* If no connection has it (any more), and nothing ends it yet: grace or KEEP begins. */
void entry_left(struct engine *eng, struct entry *e);
/* What that attach's connection was told, or was to be told, never came there: the
 * entry goes, or is kept for KEEP, unless another connection knows of it. */
void entry_untold(struct engine *eng, struct attach *a, bool keep);
/* Its request is over; `answer` as in request_over(). */
void entry_over(struct engine *eng, struct entry *e, int64_t answer);
/* Its request is as if it had never been granted. */
void entry_disown(struct engine *eng, struct entry *e);
void entry_on_timer(struct engine *eng, struct entry *e);
/* Out of its hold and freed; an empty hold stays for the caller to judge. */
void entry_free(struct engine *eng, struct entry *e);

#endif
