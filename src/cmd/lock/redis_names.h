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
/* Redis has as long as this for its answer. */
void redis_names_tick(struct cmd *c, uint64_t now_ms);
uint64_t redis_names_next_deadline(const struct cmd *c);
/* Answers nobody any more. */
void redis_names_free(struct cmd *c);

#endif
