#include "support/client.h"

#include "util/buf.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { DEADLINE_MS = 10000, WORDS_MAX = 64, PRINT_MAX = 2048 };

struct client {
    int fd;
    uint64_t deadline_ms;
    struct buf in;
    char sent[200]; /* the last command, for messages */
};

static struct client *client_new(const struct sockaddr *sa, socklen_t len)
{
    struct client *c = calloc(1, sizeof *c);

    ck_assert_ptr_nonnull(c);
    c->deadline_ms = DEADLINE_MS;
    c->fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(c->fd, 0);
    ck_assert_msg(connect(c->fd, sa, len) == 0, "connect: %s", strerror(errno));
    return c;
}

struct client *client_open_port(int port)
{
    struct sockaddr_in in = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

    return client_new((struct sockaddr *)&in, sizeof in);
}

struct client *client_open(const struct test_daemon *d)
{
    return client_open_port(daemon_port(d));
}

struct client *client_open_unix(const struct test_daemon *d)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    const char *path = daemon_unix_path(d);

    memcpy(un.sun_path, path, strlen(path) + 1);
    return client_new((struct sockaddr *)&un, sizeof un);
}

void client_set_deadline(struct client *c, uint64_t ms)
{
    c->deadline_ms = ms;
}

int client_fd(const struct client *c)
{
    return c->fd;
}

void client_close(struct client *c)
{
    if (c == NULL) {
        return;
    }
    (void)close(c->fd);
    buf_reset(&c->in);
    free(c);
}

