#include "latchctl/link.h"

#include "latchctl/show.h"
#include "util/clock.h"
#include "util/text.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { READ_SIZE = 16384 };

static const char CLOSED[] = "latchd closed the connection";

static bool fail_link(struct link *l, const char *why)
{
    link_close(l);
    (void)snprintf(l->error, sizeof(l->error), "%s", why);
    return false;
}

void link_close(struct link *l)
{
    if (l->state != LINK_CLOSED) {
        (void)close(l->fd);
    }
    if (l->reader != NULL) {
        redisReaderFree(l->reader);
    }
    /* No closing message is sent: after fork() the other process goes on using the
     * session. */
    tls_session_free(l->tls);
    buf_reset(&l->out);
    buf_reset(&l->wire);
    l->tls = NULL;
    l->reader = NULL;
    l->greetings = 0;
    l->state = LINK_CLOSED;
}

static void send_greeting(struct link *l, const struct target *t)
{
    char name[HOST_NAME_COLUMNS + 32];

    if (t->password != NULL || t->user != NULL) {
        const char *password = t->password == NULL ? "" : t->password;
        const char *two[] = { "AUTH", password, NULL };
        const char *three[] = { "AUTH", t->user, password, NULL };

        link_send(l, t->user == NULL ? two : three);
        l->greetings++;
    }
    show_self(name, sizeof(name));
    link_send(l, (const char *[]){ "CLIENT", "SETNAME", name, NULL });
    l->greetings++;
}

static void set_options(int fd, int family)
{
    int on = 1;
    int first = 10;
    int silent = 20000;

    if (family == AF_UNIX) {
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &first, sizeof(first));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent, sizeof(silent));
}

static bool begin_tls(struct link *l, const struct target *t,
                      const struct target_address *to)
{
    char err[TARGET_ERROR_MAX];
    struct tls *tls;

    if (!target_wants_tls(t)) {
        return true;
    }
    tls = target_read_tls(t, err, sizeof(err));
    if (tls == NULL) {
        return fail_link(l, err);
    }
    l->tls = tls_session_new(tls, target_tls_name(t, to));
    tls_unref(tls);
    return true;
}

bool link_open(struct link *l, const struct target *t)
{
    const struct target_address *to;
    int family;

    link_close(l);
    l->refused = false;
    if (t->address_count == 0) {
        return fail_link(l, "the address is not known");
    }
    to = &t->addresses[l->turn++ % t->address_count];
    if (!begin_tls(l, t, to)) {
        return false;
    }
    family = to->addr.ss_family;
    l->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (l->fd < 0) {
        return fail_link(l, strerror(errno));
    }
    l->state = LINK_CONNECTING;
    l->reader = redisReaderCreate();
    set_options(l->fd, family);
    if (connect(l->fd, (const struct sockaddr *)&to->addr, to->len) != 0 &&
        errno != EINPROGRESS) {
        return fail_link(l, strerror(errno));
    }
    send_greeting(l, t);
    return true;
}

bool link_is_opening(const struct link *l)
{
    return l->state == LINK_CONNECTING || l->state == LINK_SHAKING_HANDS;
}

short link_events(const struct link *l)
{
    bool writes = buf_len(&l->wire) > 0;

    switch (l->state) {
    case LINK_CONNECTING:
        return POLLOUT;
    case LINK_OPEN:
        writes = writes || buf_len(&l->out) > 0;
        return (short)(POLLIN | (writes ? POLLOUT : 0));
    case LINK_SHAKING_HANDS:
        return (short)(POLLIN | (writes ? POLLOUT : 0));
    default:
        return 0;
    }
}

/* Sends what can be sent now. */
static bool send_some(struct link *l, struct buf *from)
{
    while (buf_len(from) > 0) {
        ssize_t n = send(l->fd, buf_ptr(from), buf_len(from), MSG_NOSIGNAL);

        if (n < 0) {
            return errno == EAGAIN || errno == EINTR || fail_link(l, strerror(errno));
        }
        buf_drop(from, (size_t)n);
    }
    return true;
}

/* Fails the link. Without any answer of latchd before, a new attempt would fail, too.
 */
static bool fail_tls(struct link *l)
{
    bool refused = l->greetings > 0;
    char why[TARGET_ERROR_MAX];

    tls_session_error(l->tls, why, sizeof(why));
    if (!send_some(l, &l->wire)) { /* it may have TLS's alert for latchd */
        return false;
    }
    (void)fail_link(l, why);
    l->refused = refused;
    return false;
}

