/* slowlog: the latest slow commands or waits, newest first, each stored as the RESP
 * text of its entry. Owns its entries. */
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
/* Adds entry number *ret_id, and drops the oldest so that `max`, which must not be 0,
 * are left. The caller writes the text into the returned buffer. */
struct buf *slowlog_add(struct slowlog *log, size_t max, uint64_t *ret_id);
/* Drops the oldest entries until `max` are left. */
void slowlog_trim(struct slowlog *log, size_t max);

typedef void slowlog_fn(void *ctx, struct span text);
/* Calls `fn` for the newest `count` entries, newest first. */
void slowlog_each(const struct slowlog *log, size_t count, slowlog_fn *fn, void *ctx);

/* Adds a command that ran for `us` microseconds, if that is slow (cmd_slowlog.c). */
void slowlog_note(const struct command_ctx *ctx, uint64_t us);

#endif
