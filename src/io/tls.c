#include "io/tls.h"

#include "io/tls_priv.h"
#include "util/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
