/* tls: what new TLS connections are made with: certificate, key, and whose certificates
 * are believed. Read once from files; a changed file counts from the next tls_new() on.
 *
 * TLS 1.2 with forward secrecy and authenticated ciphers, and 1.3; no renegotiation, no
 * compression, no early data. Counted references: connections keep what they were made
 * with. A build without OpenSSL has all of this, and refuses every tls_new(). */
#ifndef LATCHD_IO_TLS_H
#define LATCHD_IO_TLS_H

#include "util/buf.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tls;
struct tls_session;

enum {
    /* A peer that has not finished its handshake in this time is closed. */
    TLS_HANDSHAKE_MS = 10000,
    /* The time of a loop turn that handshakes may take; the others wait for the next
     * turn. */
    TLS_HANDSHAKES_TURN_US = 5000,
    /* Bytes of certificates that a peer may present. */
    TLS_PEER_CERTS_MAX = 64 * 1024,
    /* Bytes of TLS's own messages (new keys) to a peer that reads nothing. */
    TLS_CHATTER_MAX = 16 * 1024,
};

/* Whether a client must show a certificate signed by a trusted authority. */
enum tls_auth { TLS_AUTH_NO, TLS_AUTH_YES, TLS_AUTH_OPTIONAL };

/* How error texts name the files below. */
struct tls_names {
    const char *cert_file;
    const char *key_file;
    const char *ca_cert_file;
    const char *ca_cert_dir;
};

/* Paths of PEM files; empty: none. The fields are named like the configuration keys. */
struct tls_files {
    const struct tls_names *names; /* NULL: the fields' own names */
    const char *cert_file;         /* the certificate and its chain */
    const char *key_file;          /* empty: the key is in cert_file */
    const char *ca_cert_file;
    const char *ca_cert_dir;
    enum tls_auth auth_clients;
    bool trust_anybody; /* clients: accept any certificate of the server */
};

/* Whether this build has TLS at all. */
bool tls_is_built(void);

/* Loads the server's side. NULL: reterr says in one line which file is wrong, and why.
 */
struct tls *tls_new(const struct tls_files *files, char *reterr, size_t room);
/* Loads the client's side. Servers must show a certificate for their name, signed by
 * an authority in the files, or without these in the system's store. With cert_file
 * the client presents one as well; auth_clients is ignored. */
struct tls *tls_new_client(const struct tls_files *files, char *reterr, size_t room);
struct tls *tls_ref(struct tls *tls);
void tls_unref(struct tls *tls); /* accepts NULL */

/* Seconds until the certificate expires; negative: since it expired. */
int64_t tls_valid_s(const struct tls *tls);

/* Tls session: TLS of one connection, without I/O: encrypted bytes in, text out, and
 * the reverse. It knows no socket. Used by io/, and by latchctl/, whose connections
 * have no event loop. */

enum {
    /* The bytes that one call may decrypt beyond its input: incomplete records of
     * earlier reads (two of at most 16 KiB and a bit). */
    TLS_RECORDS_LEFT = 2 * 18 * 1024,
};

enum tls_state {
    TLS_SHAKING_HANDS,
    TLS_OPEN,
    TLS_ENDED,  /* the peer sends no more; it may still read */
    TLS_BROKEN, /* see tls_session_error() */
};

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
