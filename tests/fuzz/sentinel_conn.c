#include "sentinel_conn.h"

#include "backend/redis/redis_command.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/fifo.h"
#include "util/list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { TICK_MS = 750 };

enum state { IDLE, WAITING, OPEN, CLOSED };

struct question {
    redis_reply_fn *on_reply;
    void *of;
    uint64_t asked_us;
};

struct redis_conn {
    struct list in_all;
    const struct redis_conn_events *events;
    const struct backend_url *url;
    void *ctx;
    enum state state;
    uint64_t timeout_ms, heard_us, tick_ms;
    struct buf out;
    struct fifo questions; /* struct question each */
    bool pings;
    bool said; /* anything, since it was opened */
    enum asked asked[ASKED_MAX];
    size_t asked_count;
    redisReader *reader;
    char address[512];
};

static struct {
    struct conns_rules rules;
    struct list all;
    uint64_t now_ms;
    uv_timer_t *timer;
    uv_timer_cb on_timer;
    uint64_t due_ms;
} net;

void sentinel_fail(const char *what)
{
    (void)fprintf(stderr, "%s\n", what);
    abort();
}

/* --- a clock, and a timer --------------------------------------------------------- */

uint64_t clock_boot_us(void)
{
    return net.now_ms * 1000;
}

uint64_t clock_boot_ms(void)
{
    return net.now_ms;
}

uint64_t clock_wall_us(void)
{
    return net.now_ms * 1000;
}

int uv_timer_init(uv_loop_t *loop, uv_timer_t *handle)
{
    net.timer = handle;
    net.on_timer = NULL;
    return 0;
}

int uv_timer_start(uv_timer_t *handle, uv_timer_cb cb, uint64_t timeout,
                   uint64_t repeat)
{
    if (handle != net.timer || repeat != 0) {
        sentinel_fail("a timer that is not known");
    }
    net.on_timer = cb;
    net.due_ms = net.now_ms + timeout;
    return 0;
}

void uv_update_time(uv_loop_t *loop)
{
}

void uv_close(uv_handle_t *handle, uv_close_cb cb)
{
    if (handle != (uv_handle_t *)net.timer || cb != NULL) {
        sentinel_fail("a handle that is not known");
    }
    net.timer = NULL;
    net.on_timer = NULL;
}

/* --- all of them ------------------------------------------------------------------ */

void conns_begin(const struct conns_rules *rules)
{
    net.rules = *rules;
    net.now_ms = 1000000;
    net.timer = NULL;
    net.on_timer = NULL;
    list_init(&net.all);
}

void conns_set_now(uint64_t ms)
{
    net.now_ms = ms;
}

uint64_t conns_now(void)
{
    return net.now_ms;
}

size_t conns_count(void)
{
    size_t count = 0;
    struct redis_conn *conn;

    LIST_EACH(conn, &net.all, in_all) {
        count += conn->state != CLOSED;
    }
    return count;
}

struct redis_conn *conns_at(size_t n)
{
    size_t count = conns_count();
    struct redis_conn *c;

    n = count == 0 ? 0 : n % count;
    LIST_EACH(c, &net.all, in_all) {
        if (c->state != CLOSED && n-- == 0) {
            return c;
        }
    }
    return NULL;
}

void conns_end_turn(void)
{
    struct redis_conn *c;

    LIST_EACH_SAFE(c, &net.all, in_all) {
        if (c->state == OPEN && buf_len(&c->out) != 0) {
            sentinel_fail("something was written, and not sent");
        }
        if (c->state == CLOSED) {
            list_del(&c->in_all);
            buf_reset(&c->out);
            free(c);
        }
    }
}

static bool is_silent(const struct redis_conn *c, uint64_t since_us)
{
    uint64_t from = since_us > c->heard_us ? since_us : c->heard_us;

    return clock_boot_us() - from > c->timeout_ms * 1000;
}

static void tick(struct redis_conn *c)
{
    const struct question *first = fifo_first(&c->questions);

    c->tick_ms = net.now_ms + TICK_MS;
    if (first != NULL && is_silent(c, first->asked_us)) {
        redis_conn_fail(c, "it is silent");
    } else if (first == NULL && c->pings) {
        redis_conn_ask(c, 1, (const char *const[]){ "PING" }, NULL, NULL);
    }
    redis_conn_flush(c);
}

