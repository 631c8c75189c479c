/* slowlog: the last things that took long, newest first, each kept as the RESP text of
 * its reply. Owns its entries. */
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
/* A new entry of number *ret_id, whose text the caller writes into what is returned;
 * the oldest are dropped so that `max` are left, which must not be 0. */
struct buf *slowlog_add(struct slowlog *log, size_t max, uint64_t *ret_id);
/* Drops the oldest until `max` are left. */
void slowlog_trim(struct slowlog *log, size_t max);

typedef void slowlog_fn(void *ctx, struct span text);
/* The newest `count`, newest first. */
void slowlog_each(const struct slowlog *log, size_t count, slowlog_fn *fn, void *ctx);

/* A command worked for that long (cmd_slowlog.c). */
void slowlog_note(const struct command_ctx *ctx, uint64_t us);

#endif
