#include "daemon/upgrade.h"

#include "util/alloc.h"
#include "util/list.h"
#include "util/log.h"
#include "util/span.h"
#include "util/text.h"
#include "util/transition.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FD_VARIABLE "LATCHD_UPGRADE_FD"
#define HELLO "latchd-upgrade"

enum {
    WORDS_MAX = 2048, /* enough for the longest names of a client */
    WORDS_PER_TURN = 64,
    EXIT_NO_PROGRAM = 127,
    /* Ids that clients of the old process may still get before it stops listening. */
    IDS_BETWEEN = 1 << 20,
};

static const char NO_MESSAGE[] = "the new one sent a message that is none";
static const char *const SOCKET_WORDS[UPGRADE_SOCKETS] = { "plain", "tls", "http" };

static const struct transitions TRANSITIONS = {
    .subject = "upgrade",
    .states = {
        [UPGRADE_ALONE] = { "ALONE", INTO(UPGRADE_STARTING) },
        [UPGRADE_STARTING] = { "STARTING", INTO(UPGRADE_OFFERED) | INTO(UPGRADE_ALONE) },
        [UPGRADE_OFFERED] = { "OFFERED", INTO(UPGRADE_RETIRED) | INTO(UPGRADE_ALONE) },
        [UPGRADE_RETIRED] = { "RETIRED", 0 },
    },
};

/* One end of a socket pair, watched by the loop. It frees itself. */
struct talk {
    uv_poll_t poll;
    struct upgrade *upgrade;
    int fd;
};

struct upgrade {
    uv_loop_t *loop;
    struct upgrade_events events;
    enum upgrade_state state;
    uint64_t give_up_ms;      /* of a successor that starts */
    struct talk *successor;   /* NULL: there is none */
    struct talk *predecessor; /* the same */
    bool said_ready;
    bool took;         /* the predecessor's sockets */
    bool told_to_stop; /* by the successor */
};

static void set_state(struct upgrade *u, enum upgrade_state state)
{
    transition_check(&TRANSITIONS, u->state, state);
    u->state = state;
}

enum upgrade_state upgrade_state(const struct upgrade *u)
{
    return u->state;
}

bool upgrade_has_predecessor(const struct upgrade *u)
{
    return u->predecessor != NULL;
}

bool upgrade_shares_sockets(const struct upgrade *u)
{
    return u->state == UPGRADE_OFFERED || (u->predecessor != NULL && !u->took);
}

/* --- messages --------------------------------------------------------- */

