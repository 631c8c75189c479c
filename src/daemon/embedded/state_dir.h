/* state_dir: the directory of the embedded Redis, and what it remembers of the last
 * run.
 *
 * `latchd.lock` is locked while a latchd uses the directory, `redis.lock` while a Redis
 * does: the child inherits that lock, so that a child which outlived its latchd is
 * known. `boot` tells a power cut from a crash: after a crash the kernel still had what
 * Redis wrote; after a power cut the last seconds may be gone. */
#ifndef LATCHD_DAEMON_EMBEDDED_STATE_DIR_H
#define LATCHD_DAEMON_EMBEDDED_STATE_DIR_H

#include <stdbool.h>
#include <stddef.h>

struct state_dir {
    char *path;    /* absolute */
    char *socket;  /* of the Redis, in it */
    char *boot_id; /* of this boot; empty: not known */
    int lock_fd;
};

/* Makes it (0700) where needed, and locks it. `boot_id_path`: NULL: the kernel's. */
bool state_dir_open(struct state_dir *dir, const char *path, const char *boot_id_path,
                    char *reterr, size_t room) __attribute__((warn_unused_result));
void state_dir_close(struct state_dir *dir);

/* The locked `redis.lock`, to be inherited by a Redis; -1: a Redis has it (errno
 * EWOULDBLOCK), or it cannot be opened. */
int state_dir_lock_redis(const struct state_dir *dir);

/* True if the machine went down while a Redis ran here that may have lost answers. */
bool state_dir_lost_power(const struct state_dir *dir);
/* From now on a Redis runs; `durable`: it loses nothing at a power cut. 0 or errno. */
int state_dir_mark_running(const struct state_dir *dir, bool durable);
/* The Redis ended in order, all is on the disk. */
int state_dir_mark_clean(const struct state_dir *dir);

#endif
