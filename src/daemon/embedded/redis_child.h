/* redis_child: a redis-server (or valkey-server) child process, and its output. The
 * child gets SIGTERM when this process dies, is in a process group of its own so that
 * Ctrl-C reaches only latchd, and inherits the lock on the state directory. The caller
 * handles SIGCHLD. */
#ifndef LATCHD_DAEMON_EMBEDDED_REDIS_CHILD_H
#define LATCHD_DAEMON_EMBEDDED_REDIS_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <uv.h>

/* Finds the program on the PATH, to be freed by the caller. NULL: there is none. */
char *redis_child_find(void);
/* The product's name: Redis or Valkey. */
const char *redis_child_product(const char *program);

struct redis_child;

struct redis_child_setup {
    const char *program;
    const char *dir;    /* for its append-only file */
    const char *socket; /* path, shorter than a sun_path */
    const char *fsync;  /* a value of appendfsync */
    int lock_fd;        /* stays open in the caller */
};

/* Starts the process. 0 or a UV_E* code. */
int redis_child_spawn(uv_loop_t *loop, const struct redis_child_setup *setup,
                      struct redis_child **ret) __attribute__((warn_unused_result));
pid_t redis_child_pid(const struct redis_child *c);
/* Frees the struct, after the process was waited for; log_tail: logs its last lines. */
void redis_child_close(struct redis_child *c, bool log_tail);

#endif
