/* tls_priv: what tls.c and tls_session.c share: OpenSSL. */
#ifndef LATCHD_IO_TLS_PRIV_H
#define LATCHD_IO_TLS_PRIV_H

#include "io/tls.h"

#include <openssl/bio.h>
#include <openssl/ssl.h>

struct tls {
    SSL_CTX *ctx;
    BIO_METHOD *wire; /* see tls_session.c; it must outlive the sessions */
    bool is_client;
    unsigned refs;
};

/* NULL: no memory. */
BIO_METHOD *tls_wire_new(void);

#endif