union fd_space {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

/* `fd` -1: none. 0 or an errno. */
static int send_message(int to, int fd, const char *words)
{
    union fd_space space = { 0 };
    struct iovec text = { .iov_base = (void *)(uintptr_t)words,
                          .iov_len = strlen(words) };
    struct msghdr msg = { .msg_iov = &text, .msg_iovlen = 1 };

    if (fd >= 0) {
        struct cmsghdr *control;

        msg.msg_control = space.bytes;
        msg.msg_controllen = sizeof(space.bytes);
        control = CMSG_FIRSTHDR(&msg);
        control->cmsg_level = SOL_SOCKET;
        control->cmsg_type = SCM_RIGHTS;
        control->cmsg_len = CMSG_LEN(sizeof(fd));
        memcpy(CMSG_DATA(control), &fd, sizeof(fd));
    }
    return sendmsg(to, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? errno : 0;
}

/* A message that the other end cannot take ends the talk. */
static void send_words(int to, int fd, const char *words)
{
    int err = send_message(to, fd, words);

    if (err != 0) {
        log_info("server", "cannot tell the other latchd `%s`: %s", words,
                 strerror(err));
        (void)shutdown(to, SHUT_RDWR);
    }
}

/* The next message, NUL-terminated, and its descriptor or -1. -1: there is none now;
 * 0: the other end is gone. */
static ssize_t receive_words(int from, char words[static WORDS_MAX], int *ret_fd)
{
    union fd_space space;
    struct iovec text = { .iov_base = words, .iov_len = WORDS_MAX - 1 };
    struct msghdr msg = { .msg_iov = &text,
                          .msg_iovlen = 1,
                          .msg_control = space.bytes,
                          .msg_controllen = sizeof(space.bytes) };
    struct cmsghdr *control;
    ssize_t len = recvmsg(from, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

    *ret_fd = -1;
    if (len < 0) {
        return errno == EAGAIN || errno == EINTR ? -1 : 0;
    }
    control = CMSG_FIRSTHDR(&msg);
    if (control != NULL && control->cmsg_type == SCM_RIGHTS &&
        control->cmsg_len == CMSG_LEN(sizeof(int))) {
        memcpy(ret_fd, CMSG_DATA(control), sizeof(*ret_fd));
    }
    words[len] = '\0';
    return len;
}

static bool next_is(struct span *rest, const char *word)
{
    return span_eq(span_next(rest, ' '), span_str(word));
}

/* --- talks ------------------------------------------------------------ */

static void on_talk_closed(uv_handle_t *handle)
{
    struct talk *t = handle->data;

    (void)close(t->fd);
    free(t);
}

static void talk_close(struct talk **talk)
{
    if (*talk != NULL) {
        uv_close((uv_handle_t *)&(*talk)->poll, on_talk_closed);
        /* The other end hears of it now, even if a child has a copy. */
        (void)shutdown((*talk)->fd, SHUT_RDWR);
        *talk = NULL;
    }
}

/* Takes `fd`. NULL: it cannot be watched. */
static struct talk *talk_open(struct upgrade *u, int fd, uv_poll_cb on_readable)
{
    struct talk *t = xcalloc(1, sizeof(*t));

    if (uv_poll_init(u->loop, &t->poll, fd) < 0) {
        (void)close(fd);
        free(t);
        return NULL;
    }
    t->fd = fd;
    t->upgrade = u;
    t->poll.data = t;
    (void)uv_poll_start(&t->poll, UV_READABLE, on_readable); /* cannot fail */
    return t;
}

struct upgrade *upgrade_new(uv_loop_t *loop, const struct upgrade_events *events)
{
    struct upgrade *u = xcalloc(1, sizeof(*u));

    u->loop = loop;
    u->events = *events;
    return u;
}

void upgrade_close(struct upgrade *u)
{
    if (u != NULL) {
        talk_close(&u->successor);
        talk_close(&u->predecessor);
    }
}

void upgrade_free(struct upgrade *u)
{
    free(u);
}

/* --- this process ----------------------------------------------------- */

void upgrade_give_up(struct upgrade *u, const char *why)
{
    log_error("server", "the upgrade failed, this latchd goes on as before: %s", why);
    talk_close(&u->successor);
    set_state(u, UPGRADE_ALONE);
}

static void on_took(struct upgrade *u, struct span pid_text)
{
    uint64_t pid;

    if (!parse_u64(pid_text, INT32_MAX, &pid)) {
        upgrade_give_up(u, NO_MESSAGE);
        return;
    }
    set_state(u, UPGRADE_RETIRED);
    u->events.on_retired(u->events.ctx, pid);
}

static void take_from_successor(struct upgrade *u, struct span words)
{
    struct span word = span_next(&words, ' ');

    if (u->state == UPGRADE_STARTING && span_eq(word, SPAN("ready"))) {
        set_state(u, UPGRADE_OFFERED);
        u->events.on_ready(u->events.ctx);
    } else if (u->state == UPGRADE_OFFERED && span_eq(word, SPAN("took"))) {
        on_took(u, span_next(&words, ' '));
    } else if (u->state == UPGRADE_RETIRED && span_eq(word, SPAN("stop"))) {
        u->told_to_stop = true;
        u->events.on_stop(u->events.ctx);
    } else if (u->state != UPGRADE_RETIRED) {
        upgrade_give_up(u, NO_MESSAGE);
    }
}

static void on_successor_end(struct upgrade *u)
{
    if (u->state != UPGRADE_RETIRED) {
        upgrade_give_up(u, "the new one ended before it was ready, see its log");
        return;
    }
    if (!u->told_to_stop) {
        log_error("server", "the new latchd has ended, see its log: this one still "
                            "serves its clients, and takes no new ones");
    }
    talk_close(&u->successor);
}

static void on_successor(uv_poll_t *poll, int status, int events)
{
    struct talk *t = poll->data;
    struct upgrade *u = t->upgrade;
    char words[WORDS_MAX];
    int fd;
    ssize_t len;

    while (u->successor == t && (len = receive_words(t->fd, words, &fd)) >= 0) {
        if (fd >= 0) {
            (void)close(fd);
        }
        if (len > 0) {
            take_from_successor(u, span_of(words, (size_t)len));
        } else {
            on_successor_end(u);
        }
    }
    if (u->successor == t && (events & UV_WRITABLE) != 0) {
        (void)uv_poll_start(poll, UV_READABLE, on_successor);
        u->events.on_writable(u->events.ctx);
    }
}

void upgrade_offer(struct upgrade *u, enum upgrade_socket kind, int fd, bool owns_file)
{
    char words[WORDS_MAX];

    (void)snprintf(words, sizeof(words), "socket %s %s", SOCKET_WORDS[kind],
                   owns_file ? "file" : "-");
    send_words(u->successor->fd, fd, words);
}

void upgrade_go(struct upgrade *u, uint64_t last_id)
{
    char words[WORDS_MAX];

    (void)snprintf(words, sizeof(words), "go %" PRIu64, last_id + IDS_BETWEEN);
    send_words(u->successor->fd, -1, words);
}

bool upgrade_move(struct upgrade *u, uint64_t id, int fd, bool is_unix,
                  struct span words)
{
    char message[WORDS_MAX];
    int len = snprintf(message, sizeof(message), "client %" PRIu64 " %s %.*s", id,
                       is_unix ? "unix" : "tcp", (int)words.len, words.ptr);
    int err;

    if (u->successor == NULL || u->state != UPGRADE_RETIRED || len <= 0 ||
        (size_t)len >= sizeof(message) - 1) {
        return false;
    }
    err = send_message(u->successor->fd, fd, message);
    if (err == EAGAIN) {
        (void)uv_poll_start(&u->successor->poll, UV_READABLE | UV_WRITABLE,
                            on_successor);
    }
    return err == 0;
}

/* Our environment, with a few variables more. The texts of both are not copied. */
static char **make_environment(const char *const *more, char *last)
{
    size_t count = 0, more_count = 0;
    char **all;

    while (environ[count] != NULL) {
        count++;
    }
    while (more[more_count] != NULL) {
        more_count++;
    }
    all = xcalloc(count + more_count + 2, sizeof(*all));
    memcpy((void *)all, (void *)environ, count * sizeof(*all));
    memcpy((void *)(all + count), (const void *)more, more_count * sizeof(*all));
    all[count + more_count] = last;
    return all;
}

/* Runs a program as a child of our parent, or of init: a service manager sees its end,
 * and our own end does not concern it. `fd` stays open there. 0 or an errno. */
static int spawn_successor(const char *const *argv, char **env, int fd)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        pid = fork();
        if (pid != 0) {
            _exit(pid < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
        }
        (void)fcntl(fd, F_SETFD, 0);
        (void)execvpe(argv[0], (char *const *)(uintptr_t)argv, env);
        _exit(EXIT_NO_PROGRAM);
    }
    if (pid < 0) {
        return errno;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS ? 0 : EAGAIN;
}

bool upgrade_start(struct upgrade *u, const char *const *argv,
                   const char *const *variables, uint64_t now_ms)
{
    char variable[sizeof(FD_VARIABLE) + DIGITS_MAX + 1];
    char hello[WORDS_MAX];
    char **env;
    int pair[2];
    int err;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        log_error("server", "the upgrade failed: %s", strerror(errno));
        return false;
    }
    (void)snprintf(variable, sizeof(variable), FD_VARIABLE "=%d", pair[1]);
    env = make_environment(variables, variable);
    (void)snprintf(hello, sizeof(hello), HELLO " %d", UPGRADE_VERSION);
    send_words(pair[0], -1, hello);
    err = spawn_successor(argv, env, pair[1]);
    free((void *)env);
    (void)close(pair[1]);
    if (err == 0) {
        u->successor = talk_open(u, pair[0], on_successor);
    } else {
        (void)close(pair[0]);
    }
    if (u->successor == NULL) {
        log_error("server", "the upgrade failed: %s",
                  err == 0 ? "its socket cannot be watched" : strerror(err));
        return false;
    }
    set_state(u, UPGRADE_STARTING);
    u->give_up_ms = now_ms + UPGRADE_START_MS;
    return true;
}

void upgrade_tick(struct upgrade *u, uint64_t now_ms)
{
    /* Not once it was told to listen: whether it does is then its word. */
    if (u->state == UPGRADE_STARTING && now_ms >= u->give_up_ms) {
        upgrade_give_up(u, "the new one was not ready in time, see its log");
    }
}

/* --- the successor ---------------------------------------------------- */

static void fail_upgrade(struct upgrade *u, const char *why)
{
    log_error("server", "the upgrade failed: %s", why);
    talk_close(&u->predecessor);
    u->events.on_failed(u->events.ctx);
}

static void take_socket(struct upgrade *u, struct span words, int fd)
{
    struct span kind = span_next(&words, ' ');
    bool owns_file = next_is(&words, "file");

    for (int i = 0; i < UPGRADE_SOCKETS; i++) {
        if (fd >= 0 && span_eq(kind, span_str(SOCKET_WORDS[i]))) {
            if (!u->events.on_socket(u->events.ctx, (enum upgrade_socket)i, fd,
                                     owns_file)) {
                fail_upgrade(u, "a socket of the old latchd cannot be used");
            }
            return;
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    fail_upgrade(u, "the old latchd sent a socket that is not known");
}

static void take_client(struct upgrade *u, struct span words, int fd)
{
    struct span id_text = span_next(&words, ' ');
    bool is_unix = next_is(&words, "unix");
    uint64_t id;

    if (fd >= 0 && parse_u64(id_text, UINT64_MAX, &id)) {
        u->events.on_client(u->events.ctx, id, fd, is_unix, words);
    } else if (fd >= 0) {
        (void)close(fd);
    }
}

static void take_from_predecessor(struct upgrade *u, struct span words, int fd)
{
    struct span word = span_next(&words, ' ');
    char took[WORDS_MAX];
    uint64_t id;

    if (!u->took && span_eq(word, SPAN("socket"))) {
        take_socket(u, words, fd);
        return;
    }
    if (u->took && span_eq(word, SPAN("client"))) {
        take_client(u, words, fd);
        return;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (u->took) {
        log_warning("server", "the old latchd sent a message that is not known");
    } else if (!span_eq(word, SPAN("go")) ||
               !parse_u64(span_next(&words, ' '), UINT64_MAX, &id)) {
        fail_upgrade(u, "the old latchd sent a message that is not known");
    } else if (!u->events.on_go(u->events.ctx, id)) {
        fail_upgrade(u, "the new latchd cannot listen");
    } else {
        u->took = true;
        (void)snprintf(took, sizeof(took), "took %d", (int)getpid());
        send_words(u->predecessor->fd, -1, took);
    }
}

static void on_predecessor(uv_poll_t *poll, int status, int events)
{
    struct talk *t = poll->data;
    struct upgrade *u = t->upgrade;
    char words[WORDS_MAX];
    int fd;
    ssize_t len;

    /* The old one may send as fast as this one reads: the loop goes on in between. */
    for (unsigned n = 0; n < WORDS_PER_TURN && u->predecessor == t &&
                         (len = receive_words(t->fd, words, &fd)) >= 0;
         n++) {
        if (len > 0) {
            take_from_predecessor(u, span_of(words, (size_t)len), fd);
        } else if (!u->took) {
            fail_upgrade(u, "the old latchd gave it up, or has ended");
        } else {
            log_notice("server", "the old latchd has ended");
            talk_close(&u->predecessor);
        }
    }
}

/* Whether the first message has a version that is known here. */
static bool hear_hello(int fd)
{
    char words[WORDS_MAX] = "";
    struct span rest;
    uint64_t version = 0;
    int none;
    ssize_t len = receive_words(fd, words, &none);

    rest = span_of(words, len > 0 ? (size_t)len : 0);
    if (none >= 0) {
        (void)close(none);
    }
    if (next_is(&rest, HELLO) &&
        parse_u64(span_next(&rest, ' '), UINT64_MAX, &version) &&
        version == UPGRADE_VERSION) {
        return true;
    }
    log_error("server",
              "the upgrade failed: this latchd knows version %d of upgrades only, and "
              "the old latchd has version %" PRIu64 ": restart it instead",
              UPGRADE_VERSION, version);
    return false;
}

bool upgrade_join(struct upgrade *u)
{
    const char *text = getenv(FD_VARIABLE);
    uint64_t fd;

    if (text == NULL) {
        return true;
    }
    if (!parse_u64(span_str(text), INT32_MAX, &fd) ||
        fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0) {
        log_error("server", FD_VARIABLE " is not for you to set");
        return false;
    }
    (void)unsetenv(FD_VARIABLE);
    if (!hear_hello((int)fd)) {
        (void)close((int)fd);
        return false;
    }
    u->predecessor = talk_open(u, (int)fd, on_predecessor);
    return u->predecessor != NULL;
}

void upgrade_say_ready(struct upgrade *u)
{
    if (u->predecessor != NULL && !u->said_ready) {
        u->said_ready = true;
        send_words(u->predecessor->fd, -1, "ready");
    }
}

void upgrade_say_stop(struct upgrade *u)
{
    if (u->predecessor != NULL && u->took) {
        send_words(u->predecessor->fd, -1, "stop");
    } else {
        talk_close(&u->predecessor); /* it goes on alone */
    }
}
