#include "io/tls_session.h"

#include "io/tls_priv.h"
#include "util/alloc.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

/* OpenSSL reads from `in` and writes to `out`, which are set while it is called. A
 * memory BIO would copy the bytes into buffers, and keep these. */
struct tls_session {
    SSL *ssl;
    struct tls *tls;
    struct span in;
    struct buf *out;
    bool open;
    bool broken;
};

/* The wire */

static int on_wire_read(BIO *bio, char *to, size_t room, size_t *ret)
{
    struct tls_session *t = BIO_get_data(bio);
    size_t len = t->in.len < room ? t->in.len : room;

    BIO_clear_retry_flags(bio);
    *ret = len;
    if (len == 0) {
        BIO_set_retry_read(bio);
        return 0;
    }
    memcpy(to, t->in.ptr, len);
    t->in = span_after(t->in, len);
    return 1;
}

static int on_wire_write(BIO *bio, const char *from, size_t len, size_t *ret)
{
    struct tls_session *t = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    buf_add(t->out, from, len);
    *ret = len;
    return 1;
}

static long on_wire_ctrl(BIO *bio, int command, long number, void *arg)
{
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD *tls_wire_new(void)
{
    BIO_METHOD *wire = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "latchd");

    if (wire != NULL && (BIO_meth_set_read_ex(wire, on_wire_read) != 1 ||
                         BIO_meth_set_write_ex(wire, on_wire_write) != 1 ||
                         BIO_meth_set_ctrl(wire, on_wire_ctrl) != 1)) {
        BIO_meth_free(wire);
        return NULL;
    }
    return wire;
}

/* Sessions */

/* Demands a certificate for this address or name. */
static void expect_host(SSL *ssl, const char *host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

    if (X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1) {
        return;
    }
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (SSL_set1_host(ssl, host) != 1 || SSL_set_tlsext_host_name(ssl, host) != 1) {
        abort(); /* no memory, see util/alloc.h */
    }
}

struct tls_session *tls_session_new(struct tls *tls, const char *host)
{
    struct tls_session *t = xcalloc(1, sizeof(*t));
    BIO *bio = BIO_new(tls->wire);

    t->tls = tls_ref(tls);
    t->ssl = SSL_new(tls->ctx);
    if (bio == NULL || t->ssl == NULL) {
        abort(); /* no memory, see util/alloc.h */
    }
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    SSL_set_bio(t->ssl, bio, bio);
    if (tls->is_client) {
        SSL_set_connect_state(t->ssl);
        expect_host(t->ssl, host);
    } else {
        SSL_set_accept_state(t->ssl);
    }
    return t;
}

void tls_session_free(struct tls_session *t)
{
    if (t != NULL) {
        SSL_free(t->ssl);
        tls_unref(t->tls);
        free(t);
    }
}

static enum tls_state set_broken(struct tls_session *t)
{
    t->broken = true;
    return TLS_BROKEN;
}

static enum tls_state shake_hands(struct tls_session *t)
{
    int r = SSL_do_handshake(t->ssl);

    if (r == 1) {
        t->open = true;
        return TLS_OPEN;
    }
    return SSL_get_error(t->ssl, r) == SSL_ERROR_WANT_READ ? TLS_SHAKING_HANDS
                                                           : set_broken(t);
}

static enum tls_state read_text(struct tls_session *t, char *text, size_t room,
                                size_t *ret_len)
{
    size_t len;

    while (*ret_len < room) {
        if (SSL_read_ex(t->ssl, text + *ret_len, room - *ret_len, &len) == 1) {
            *ret_len += len;
            continue;
        }
        switch (SSL_get_error(t->ssl, 0)) {
        case SSL_ERROR_WANT_READ:
            return TLS_OPEN;
        case SSL_ERROR_ZERO_RETURN:
            return TLS_ENDED;
        default:
            return set_broken(t);
        }
    }
    return set_broken(t); /* cannot happen: more bytes than were passed in */
}

enum tls_state tls_session_input(struct tls_session *t, struct span in, char *text,
                                 size_t room, size_t *ret_len, struct buf *out)
{
    enum tls_state state = TLS_OPEN;

    *ret_len = 0;
    if (t->broken) {
        return TLS_BROKEN;
    }
    ERR_clear_error();
    t->in = in;
    t->out = out;
    if (!t->open) {
        state = shake_hands(t);
    }
    if (state == TLS_OPEN) {
        state = read_text(t, text, room, ret_len);
    }
    t->in = SPAN_NONE;
    t->out = NULL;
    return state;
}

bool tls_session_output(struct tls_session *t, struct span text, struct buf *out)
{
    size_t len;

    if (t->broken || !t->open) {
        return false;
    }
    ERR_clear_error();
    t->out = out;
    while (text.len > 0 && SSL_write_ex(t->ssl, text.ptr, text.len, &len) == 1) {
        text = span_after(text, len);
    }
    t->out = NULL;
    t->broken = text.len > 0;
    return !t->broken;
}

void tls_session_close(struct tls_session *t, struct buf *out)
{
    if (t->open && !t->broken) {
        ERR_clear_error();
        t->out = out;
        (void)SSL_shutdown(t->ssl);
        t->out = NULL;
    }
}

/* Questions */

void tls_session_error(const struct tls_session *t, char *ret, size_t room)
{
    unsigned long error = ERR_peek_error();
    bool verified = (SSL_get_verify_mode(t->ssl) & SSL_VERIFY_PEER) != 0;
    long verdict = verified ? SSL_get_verify_result(t->ssl) : X509_V_OK;
    const char *why = ERR_reason_error_string(error);

    if (verdict != X509_V_OK) {
        (void)snprintf(ret, room, "its certificate is refused: %s",
                       X509_verify_cert_error_string(verdict));
    } else if (ERR_GET_LIB(error) == ERR_LIB_SSL &&
               (ERR_GET_REASON(error) == SSL_R_HTTP_REQUEST ||
                ERR_GET_REASON(error) == SSL_R_WRONG_VERSION_NUMBER)) {
        (void)snprintf(ret, room, "that is not TLS, or one too old");
    } else {
        (void)snprintf(ret, room, "%s", why == NULL ? "OpenSSL gives no reason" : why);
    }
    ERR_clear_error();
}

const char *tls_session_version(const struct tls_session *t)
{
    return SSL_get_version(t->ssl);
}

bool tls_session_peer(const struct tls_session *t, char *ret, size_t room)
{
    const X509 *cert = SSL_get0_peer_certificate(t->ssl);
    int len;

    if (cert == NULL || SSL_get_verify_result(t->ssl) != X509_V_OK) {
        return false;
    }
    len = X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, ret,
                                    (int)room);
    /* A name that contains a NUL, or was cut off, would be another name. */
    return len > 0 && (size_t)len < room - 1 && strlen(ret) == (size_t)len;
}
