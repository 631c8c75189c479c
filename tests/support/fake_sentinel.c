#include "support/fake_sentinel.h"

#include "resp/parser.h"
#include "resp/writer.h"

#include <arpa/inet.h>
#include <check.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CONNS_MAX = 64, POLL_MS = 2, ID_LEN = 40 };

struct master {
    char host[64];
    int port;
    uint64_t epoch;
};

/* Shared with the process. The test writes the master that is not said at the time. */
struct sayings {
    struct master masters[2];
    volatile unsigned which;
    char id[ID_LEN + 1];
    char user[32], password[32];
    volatile uint64_t announced;
    volatile uint64_t asked;
    volatile int other_port;
    char other_id[ID_LEN + 1];
};

struct fake_sentinel {
    pid_t pid; /* 0: not running */
    int port;
    int fd; /* bound; listens while the process runs */
    struct sayings *says;
};

struct client {
    int fd; /* -1: none */
    bool let_in, subscribed;
    struct buf in, out;
    uint64_t hint;
};

/* --- in the process -------------------------------------------------------------- */

static void pair(struct buf *out, const char *name, const char *value)
{
    resp_bulk_str(out, name);
    resp_bulk_str(out, value);
}

static void say_number(struct buf *out, const char *name, uint64_t value)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    pair(out, name, text);
}

static void say_others(const struct sayings *s, struct buf *out)
{
    resp_array(out, s->other_port == 0 ? 0 : 1);
    if (s->other_port != 0) {
        resp_array(out, 8);
        pair(out, "name", s->other_id);
        pair(out, "ip", "127.0.0.1");
        say_number(out, "port", (uint64_t)s->other_port);
        pair(out, "runid", s->other_id);
    }
}

static void say_master(struct sayings *s, const struct master *m, struct span word,
                       struct buf *out)
{
    if (span_eq(word, SPAN("SENTINELS"))) {
        say_others(s, out);
    } else if (span_eq(word, SPAN("MASTER"))) {
        resp_array(out, 8);
        pair(out, "name", "mymaster");
        pair(out, "ip", m->host);
        say_number(out, "port", (uint64_t)m->port);
        say_number(out, "config-epoch", m->epoch);
    } else {
        char port[16];

        s->asked++;
        (void)snprintf(port, sizeof port, "%d", m->port);
        resp_array(out, 2);
        resp_bulk_str(out, m->host);
        resp_bulk_str(out, port);
    }
}

static void on_sentinel(struct sayings *s, const struct master *m,
                        const struct resp_request *req, struct buf *out)
{
    if (req->argc == 2 && span_eq(req->argv[1], SPAN("MYID"))) {
        resp_bulk_str(out, s->id);
    } else if (req->argc != 3) {
        resp_error(out, "ERR", SPAN("not known here"));
    } else if (m->port != 0 && span_eq(req->argv[2], SPAN("mymaster"))) {
        say_master(s, m, req->argv[1], out);
    } else if (span_eq(req->argv[1], SPAN("GET-MASTER-ADDR-BY-NAME"))) {
        resp_null_array(out, 2);
    } else {
        resp_error(out, "ERR", SPAN("No such master with that name"));
    }
}

static void on_auth(const struct sayings *s, struct client *c,
                    const struct resp_request *req)
{
    struct span user = req->argc == 3 ? req->argv[1] : SPAN("default");

    c->let_in = req->argc >= 2 && span_eq(user, span_str(s->user)) &&
                span_eq(req->argv[req->argc - 1], span_str(s->password));
    if (c->let_in) {
        resp_simple(&c->out, "OK");
    } else {
        resp_error(&c->out, "WRONGPASS", SPAN("invalid username-password pair"));
    }
}

static void on_request(struct sayings *s, const struct master *m, struct client *c,
                       const struct resp_request *req)
{
    if (req->argc == 0) {
        return;
    }
    if (span_eq(req->argv[0], SPAN("AUTH"))) {
        on_auth(s, c, req);
    } else if (!c->let_in) {
        resp_error(&c->out, "NOAUTH", SPAN("Authentication required."));
    } else if (span_eq(req->argv[0], SPAN("SUBSCRIBE")) && req->argc == 2) {
        c->subscribed = true;
        resp_array(&c->out, 3);
        resp_bulk_str(&c->out, "subscribe");
        resp_bulk(&c->out, req->argv[1]);
        resp_int(&c->out, 1);
    } else if (span_eq(req->argv[0], SPAN("PING"))) {
        resp_array(&c->out, 2);
        resp_bulk_str(&c->out, "pong");
        resp_bulk_str(&c->out, "");
    } else {
        on_sentinel(s, m, req, &c->out);
    }
}

static void hang_up(struct client *c)
{
    (void)close(c->fd);
    buf_reset(&c->in);
    buf_reset(&c->out);
    *c = (struct client){ .fd = -1 };
}

static void answer(struct sayings *s, struct resp_parser *parser, struct client *c)
{
    struct resp_limits limits = { .args_max = 16, .bulk_max = 1024 };
    struct resp_request req;
    const struct master *m = &s->masters[s->which]; /* the same for a whole asking */
    size_t used;

    while (resp_parse(parser, &limits, buf_span(&c->in), &c->hint, &used, &req) ==
           RESP_DONE) {
        on_request(s, m, c, &req);
        buf_drop(&c->in, used);
    }
}

