/* deferred_command: a copy of a request that runs later, because it is part of a
 * transaction or was put off. One block of memory. */
#ifndef LATCHD_CMD_DEFERRED_COMMAND_H
#define LATCHD_CMD_DEFERRED_COMMAND_H

#include "cmd/command_table.h"
#include "util/list.h"
#include "util/span.h"

#include <stddef.h>
#include <stdint.h>

struct command_ctx;

struct deferred_command {
    struct list in_pause; /* in pause.deferred during CLIENT PAUSE */
    uint64_t conn;        /* its connection */
    const struct command *command;
    size_t bytes; /* size of this block */
    size_t argc;
    struct span argv[]; /* the bytes follow the array */
};

/* Copies the arguments of a command. */
struct deferred_command *deferred_command_new(const struct command_ctx *ctx)
    __attribute__((malloc, returns_nonnull, warn_unused_result));
/* Accepts NULL. */
void deferred_command_free(struct deferred_command *k);

#endif
