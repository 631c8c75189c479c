/* redis_names: LOCKS REDIS, the names that are held in Redis, through latchd or not.
 * Each call is one step over the keys of one Redis server; the answer comes later.
 * Redis is asked by the daemon (cmd_env.scan_redis), as no lock of the engine has to do
 * with it.
 */
#ifndef LATCHD_CMD_LOCK_REDIS_NAMES_H
#define LATCHD_CMD_LOCK_REDIS_NAMES_H

#include "cmd/cmd.h"

#include <stddef.h>
#include <stdint.h>

struct command_ctx;
struct lock_args;

/* Begins a LOCKS REDIS that looks at `count` keys. */
void redis_names_ask(struct command_ctx *ctx, const struct lock_args *args,
                     size_t count);
/* The step `id` is over. True: *ret is the answer to its client, with its text in
 * `out`.
 */
bool redis_names_on_scanned(struct cmd *c, uint64_t id,
                            const struct scanned_names *names, struct buf *out,
                            struct effect_reply *ret);
/* True: *ret is the answer to a client for which Redis took too long; there may be more
 * of them. */
bool redis_names_on_time(struct cmd *c, uint64_t now_ms, struct effect_reply *ret);
uint64_t redis_names_next_deadline(const struct cmd *c);
/* Answers nobody any more. */
void redis_names_free(struct cmd *c);

#endif
