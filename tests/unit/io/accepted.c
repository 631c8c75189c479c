#include "unit/io/accepted.h"

#include "io/socket.h"
#include "support/scratch.h"

#include <check.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

struct test_loop loop;
struct stream_record rec;
char path[96];
struct test_cert server_cert;
struct tls *server_tls;

static struct acceptor *acceptor;
static int listen_port;

void accepted_setup(void)
{
    rec = (struct stream_record){ 0 };
    loop_open(&loop);
    scratch_path("stream", ".sock", path, sizeof(path));
}

void accepted_teardown(void)
{
    stream_close(rec.stream);
    acceptor_close(acceptor);
    acceptor = NULL;
    (void)unlink(path);
    loop_close(&loop);
    buf_reset(&rec.got);
    tls_unref(server_tls);
    server_tls = NULL;
    cert_free(&server_cert);
}

static void on_connection(void *ctx, int fd)
{
    const struct stream_options options = { .keepalive_s = 10,
                                            .user_timeout_ms = 19000,
                                            .tls = server_tls };

    ck_assert_int_ge(fd, 0);
    stream_close(rec.stream);
    ck_assert_int_eq(stream_accept(&loop.io, fd, ctx != NULL, &options, &RECORD_EVENTS,
                                   &rec, &rec.stream),
                     0);
    rec.connected = true;
}

int accepted_port(void)
{
    if (acceptor == NULL) {
        ck_assert_int_eq(acceptor_open(&loop.io, raw_listen_tcp(AF_INET, &listen_port),
                                       on_connection, NULL, &acceptor),
                         0);
    }
    return listen_port;
}

static int connect_unix(void)
{
    ck_assert_int_eq(
        acceptor_open(&loop.io, raw_listen_unix(path), on_connection, path, &acceptor),
        0);
    return raw_connect_unix(path);
}

void accepted_raw(struct far *f, enum far_kind kind, const struct test_cert *cert,
                  const struct test_cert *ca)
{
    if (kind >= FAR_TLS13 && server_tls == NULL) {
        cert_make(&server_cert, "localhost", CERT_DAY_S, NULL);
        server_tls = cert_server(&server_cert, NULL);
    }
    rec.connected = false;
    far_init(f, &loop,
             kind == FAR_UNIX ? connect_unix()
                              : raw_connect_tcp(AF_INET, accepted_port()),
             kind, cert, ca);
    loop_until_flag(&loop, &rec.connected);
}

static bool is_open(const void *arg)
{
    return stream_tls_version(rec.stream) != NULL;
}

void accepted_far(struct far *f, enum far_kind kind)
{
    accepted_raw(f, kind, NULL, NULL);
    if (kind >= FAR_TLS13) {
        ck_assert(far_shake_hands(f));
        loop_until(&loop, is_open, NULL);
    }
}

void accepted_warm_up(void)
{
    struct far far;

    if (far_kinds() > FAR_TLS13) {
        accepted_setup();
        accepted_far(&far, FAR_TLS13);
        send_text("x");
        far_expect(&far, "x");
        far_close(&far);
        accepted_teardown();
    }
}

static bool has_input(const void *arg)
{
    return buf_len(&rec.got) >= *(const size_t *)arg;
}

void wait_for_input(size_t len)
{
    loop_until(&loop, has_input, &len);
}

void send_text(const char *text)
{
    struct buf out = { 0 };

    buf_add_str(&out, text);
    stream_send(rec.stream, &out);
    ck_assert_uint_eq(buf_len(&out), 0);
    buf_reset(&out);
}
