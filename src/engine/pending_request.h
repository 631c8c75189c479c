/* pending_request: a request other than a queued LOCK that waits for one answer of
 * Redis. Private to engine/. */
#ifndef LATCHD_ENGINE_PENDING_REQUEST_H
#define LATCHD_ENGINE_PENDING_REQUEST_H

#include "engine/effect.h"
#include "engine/objects.h"
#include "engine/op.h"
#include "engine/timer.h"
#include "util/list.h"

#include <stdbool.h>
#include <stdint.h>

enum pending_request_kind {
    PENDING_UNLOCK,
    PENDING_FORCE,
    PENDING_RENEW,
    PENDING_INFO,
    PENDING_LIMIT,
    PENDING_REGRANT,
    PENDING_LATCH,
    PENDING_FOLLOWER, /* of a name_watch */
};

struct pending_request {
    struct list in_session;
    /* on eng->to_send, eng->waiting_for_store or lock->waiting_for_restore;
     * FOLLOWER: on name_watch.followers */
    struct list in_waiting;
    struct list in_all;  /* INFO: on eng->infos; FOLLOWER: on watch_set.followers */
    struct list in_lock; /* RENEW, REGRANT: on lock->renews */
    enum pending_request_kind kind;
    struct lock *lock;
    struct session *session;
    struct call_ref ref;
    struct timer timer; /* the deadline, or the end of a pause */
    uint64_t asked;     /* when the request came */
    uint64_t deadline;
    bool is_paused; /* the timer ends the pause before the next try */
    enum lock_class lock_class, guessed; /* as in pending_release */
    struct inflight_op *in_flight;       /* not of UNLOCK, FORCE and FOLLOWER */
    struct target target;                /* points into data[], or into `spec` */
    /* the spec of the local entry that is meant, or NULL */
    struct acquire_spec *spec;
    uint32_t user;
    bool overrides;
    union {
        struct pending_release *release; /* UNLOCK, FORCE */
        struct {
            uint64_t lease_ms; /* 0: watchdog */
            bool endless;      /* as hold_req's */
            bool tells_token;
        } attach;              /* RENEW, REGRANT */
        enum info_scope scope; /* INFO */
        uint32_t limit;        /* LIMIT: see op_limit */
        struct {
            struct name_watch *watch; /* what it follows */
            uint64_t wait_until;
            uint64_t asked_op;     /* the last op that was sent before it came */
            bool waits_for_change; /* else any answer will do */
            uint64_t after;        /* LEADER: see leader_req */
            /* AWAIT: the generation that it waits for; 0: the one that is found first
             */
            uint64_t generation;
            bool is_doubted; /* Redis may have gone back since that was found */
        } follower;          /* FOLLOWER */
        struct {
            struct op_latch op; /* its request points into `target` or `serial` */
            char serial[OP_INSTANCE_LEN + 24];
            bool tells_all; /* LATCH INFO */
        } latch;            /* LATCH */
    };
    char data[];
};

struct pending_request *pending_request_new(struct engine *eng,
                                            enum pending_request_kind kind,
                                            struct lock *lock,
                                            const struct hold_req *req);
/* Sets the timer to when the request is given up. */
void pending_request_arm(struct engine *eng, struct pending_request *c);
/* When that is, as far as is known now. */
uint64_t pending_request_deadline(const struct engine *eng,
                                  const struct pending_request *c);
/* Aims the request at this entry, however its client named it. */
void pending_request_aim(struct pending_request *c, struct entry *e);
void pending_request_free(struct engine *eng, struct pending_request *c);
void request_info(struct engine *eng, const struct hold_req *req,
                  enum info_scope scope);
void request_limit(struct engine *eng, const struct hold_req *req, uint32_t limit);
/* Makes the LOCKINFOs of uncertain holds hurry: little time is left for Redis's
 * answer. */
void pending_info_hurry(struct engine *eng);
/* Queues the request: the scheduler sends it. */
void pending_request_queue(struct engine *eng, struct pending_request *c);
/* Sends the request again, as the result said nothing, after a pause where haste would
 * not help. */
void pending_request_retry(struct engine *eng, struct pending_request *c,
                           uint64_t pause_ms);
/* The same if the op's result was no answer; the op is freed then. False: it was one,
 * or nobody waits for it. */
bool pending_request_was_retried(struct engine *eng, struct inflight_op *o,
                                 const struct op_result *r);
/* A request for a LOCK that was sent again: the lease of its grant must be extended
 * first. */
struct pending_request *pending_request_regrant(struct engine *eng, struct entry *e,
                                                const struct lock_req *req);

#endif
