/* client: a small blocking RESP client for tests. Every read has a deadline, every
 * answer is expected by value, and what is wrong fails the test with the command that
 * was sent.
 *
 * Commands are given as printf formats and split into words at spaces; for names with
 * spaces or other bytes there are client_send_args() and client_send_raw(). */
#ifndef LATCHD_TESTS_CLIENT_H
#define LATCHD_TESTS_CLIENT_H

#include "support/daemon.h"
#include "support/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client;

struct client *client_open(const struct test_daemon *d);      /* TCP */
struct client *client_open_unix(const struct test_daemon *d); /* unix socket */
struct client *client_open_port(int port);
void client_set_deadline(struct client *c, uint64_t ms); /* 10 s unless told */
int client_fd(const struct client *c);

/* FIN. All of these free the client. NULL is fine. */
void client_close(struct client *c);
void client_abort(struct client *c); /* RST (TCP), or a close with data unread */
/* End of our side only; the client stays. */
void client_half_close(struct client *c);

void client_send(struct client *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void client_send_args(struct client *c, size_t count, const char *const *args,
                      const size_t *lens); /* lens NULL: strings */
void client_send_raw(struct client *c, const void *data, size_t len);
/* The same, but a peer that closed is no failure: false. */
bool client_try_send_raw(struct client *c, const void *data, size_t len);

/* The next reply; the caller calls value_fini(). */
struct value client_read(struct client *c);
int64_t client_read_int(struct client *c);
/* The same, but without a reply in that time, or at the end of the connection: false.
 */
bool client_try_read(struct client *c, uint64_t ms, struct value *ret);

void expect_int(struct client *c, int64_t value);
void expect_nil(struct client *c);
void expect_error(struct client *c, const char *start); /* the text's beginning */
void expect_status(struct client *c, const char *text);
void expect_text(struct client *c, const char *text);
/* A message of SUBSCRIBE: channel, and the payload's beginning. */
void expect_message(struct client *c, const char *channel, const char *payload);
void expect_closed(struct client *c);
/* Nothing has arrived by now. Does not wait. */
void expect_silence(struct client *c);
bool client_has_reply(struct client *c); /* something has arrived; does not wait */

/* Send and expect in one. */
struct value ask(struct client *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
int64_t ask_int(struct client *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void ask_nil(struct client *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void ask_ok(struct client *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void ask_error(struct client *c, const char *start, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Asks LOCKINFO over `c` until that many wait for the name, or it is in that state. */
void await_waiting(struct client *c, const char *name, int64_t count);
void await_state(struct client *c, const char *name, const char *state);

#endif
