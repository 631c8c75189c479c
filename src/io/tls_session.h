/* tls_session: one connection's TLS, as a calculator: bytes of the peer in, text out,
 * and the other way round. It knows no socket. For io/, and for latchctl/, whose
 * connections have no event loop. */
#ifndef LATCHD_IO_TLS_SESSION_H
#define LATCHD_IO_TLS_SESSION_H

#include "io/tls.h"
#include "util/buf.h"
#include "util/span.h"

enum {
    /* What is decrypted at once: of one read, and of the records that were incomplete
     * before it (two of at most 16 KiB and a bit). */
    TLS_RECORDS_LEFT = 2 * 18 * 1024,
};

enum tls_state {
    TLS_SHAKING_HANDS,
    TLS_OPEN,
    TLS_ENDED,  /* the peer says no more; it may still be listening */
    TLS_BROKEN, /* see tls_session_error() */
};

struct tls_session;

/* `host`: whom a client talks to, and whose certificate it wants to see, unless it
 * trusts anybody. */
struct tls_session *tls_session_new(struct tls *tls, const char *host);
void tls_session_free(struct tls_session *t); /* accepts NULL */

/* Takes in all of `in` (a client begins with nothing), appends what is to be sent to
 * the peer to `out`, and puts what the peer said into `text`, which must have room for
 * `in` and TLS_RECORDS_LEFT. */
enum tls_state tls_session_input(struct tls_session *t, struct span in, char *text,
                                 size_t room, size_t *ret_len, struct buf *out);
/* Appends the text, encrypted, to `out`. Only once it is open. False: it is broken. */
bool tls_session_output(struct tls_session *t, struct span text, struct buf *out)
    __attribute__((warn_unused_result));
/* Says that we say no more. */
void tls_session_close(struct tls_session *t, struct buf *out);

/* Why it is broken; to be asked at once. */
void tls_session_error(const struct tls_session *t, char *ret, size_t room);
/* "TLSv1.3". */
const char *tls_session_version(const struct tls_session *t);
/* The common name of the peer's verified certificate. False: there is none, or it is
 * not a text that fits. */
bool tls_session_peer(const struct tls_session *t, char *ret, size_t room);

#endif
