/* The far end in a build without TLS: nobody calls most of this. */
#include "support/far_priv.h"

#include <check.h>

int far_kinds(void)
{
    return FAR_TLS13;
}

void *far_tls_new(int fd, enum far_kind kind, const struct test_cert *cert,
                  const struct test_cert *ca)
{
    ck_abort_msg("this build has no TLS");
}

bool far_shake_hands(struct far *f)
{
    return true;
}

bool far_try_handshake(struct far *f)
{
    return true;
}

void far_tls_send(struct far *f, const char *text)
{
}

void far_tls_expect(struct far *f, const char *text)
{
}

ssize_t far_tls_read(struct far *f, char *out, size_t room)
{
    return -1;
}

void far_tls_say_bye(struct far *f)
{
}

void far_tls_free(struct far *f)
{
}

void cert_make(struct test_cert *ret, const char *name, long valid_s,
               const struct test_cert *ca)
{
}

void cert_free(struct test_cert *c)
{
}

struct tls *cert_server(const struct test_cert *cert, const struct test_cert *ca)
{
    return NULL;
}
