/* tls: what new TLS connections are made with: certificate, key, and whose certificates
 * are believed. Read once from files; a changed file counts from the next tls_new() on.
 *
 * TLS 1.2 with forward secrecy and authenticated ciphers, and 1.3; no renegotiation, no
 * compression, no early data. Counted references: connections keep what they were made
 * with. A build without OpenSSL has all of this, and refuses every tls_new(). */
#ifndef LATCHD_IO_TLS_H
#define LATCHD_IO_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* A peer that has not finished its handshake by then is closed. */
    TLS_HANDSHAKE_MS = 10000,
    /* What handshakes may take of a turn of the loop; the others wait for the next. */
    TLS_HANDSHAKES_TURN_US = 5000,
    /* Bytes of certificates that a peer may present. */
    TLS_PEER_CERTS_MAX = 64 * 1024,
    /* What TLS itself has to say (new keys) to a peer that reads nothing. */
    TLS_CHATTER_MAX = 16 * 1024,
};

/* Whether a client must show a certificate of a known authority. */
enum tls_auth { TLS_AUTH_NO, TLS_AUTH_YES, TLS_AUTH_OPTIONAL };

/* What messages call the files below. */
struct tls_names {
    const char *cert_file;
    const char *key_file;
    const char *ca_cert_file;
    const char *ca_cert_dir;
};

/* Paths of PEM files; empty: none. They are called here as in the configuration. */
struct tls_files {
    const struct tls_names *names; /* NULL: just so */
    const char *cert_file;         /* with the chain behind it */
    const char *key_file;          /* empty: it is in cert_file */
    const char *ca_cert_file;
    const char *ca_cert_dir;
    enum tls_auth auth_clients;
    bool trust_anybody; /* clients: whatever certificate the server shows is right */
};

struct tls;

/* Whether this build has TLS at all. */
bool tls_is_built(void);

/* The server's side. NULL with one line for people in reterr: which file, and why. */
struct tls *tls_new(const struct tls_files *files, char *reterr, size_t room);
/* The client's side: servers must show a certificate for their name, of the authorities
 * of the files, or without those of the system's. With cert_file we show one as well;
 * auth_clients means nothing. */
struct tls *tls_new_client(const struct tls_files *files, char *reterr, size_t room);
struct tls *tls_ref(struct tls *tls);
void tls_unref(struct tls *tls); /* accepts NULL */

/* Seconds until the certificate is not valid any more; negative: since when it is not.
 */
int64_t tls_valid_s(const struct tls *tls);

#endif
