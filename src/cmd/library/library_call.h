/* library_call: carries out one lock_call of a lock library by requests of the engine.
 *
 * Mostly one request is enough: a LOCK with WAIT 0 and a value, an UNLOCK or a RENEW by
 * value, a LOCKINFO. Where the reply depends on more, others follow, one after the
 * other under the same call number:
 *
 *   TAKES ----> EXTENDS   acquire or extend: held, perhaps by this value
 *   TAKES, EXTENDS, RELEASES ----> EXPLAINS   in vain, and the reply tells why
 *   CHECKS ----> EXTENDS, RELEASES   several keys that are all or none; time is added;
 *                an endless key is another case
 *   COMPARES ----> EXTENDS, RELEASES   in a transaction that watches
 *
 * Who was told a moment ago that somebody else has the key, and asks again, is parked:
 * its LOCK waits, for a short time, and takes its place in the queue by when the asker
 * came first (pollers.h). Nothing may be behind a command that is parked: the next one
 * on the connection ends its wait.
 *
 * The client or the step of its pipeline owns the library_call until it is answered. */
#ifndef LATCHD_CMD_LIBRARY_LIBRARY_CALL_H
#define LATCHD_CMD_LIBRARY_LIBRARY_CALL_H

#include "cmd/observe/command_stats.h"
#include "engine/effect.h"
#include "lockscript/lock_call.h"
#include "util/buf.h"

#include <stdbool.h>

struct client;
struct cmd;
struct command_ctx;
struct library_call;

/* Begins the call: the command waits for the engine, or is answered. */
void library_begin(struct command_ctx *ctx, const struct lock_call *call);
/* WATCH: the same for remembering who holds the keys. */
void library_begin_watch(struct command_ctx *ctx, const struct span *keys,
                         size_t key_count);
/* Whether the call waits for longer than Redis needs. Accepts NULL. */
bool library_is_parked(const struct library_call *lib);
/* Ends the wait of a call that is parked, if the client has one. */
void library_end_park(struct cmd *c, const struct client *client);
/* Takes the engine's answer to the last request. True: another request was made, under
 * the same number. */
bool library_goes_on(struct cmd *c, struct library_call *lib,
                     const struct effect_reply *reply);
/* Writes the reply, after the last answer of the engine. */
void library_write(struct buf *out, int proto, const struct library_call *lib,
                   const struct effect_reply *reply);
enum outcome library_outcome(const struct library_call *lib,
                             const struct effect_reply *reply);
/* Accepts NULL. */
void library_call_free(struct library_call *lib);

#endif
