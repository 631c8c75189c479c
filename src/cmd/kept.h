/* kept: a request that is run later, since it is part of a transaction or was put off.
 * One block of memory, freed with free(). */
#ifndef LATCHD_CMD_KEPT_H
#define LATCHD_CMD_KEPT_H

#include "cmd/table.h"
#include "util/span.h"

#include <stddef.h>

struct call;

struct kept {
    const struct command *command;
    size_t bytes; /* what this takes */
    size_t argc;
    struct span argv[]; /* into what follows them */
};

/* A copy of what the call was given. */
struct kept *kept_new(const struct call *call)
    __attribute__((malloc, returns_nonnull, warn_unused_result));

#endif