bool conns_run_timer(uint64_t until_ms)
{
    struct redis_conn *first = NULL;
    struct redis_conn *c;
    uint64_t due = net.on_timer == NULL ? UINT64_MAX : net.due_ms;

    LIST_EACH(c, &net.all, in_all) {
        if (c->state == OPEN && c->tick_ms < due) {
            first = c;
            due = c->tick_ms;
        }
    }
    if (due > until_ms) {
        return false;
    }
    net.now_ms = due > net.now_ms ? due : net.now_ms;
    if (first != NULL) {
        tick(first);
    } else {
        uv_timer_cb cb = net.on_timer;

        net.on_timer = NULL;
        cb(net.timer);
    }
    return true;
}

/* --- what is said on them --------------------------------------------------------- */

static bool is_word(const redisReply *request, size_t i, const char *word)
{
    return i < (size_t)request->elements &&
           strcasecmp(request->element[i]->str, word) == 0;
}

static enum asked kind_of(const redisReply *request)
{
    bool names = is_word(request, 2, net.rules.master) && request->elements == 3;

    if (is_word(request, 0, "AUTH")) {
        return ASKED_AUTH;
    }
    if (is_word(request, 0, "PING") ||
        (is_word(request, 0, "SUBSCRIBE") && is_word(request, 1, "+switch-master"))) {
        return ASKED_NEWS;
    }
    if (!is_word(request, 0, "SENTINEL")) {
        sentinel_fail("a Sentinel is not asked that");
    }
    if (is_word(request, 1, "MYID")) {
        return ASKED_ID;
    }
    if (!names) {
        sentinel_fail("a Sentinel is asked of somebody else");
    }
    return is_word(request, 1, "SENTINELS") ? ASKED_OTHERS
           : is_word(request, 1, "MASTER")  ? ASKED_EPOCH
                                            : ASKED_PLACE;
}

static void note(struct redis_conn *c, const redisReply *request)
{
    enum asked kind;

    if (request->type != REDIS_REPLY_ARRAY || request->elements == 0) {
        sentinel_fail("a request that is none");
    }
    kind = kind_of(request);
    if (!c->said && (kind == ASKED_AUTH) != net.rules.wants_auth) {
        sentinel_fail("the first thing to say is who we are, if that is wanted");
    }
    c->said = true;
    if (c->asked_count == ASKED_MAX) {
        sentinel_fail("it is asked on and on");
    }
    c->asked[c->asked_count++] = kind;
}

void redis_conn_flush(struct redis_conn *c)
{
    redisReader *reader;
    void *request = NULL;

    if (c->state != OPEN || buf_len(&c->out) == 0) {
        return;
    }
    reader = redisReaderCreate();
    (void)redisReaderFeed(reader, buf_ptr(&c->out), buf_len(&c->out));
    buf_clear(&c->out);
    while (redisReaderGetReply(reader, &request) == REDIS_OK && request != NULL) {
        note(c, request);
        freeReplyObject(request);
    }
    if (reader->err != 0 || reader->len != reader->pos) {
        sentinel_fail("half a request");
    }
    redisReaderFree(reader);
}

size_t conn_asked(const struct redis_conn *c, enum asked ret[ASKED_MAX])
{
    memcpy(ret, c->asked, c->asked_count * sizeof(ret[0]));
    return c->asked_count;
}

/* --- what the input does ---------------------------------------------------------- */

void conn_open(struct redis_conn *c)
{
    if (c == NULL || c->state != WAITING) {
        return;
    }
    c->state = OPEN;
    c->reader = redisReaderCreate();
    c->heard_us = clock_boot_us();
    c->tick_ms = net.now_ms + TICK_MS;
    c->said = false;
    c->asked_count = 0;
    (void)redis_conn_auth(c, NULL);
    c->events->on_open(c->ctx);
    redis_conn_flush(c);
}

static void hang_up(struct redis_conn *c, enum state state)
{
    if (c->reader != NULL) {
        redisReaderFree(c->reader);
        c->reader = NULL;
    }
    buf_reset(&c->out);
    fifo_fini(&c->questions);
    c->asked_count = 0;
    c->state = state;
}

void conn_break(struct redis_conn *c)
{
    if (c == NULL || c->state == IDLE) {
        return;
    }
    if (c->state == OPEN) {
        redis_conn_fail(c, "it broke");
    } else if (c->state == WAITING && c->events->on_refused != NULL) {
        c->events->on_refused(c->ctx);
    }
}

