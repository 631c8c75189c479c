/* embedded_link: a link of one's own to a Redis on a unix socket, for the few words
 * that the supervisor of the embedded Redis has for it: does it answer, end now.
 *
 * The caller owns the struct. Events come from the loop only; an event may call any
 * function here. */
#ifndef LATCHD_DAEMON_EMBEDDED_EMBEDDED_LINK_H
#define LATCHD_DAEMON_EMBEDDED_EMBEDDED_LINK_H

#include "io/stream.h"
#include "util/buf.h"
#include "util/span.h"

#include <stdbool.h>

struct embedded_link_events {
    void *ctx;
    void (*on_open)(void *ctx);
    void (*on_line)(void *ctx, struct span line); /* without its line end */
    void (*on_end)(void *ctx); /* it broke, or could not be opened; dropped already */
};

struct embedded_link {
    struct io *io;
    const char *path; /* the caller's */
    struct embedded_link_events events;
    struct stream *stream;
    bool open;
    struct buf input;
};

void embedded_link_init(struct embedded_link *l, struct io *io, const char *path,
                        const struct embedded_link_events *events);
/* False: not even begun; no event comes. */
bool embedded_link_connect(struct embedded_link *l) __attribute__((warn_unused_result));
/* Inline commands, with their line ends. */
void embedded_link_say(struct embedded_link *l, const char *text);
/* Idempotent; no event comes. */
void embedded_link_drop(struct embedded_link *l);

#endif
