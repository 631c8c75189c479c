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

struct tls;

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

#endif
