/* accepted: one stream that a listener accepted, and its far end, for tests of streams.
 */
#ifndef LATCHD_TESTS_UNIT_ACCEPTED_H
#define LATCHD_TESTS_UNIT_ACCEPTED_H

#include "support/far.h"

/* Of the one fixture: each test is a process of its own. */
extern struct test_loop loop;
extern struct stream_record rec;
extern char path[96]; /* of the unix socket */
/* TLS: one certificate, which is its own authority. */
extern struct test_cert server_cert;
extern struct tls *server_tls; /* NULL: plain; a test may put another one here */

/* Once, before the first test: what OpenSSL does the first time is slow under valgrind,
 * and each test would do it for itself. */
void accepted_warm_up(void);
void accepted_setup(void);
void accepted_teardown(void);

/* Listens on 127.0.0.1; the port. */
int accepted_port(void);
/* A connection whose stream is in `rec`; TLS: before the handshake. */
void accepted_raw(struct far *f, enum far_kind kind, const struct test_cert *cert,
                  const struct test_cert *ca);
/* The same, after the handshake. */
void accepted_far(struct far *f, enum far_kind kind);

/* Waits until the stream has read so much. */
void wait_for_input(size_t len);
/* Sends over the stream. */
void send_text(const char *text);

#endif
