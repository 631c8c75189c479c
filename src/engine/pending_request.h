/* pending_request: a request other than a queued LOCK that waits for one answer of
 * Redis. Private to engine/. */
#ifndef LATCHD_ENGINE_PENDING_REQUEST_H
#define LATCHD_ENGINE_PENDING_REQUEST_H

#include "engine/effect.h"
#include "engine/op.h"
#include "engine/timer.h"
#include "util/list.h"

#include <stdbool.h>
#include <stdint.h>

struct acquire_spec;
struct engine;
struct entry;
struct hold_req;
struct inflight_op;
struct lock;
struct lock_req;
struct pending_release;
struct session;

enum pending_request_kind {
    PENDING_UNLOCK,
    PENDING_FORCE,
    PENDING_RENEW,
    PENDING_INFO,
    PENDING_REGRANT
};

/* A request other than a queued LOCK that waits for Redis. */
struct pending_request {
    struct list in_session;
    struct list in_waiting; /* on l->calls while it cannot be sent */
    struct list in_infos;   /* INFO: on l->infos */
    struct list in_lock;    /* RENEW, REGRANT: on desk->renews */
    enum pending_request_kind kind;
    struct lock *lock;
    struct session *session;
    struct call_ref ref;
    struct timer timer; /* the end of its time, or its next try */
    uint64_t deadline;
    bool retry;
    bool rw, guessed;                /* as in duty */
    struct pending_release *release; /* UNLOCK, FORCE */
    struct inflight_op *in_flight;   /* RENEW, INFO, REGRANT */
    struct target target;            /* into data[], or into `want` */
    struct acquire_spec *spec;       /* of the local entry that is meant, or NULL */
    uint32_t user;
    bool overrides;
    uint64_t lease_ms; /* 0: watchdog */
    char data[];
};

struct pending_request *pending_request_new(struct engine *eng,
                                            enum pending_request_kind kind,
                                            struct lock *lock,
                                            const struct hold_req *req);
/* It means this entry, whatever words it used. */
void pending_request_aim(struct pending_request *c, struct entry *e);
void pending_request_free(struct engine *eng, struct pending_request *c);
/* Somebody is about to come back to that entry: nothing is to end it meanwhile. */
bool pending_request_renews(const struct entry *e);
void request_info(struct engine *eng, const struct hold_req *req);
/* LOCKINFOs of names that are in doubt since now have not much time left. */
void pending_info_hurry(struct engine *eng);
void pending_request_send(struct engine *eng, struct pending_request *c);
/* The op has told nothing: once more, after a pause where haste would not help. */
void pending_request_retry(struct engine *eng, struct pending_request *c,
                           enum op_status status);
void pending_request_on_timer(struct engine *eng, struct pending_request *c);
/* An asked-again LOCK whose grant must first be extended. */
struct pending_request *pending_request_regrant(struct engine *eng, struct entry *e,
                                                const struct lock_req *req);
void on_attach_reply(struct engine *eng, struct inflight_op *w,
                     const struct op_result *r);
void on_inspect_reply(struct engine *eng, struct inflight_op *w,
                      const struct op_result *r);

#endif
