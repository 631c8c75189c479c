/* tls_session: TLS of one connection, without I/O: encrypted bytes in, text out, and
 * the reverse. It knows no socket. Used by io/, and by latchctl/, whose connections
 * have no event loop. */
#ifndef LATCHD_IO_TLS_SESSION_H
#define LATCHD_IO_TLS_SESSION_H

#include "io/tls.h"
#include "util/buf.h"
#include "util/span.h"

enum {
    /* What one call may decrypt beyond its input: incomplete records of earlier reads
     * (two of at most 16 KiB and a bit). */
    TLS_RECORDS_LEFT = 2 * 18 * 1024,
};

enum tls_state {
    TLS_SHAKING_HANDS,
    TLS_OPEN,
    TLS_ENDED,  /* the peer sends no more; it may still read */
    TLS_BROKEN, /* see tls_session_error() */
};

struct tls_session;

/* Creates a session. `host`: of a client, the server whose certificate is demanded,
 * unless trust_anybody is set. */
struct tls_session *tls_session_new(struct tls *tls, const char *host);
void tls_session_free(struct tls_session *t); /* accepts NULL */

/* Takes all of `in` (a client begins with an empty one), appends what must be sent to
 * the peer to `out`, and puts the decrypted text into `text`, which must have room for
 * `in` and TLS_RECORDS_LEFT. */
enum tls_state tls_session_input(struct tls_session *t, struct span in, char *text,
                                 size_t room, size_t *ret_len, struct buf *out);
/* Appends the text, encrypted, to `out`. The session must be open. False: it is
 * broken. */
bool tls_session_output(struct tls_session *t, struct span text, struct buf *out)
    __attribute__((warn_unused_result));
/* Appends the closing message to `out`. */
void tls_session_close(struct tls_session *t, struct buf *out);

/* Why the session is broken. Must be called at once after the failure. */
void tls_session_error(const struct tls_session *t, char *ret, size_t room);
/* The TLS version, "TLSv1.3". */
const char *tls_session_version(const struct tls_session *t);
/* The common name of the peer's verified certificate. False: there is none, or it is
 * no text that fits. */
bool tls_session_peer(const struct tls_session *t, char *ret, size_t room);

#endif
