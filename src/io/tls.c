#include "io/tls.h"

#include "util/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tls {
    SSL_CTX *ctx;
    BIO_METHOD *wire; /* it must outlive the sessions */
    bool is_client;
    unsigned refs;
};

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

/* NULL: no memory. */
static BIO_METHOD *tls_wire_new(void)
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

/* Forward secrecy and authenticated encryption only. TLS 1.3 has nothing else. */
static const char CIPHERS_12[] = "ECDHE+AESGCM:ECDHE+CHACHA20";
static const unsigned char SESSIONS[] = "latchd";

enum { SECONDS_PER_DAY = 86400 };

bool tls_is_built(void)
{
    return true;
}

static const struct tls_names KEYS = { "tls-cert-file", "tls-key-file",
                                       "tls-ca-cert-file", "tls-ca-cert-dir" };

/* Where an error text goes. */
struct report {
    const struct tls_names *names;
    char *text;
    size_t room;
};

static struct report report_on(const struct tls_files *files, char *reterr, size_t room)
{
    return (struct report){ files->names == NULL ? &KEYS : files->names, reterr, room };
}

static bool report_tls_error(const struct report *r, const char *key, const char *path,
                             const char *why)
{
    (void)snprintf(r->text, r->room, "%s %s: %s", key, path, why);
    ERR_clear_error();
    return false;
}

/* OpenSSL's own messages about missing files are hard to read. */
static bool can_read(const struct report *r, const char *key, const char *path,
                     bool folder)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;
    bool ok;

    if (fd < 0) {
        return report_tls_error(r, key, path, strerror(errno));
    }
    ok = fstat(fd, &st) == 0 && (folder ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode));
    (void)close(fd);
    return ok ||
           report_tls_error(r, key, path, folder ? "not a directory" : "not a file");
}

/* Nobody can type a passphrase in. */
static int no_passphrase(char *out, int room, int writing, void *ctx)
{
    if (ctx != NULL) {
        *(bool *)ctx = true;
    }
    return 0;
}

static bool load_cert(SSL_CTX *ctx, const struct tls_files *f, const struct report *r)
{
    if (f->cert_file[0] == '\0') {
        (void)snprintf(r->text, r->room, "%s is missing", r->names->cert_file);
        return false;
    }
    if (!can_read(r, r->names->cert_file, f->cert_file, false)) {
        return false;
    }
    if (SSL_CTX_use_certificate_chain_file(ctx, f->cert_file) != 1) {
        const char *why = ERR_reason_error_string(ERR_peek_error());
        bool no_pem = ERR_GET_LIB(ERR_peek_error()) == ERR_LIB_PEM;

        return report_tls_error(r, r->names->cert_file, f->cert_file,
                                no_pem || why == NULL ? "holds no certificate (PEM)"
                                                      : why);
    }
    return true;
}

static bool fail_unfit(const struct report *r, const char *key, const char *path)
{
    char why[128];

    (void)snprintf(why, sizeof(why), "does not fit the certificate of %s",
                   r->names->cert_file);
    return report_tls_error(r, key, path, why);
}

static bool load_key(SSL_CTX *ctx, const struct tls_files *f, const struct report *r)
{
    const char *key = f->key_file[0] != '\0' ? r->names->key_file : r->names->cert_file;
    const char *path = f->key_file[0] != '\0' ? f->key_file : f->cert_file;
    bool encrypted = false;

    if (!can_read(r, key, path, false)) {
        return false;
    }
    SSL_CTX_set_default_passwd_cb_userdata(ctx, &encrypted);
    if (SSL_CTX_use_PrivateKey_file(ctx, path, SSL_FILETYPE_PEM) != 1) {
        unsigned long error = ERR_peek_last_error();

        if (ERR_GET_LIB(error) == ERR_LIB_X509 &&
            ERR_GET_REASON(error) == X509_R_KEY_VALUES_MISMATCH) {
            return fail_unfit(r, key, path);
        }
        return report_tls_error(
            r, key, path,
            encrypted ? "is encrypted: a key without a passphrase is wanted"
                      : "holds no private key (PEM)");
    }
    SSL_CTX_set_default_passwd_cb_userdata(ctx, NULL);
    return SSL_CTX_check_private_key(ctx) == 1 || fail_unfit(r, key, path);
}

static bool load_authorities(SSL_CTX *ctx, const struct tls_files *f,
                             const struct report *r)
{
    STACK_OF(X509_NAME) * names;

    if (f->ca_cert_file[0] != '\0') {
        if (!can_read(r, r->names->ca_cert_file, f->ca_cert_file, false)) {
            return false;
        }
        names = SSL_load_client_CA_file(f->ca_cert_file);
        if (names == NULL || SSL_CTX_load_verify_file(ctx, f->ca_cert_file) != 1) {
            sk_X509_NAME_pop_free(names, X509_NAME_free);
            return report_tls_error(r, r->names->ca_cert_file, f->ca_cert_file,
                                    "holds no certificate (PEM)");
        }
        SSL_CTX_set_client_CA_list(
            ctx, names); /* tells clients which certificate to present */
    }
    if (f->ca_cert_dir[0] != '\0') {
        return can_read(r, r->names->ca_cert_dir, f->ca_cert_dir, true) &&
               (SSL_CTX_load_verify_dir(ctx, f->ca_cert_dir) == 1 ||
                report_tls_error(r, r->names->ca_cert_dir, f->ca_cert_dir,
                                 "cannot be used"));
    }
    return true;
}

