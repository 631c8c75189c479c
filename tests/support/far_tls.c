#include "support/far_priv.h"

#include <check.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <string.h>

enum { TEXT_MAX = 4096 };

int far_kinds(void)
{
    return FAR_TLS12 + 1;
}

void *far_tls_new(int fd, enum far_kind kind, const struct test_cert *cert,
                  const struct test_cert *ca)
{
    int version = kind == FAR_TLS12 ? TLS1_2_VERSION : TLS1_3_VERSION;
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl;

    ck_assert_ptr_nonnull(ctx);
    ck_assert_int_eq(SSL_CTX_set_min_proto_version(ctx, version), 1);
    ck_assert_int_eq(SSL_CTX_set_max_proto_version(ctx, version), 1);
    if (cert != NULL) {
        ck_assert_int_eq(
            SSL_CTX_use_certificate_file(ctx, cert->cert, SSL_FILETYPE_PEM), 1);
        ck_assert_int_eq(SSL_CTX_use_PrivateKey_file(ctx, cert->key, SSL_FILETYPE_PEM),
                         1);
    }
    if (ca != NULL) {
        ck_assert_int_eq(SSL_CTX_load_verify_file(ctx, ca->cert), 1);
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    }
    ssl = SSL_new(ctx);
    SSL_CTX_free(ctx);
    ck_assert_ptr_nonnull(ssl);
    ck_assert_int_eq(SSL_set_fd(ssl, fd), 1);
    SSL_set_connect_state(ssl);
    return ssl;
}

/* Whether the operation is to be tried again, once the socket has something. */
static bool is_waiting(struct far *f, int r)
{
    return SSL_get_error(f->ssl, r) == SSL_ERROR_WANT_READ;
}

static void set_blocking(const struct far *f, bool blocking)
{
    ck_assert_int_eq(fcntl(f->fd, F_SETFL, blocking ? 0 : O_NONBLOCK), 0);
}

bool far_shake_hands(struct far *f)
{
    uint64_t limit = uv_hrtime() + loop_deadline_ms() * 1000000ULL;
    int r;

    if (f->ssl == NULL) {
        return true;
    }
    set_blocking(f, false);
    ERR_clear_error();
    while ((r = SSL_do_handshake(f->ssl)) != 1 && is_waiting(f, r)) {
        ck_assert_msg(uv_hrtime() < limit, "the handshake does not end");
        (void)uv_run(&f->loop->uv, UV_RUN_ONCE);
        ERR_clear_error();
    }
    set_blocking(f, true);
    return r == 1;
}

bool far_try_handshake(struct far *f)
{
    int r;

    set_blocking(f, false);
    ERR_clear_error();
    r = SSL_do_handshake(f->ssl);
    ck_assert(r == 1 || is_waiting(f, r));
    set_blocking(f, true);
    return r == 1;
}

void far_tls_send(struct far *f, const char *text)
{
    ERR_clear_error();
    ck_assert_int_eq(SSL_write(f->ssl, text, (int)strlen(text)), (int)strlen(text));
}

ssize_t far_tls_read(struct far *f, char *out, size_t room)
{
    int r;
    ssize_t ret;

    set_blocking(f, false);
    ERR_clear_error();
    r = SSL_read(f->ssl, out, (int)room);
    if (r > 0) {
        ret = r;
    } else if (SSL_get_error(f->ssl, r) == SSL_ERROR_ZERO_RETURN) {
        ret = 0;
    } else {
        ret = is_waiting(f, r) ? -1 : -2;
    }
    set_blocking(f, true);
    return ret;
}

void far_tls_expect(struct far *f, const char *text)
{
    char got[TEXT_MAX] = "";
    size_t have = 0;

    while (have < strlen(text)) {
        ssize_t n = far_tls_read(f, got + have, strlen(text) - have);

        if (n == -1) {
            struct pollfd p = { .fd = f->fd, .events = POLLIN };

            ck_assert_int_eq(poll(&p, 1, (int)loop_deadline_ms()), 1);
            continue;
        }
        ck_assert_msg(n > 0, "expected \"%s\", got \"%s\" and the end", text, got);
        have += (size_t)n;
    }
    ck_assert_str_eq(got, text);
}

void far_tls_say_bye(struct far *f)
{
    ERR_clear_error();
    if ((SSL_get_shutdown(f->ssl) & SSL_SENT_SHUTDOWN) == 0) {
        (void)SSL_shutdown(f->ssl); /* again, it would read */
    }
}

void far_tls_free(struct far *f)
{
    SSL_free(f->ssl);
    f->ssl = NULL;
}
