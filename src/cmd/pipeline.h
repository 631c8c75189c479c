/* pipeline: commands of one connection that are in flight together.
 *
 * Mostly there is one, and the struct client has it. Where more input follows an
 * UNLOCK, or a plain LOCK, there is a pipeline from its beginning until all that began
 * in it are answered:
 *
 *   - An UNLOCK is carried out in any case, so an UNLOCK or LOCK of another name begins
 *     beside those that are in flight.
 *   - Plain LOCKs behind each other are gathered, and then asked for as a run
 *     (locks_lock_run()): none is granted before all ahead of it are. Those that the
 *     run does not reach begin anew, as if they had just come, when all ahead of them
 *     are answered.
 *   - All else begins when everything before it is answered: it is put off, as
 *     client->kept, and the connection is suspended.
 *
 * Replies leave in the order of the commands; one that is there early is kept. */
#ifndef LATCHD_CMD_PIPELINE_H
#define LATCHD_CMD_PIPELINE_H

#include "core/effect.h"
#include "core/locks.h"

#include <stdbool.h>
#include <stddef.h>

struct call;
struct client;
struct cmd;
struct conn;
struct pipeline;
struct step;

enum { PIPELINE_MAX = 32 }; /* commands that are in flight together */

/* A request has come while there is a pipeline. False: it is put off. */
bool pipeline_begin(struct call *call);
/* It has been dispatched. */
void pipeline_ran(struct call *call);

/* The command waits for the engine, under that number; others may begin beside it.
 * False: no others are there, or can come. */
bool pipeline_waits(struct call *call, uint64_t number);
/* The same for a command beside which no other may begin, if there is a pipeline. */
bool pipeline_waits_last(struct call *call, uint64_t number);
/* A plain LOCK waits to be asked for in a run; what it asks for is copied, but for whom
 * it is. False: it is to be asked for at once. */
bool pipeline_gathers(struct call *call, const struct lock_req *req);
/* It is put off (pause.c); what is kept of it. */
struct kept *pipeline_puts_off(struct call *call);

/* No other request of the connection runs now. */
void pipeline_settle(struct cmd *c, struct conn *conn);
/* What the run did not reach begins anew. */
void pipeline_again(struct cmd *c, struct conn *conn);
/* The engine's answer to a command of it. */
void pipeline_reply(struct cmd *c, struct conn *conn, const struct effect_reply *reply);
/* The connection is gone: nobody will be told any more. */
void pipeline_abandon(struct cmd *c, struct client *client);

/* Bytes that it takes. Accepts NULL. */
size_t pipeline_bytes(const struct pipeline *p);

#endif
