/* certs: certificates for tests of TLS, made on the spot as PEM files in the scratch
 * directory. */
#ifndef LATCHD_TESTS_CERTS_H
#define LATCHD_TESTS_CERTS_H

#include "io/tls.h"

struct test_cert {
    char cert[128]; /* path of the certificate */
    char key[128];
    void *x509; /* OpenSSL's */
    void *pkey;
};

enum { CERT_DAY_S = 86400 };

/* A certificate for that common name, valid for so long from now (negative: not any
 * more), signed by `ca`; NULL: by itself, and then it may sign others. */
void cert_make(struct test_cert *ret, const char *name, long valid_s,
               const struct test_cert *ca);
void cert_free(struct test_cert *c);

/* A server's TLS; with `ca` clients must show a certificate of it. */
struct tls *cert_server(const struct test_cert *cert, const struct test_cert *ca);

#endif
