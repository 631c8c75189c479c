/* Certificates: which files are taken, and who may come in with which. */
#include "support/runner.h"
#include "support/scratch.h"
#include "unit/io/accepted.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct test_cert ca;
static struct test_cert other_ca;
static struct test_cert mine;

static void setup(void)
{
    accepted_setup();
    cert_make(&ca, "the authority", CERT_DAY_S, NULL);
    cert_make(&other_ca, "another authority", CERT_DAY_S, NULL);
    cert_make(&mine, "localhost", CERT_DAY_S, &ca);
}

static void teardown(void)
{
    cert_free(&ca);
    cert_free(&other_ca);
    cert_free(&mine);
    accepted_teardown();
}

/* Files */

static void expect_refused(const struct tls_files *files, const char *why)
{
    char err[512] = "";

    ck_assert_ptr_null(tls_new(files, err, sizeof(err)));
    ck_assert_msg(strstr(err, why) != NULL, "expected \"%s\", got \"%s\"", why, err);
}

static void write_text(char *ret_path, size_t room, const char *text)
{
    FILE *file;

    scratch_path("tls", ".pem", ret_path, room);
    file = fopen(ret_path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

TEST_GROUP(.setup = setup, .teardown = teardown, .setup_once = accepted_warm_up,
           .timeout_s = 20);

START_TEST(files_that_cannot_be_used_are_named)
{
    char junk[128];
    struct tls_files good = { .cert_file = mine.cert,
                              .key_file = mine.key,
                              .ca_cert_file = "",
                              .ca_cert_dir = "" };
    struct tls_files files = good;

    write_text(junk, sizeof(junk), "nothing of the kind\n");
    files.cert_file = "";
    expect_refused(&files, "tls-cert-file is missing");
    files.cert_file = "/nonexistent/cert.pem";
    expect_refused(&files, "tls-cert-file /nonexistent/cert.pem: No such file");
    files.cert_file = "/";
    expect_refused(&files, "tls-cert-file /: not a file");
    files.cert_file = junk;
    expect_refused(&files, "holds no certificate");
    files = good;
    files.key_file = "/nonexistent/key.pem";
    expect_refused(&files, "tls-key-file /nonexistent/key.pem: No such file");
    files.key_file = junk;
    expect_refused(&files, "holds no private key");
    files.key_file = ""; /* then it is to be in the other one */
    expect_refused(&files, "tls-cert-file");
    files.key_file = ca.key;
    expect_refused(&files, "does not fit the certificate");
    files = good;
    files.auth_clients = TLS_AUTH_YES;
    expect_refused(&files, "tls-auth-clients needs tls-ca-cert-file");
    files.ca_cert_file = junk;
    expect_refused(&files, "tls-ca-cert-file");
    files.ca_cert_file = "/nonexistent/ca.pem";
    expect_refused(&files, "tls-ca-cert-file /nonexistent/ca.pem: No such file");
    files.ca_cert_file = "";
    files.ca_cert_dir = junk;
    expect_refused(&files, "not a directory");
}

START_TEST(files_are_called_as_the_caller_calls_them)
{
    static const struct tls_names NAMES = { "--cert", "--key", "--cacert", "--dir" };
    struct tls_files files = { .names = &NAMES,
                               .cert_file = mine.cert,
                               .key_file = ca.key,
                               .ca_cert_file = "",
                               .ca_cert_dir = "" };
    char err[512] = "";

    ck_assert_ptr_null(tls_new_client(&files, err, sizeof(err)));
    ck_assert_int_eq(strncmp(err, "--key /", 7), 0);
    ck_assert_ptr_nonnull(strstr(err, "does not fit the certificate of --cert"));
    files.key_file = mine.key;
    files.ca_cert_dir = mine.key;
    ck_assert_ptr_null(tls_new_client(&files, err, sizeof(err)));
    ck_assert_int_eq(strncmp(err, "--dir /", 7), 0);
}

START_TEST(a_key_with_a_passphrase_is_refused_without_asking_for_it)
{
    char key[128];
    struct tls_files files = {
        .cert_file = mine.cert, .key_file = key, .ca_cert_file = "", .ca_cert_dir = ""
    };
    FILE *file;

    scratch_path("locked", ".pem", key, sizeof(key));
    file = fopen(key, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(PEM_write_PrivateKey(file, mine.pkey, EVP_aes_128_cbc(),
                                          (const unsigned char *)"pass", 4, NULL, NULL),
                     1);
    ck_assert_int_eq(fclose(file), 0);
    expect_refused(&files, "is encrypted");
}

START_TEST(the_key_may_stand_behind_the_certificate)
{
    char both[128];
    struct tls_files files = {
        .cert_file = both, .key_file = "", .ca_cert_file = "", .ca_cert_dir = ""
    };
    char err[512] = "";
    struct tls *tls;
    FILE *file;

    scratch_path("both", ".pem", both, sizeof(both));
    file = fopen(both, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(PEM_write_X509(file, mine.x509), 1);
    ck_assert_int_eq(PEM_write_PrivateKey(file, mine.pkey, NULL, NULL, 0, NULL, NULL),
                     1);
    ck_assert_int_eq(fclose(file), 0);
    tls = tls_new(&files, err, sizeof(err));
    ck_assert_msg(tls != NULL, "%s", err);
    ck_assert_int_gt(tls_valid_s(tls), CERT_DAY_S - 60);
    ck_assert_int_le(tls_valid_s(tls), CERT_DAY_S);
    tls_unref(tls);
}

START_TEST(a_certificate_that_ran_out_is_known_to_have)
{
    struct test_cert old;
    struct tls *tls;

    cert_make(&old, "localhost", -CERT_DAY_S, &ca);
    tls = cert_server(&old, NULL);
    ck_assert_int_le(tls_valid_s(tls), -CERT_DAY_S);
    tls_unref(tls);
    cert_free(&old);
}

/* Clients */

static bool is_over(const void *arg)
{
    return rec.ended || stream_tls_version(rec.stream) != NULL;
}

/* Whether the server lets a client with this certificate in. */
static bool comes_in(enum far_kind kind, const struct test_cert *cert, char *ret_name,
                     size_t room)
{
    struct far far;
    bool in;

    rec.ended = false;
    accepted_raw(&far, kind, cert, &ca);
    /* With TLS 1.3 the client is done before the server looks at its certificate. */
    (void)far_shake_hands(&far);
    loop_until(&loop, is_over, NULL);
    in = !rec.ended;
    if (!in || !stream_tls_peer(rec.stream, ret_name, room)) {
        ret_name[0] = '\0';
    }
    far_drop(&far);
    loop_until_flag(&loop, &rec.ended);
    return in;
}

START_TEST(only_certificates_of_the_authority_come_in, 2)
{
    enum far_kind kind = FAR_TLS13 + _i;
    struct test_cert ann;
    struct test_cert old;
    struct test_cert stranger;
    char name[64];

    server_tls = cert_server(&mine, &ca);
    cert_make(&ann, "ann", CERT_DAY_S, &ca);
    cert_make(&old, "old", -CERT_DAY_S, &ca);
    cert_make(&stranger, "ann", CERT_DAY_S, &other_ca);
    ck_assert(comes_in(kind, &ann, name, sizeof(name)));
    ck_assert_str_eq(name, "ann");
    ck_assert(!comes_in(kind, NULL, name, sizeof(name)));
    ck_assert(!comes_in(kind, &old, name, sizeof(name)));
    ck_assert(!comes_in(kind, &stranger, name, sizeof(name)));
    ck_assert(!comes_in(kind, &other_ca, name, sizeof(name)));
    ck_assert_uint_eq(loop.io.stats.handshakes, 1);
    ck_assert_uint_eq(loop.io.stats.handshakes_failed, 4);
    cert_free(&ann);
    cert_free(&old);
    cert_free(&stranger);
}

START_TEST(an_optional_certificate_must_still_be_right, 2)
{
    enum far_kind kind = FAR_TLS13 + _i;
    struct tls_files files = { .cert_file = mine.cert,
                               .key_file = mine.key,
                               .ca_cert_file = ca.cert,
                               .ca_cert_dir = "",
                               .auth_clients = TLS_AUTH_OPTIONAL };
    struct test_cert stranger;
    char name[64];
    char tiny[3];

    server_tls = tls_new(&files, name, sizeof(name));
    ck_assert_ptr_nonnull(server_tls);
    cert_make(&stranger, "ann", CERT_DAY_S, &other_ca);
    ck_assert(comes_in(kind, NULL, name, sizeof(name)));
    ck_assert_str_eq(name, "");
    ck_assert(comes_in(kind, &mine, name, sizeof(name)));
    ck_assert_str_eq(name, "localhost");
    ck_assert(comes_in(kind, &mine, tiny, sizeof(tiny))); /* no half names */
    ck_assert_str_eq(tiny, "");
    ck_assert(!comes_in(kind, &stranger, name, sizeof(name)));
    cert_free(&stranger);
}

START_TEST(a_client_that_does_not_believe_us_goes_away, 2)
{
    struct far far;

    server_tls = cert_server(&mine, NULL);
    accepted_raw(&far, FAR_TLS13 + _i, NULL, &other_ca);
    ck_assert(!far_shake_hands(&far));
    far_drop(&far);
    loop_until_flag(&loop, &rec.ended);
    ck_assert_uint_eq(loop.io.stats.handshakes_failed, 1);
}

START_TEST(connections_keep_what_they_were_made_with, 2)
{
    struct far far;
    struct far next;
    struct stream *first;
    struct test_cert renewed;
    X509 *shown;

    server_tls = cert_server(&mine, NULL);
    accepted_far(&far, FAR_TLS13 + _i);
    first = rec.stream;
    rec.stream = NULL;
    tls_unref(server_tls);
    cert_make(&renewed, "renewed", CERT_DAY_S, &ca);
    server_tls = cert_server(&renewed, NULL);
    accepted_far(&next, FAR_TLS13 + _i);
    shown = SSL_get0_peer_certificate(next.ssl);
    ck_assert_int_eq(X509_cmp(shown, renewed.x509), 0);
    far_send(&far, "old");
    wait_for_input(3);
    far_send(&next, "new");
    wait_for_input(6);
    stream_close(first);
    far_close(&far);
    far_close(&next);
    cert_free(&renewed);
}
