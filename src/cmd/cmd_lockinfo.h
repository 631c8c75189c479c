/* cmd_lockinfo: LOCKINFO, WAITERS and LOCKS. */
#ifndef LATCHD_CMD_CMD_LOCKINFO_H
#define LATCHD_CMD_CMD_LOCKINFO_H

#include "cmd/cmd.h"

#include <stddef.h>
#include <stdint.h>

struct client;

/* redis_names: LOCKS REDIS, the names that are held in Redis, through latchd or not.
 * Each call is one step over the keys of one Redis server; the answer comes later.
 * Redis is asked by the daemon (cmd_env.scan_redis), as no lock of the engine has to do
 * with it.
 */

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

/* Writes LOCKINFO's reply. The tokens of lock libraries' holds are for
 * who names their values, and for a client that overrides owners. */
void lockinfo_write(const struct cmd *c, const struct client *client, struct buf *out,
                    const struct lock_info *info);

#endif