static void answer(struct redis_conn *c, const redisReply *reply)
{
    struct question q;

    if (!fifo_pop(&c->questions, &q)) {
        redis_conn_fail(c, "it answers what was not asked");
        return;
    }
    c->asked_count--;
    memmove(c->asked, c->asked + 1, c->asked_count * sizeof(c->asked[0]));
    if (q.on_reply != NULL) {
        q.on_reply(c->ctx, q.of, reply);
    } else if (reply->type == REDIS_REPLY_ERROR) {
        redis_conn_fail(c, "%s", reply->str);
    }
}

void conn_receive(struct redis_conn *c, struct span bytes)
{
    redisReader *reader = c == NULL ? NULL : c->reader;
    void *reply = NULL;

    if (c == NULL || c->state != OPEN) {
        return;
    }
    c->heard_us = clock_boot_us();
    if (c->reader == reader) {
        (void)redisReaderFeed(reader, bytes.ptr, bytes.len);
    }
    while (c->reader == reader) {
        if (redisReaderGetReply(reader, &reply) != REDIS_OK) {
            redis_conn_fail(c, "it does not speak Redis's protocol");
            return;
        }
        if (reply == NULL) {
            return;
        }
        if (c->events->on_push == NULL || !c->events->on_push(c->ctx, reply)) {
            answer(c, reply);
        }
        freeReplyObject(reply);
        if (c->reader == reader) {
            redis_conn_flush(c);
        }
    }
}

/* --- backend/redis/redis_conn.h
 * ----------------------------------------------------------- */

struct redis_conn *redis_conn_new(const struct redis_conn_setup *setup)
{
    struct redis_conn *c = xcalloc(1, sizeof(*c));

    c->events = setup->events;
    c->ctx = setup->ctx;
    c->url = setup->url;
    c->pings = setup->pings;
    c->timeout_ms = setup->timeout_ms;
    (void)snprintf(c->address, sizeof(c->address), "%s:%s", c->url->host, c->url->port);
    list_append(&net.all, &c->in_all);
    return c;
}

void redis_conn_start(struct redis_conn *c)
{
    if (c->state != IDLE) {
        sentinel_fail("it is started twice");
    }
    c->state = WAITING;
}

void redis_conn_set_timeout(struct redis_conn *c, uint64_t timeout_ms)
{
    c->timeout_ms = timeout_ms;
}

struct buf *redis_conn_out(struct redis_conn *c)
{
    if (c->state != OPEN) {
        sentinel_fail("something is said to nobody");
    }
    return &c->out;
}

void redis_conn_ask(struct redis_conn *c, size_t count, const char *const *words,
                    redis_reply_fn *on_reply, void *of)
{
    struct question *q;

    command_words(redis_conn_out(c), count, words);
    q = fifo_push(&c->questions, sizeof(*q));
    q->on_reply = on_reply;
    q->of = of;
    q->asked_us = clock_boot_us();
}

bool redis_conn_auth(struct redis_conn *c, redis_reply_fn *on_reply)
{
    if (c->url->password != NULL) {
        redis_conn_ask(c, 2, (const char *const[]){ "AUTH", "p" }, on_reply, NULL);
    }
    return c->url->password != NULL;
}

void redis_conn_take_reply(struct redis_conn *c)
{
    sentinel_fail("nobody takes replies here");
}

void redis_conn_ready(struct redis_conn *c, const char *about)
{
    if (c->state != OPEN) {
        sentinel_fail("ready, and not open");
    }
}

void redis_conn_fail(struct redis_conn *c, const char *fmt, ...)
{
    if (c->state == OPEN) {
        hang_up(c, WAITING);
        if (c->events->on_lost != NULL) {
            c->events->on_lost(c->ctx);
        }
    }
}

void redis_conn_move(struct redis_conn *c)
{
    sentinel_fail("a Sentinel does not move");
}

uint64_t redis_conn_heard_us(const struct redis_conn *c)
{
    return c->heard_us;
}

const char *redis_conn_address(const struct redis_conn *c)
{
    return c->address;
}

void redis_conn_close(struct redis_conn *c)
{
    if (c != NULL && c->state != CLOSED) {
        hang_up(c, CLOSED);
    }
}
