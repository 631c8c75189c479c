/* pipeline: commands of one connection that are in flight together.
 *
 * Mostly there is one, and the struct client has it. Where more input follows an
 * UNLOCK, or any comes behind a LOCK or MLOCK that waits, there is a pipeline from then
 * on until all commands in it are answered. Each has a step of its own:
 *
 *   BEGINS -> ASKED -----------------> ANSWERED -> its reply is written in its turn
 *     |  \--> GATHERED -> ASKED ---/     |
 *     v           |         |            |
 *   PUT_OFF <-----+---------+  <---------+ by a grant that its client cannot be told
 * yet
 *     \--> BEGINS, when it may
 *
 * What may begin beside what is ahead of it:
 *
 *   - An UNLOCK is carried out in any case, so an UNLOCK or LOCK of another name begins
 *     beside those that are in flight.
 *   - Plain LOCKs behind each other are gathered, and then asked for as a run
 *     (engine_lock_batch()): none is granted before all ahead of it are. Those that the
 *     run does not reach are put off.
 *   - What names its own hold or request (pipeline.c) does not wait for a LOCK of
 *     others: a connection may be shared by many who know nothing of each other. A LOCK
 *     with an ID stands in its queue meanwhile, like one whose client asks again and
 *     again: a grant that cannot be told is kept for KEEP, and asked for anew in its
 *     turn.
 *   - All else is put off until everything before it is answered. It holds up nothing
 *     behind it, unless it changes what later commands of the connection mean: then it
 *     is client->deferred, and the connection is suspended.
 *
 * Replies leave in the order of the commands; one that is there early is kept.
 *
 * This file decides what may begin, and in which order replies leave. cmd.c runs the
 * commands. */
#ifndef LATCHD_CMD_PIPELINE_H
#define LATCHD_CMD_PIPELINE_H

#include "cmd/client.h"
#include "engine/effect.h"
#include "util/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cmd;
struct command_ctx;
struct conn;
struct library_call;

enum {
    PIPELINE_MAX = 32,               /* commands that are carried out together, */
    PIPELINE_STEPS_MAX = 1024,       /* commands in flight while a LOCK waits, */
    PIPELINE_BYTES_MAX = 256 * 1024, /* and the memory of those put off */
};

enum step_state {
    STEP_BEGINS,
    STEP_GATHERED,
    STEP_ASKED,
    STEP_PUT_OFF,
    STEP_ANSWERED,
    STEP_STATES,
};

/* Whether a command may pass a waiting LOCK ahead of it, judged by its arguments. */
enum passage {
    PASSAGE_UNKNOWN, /* not determined yet */
    PASSAGE_NAMED,   /* may pass: it names its own hold or request */
    PASSAGE_IN_TURN, /* may not, but commands behind it may pass it */
    PASSAGE_BARRIER, /* may not, and neither may commands behind it */
};

struct step {
    enum step_state state;
    enum passage passage;
    bool muted;
    bool counted;       /* it has run before */
    bool passes;        /* began while a LOCK ahead of it may still wait */
    bool granted_early; /* before its reply could be written: begins again when it is
                           first */
    bool renewed;       /* its reply is the lease that is left */
    const struct command *command; /* NULL until it is looked up */
    uint64_t began_us;
    uint64_t hash; /* of the one name whose holds it changes; 0: there is no such, or it
                      is a LOCK whose name has not been compared */
    struct subject subject;
    struct library_call *library;      /* ASKED: of a lock library's command, or NULL */
    uint64_t number;                   /* ASKED: its call number in the engine */
    struct deferred_command *deferred; /* its words, as long as it may begin again, or
                                          are parsed again for a batch */
    struct buf reply;                  /* an answer that came before its turn */
    uint64_t grant;                    /* the grant in `reply`; 0: none */
    int64_t lease_ms;                  /* if `renewed`: the lease, */
    uint64_t renewed_ms;               /* at this time; */
    uint64_t token;                    /* to be told in its place; 0: not */
};

struct pipeline {
    size_t first; /* the first step without an answer */
    size_t count;
    size_t room;
    size_t waits;                 /* LOCKs, MLOCKs and LEADERs without an answer */
    size_t in_state[STEP_STATES]; /* steps in each; answered ones stay in the count */
    size_t deferred_bytes;        /* memory of the deferred commands */
    bool full;                    /* client->deferred found no room */
    bool again;                   /* conn_again() was called for it */
    struct step steps[];
};

/* Decides about a request that arrives while others are in flight. False: it must not
 * run now. */
bool pipeline_begin(struct command_ctx *ctx);
/* Whether a LOCK of the plain kind is to be gathered. */
bool pipeline_may_gather(const struct command_ctx *ctx);
/* Gives a command that waits its step. False: there is no pipeline, and none is needed.
 */
bool pipeline_waits(struct command_ctx *ctx);
/* Puts off a command that has a step; returns the copy. */
struct deferred_command *pipeline_puts_off(struct command_ctx *ctx);
/* Called after the command was dispatched. */
void pipeline_ran(struct command_ctx *ctx);

/* Asks the engine for the gathered LOCKs. True: some of them are put off. */
bool pipeline_ask(struct cmd *c, struct client *client);
/* Called when no more requests of the connection run for now. */
void pipeline_settle(struct conn *conn, const struct client *client);
/* The next command behind `s` (NULL: from the first one on) that was put off, and that
 * the commands ahead let begin now. */
struct step *pipeline_next(const struct cmd *c, struct pipeline *p,
                           const struct step *s);
/* Whether client->deferred, put off because the pipeline was full, fits now. */
bool pipeline_admits_deferred(const struct client *client);

/* The step that waits for the engine under that number, or NULL. */
struct step *pipeline_step(struct pipeline *p, uint64_t number);
/* Whether the answer is a grant that cannot be written yet: then it is treated as if it
 * had not come. */
bool pipeline_comes_too_early(struct cmd *c, const struct client *client,
                              struct step *s, const struct effect_reply *reply);
/* Whether the answer is of a RENEW: then it is written in its turn, with what is left
 * of the lease by then. */
bool pipeline_keeps_lease(const struct cmd *c, struct step *s,
                          const struct effect_reply *reply);
/* The reply of the step is written, or kept in the step. */
void pipeline_answered(struct pipeline *p, struct step *s);
/* Writes the replies whose turn it is, and has the connection begin what may begin now.
 * The pipeline may be gone afterwards. */
void pipeline_go_on(struct cmd *c, struct conn *conn, struct client *client);
/* The connection is gone: drops the pipeline and its replies. */
void pipeline_abandon(struct cmd *c, struct client *client);

#endif
