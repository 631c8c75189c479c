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
 * Replies leave in the order of the commands; one that is there early is kept. */
#ifndef LATCHD_CMD_PIPELINE_H
#define LATCHD_CMD_PIPELINE_H

#include "engine/effect.h"
#include "engine/engine.h"

#include <stdbool.h>
#include <stddef.h>

struct client;
struct cmd;
struct command;
struct command_ctx;
struct conn;
struct pipeline;
struct step;

enum {
    PIPELINE_MAX = 32,               /* commands that are carried out together, */
    PIPELINE_STEPS_MAX = 1024,       /* commands in flight while a LOCK waits, */
    PIPELINE_BYTES_MAX = 256 * 1024, /* and the memory of those put off */
};

/* Decides about a request that arrives while others are in flight. False: it must not
 * run now. */
bool pipeline_begin(struct command_ctx *ctx);
/* Called after the command was dispatched. */
void pipeline_ran(struct command_ctx *ctx);

/* Lets the command wait for the engine under `number` while others may begin beside
 * it. False: there is no pipeline, and none is needed. */
bool pipeline_waits(struct command_ctx *ctx, uint64_t number);
/* The same for a command beside which no other may begin. False: there is no pipeline.
 */
bool pipeline_waits_last(struct command_ctx *ctx, uint64_t number);
/* Puts a plain LOCK aside, to be asked for in one batch with its neighbours; copies
 * *req. False: it has to be asked for at once. */
bool pipeline_gathers(struct command_ctx *ctx, const struct lock_req *req);
/* Puts off a command that has a step, for client_pause.c; returns the copy. */
struct deferred_command *pipeline_puts_off(struct command_ctx *ctx);

/* Called when no more requests of the connection run for now. */
void pipeline_settle(struct cmd *c, struct conn *conn);
/* Begins what was put off again, as far as the commands ahead allow. */
void pipeline_again(struct cmd *c, struct conn *conn);
/* Whether client->deferred, put off because the pipeline was full, fits now. */
bool pipeline_admits_deferred(const struct client *client);
/* Takes the engine's answer to a command of the pipeline. */
void pipeline_reply(struct cmd *c, struct conn *conn, const struct effect_reply *reply);
/* The command that waits for the engine under that number, or NULL. */
const struct command *pipeline_command(struct pipeline *p, uint64_t number);
/* The connection is gone: drops the pipeline and its replies. */
void pipeline_abandon(struct cmd *c, struct client *client);

/* The memory of a pipeline in bytes. Accepts NULL. */
size_t pipeline_bytes(const struct pipeline *p);

#endif
