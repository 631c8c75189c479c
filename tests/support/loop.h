/* loop: a libuv loop for tests: waits for conditions with a deadline, and insists that
 * nothing is left open at the end. Raw blocking sockets serve as the other side. */
#ifndef LATCHD_TESTS_LOOP_H
#define LATCHD_TESTS_LOOP_H

#include "io/stream.h"

#include <stdbool.h>
#include <uv.h>

enum { LOOP_DEADLINE_MS = 5000 };

/* The same, or longer where everything is slower (CK_TIMEOUT_MULTIPLIER). */
uint64_t loop_deadline_ms(void);

struct test_loop {
    uv_loop_t uv;
    uv_timer_t waker; /* so that waiting ends */
    struct io io;
};

void loop_open(struct test_loop *l);
/* Runs until everything is closed; fails the test if something stays open. */
void loop_close(struct test_loop *l);

typedef bool loop_condition_fn(const void *arg);
void loop_until(struct test_loop *l, loop_condition_fn *is_met, const void *arg);
void loop_until_flag(struct test_loop *l, const bool *flag);
/* Some turns, for what must not happen. */
void loop_turns(struct test_loop *l, int count);

/* Sockets without libuv, on loopback. */
int raw_listen_tcp(int family, int *ret_port);
int raw_listen_unix(const char *path);
int raw_connect_tcp(int family, int port);
int raw_connect_unix(const char *path);
void raw_send(int fd, const char *text);
/* Waits for exactly this. Only what the kernel holds already: no loop runs meanwhile.
 */
void raw_expect(int fd, const char *text);

/* The events of a stream. */
struct stream_record {
    struct stream *stream;
    struct buf got;
    bool connected, ended, unread, drained;
    bool close_on_read; /* the test asks for it */
    int connect_status, end_status;
};

/* ctx: a stream_record. */
extern const struct stream_events RECORD_EVENTS;

#endif
