/* embedded: a private Redis for the default `redis embedded`, on a unix socket in the
 * state directory.
 *
 *   IDLE -> STARTING -> UP -> (died) BACKOFF -> STARTING ...
 *   any -> STOPPING -> STOPPED
 *
 * A Redis that outlived an earlier latchd (kill -9) still has the directory's lock; it
 * is used as it is, through its socket. One control link tells when it answers and,
 * for a left-over that is not our child, when it ends. */
#ifndef LATCHD_DAEMON_EMBEDDED_EMBEDDED_H
#define LATCHD_DAEMON_EMBEDDED_EMBEDDED_H

#include "io/stream.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct embedded;

struct embedded_setup {
    struct io *io;
    const char *dir;          /* state directory */
    const char *boot_id_path; /* NULL: the kernel's */
    bool fsync_always;
    uint64_t hold_off_ms; /* time without grants after a power cut */
    void *ctx;
    void (*on_up)(void *ctx);      /* called each time Redis has come up and answers */
    void (*on_stopped)(void *ctx); /* called once after embedded_stop() */
};

/* Locks the directory; embedded_stop() must follow in the end. NULL: reterr says why.
 */
struct embedded *embedded_new(const struct embedded_setup *setup, char *reterr,
                              size_t room);
const char *embedded_socket(const struct embedded *e);
/* Whether the machine went down while Redis might not have had everything on disk. */
bool embedded_lost_power(const struct embedded *e);
/* Whether the time without grants after a power cut is over. */
bool embedded_may_grant(const struct embedded *e);
void embedded_start(struct embedded *e);
/* Stops Redis gracefully, by SIGTERM; called again, kills it. */
void embedded_stop(struct embedded *e);
/* Frees everything, after the loop has ended. */
void embedded_free(struct embedded *e);

#endif
