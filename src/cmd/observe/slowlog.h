/* slowlog: the commands that kept the daemon busy for long, and apart from them the
 * waits for locks that were long: newest first, each stored as the RESP text of its
 * entry. Owns its entries. */
#ifndef LATCHD_CMD_OBSERVE_SLOWLOG_H
#define LATCHD_CMD_OBSERVE_SLOWLOG_H

#include "util/buf.h"
#include "util/list.h"

#include <stddef.h>
#include <stdint.h>

struct command_ctx;

struct slowlog {
    struct list entries;
    size_t count;
    uint64_t next_id;
};

void slowlog_init(struct slowlog *log);
void slowlog_fini(struct slowlog *log);
/* Drops the oldest entries until `max` are left. */
void slowlog_trim(struct slowlog *log, size_t max);

/* Adds a command that ran for `us` microseconds, if that is slow. */
void slowlog_note(const struct command_ctx *ctx, uint64_t us);

#endif