static bool load_auth(SSL_CTX *ctx, const struct tls_files *f, const struct report *r)
{
    int mode = SSL_VERIFY_PEER;

    if (f->auth_clients == TLS_AUTH_NO) {
        return true;
    }
    if (f->ca_cert_file[0] == '\0' && f->ca_cert_dir[0] == '\0') {
        (void)snprintf(r->text, r->room,
                       "tls-auth-clients needs tls-ca-cert-file or tls-ca-cert-dir: "
                       "whose certificates count");
        return false;
    }
    mode |= f->auth_clients == TLS_AUTH_YES ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
    SSL_CTX_set_verify(ctx, mode, NULL);
    return true;
}

static bool set_rules(SSL_CTX *ctx)
{
    (void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                       SSL_OP_CIPHER_SERVER_PREFERENCE |
                                       SSL_OP_PRIORITIZE_CHACHA);
    /* An idle connection keeps no buffers. */
    (void)SSL_CTX_set_mode(ctx,
                           SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE);
    /* Sessions are resumed by tickets that clients keep, not from our memory. */
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
    (void)SSL_CTX_set_max_cert_list(ctx, TLS_PEER_CERTS_MAX);
    return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_cipher_list(ctx, CIPHERS_12) == 1 &&
           SSL_CTX_set_num_tickets(ctx, 1) == 1 &&
           SSL_CTX_set_session_id_context(ctx, SESSIONS, sizeof(SESSIONS) - 1) == 1;
}

static struct tls *make_context(const SSL_METHOD *method, const struct report *r)
{
    struct tls *tls = xcalloc(1, sizeof(*tls));

    tls->refs = 1;
    ERR_clear_error();
    tls->wire = tls_wire_new();
    tls->ctx = SSL_CTX_new(method);
    if (tls->wire == NULL || tls->ctx == NULL || !set_rules(tls->ctx)) {
        const char *why = ERR_reason_error_string(ERR_peek_error());

        (void)snprintf(r->text, r->room, "OpenSSL cannot be used: %s",
                       why == NULL ? "no reason given" : why);
        ERR_clear_error();
        tls_unref(tls);
        return NULL;
    }
    return tls;
}

struct tls *tls_new(const struct tls_files *files, char *reterr, size_t room)
{
    struct report report = report_on(files, reterr, room);
    struct tls *tls = make_context(TLS_server_method(), &report);

    if (tls != NULL &&
        !(load_cert(tls->ctx, files, &report) && load_key(tls->ctx, files, &report) &&
          load_authorities(tls->ctx, files, &report) &&
          load_auth(tls->ctx, files, &report))) {
        tls_unref(tls);
        return NULL;
    }
    return tls;
}

struct tls *tls_new_client(const struct tls_files *files, char *reterr, size_t room)
{
    struct report report = report_on(files, reterr, room);
    struct tls *tls = make_context(TLS_client_method(), &report);
    bool of_system = files->ca_cert_file[0] == '\0' && files->ca_cert_dir[0] == '\0';

    if (tls == NULL) {
        return NULL;
    }
    tls->is_client = true;
    SSL_CTX_set_verify(tls->ctx,
                       files->trust_anybody ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    if ((files->cert_file[0] != '\0' && !(load_cert(tls->ctx, files, &report) &&
                                          load_key(tls->ctx, files, &report))) ||
        !load_authorities(tls->ctx, files, &report)) {
        tls_unref(tls);
        return NULL;
    }
    if (of_system && SSL_CTX_set_default_verify_paths(tls->ctx) != 1) {
        (void)snprintf(reterr, room, "the authorities of the system cannot be read");
        tls_unref(tls);
        return NULL;
    }
    return tls;
}

struct tls *tls_ref(struct tls *tls)
{
    tls->refs++;
    return tls;
}

void tls_unref(struct tls *tls)
{
    if (tls != NULL && --tls->refs == 0) {
        SSL_CTX_free(tls->ctx);
        BIO_meth_free(tls->wire);
        free(tls);
    }
}

int64_t tls_valid_s(const struct tls *tls)
{
    const X509 *cert = SSL_CTX_get0_certificate(tls->ctx);
    int days = 0;
    int seconds = 0;

    if (cert == NULL ||
        ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(cert)) != 1) {
        return 0;
    }
    return (int64_t)days * SECONDS_PER_DAY + seconds;
}
