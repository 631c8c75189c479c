/* embedded_link: the supervisor's control link to the embedded Redis, over its unix
 * socket: checks that it answers, and asks it to end. The caller owns the struct.
 * Events come from the loop only; an event may call any function here. */
#ifndef LATCHD_DAEMON_EMBEDDED_EMBEDDED_LINK_H
#define LATCHD_DAEMON_EMBEDDED_EMBEDDED_LINK_H

#include "io/stream.h"
#include "util/buf.h"
#include "util/span.h"

#include <stdbool.h>

struct embedded_link_events {
    void *ctx;
    void (*on_open)(void *ctx);
    void (*on_line)(void *ctx, struct span line); /* without the line end */
    void (*on_end)(void *ctx); /* broken, or never opened; already dropped */
};

struct embedded_link {
    struct io *io;
    const char *path; /* owned by the caller */
    struct embedded_link_events events;
    struct stream *stream;
    bool open;
    struct buf input;
};

void embedded_link_init(struct embedded_link *l, struct io *io, const char *path,
                        const struct embedded_link_events *events);
/* Begins to connect. False: failed at once, and no event follows. */
bool embedded_link_connect(struct embedded_link *l) __attribute__((warn_unused_result));
/* Sends inline commands, which include their line ends. */
void embedded_link_say(struct embedded_link *l, const char *text);
/* Closes the link; no event follows. Idempotent. */
void embedded_link_drop(struct embedded_link *l);

#endif
