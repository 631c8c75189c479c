/* far_priv: the part of far.h that needs OpenSSL. */
#ifndef LATCHD_TESTS_FAR_PRIV_H
#define LATCHD_TESTS_FAR_PRIV_H

#include "support/far.h"

void *far_tls_new(int fd, enum far_kind kind, const struct test_cert *cert,
                  const struct test_cert *ca);
void far_tls_send(struct far *f, const char *text);
void far_tls_expect(struct far *f, const char *text);
ssize_t far_tls_read(struct far *f, char *out, size_t room);
void far_tls_say_bye(struct far *f);
void far_tls_free(struct far *f);

#endif
