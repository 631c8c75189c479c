/* leash: a link of one's own to a Redis on a unix socket, for the few words that the
 * supervisor of the embedded Redis has for it: does it answer, end now.
 *
 * The caller owns the struct. Events come from the loop only; an event may call any
 * function here. */
#ifndef LATCHD_DAEMON_LEASH_H
#define LATCHD_DAEMON_LEASH_H

#include "io/stream.h"
#include "util/buf.h"
#include "util/span.h"

#include <stdbool.h>

struct leash_events {
    void *ctx;
    void (*on_open)(void *ctx);
    void (*on_line)(void *ctx, struct span line); /* without its line end */
    void (*on_end)(void *ctx); /* it broke, or could not be opened; dropped already */
};

struct leash {
    struct io *io;
    const char *path; /* the caller's */
    struct leash_events events;
    struct stream *stream;
    bool open;
    struct buf input;
};

void leash_init(struct leash *l, struct io *io, const char *path,
                const struct leash_events *events);
/* False: not even begun; no event comes. */
bool leash_connect(struct leash *l) __attribute__((warn_unused_result));
/* Inline commands, with their line ends. */
void leash_say(struct leash *l, const char *text);
/* Idempotent; no event comes. */
void leash_drop(struct leash *l);

#endif
