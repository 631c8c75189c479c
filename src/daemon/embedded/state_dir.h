/* state_dir: the directory of the embedded Redis, with records of the last run.
 * `latchd.lock` is locked while a latchd uses the directory, `redis.lock` while a
 * Redis does: a child inherits that lock, so that a child which outlived its latchd is
 * detected. `boot` tells a power cut from a crash: after a crash the kernel still had
 * what Redis wrote; after a power cut the last seconds may be lost. */
#ifndef LATCHD_DAEMON_EMBEDDED_STATE_DIR_H
#define LATCHD_DAEMON_EMBEDDED_STATE_DIR_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
