/* The far end without TLS. What is with TLS is in far_tls.c, or nowhere. */
#include "support/far.h"

#include "support/far_priv.h"

#include <check.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void far_init(struct far *f, struct test_loop *loop, int fd, enum far_kind kind,
              const struct test_cert *cert, const struct test_cert *ca)
{
    *f = (struct far){ .fd = fd, .loop = loop };
    if (kind >= FAR_TLS13) {
        f->ssl = far_tls_new(fd, kind, cert, ca);
    }
}

void far_send(struct far *f, const char *text)
{
    if (f->ssl != NULL) {
        far_tls_send(f, text);
    } else {
        raw_send(f->fd, text);
    }
}

void far_expect(struct far *f, const char *text)
{
    if (f->ssl != NULL) {
        far_tls_expect(f, text);
    } else {
        raw_expect(f->fd, text);
    }
}

ssize_t far_read(struct far *f, char *out, size_t room)
{
    return f->ssl != NULL ? far_tls_read(f, out, room)
                          : recv(f->fd, out, room, MSG_DONTWAIT);
}

void far_half_close(struct far *f)
{
    if (f->ssl != NULL) {
        far_tls_say_bye(f);
    }
    ck_assert_int_eq(shutdown(f->fd, SHUT_WR), 0);
}

void far_close(struct far *f)
{
    if (f->ssl != NULL) {
        far_tls_say_bye(f);
    }
    far_drop(f);
}

void far_drop(struct far *f)
{
    if (f->ssl != NULL) {
        far_tls_free(f);
    }
    (void)close(f->fd);
    f->fd = -1;
}
