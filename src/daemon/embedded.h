/* embedded: a private Redis for the default `redis embedded`, on a unix socket in the
 * state directory.
 *
 *   IDLE -> STARTING -> UP -> (died) BACKOFF -> STARTING ...
 *   any -> STOPPING -> STOPPED
 *
 * A Redis that outlived an earlier latchd (kill -9) still has the directory's lock; it
 * is used as it is, through its socket. One control link tells when it answers and,
 * for a left-over that is not our child, when it ends. */
#ifndef LATCHD_DAEMON_EMBEDDED_H
#define LATCHD_DAEMON_EMBEDDED_H

#include "io/stream.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

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

/* state_dir: the directory of the embedded Redis, with records of the last run.
 * `latchd.lock` is locked while a latchd uses the directory, `redis.lock` while a
 * Redis does: a child inherits that lock, so that a child which outlived its latchd is
 * detected. `boot` tells a power cut from a crash: after a crash the kernel still had
 * what Redis wrote; after a power cut the last seconds may be lost. */

struct state_dir {
    char *path;    /* absolute */
    char *socket;  /* path of Redis's socket in it */
    char *boot_id; /* ID of this boot; empty: not known */
    int lock_fd;
};

/* Creates the directory (0700) if needed, and locks it. boot_id_path NULL: the
 * kernel's file. */
bool state_dir_open(struct state_dir *dir, const char *path, const char *boot_id_path,
                    char *reterr, size_t room) __attribute__((warn_unused_result));
void state_dir_close(struct state_dir *dir);

/* Opens and locks `redis.lock`, for a Redis to inherit. -1: a Redis holds it (errno
 * EWOULDBLOCK), or it cannot be opened. */
int state_dir_lock_redis(const struct state_dir *dir);

/* Whether the machine went down while a Redis ran here that may have lost writes it
 * had confirmed. */
bool state_dir_lost_power(const struct state_dir *dir);
/* Records that a Redis runs; `durable`: a power cut loses nothing. 0 or an errno. */
int state_dir_mark_running(const struct state_dir *dir, bool durable);
/* Records that Redis ended gracefully, with everything on disk. */
int state_dir_mark_clean(const struct state_dir *dir);

/* redis_child: a redis-server (or valkey-server) child process, and its output. The
 * child gets SIGTERM when this process dies, is in a process group of its own so that
 * Ctrl-C reaches only latchd, and inherits the lock on the state directory. The caller
 * handles SIGCHLD. */

/* Finds the program on the PATH, to be freed by the caller. NULL: there is none. */
char *redis_child_find(void);

#endif
