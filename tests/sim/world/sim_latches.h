/* sim_latches: a latch, what clients and a Redisson do with it, and what must be true:
 *
 *   - a request counts once, whatever was lost, came late or was sent again
 *   - AWAIT says 1 only if the latch was opened since it was asked, or before that and
 *     nothing has happened since
 *   - AWAIT and COUNT are refused only where the latch was deleted, lost, or opened by
 *     Redisson
 *   - nobody waits any more once it is opened (sim_drain.c)
 *   - what a client was told to have counted is counted in the end, if Redis has that
 *     latch, or has it again, and the daemon has lived on */
#ifndef LATCHD_SIM_LATCHES_H
#define LATCHD_SIM_LATCHES_H

#include "engine/effect.h"
#include "sim/redis/sim_redis.h"

struct flight;
struct sim;
struct sim_conn;
struct sim_daemon;

/* The fate of the latch. OPENED_UNSEEN: by Redisson, which leaves no sign. */
enum latch_event { LATCH_WAS_SET, LATCH_OPENED, LATCH_OPENED_UNSEEN, LATCH_VANISHED };

enum {
    LATCH_REQUESTS_MAX = 512,
    MESSAGE_LATE_MS = 1000, /* as links and Redis may stand still */
};

struct latch_request {
    struct rtext id; /* as COUNT ops have it */
    unsigned times;  /* that it has counted, as far as Redis remembers */
    /* A client was told so, and this daemon has to count it again if that is lost. */
    bool is_owed;
    size_t daemon;
    uint64_t life, generation, told_ms;
};

struct sim_latches {
    struct redis_name *name; /* NULL: there are none */
    struct {
        uint64_t at; /* of `happened` */
        enum latch_event what;
    } * log;
    size_t log_count, log_room;
    struct latch_request requests[LATCH_REQUESTS_MAX];
    size_t request_count;
    /* A daemon is being told that this request has counted, in that generation. */
    struct latch_request *heard;
    const struct sim_daemon *heard_by;
    uint64_t heard_generation;
    int64_t left;        /* 0: it is not set */
    uint64_t generation; /* of the mark; 0: there is none */
    /* The last restart of Redis, of `happened`: what was opened and set anew before it,
     * while nobody could look, is taken for lost. */
    uint64_t restarted_at;
    uint64_t opened, awaited;
    uint64_t zero_ms; /* when `0` was last sent, as it was opened or deleted */
    bool is_unseen;   /* Redisson has set it, and no latchd has looked since */
    /* The latch may be taken for the one before, which was opened: it vanished unseen,
     * or while `0`, which names no generation, may have been on its way for that one.
     */
    bool is_mistaken;
    uint64_t mistaken_until; /* of `happened`: when it was last set after that */
    uint64_t count_at;       /* the drain counts no sooner */
};

void latches_begin(struct sim *s);
void latches_fini(struct sim_latches *l);
/* One random thing that a client, or Redisson, does. */
void latches_act(struct sim *s);
void latches_foreign_act(struct sim *s);
/* An operator's DEL. */
void latches_delete(struct sim *s);
/* An op has run, of a daemon that talks to the master. */
void latches_ran(struct sim *s, const struct flight *f);
/* A daemon is told what has become of its op. */
void latches_heard(struct sim *s, const struct sim_daemon *d, const struct flight *f);
/* A daemon notices that Redis was out of reach, or is another: what it counted longer
 * ago than a lease, it may have forgotten. */
void latches_noticed(struct sim *s, const struct sim_daemon *d);
/* All is well since long, and what is owed must have been counted. */
void latches_end(struct sim *s);
/* Redis has another state than before, and not by an op. */
void latches_moved(struct sim *s);
void latches_replied(struct sim *s, const struct sim_conn *c,
                     const struct effect_reply *r);
/* Whether that answer fits what has happened; check/sim_latch_answers.c. */
void check_latch_answer(struct sim *s, const struct sim_conn *c,
                        const struct effect_reply *r);
/* Whether the latch is set. */
bool latches_is_set(struct sim *s);

#endif
