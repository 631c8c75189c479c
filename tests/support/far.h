/* far: the far end of a stream under test: a raw blocking socket of the same process,
 * plain or with TLS on it.
 *
 * While a handshake goes on the loop is run; otherwise only what the kernel holds
 * already is waited for, as with the raw sockets of support/loop.h. */
#ifndef LATCHD_TESTS_FAR_H
#define LATCHD_TESTS_FAR_H

#include "support/certs.h"
#include "support/loop.h"

enum far_kind {
    FAR_TCP,
    FAR_UNIX,
    FAR_TLS13, /* and later: only if this build has TLS, see far_kinds() */
    FAR_TLS12,
};

struct far {
    int fd;
    void *ssl; /* NULL: plain */
    struct test_loop *loop;
};

/* How many of the kinds there are in this build. */
int far_kinds(void);

/* Takes over a connected socket. TLS: nothing is sent yet. `cert`: what it shows if it
 * is asked, may be NULL. `ca`: the one it believes, NULL: any. */
void far_init(struct far *f, struct test_loop *loop, int fd, enum far_kind kind,
              const struct test_cert *cert, const struct test_cert *ca);
/* To the end, with the loop running; false: the other side or we refused. */
bool far_shake_hands(struct far *f);

/* One step of it, without the loop; true: done. */
bool far_try_handshake(struct far *f);

void far_send(struct far *f, const char *text);
/* Waits for exactly this. */
void far_expect(struct far *f, const char *text);
/* Reads what there is: 0 at the end, which with TLS must have been announced, -1:
 * nothing yet, -2: broken. */
ssize_t far_read(struct far *f, char *out, size_t room);
/* We say no more. */
void far_half_close(struct far *f);
void far_close(struct far *f);
/* Closes without a word; a reset if something was not read. */
void far_drop(struct far *f);

#endif
