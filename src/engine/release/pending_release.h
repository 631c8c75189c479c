/* pending_release: a release or undo that is sent again until Redis has answered it.
 * Private to engine/. */
#ifndef LATCHD_ENGINE_RELEASE_PENDING_RELEASE_H
#define LATCHD_ENGINE_RELEASE_PENDING_RELEASE_H

#include "engine/op.h"
#include "util/list.h"
#include "util/span.h"

#include <stdbool.h>
#include <stdint.h>

struct acquire_spec;
struct engine;
struct entry;
struct lock;
struct pending_request;

/* What has to be done at Redis for a lock, whoever is still there: a release. */
struct pending_release {
    struct list in_lock;
    struct target target;         /* into data[] */
    struct entry *local;          /* the entry it ends, while that exists */
    struct pending_request *call; /* who waits for the answer, or NULL */
    struct acquire_spec
        *next;           /* sent with this claim; a repetition must name it again */
    uint64_t give_up_at; /* the lease has ended it by then */
    unsigned tries;
    bool
        was_held; /* we held it when it was first sent: gone on repetition = released */
    bool may_have_run; /* when it was sent before; else, gone = lost */
    bool if_keeper;
    bool force;
    bool mark;
    bool undo;            /* of a grant that may not even have happened */
    bool may_free;        /* sent so that others may have been granted after it */
    bool rw;              /* of which family it is */
    bool may_be_parallel; /* by a client, of one reader among others */
    bool parallel;        /* on activity->parallel_releases */
    bool elsewhere;       /* it had been released before, through another daemon */
    bool guessed;         /* only a guess, as nothing is known of the name here */
    bool again;           /* it ran before, and Redis may have lost it */
    char data[];
};

struct pending_release *pending_release_new(struct engine *eng, struct lock *lock,
                                            const struct target *t);
/* The same for an entry that is known here: it is ending from now on. */
struct pending_release *pending_release_for_entry(struct engine *eng, struct entry *e);
/* Sent late it may end another hold than was meant. */
bool pending_release_is_vague(const struct pending_release *d);
void pending_release_free(struct engine *eng, struct lock *lock,
                          struct pending_release *d);
/* It and its local entry forget each other. */
void pending_release_unlink(struct pending_release *d);
/* It is not on its way any more. */
void pending_release_on_settled(struct lock *lock, struct pending_release *d);
/* Gives back what `want` may have been granted. False: it is not to be, as its request
 * goes on. */
bool pending_release_undo(struct engine *eng, struct lock *lock,
                          const struct acquire_spec *spec);
/* It gives back what `spec` may have been granted; one of those of the lock does. */
bool pending_release_undoes(const struct pending_release *d,
                            const struct acquire_spec *spec);
bool lock_undoes(const struct lock *lock, const struct acquire_spec *spec);
/* Drops such a duty that was not sent yet: the request goes on. */
bool pending_release_cancel_undo(struct engine *eng, struct lock *lock,
                                 const struct acquire_spec *spec);
/* Somebody has come back to that hold or entry: no release of our own accord is to
 * follow. False: one may be on its way already, or its owner gave it up. */
bool pending_release_withdraw(struct engine *eng, struct lock *lock, struct span field,
                              struct span entry);
/* Ends a local entry of our own accord. */
void pending_release_end_entry(struct engine *eng, struct entry *e);

#endif
