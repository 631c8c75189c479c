/* daemon: the real latchd, started the way systemd starts it.
 *
 * The test binds the sockets (127.0.0.1 on a port of the kernel's choice, and a unix
 * socket) and keeps them open, so that a daemon that was killed comes back at the same
 * address. Readiness is READY=1 on a notification socket. The child dies with the test.
 *
 * Nothing here returns an error: what goes wrong fails the test. $LATCHD is the binary.
 */
#ifndef LATCHD_TESTS_DAEMON_H
#define LATCHD_TESTS_DAEMON_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>

struct test_daemon;

/* Longer than a busy machine needs for anything, and shorter than the default lease. */
enum { TEST_PATIENCE_MS = 10000 };

/* Milliseconds of a clock that only moves forward. */
uint64_t test_now_ms(void);
/* A test waits with AWAIT(), and looks with STAYS(). CONTRIBUTING has the rule. */
void test_sleep_ms(uint64_t ms);

/* Waits until the condition is true. It may take `own_ms` by itself, as a lease does,
 * and the patience on top, which only a hang outlasts. */
#define AWAIT(condition) AWAIT_FOR(0, condition)
#define AWAIT_FOR(own_ms, condition)                                                   \
    for (uint64_t until_ = test_now_ms() + (own_ms) + TEST_PATIENCE_MS; !(condition);  \
         test_await_more(until_, #condition, __FILE__, __LINE__)) {                    \
    }
void test_await_more(uint64_t until, const char *condition, const char *file, int line);

/* The condition is true at each look for so long, and at one after it: for what must
 * not happen, when no state tells that it did not. A machine that stands still only
 * makes it look less. */
#define STAYS(ms, condition)                                                           \
    do {                                                                               \
        for (uint64_t until_ = test_now_ms() + (ms); test_now_ms() < until_;           \
             test_sleep_ms(10)) {                                                      \
            ck_assert(condition);                                                      \
        }                                                                              \
        ck_assert(condition);                                                          \
    } while (0)

/* `redis_socket`: path of the Redis to use, NULL: the arguments say. Then more
 * arguments of the command line, ended by NULL. Returns when the daemon is ready. */
struct test_daemon *daemon_start(const char *redis_socket, ...)
    __attribute__((sentinel));
/* The same, but does not wait for readiness. */
struct test_daemon *daemon_spawn(const char *redis_socket, ...)
    __attribute__((sentinel));
void daemon_await_ready(struct test_daemon *d);
bool daemon_is_ready(struct test_daemon *d);

/* SIGTERM; it must end with 0, which under sanitizers also means: without a leak. */
void daemon_stop(struct test_daemon *d);
/* For a look at it in between: the signal, and the end of it. */
void daemon_terminate(struct test_daemon *d);
void daemon_await_end(struct test_daemon *d);

void daemon_kill(struct test_daemon *d);
/* After daemon_kill() or daemon_await_end(): again, same sockets, same arguments. */
void daemon_restart(struct test_daemon *d);
void daemon_pause(struct test_daemon *d);
void daemon_resume(struct test_daemon *d);
void daemon_signal(struct test_daemon *d, int signal);
/* Frees it without a look at how it ended; for a daemon that is not running. */
void daemon_free(struct test_daemon *d);

int daemon_pid(const struct test_daemon *d);
int daemon_port(const struct test_daemon *d);
const char *daemon_unix_path(const struct test_daemon *d);
/* Waits until its log holds that text. */
void daemon_await_log(struct test_daemon *d, const char *text);
bool daemon_logged(const struct test_daemon *d, const char *text);
/* Its use of memory, in KiB, and of file descriptors. */
long daemon_memory_kib(const struct test_daemon *d);
int daemon_open_fds(const struct test_daemon *d);

#endif
