/* kept: a request that is run later, since it is part of a transaction or was put off.
 * One block of memory. */
#ifndef LATCHD_CMD_KEPT_H
#define LATCHD_CMD_KEPT_H

#include "cmd/table.h"
#include "util/list.h"
#include "util/span.h"

#include <stddef.h>
#include <stdint.h>

struct call;

struct kept {
    struct list in_pause; /* on pause.kept while it is put off */
    uint64_t conn;        /* whose it is */
    const struct command *command;
    size_t bytes; /* what this takes */
    size_t argc;
    struct span argv[]; /* into what follows them */
};

/* A copy of what the call was given. */
struct kept *kept_new(const struct call *call)
    __attribute__((malloc, returns_nonnull, warn_unused_result));
/* Accepts NULL. */
void kept_free(struct kept *k);

#endif