static bool flush_output(struct link *l)
{
    if (l->tls == NULL) {
        return send_some(l, &l->out);
    }
    if (l->state == LINK_OPEN && buf_len(&l->out) > 0) {
        if (!tls_session_output(l->tls, buf_span(&l->out), &l->wire)) {
            return fail_tls(l);
        }
        buf_clear(&l->out);
    }
    return send_some(l, &l->wire);
}

static bool feed_reader(struct link *l, const char *data, size_t len)
{
    return redisReaderFeed(l->reader, data, len) == REDIS_OK ||
           fail_link(l, "what latchd answers is no answer");
}

/* Decrypts input. What came before the end of the session is passed on first, and then
 * the end is reported. */
static bool feed_decrypted(struct link *l, struct span in)
{
    char text[READ_SIZE + TLS_RECORDS_LEFT];
    size_t len;
    enum tls_state state =
        tls_session_input(l->tls, in, text, sizeof(text), &len, &l->wire);

    if (len > 0 && !feed_reader(l, text, len)) {
        return false;
    }
    switch (state) {
    case TLS_SHAKING_HANDS:
        return flush_output(l);
    case TLS_OPEN:
        l->state = LINK_OPEN;
        return flush_output(l);
    case TLS_ENDED:
        return len > 0 || fail_link(l, CLOSED);
    default:
        return fail_tls(l);
    }
}

static bool finish_connect(struct link *l)
{
    int err = 0;
    socklen_t len = sizeof(err);

    if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0) {
        err = errno;
    }
    if (err != 0) {
        return fail_link(l, strerror(err));
    }
    l->state = l->tls == NULL ? LINK_OPEN : LINK_SHAKING_HANDS;
    return l->tls == NULL || feed_decrypted(l, SPAN_NONE);
}

static bool take_in(struct link *l)
{
    char data[READ_SIZE];
    ssize_t n = recv(l->fd, data, sizeof(data), 0);

    if (n < 0) {
        return errno == EAGAIN || errno == EINTR || fail_link(l, strerror(errno));
    }
    if (n == 0) {
        return fail_link(l, CLOSED);
    }
    return l->tls == NULL ? feed_reader(l, data, (size_t)n)
                          : feed_decrypted(l, span_of(data, (size_t)n));
}

