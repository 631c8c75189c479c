/* deferred_command: a request that is run later, since it is part of a transaction or
 * was put off. One block of memory. */
#ifndef LATCHD_CMD_DEFERRED_COMMAND_H
#define LATCHD_CMD_DEFERRED_COMMAND_H

#include "cmd/command_table.h"
#include "util/list.h"
#include "util/span.h"

#include <stddef.h>
#include <stdint.h>

struct command_ctx;

struct deferred_command {
    struct list in_pause; /* on pause.kept while it is put off */
    uint64_t conn;        /* whose it is */
    const struct command *command;
    size_t bytes; /* what this takes */
    size_t argc;
    struct span argv[]; /* into what follows them */
};

/* A copy of what the call was given. */
struct deferred_command *deferred_command_new(const struct command_ctx *ctx)
    __attribute__((malloc, returns_nonnull, warn_unused_result));
/* Accepts NULL. */
void deferred_command_free(struct deferred_command *k);

#endif