void client_abort(struct client *c)
{
    struct linger now = { .l_onoff = 1, .l_linger = 0 };

    (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    client_close(c);
}

void client_half_close(struct client *c)
{
    (void)shutdown(c->fd, SHUT_WR);
}

/* --- sending ---------------------------------------------------------------------- */

bool client_try_send_raw(struct client *c, const void *data, size_t len)
{
    const char *p = data;

    while (len > 0) {
        ssize_t n = send(c->fd, p, len, MSG_NOSIGNAL);

        if (n < 0) {
            return false;
        }
        p += n;
        len -= (size_t)n;
    }
    return true;
}

void client_send_raw(struct client *c, const void *data, size_t len)
{
    ck_assert_msg(client_try_send_raw(c, data, len), "'%s': cannot be sent: %s",
                  c->sent, strerror(errno));
}

void client_send_args(struct client *c, size_t count, const char *const *args,
                      const size_t *lens)
{
    struct buf out = { 0 };

    buf_printf(&out, "*%zu\r\n", count);
    for (size_t i = 0; i < count; i++) {
        size_t len = lens == NULL ? strlen(args[i]) : lens[i];

        buf_printf(&out, "$%zu\r\n", len);
        buf_add(&out, args[i], len);
        buf_add_str(&out, "\r\n");
    }
    client_send_raw(c, buf_ptr(&out), buf_len(&out));
    buf_reset(&out);
}

__attribute__((format(printf, 2, 0))) static void
send_format(struct client *c, const char *fmt, va_list ap)
{
    const char *words[WORDS_MAX];
    char line[4096];
    char *rest = line, *word;
    size_t count = 0;
    int len = vsnprintf(line, sizeof line, fmt, ap);

    ck_assert_int_lt(len, (int)sizeof line);
    (void)snprintf(c->sent, sizeof c->sent, "%.190s", line);
    while ((word = strsep(&rest, " ")) != NULL) {
        ck_assert_uint_lt(count, WORDS_MAX);
        words[count++] = word;
    }
    client_send_args(c, count, words, NULL);
}

void client_send(struct client *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    send_format(c, fmt, ap);
    va_end(ap);
}

/* --- reading ---------------------------------------------------------------------- */

/* More bytes; 0: the peer closed (or reset), -1: not before the deadline. */
static int receive(struct client *c, uint64_t deadline)
{
    struct pollfd p = { .fd = c->fd, .events = POLLIN };
    uint64_t now = test_now_ms();
    ssize_t n;

    if (poll(&p, 1, deadline > now ? (int)(deadline - now) : 0) != 1) {
        return -1;
    }
    n = recv(c->fd, buf_reserve(&c->in, 65536), 65536, 0);
    if (n <= 0) {
        return 0;
    }
    buf_grew(&c->in, (size_t)n);
    return 1;
}

struct value client_read(struct client *c)
{
    uint64_t deadline = test_now_ms() + c->deadline_ms;

    for (;;) {
        struct value v;
        long used = value_parse(buf_len(&c->in) == 0 ? "" : buf_ptr(&c->in),
                                buf_len(&c->in), &v);
        int r;

        ck_assert_msg(used >= 0, "'%s': what came back is not RESP", c->sent);
        if (used > 0) {
            buf_drop(&c->in, (size_t)used);
            return v;
        }
        r = receive(c, deadline);
        ck_assert_msg(r != 0, "'%s': the connection was closed", c->sent);
        ck_assert_msg(r > 0, "'%s': no reply within %" PRIu64 " ms", c->sent,
                      c->deadline_ms);
    }
}

bool client_try_read(struct client *c, uint64_t ms, struct value *ret)
{
    uint64_t deadline = test_now_ms() + ms;

    for (;;) {
        long used = value_parse(buf_len(&c->in) == 0 ? "" : buf_ptr(&c->in),
                                buf_len(&c->in), ret);

        if (used > 0) {
            buf_drop(&c->in, (size_t)used);
            return true;
        }
        if (used < 0 || receive(c, deadline) <= 0) {
            return false;
        }
    }
}

static void fail_value(struct client *c, const char *wanted, struct value *got)
{
    char text[PRINT_MAX];

    value_print(got, text, sizeof text);
    ck_abort_msg("'%s': expected %s, got %s", c->sent, wanted, text);
}

int64_t client_read_int(struct client *c)
{
    struct value v = client_read(c);

    if (v.type != VALUE_INT) {
        fail_value(c, "an integer", &v);
    }
    return v.integer;
}

void expect_int(struct client *c, int64_t value)
{
    int64_t got = client_read_int(c);

    ck_assert_msg(got == value, "'%s': expected %" PRId64 ", got %" PRId64, c->sent,
                  value, got);
}

void expect_nil(struct client *c)
{
    struct value v = client_read(c);

    if (v.type != VALUE_NIL) {
        fail_value(c, "nil", &v);
    }
}

void expect_error(struct client *c, const char *start)
{
    struct value v = client_read(c);

    if (v.type != VALUE_ERROR || strncmp(v.text, start, strlen(start)) != 0) {
        char wanted[256];

        (void)snprintf(wanted, sizeof wanted, "an error '%s...'", start);
        fail_value(c, wanted, &v);
    }
    value_fini(&v);
}

static void expect_string(struct client *c, enum value_type type, const char *text)
{
    struct value v = client_read(c);

    if (v.type != type || !value_is_text(&v, text)) {
        fail_value(c, text, &v);
    }
    value_fini(&v);
}

void expect_status(struct client *c, const char *text)
{
    expect_string(c, VALUE_STATUS, text);
}

void expect_text(struct client *c, const char *text)
{
    expect_string(c, VALUE_TEXT, text);
}

void expect_message(struct client *c, const char *channel, const char *payload)
{
    struct value v = client_read(c);

    if (v.count != 3 || !value_is_text(&v.items[0], "message") ||
        !value_is_text(&v.items[1], channel) || v.items[2].text == NULL ||
        strncmp(v.items[2].text, payload, strlen(payload)) != 0) {
        char wanted[512];

        (void)snprintf(wanted, sizeof wanted, "message %s '%s...'", channel, payload);
        fail_value(c, wanted, &v);
    }
    value_fini(&v);
}

void expect_closed(struct client *c)
{
    uint64_t deadline = test_now_ms() + c->deadline_ms;
    int r;

    while ((r = receive(c, deadline)) > 0) {
        buf_clear(&c->in);
    }
    ck_assert_msg(r == 0, "'%s': the connection stays open", c->sent);
}

bool client_has_reply(struct client *c)
{
    return buf_len(&c->in) > 0 || receive(c, 0) >= 0;
}

void expect_silence(struct client *c)
{
    if (client_has_reply(c)) {
        struct value v = client_read(c);

        fail_value(c, "no reply yet", &v);
    }
}

/* --- both ------------------------------------------------------------------------- */

struct value ask(struct client *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    send_format(c, fmt, ap);
    va_end(ap);
    return client_read(c);
}

int64_t ask_int(struct client *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    send_format(c, fmt, ap);
    va_end(ap);
    return client_read_int(c);
}

void ask_nil(struct client *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    send_format(c, fmt, ap);
    va_end(ap);
    expect_nil(c);
}

void ask_ok(struct client *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    send_format(c, fmt, ap);
    va_end(ap);
    expect_status(c, "OK");
}

void ask_error(struct client *c, const char *start, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    send_format(c, fmt, ap);
    va_end(ap);
    expect_error(c, start);
}

static void await_info(struct client *c, const char *name, const char *state,
                       int64_t waiting)
{
    uint64_t deadline = test_now_ms() + c->deadline_ms;

    for (;;) {
        struct value v = ask(c, "LOCKINFO %s", name);
        const struct value *now = value_get(&v, state == NULL ? "waiting" : "state");

        if (now == NULL) {
            fail_value(c, "a map with state and waiting", &v);
        } else if (state == NULL ? now->integer == waiting
                                 : value_is_text(now, state)) {
            value_fini(&v);
            return;
        }
        if (test_now_ms() >= deadline) {
            fail_value(c, state == NULL ? "another number of waiters" : state, &v);
        }
        value_fini(&v);
        test_sleep_ms(2);
    }
}

void await_waiting(struct client *c, const char *name, int64_t count)
{
    await_info(c, name, NULL, count);
}

void await_state(struct client *c, const char *name, const char *state)
{
    await_info(c, name, state, 0);
}