bool link_work(struct link *l, short revents)
{
    if (l->state == LINK_CONNECTING && revents != 0 && !finish_connect(l)) {
        return false;
    }
    if (l->state == LINK_CLOSED || l->state == LINK_CONNECTING) {
        return l->state != LINK_CLOSED;
    }
    /* Reads first: if latchd has closed, its last answer says why, and is lost once
     * something is sent. */
    if ((revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !take_in(l)) {
        return false;
    }
    return flush_output(l);
}

void link_send(struct link *l, const char *const *words)
{
    const char *argv[LINK_WORDS_MAX];
    char *text = NULL;
    int argc = 0;
    int len;

    if (l->state == LINK_CLOSED) {
        return;
    }
    for (; argc < LINK_WORDS_MAX && words[argc] != NULL; argc++) {
        argv[argc] = words[argc];
    }
    len = redisFormatCommandArgv(&text, argc, argv, NULL);
    if (len > 0) {
        buf_add(&l->out, text, (size_t)len);
    }
    free(text);
}

redisReply *link_reply(struct link *l)
{
    void *reply = NULL;

    while (l->state == LINK_OPEN) {
        redisReply *r;

        if (redisReaderGetReply(l->reader, &reply) != REDIS_OK) {
            (void)fail_link(l, "what latchd answers is no answer");
            return NULL;
        }
        r = reply;
        if (r == NULL || l->greetings == 0) {
            return r;
        }
        l->greetings--;
        /* Without the right to set a name the link stays nameless; a wrong password
         * ends it. */
        if (l->greetings > 0 && r->type == REDIS_REPLY_ERROR) {
            (void)fail_link(l, r->str);
            l->refused = true;
        }
        freeReplyObject(r);
    }
    return NULL;
}

static bool wait_for(struct link *l, uint64_t end)
{
    uint64_t now = clock_boot_ms();
    struct pollfd fd = { .fd = l->fd, .events = link_events(l) };

    if (now >= end) {
        return fail_link(l, "no answer in time");
    }
    (void)poll(&fd, 1, (int)(end - now < 1000 ? end - now : 1000));
    return link_work(l, fd.revents);
}

bool link_connect(struct link *l, struct target *t, uint64_t timeout_ms)
{
    if (!target_resolve(t, l->error, sizeof(l->error))) {
        return false;
    }
    for (size_t i = 0; i < t->address_count; i++) {
        /* An address that never answers leaves time for the others. */
        uint64_t end = clock_boot_ms() + timeout_ms / t->address_count;
        bool going = link_open(l, t);

        while (going && link_is_opening(l)) {
            going = wait_for(l, end);
        }
        if (going) {
            return true;
        }
    }
    return false;
}

redisReply *link_wait(struct link *l, uint64_t timeout_ms)
{
    uint64_t end = clock_boot_ms() + timeout_ms;
    redisReply *reply = NULL;

    while (l->state != LINK_CLOSED && (reply = link_reply(l)) == NULL &&
           l->state != LINK_CLOSED && wait_for(l, end)) {
    }
    return reply;
}

bool reply_is_error(const redisReply *reply, const char *word)
{
    size_t len = strlen(word);

    return reply->type == REDIS_REPLY_ERROR && (size_t)reply->len >= len &&
           memcmp(reply->str, word, len) == 0 &&
           (reply->str[len] == ' ' || reply->str[len] == '\0');
}

enum { ANSWER_MS = 10000 };

bool ask_open(struct link *l, struct options *o)
{
    if (!link_connect(l, &o->target, ANSWER_MS)) {
        print_message("latchd at %s: %s",
                      o->target.about == NULL ? o->target.host : o->target.about,
                      l->error);
        return false;
    }
    return true;
}

static redisReply *send_words(struct link *l, const char *const *words)
{
    redisReply *reply;

    link_send(l, words);
    reply = link_wait(l, ANSWER_MS);
    if (reply == NULL) {
        print_message("%s", l->error);
    }
    return reply;
}

redisReply *ask_quietly(struct link *l, const char *const *words)
{
    redisReply *reply = send_words(l, words);

    if (reply != NULL && reply->type == REDIS_REPLY_ERROR) {
        freeReplyObject(reply);
        return NULL;
    }
    return reply;
}

redisReply *ask_daemon(struct link *l, const char *const *words)
{
    redisReply *reply = send_words(l, words);

    if (reply != NULL && reply->type == REDIS_REPLY_ERROR) {
        print_message("%s", reply->str);
        freeReplyObject(reply);
        return NULL;
    }
    return reply;
}

/* --- reading answers -------------------------------------------------- */

size_t reply_count(const redisReply *reply)
{
    return reply == NULL || reply->type != REDIS_REPLY_ARRAY ? 0 : reply->elements;
}

const redisReply *reply_at(const redisReply *reply, size_t index)
{
    return index < reply_count(reply) ? reply->element[index] : NULL;
}

struct span reply_text(const redisReply *reply)
{
    return reply == NULL || (reply->type != REDIS_REPLY_STRING &&
                             reply->type != REDIS_REPLY_STATUS)
               ? SPAN("")
               : span_of(reply->str, (size_t)reply->len);
}

const redisReply *reply_get(const redisReply *map, const char *key)
{
    for (size_t i = 0; i + 1 < reply_count(map); i += 2) {
        if (span_eq(reply_text(map->element[i]), span_str(key))) {
            return map->element[i + 1];
        }
    }
    return NULL;
}

bool reply_has_number(const redisReply *reply)
{
    return reply != NULL && reply->type == REDIS_REPLY_INTEGER;
}

uint64_t reply_number(const redisReply *reply)
{
    return reply_has_number(reply) && reply->integer > 0 ? (uint64_t)reply->integer : 0;
}

/* Finds the text after `key` and `mark`, up to one of `ends`; `key` is at the start of
 * the text, or after one of `ends`. */
static struct span find_value(struct span text, const char *key, char mark,
                              const char *ends)
{
    size_t len = strlen(key);
    bool start = true;

    for (size_t i = 0; i + len < text.len; i++) {
        if (start && memcmp(text.ptr + i, key, len) == 0 && text.ptr[i + len] == mark) {
            struct span rest = span_after(text, i + len + 1);
            size_t n = 0;

            while (n < rest.len && strchr(ends, rest.ptr[n]) == NULL) {
                n++;
            }
            return span_of(rest.ptr, n);
        }
        start = strchr(ends, text.ptr[i]) != NULL;
    }
    return SPAN("");
}

struct span line_get(struct span line, const char *key)
{
    return find_value(line, key, '=', " \r\n");
}

struct span info_get(struct span info, const char *key)
{
    return find_value(info, key, ':', "\r\n");
}

uint64_t info_number(struct span info, const char *key)
{
    uint64_t number;

    return parse_u64(info_get(info, key), UINT64_MAX, &number) ? number : 0;
}