static void serve(struct sayings *s, struct resp_parser *parser, struct client *c)
{
    char *room = buf_reserve(&c->in, 1024);
    ssize_t n = recv(c->fd, room, 1024, MSG_DONTWAIT);

    if (n == 0) {
        hang_up(c);
    } else if (n > 0) {
        buf_grew(&c->in, (size_t)n);
        answer(s, parser, c);
    }
}

static void tell(const struct sayings *s, struct client *c)
{
    const struct master *m = &s->masters[s->which];
    char text[160];

    (void)snprintf(text, sizeof text, "mymaster 192.0.2.1 6379 %s %d", m->host,
                   m->port);
    resp_array(&c->out, 3);
    resp_bulk_str(&c->out, "message");
    resp_bulk_str(&c->out, "+switch-master");
    resp_bulk_str(&c->out, text);
}

static void take_in(int listener, struct client *clients, bool let_in)
{
    for (size_t i = 0; i < CONNS_MAX; i++) {
        if (clients[i].fd < 0) {
            clients[i].fd = accept(listener, NULL, NULL);
            clients[i].let_in = let_in;
            return;
        }
    }
}

static _Noreturn void run(struct sayings *s, int listener)
{
    struct resp_parser *parser = resp_parser_new();
    struct client clients[CONNS_MAX] = { { 0 } };
    uint64_t announced = s->announced;

    for (size_t i = 0; i < CONNS_MAX; i++) {
        clients[i].fd = -1;
    }
    for (;;) {
        struct pollfd fds[CONNS_MAX + 1] = { { .fd = listener, .events = POLLIN } };
        bool news = announced != s->announced;

        announced = s->announced;
        for (size_t i = 0; i < CONNS_MAX; i++) {
            struct client *c = &clients[i];

            if (news && c->subscribed) {
                tell(s, c);
            }
            if (buf_len(&c->out) != 0) {
                (void)send(c->fd, buf_ptr(&c->out), buf_len(&c->out), MSG_NOSIGNAL);
                buf_clear(&c->out);
            }
            fds[i + 1] = (struct pollfd){ .fd = c->fd, .events = POLLIN };
        }
        (void)poll(fds, CONNS_MAX + 1, POLL_MS);
        for (size_t i = 0; i < CONNS_MAX; i++) {
            if (fds[i + 1].revents != 0) {
                serve(s, parser, &clients[i]);
            }
        }
        if (fds[0].revents != 0) {
            take_in(listener, clients, s->password[0] == '\0');
        }
    }
}

/* --- in the test ----------------------------------------------------------------- */

/* Bound by both while one of them listens, so that nobody else takes it meanwhile. */
static int bind_port(int port)
{
    struct sockaddr_in in = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on), 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    return fd;
}

struct fake_sentinel *fake_sentinel_new(void)
{
    struct fake_sentinel *f = calloc(1, sizeof *f);
    struct sockaddr_in in = { 0 };
    socklen_t len = sizeof in;

    ck_assert_ptr_nonnull(f);
    f->says = mmap(NULL, sizeof *f->says, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(f->says != MAP_FAILED);
    f->fd = bind_port(0);
    ck_assert_int_eq(getsockname(f->fd, (struct sockaddr *)&in, &len), 0);
    f->port = ntohs(in.sin_port);
    (void)snprintf(f->says->id, sizeof f->says->id, "%040d", f->port);
    (void)snprintf(f->says->user, sizeof f->says->user, "default");
    return f;
}

void fake_sentinel_set_login(struct fake_sentinel *f, const char *user,
                             const char *password)
{
    (void)snprintf(f->says->user, sizeof f->says->user, "%s", user);
    (void)snprintf(f->says->password, sizeof f->says->password, "%s", password);
}

void fake_sentinel_start(struct fake_sentinel *f)
{
    int listener = bind_port(f->port);
    pid_t parent = getpid();

    ck_assert_int_eq(f->pid, 0);
    ck_assert_int_eq(listen(listener, CONNS_MAX), 0);
    f->pid = fork();
    ck_assert_int_ge(f->pid, 0);
    if (f->pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
            _exit(126);
        }
        run(f->says, listener);
    }
    (void)close(listener);
}

void fake_sentinel_stop(struct fake_sentinel *f)
{
    ck_assert_int_eq(kill(f->pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(f->pid, NULL, 0), f->pid);
    f->pid = 0;
}

void fake_sentinel_free(struct fake_sentinel *f)
{
    if (f == NULL) {
        return;
    }
    if (f->pid != 0) {
        fake_sentinel_stop(f);
    }
    (void)close(f->fd);
    (void)munmap(f->says, sizeof *f->says);
    free(f);
}

int fake_sentinel_port(const struct fake_sentinel *f)
{
    return f->port;
}

void fake_sentinel_name(struct fake_sentinel *f, const char *host, int port,
                        uint64_t epoch)
{
    struct master *m = &f->says->masters[1 - f->says->which];

    (void)snprintf(m->host, sizeof m->host, "%s", host);
    m->port = port;
    m->epoch = epoch;
    f->says->which = 1 - f->says->which;
}

void fake_sentinel_announce(struct fake_sentinel *f)
{
    f->says->announced++;
}

void fake_sentinel_knows(struct fake_sentinel *f, const struct fake_sentinel *other)
{
    f->says->other_port = 0;
    if (other != NULL) {
        (void)snprintf(f->says->other_id, sizeof f->says->other_id, "%s",
                       other->says->id);
        f->says->other_port = other->port;
    }
}

uint64_t fake_sentinel_asked(const struct fake_sentinel *f)
{
    return f->says->asked;
}
