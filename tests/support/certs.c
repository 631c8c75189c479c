#include "support/certs.h"

#include "support/scratch.h"

#include <check.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>

static void add_extension(X509 *x, int nid, const char *value)
{
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

    ck_assert_ptr_nonnull(e);
    ck_assert_int_eq(X509_add_ext(x, e, -1), 1);
    X509_EXTENSION_free(e);
}

static X509 *new_cert(EVP_PKEY *key, const char *name, long valid_s)
{
    static long serial = 0;
    X509 *x = X509_new();
    X509_NAME *subject;

    ck_assert_ptr_nonnull(x);
    subject = X509_get_subject_name(x);
    ck_assert_int_eq(X509_set_version(x, 2), 1);
    ck_assert_int_eq(ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial), 1);
    ck_assert_ptr_nonnull(X509_gmtime_adj(X509_getm_notBefore(x), -2L * CERT_DAY_S));
    ck_assert_ptr_nonnull(X509_gmtime_adj(X509_getm_notAfter(x), valid_s));
    ck_assert_int_eq(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                                (const unsigned char *)name, -1, -1, 0),
                     1);
    ck_assert_int_eq(X509_set_pubkey(x, key), 1);
    return x;
}

static FILE *create(const char *path)
{
    FILE *file = fopen(path, "we");

    ck_assert_ptr_nonnull(file);
    return file;
}

static void write_files(const struct test_cert *c)
{
    FILE *file = create(c->cert);

    ck_assert_int_eq(PEM_write_X509(file, c->x509), 1);
    ck_assert_int_eq(fclose(file), 0);
    file = create(c->key);
    ck_assert_int_eq(PEM_write_PrivateKey(file, c->pkey, NULL, NULL, 0, NULL, NULL), 1);
    ck_assert_int_eq(fclose(file), 0);
}

void cert_make(struct test_cert *ret, const char *name, long valid_s,
               const struct test_cert *ca)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x;

    ck_assert_ptr_nonnull(key);
    x = new_cert(key, name, valid_s);
    if (ca == NULL) {
        add_extension(x, NID_basic_constraints, "critical,CA:TRUE");
        ck_assert_int_eq(X509_set_issuer_name(x, X509_get_subject_name(x)), 1);
    } else {
        add_extension(x, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
        ck_assert_int_eq(X509_set_issuer_name(x, X509_get_subject_name(ca->x509)), 1);
    }
    ck_assert_int_gt(X509_sign(x, ca == NULL ? key : ca->pkey, EVP_sha256()), 0);
    *ret = (struct test_cert){ .x509 = x, .pkey = key };
    scratch_path("cert", ".pem", ret->cert, sizeof(ret->cert));
    scratch_path("key", ".pem", ret->key, sizeof(ret->key));
    write_files(ret);
}

void cert_free(struct test_cert *c)
{
    X509_free(c->x509);
    EVP_PKEY_free(c->pkey);
    *c = (struct test_cert){ 0 };
}

struct tls *cert_server(const struct test_cert *cert, const struct test_cert *ca)
{
    char err[512] = "";
    struct tls_files files = {
        .cert_file = cert->cert,
        .key_file = cert->key,
        .ca_cert_file = ca == NULL ? "" : ca->cert,
        .ca_cert_dir = "",
        .auth_clients = ca == NULL ? TLS_AUTH_NO : TLS_AUTH_YES,
    };
    struct tls *tls = tls_new(&files, err, sizeof(err));

    ck_assert_msg(tls != NULL, "%s", err);
    return tls;
}
