/* redis_child: a redis-server (or valkey-server) process of ours, and what it prints.
 *
 * The child gets SIGTERM when this process dies, stands in a process group of its own
 * so that Ctrl-C reaches only us, and inherits the lock on the state directory. Who
 * waits for its end (SIGCHLD) is the caller. */
#ifndef LATCHD_DAEMON_EMBEDDED_REDIS_CHILD_H
#define LATCHD_DAEMON_EMBEDDED_REDIS_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <uv.h>

/* The program, to be freed; NULL: there is none on the PATH. */
char *redis_child_find(void);
/* What people call it: Redis, or Valkey. */
const char *redis_child_product(const char *program);

struct redis_child;

struct redis_child_setup {
    const char *program;
    const char *dir;    /* for its append-only file */
    const char *socket; /* path, shorter than a sun_path */
    const char *fsync;  /* a word of appendfsync */
    int lock_fd;        /* stays the caller's */
};

/* 0 or a UV_E* code. */
int redis_child_spawn(uv_loop_t *loop, const struct redis_child_setup *setup,
                      struct redis_child **ret) __attribute__((warn_unused_result));
pid_t redis_child_pid(const struct redis_child *c);
/* The process has been waited for: logs its last lines, if wanted, and frees. */
void redis_child_close(struct redis_child *c, bool log_tail);

#endif
