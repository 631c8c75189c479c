#include "backend/redis/redis_conn.h"

#include "backend/redis/redis_command.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/fifo.h"
#include "util/list.h"
#include "util/log.h"
#include "util/text.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    BACKOFF_FIRST_MS = 50,
    BACKOFF_MAX_MS = 250, /* what names are withheld for goes by it: engine/peers.h */
    TICK_MIN_MS = 10,
    TICK_MAX_MS = 1000,
    STALL_MS = 500, /* a tick that late: this process stood still */
    KEEPALIVE_S = 10,
    REASON_ROOM = 256,
    ADDRESS_ROOM = 160,
};

struct question {
    redis_reply_fn *on_reply;
    void *of;
    uint64_t asked_us;
    uint32_t patience_ms; /* in addition to the timeout */
    uint32_t replies;     /* still to come */
};

enum conn_state { CONN_WAITING, CONN_CONNECTING, CONN_OPEN, CONN_CLOSED };

struct redis_conn {
    uv_timer_t timer;
    struct io *io;
    const struct backend_url *url;
    const char *module;
    const char *what;
    enum log_level loss_level, ready_level;
    uint64_t backoff_max_ms;
    uint64_t timeout_ms;
    uint64_t dice;
    const struct redis_conn_events *events;
    void *ctx;
    enum conn_state state;
    struct stream *stream;
    redisReader *reader;
    struct resp3 *resp3; /* NULL: RESP2 */
    bool reply_taken;    /* the one that is being handed over */
    struct buf out;
    struct fifo questions; /* struct question each */
    bool pings;
    unsigned attempts;
    uint64_t heard_us;
    uint64_t asked_us; /* of the question that was answered last */
    uint64_t tick_due_us;
    bool ready;
    char reason[REASON_ROOM]; /* why it is of no use; empty: all is well */
    bool reason_told;         /* the log has it */
    bool is_refused;          /* the owner's reason: the server answers */
    struct log_recent told;   /* lately */
    char address[ADDRESS_ROOM];
};

static void arm_timer(struct redis_conn *c, uint64_t ms);

/* --- connecting ---------------------------------------------------------------------
 */

static uint64_t roll_dice(struct redis_conn *c)
{
    c->dice ^= c->dice << 13;
    c->dice ^= c->dice >> 7;
    c->dice ^= c->dice << 17;
    return c->dice;
}

static uint64_t backoff_ms(struct redis_conn *c)
{
    uint64_t ms = BACKOFF_FIRST_MS;

    for (unsigned i = 0; i < c->attempts && ms < c->backoff_max_ms; i++) {
        ms *= 2;
    }
    if (ms > c->backoff_max_ms) {
        ms = c->backoff_max_ms;
    }
    c->attempts++;
    return ms / 2 + roll_dice(c) % (ms / 2 + 1);
}

static uint64_t tick_ms(const struct redis_conn *c)
{
    uint64_t ms = c->timeout_ms / 4;

    if (ms < TICK_MIN_MS) {
        return TICK_MIN_MS;
    }
    return ms > TICK_MAX_MS ? TICK_MAX_MS : ms;
}

static void log_reason(struct redis_conn *c, const char *reason)
{
    if (strcmp(reason, c->reason) != 0) {
        c->reason_told = false;
        (void)snprintf(c->reason, sizeof(c->reason), "%s", reason);
    }
    if (c->reason_told || !log_is_news(&c->told, reason)) {
        return;
    }
    c->reason_told = true;
    log_write(c->loss_level, c->module,
              "%s %s: %s; trying again: see that %s runs, can be reached and lets "
              "latchd in",
              c->ready ? "lost" : "cannot use", c->address, reason, c->what);
}

/* Back to WAITING, whatever it was; to be armed by the caller. */
static void hang_up(struct redis_conn *c)
{
    stream_close(c->stream);
    c->stream = NULL;
    if (c->reader != NULL) {
        redisReaderFree(c->reader);
        c->reader = NULL;
    }
    buf_reset(&c->out);
    fifo_fini(&c->questions);
    c->state = CONN_WAITING;
    c->ready = false;
}

static void tell_lost(struct redis_conn *c)
{
    if (c->events->on_lost != NULL) {
        c->events->on_lost(c->ctx);
    }
}

static void drop_conn(struct redis_conn *c, const char *reason)
{
    bool was_open = c->state == CONN_OPEN;

    log_reason(c, reason);
    hang_up(c);
    arm_timer(c, backoff_ms(c));
    if (was_open) {
        tell_lost(c);
    } else if (c->events->on_refused != NULL) {
        c->events->on_refused(c->ctx);
    }
}

static void write_address(struct redis_conn *c)
{
    if (c->url->unix_path != NULL) {
        (void)snprintf(c->address, sizeof(c->address), "unix:%s", c->url->unix_path);
    } else {
        (void)snprintf(c->address, sizeof(c->address), "%s:%s", c->url->host,
                       c->url->port);
    }
}

void redis_conn_move(struct redis_conn *c)
{
    bool was_open = c->state == CONN_OPEN;

    if (c->state == CONN_CLOSED) {
        return;
    }
    hang_up(c);
    write_address(c);
    c->attempts = 0;
    c->reason[0] = '\0';
    c->is_refused = false;
    arm_timer(c, 0);
    if (was_open) {
        tell_lost(c);
    }
}

static void drop_with_reason(struct redis_conn *c, bool is_refused, const char *fmt,
                             va_list ap) __attribute__((format(printf, 3, 0)));

static void drop_with_reason(struct redis_conn *c, bool is_refused, const char *fmt,
                             va_list ap)
{
    char reason[REASON_ROOM];

    if (c->state != CONN_OPEN && c->state != CONN_CONNECTING) {
        return;
    }
    (void)vsnprintf(reason, sizeof(reason), fmt, ap);
    c->is_refused = is_refused;
    drop_conn(c, reason);
}

void redis_conn_fail(struct redis_conn *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    drop_with_reason(c, true, fmt, ap);
    va_end(ap);
}

/* The server does not answer. */
static void fail_silent(struct redis_conn *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void fail_silent(struct redis_conn *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    drop_with_reason(c, false, fmt, ap);
    va_end(ap);
}

static void fail_uv(struct redis_conn *c, int status)
{
    char text[128];

    if (status == UV_EOF) {
        fail_silent(c, "it closed the connection");
        return;
    }
    (void)uv_strerror_r(status, text, sizeof(text));
    fail_silent(c, "%s", text);
}

static void on_connect(void *ctx, int status)
{
    struct redis_conn *c = ctx;

    if (status != 0) {
        fail_uv(c, status);
        return;
    }
    c->state = CONN_OPEN;
    c->reader = redisReaderCreate();
    if (c->reader == NULL) {
        abort();
    }
    if (c->resp3 != NULL) {
        *c->resp3 = (struct resp3){ 0 };
    }
    c->heard_us = clock_boot_us();
    arm_timer(c, tick_ms(c));
    (void)redis_conn_auth(c, NULL);
    c->events->on_open(c->ctx);
    redis_conn_flush(c);
}

/* --- RESP3 ------------------------------------------------------------------------ */

static void put_line(struct buf *out, char type, const char *rest)
{
    buf_add(out, &type, 1);
    buf_add_str(out, rest);
    buf_add_str(out, "\r\n");
}

/* A line without its end. */
static bool convert_line(struct resp3 *r, struct buf *out)
{
    char count[DIGITS_MAX + 1];
    const char *rest = r->line + 1;
    uint64_t number = 0;

    switch (r->line[0]) {
    case '%':
        if (!parse_u64(span_str(rest), INT32_MAX / 2, &number)) {
            return false;
        }
        (void)snprintf(count, sizeof(count), "%llu", (unsigned long long)number * 2);
        put_line(out, '*', count);
        return true;
    case '>':
    case '~':
        put_line(out, '*', rest);
        return true;
    case '_':
        put_line(out, '$', "-1");
        return true;
    case '#':
        put_line(out, ':', rest[0] == 't' ? "1" : "0");
        return true;
    case ',':
    case '(':
        put_line(out, '+', rest);
        return true;
    case '=':
    case '$':
        if (strcmp(rest, "-1") != 0) {
            if (!parse_u64(span_str(rest), INT32_MAX, &number)) {
                return false;
            }
            r->left = number + 2;
        }
        put_line(out, '$', rest);
        return true;
    default: /* the types of RESP2, and what hiredis refuses */
        put_line(out, r->line[0], rest);
        return true;
    }
}

bool resp3_to_resp2(struct resp3 *r, struct span data, struct buf *out)
{
    const char *at = data.ptr, *end = data.ptr + data.len;

    while (at < end) {
        if (r->left > 0) {
            size_t len = r->left < (size_t)(end - at) ? r->left : (size_t)(end - at);

            buf_add(out, at, len);
            at += len;
            r->left -= len;
        } else if (r->len == sizeof(r->line)) {
            return false;
        } else {
            r->line[r->len++] = *at++;
            if (r->len >= 3 && memcmp(r->line + r->len - 2, "\r\n", 2) == 0) {
                r->line[r->len - 2] = '\0';
                r->len = 0;
                if (!convert_line(r, out)) {
                    return false;
                }
            }
        }
    }
    return true;
}

/* --- replies ---------------------------------------------------------------------- */

static void answer_question(struct redis_conn *c, const redisReply *reply)
{
    bool is_error = reply->type == REDIS_REPLY_ERROR;
    struct question *first = fifo_first(&c->questions);
    struct question q;

    if (first == NULL) {
        redis_conn_fail(c, "it answers what was not asked");
        return;
    }
    q = *first;
    c->asked_us = q.asked_us;
    first->replies--;
    if (is_error || first->replies == 0) {
        (void)fifo_pop(&c->questions, &q);
    }
    if (q.on_reply != NULL) {
        q.on_reply(c->ctx, q.of, reply);
    } else if (is_error) {
        redis_conn_fail(c, "%s", reply->str);
    }
}

/* The error of a server that closes a connection which it does not want. It answers no
 * question, but its owner would take it for an answer. */
static bool is_turned_away(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR &&
           (strncmp(reply->str, "ERR max number of clients", 25) == 0 ||
            strncmp(reply->str, "DENIED ", 7) == 0);
}

static bool feed_reader(struct redis_conn *c, const char *data, size_t len)
{
    struct buf resp2 = { 0 };
    bool fed;

    if (c->resp3 == NULL) {
        return redisReaderFeed(c->reader, data, len) == REDIS_OK;
    }
    fed = resp3_to_resp2(c->resp3, span_of(data, len), &resp2) &&
          redisReaderFeed(c->reader, buf_ptr(&resp2), buf_len(&resp2)) == REDIS_OK;
    buf_reset(&resp2);
    return fed;
}

static void on_read(void *ctx, const char *data, size_t len)
{
    struct redis_conn *c = ctx;
    redisReader *reader = c->reader;

    c->heard_us = clock_boot_us();
    if (!feed_reader(c, data, len)) {
        redis_conn_fail(c, "it does not speak Redis's protocol");
        return;
    }
    /* A callback may drop the connection, and the reader with it. */
    while (c->reader == reader) {
        void *reply = NULL;

        if (redisReaderGetReply(reader, &reply) != REDIS_OK) {
            redis_conn_fail(c, "it does not speak Redis's protocol");
            return;
        }
        if (reply == NULL) {
            redis_conn_flush(c);
            return;
        }
        c->reply_taken = false;
        if (is_turned_away(reply)) {
            redis_conn_fail(c, "%s", ((redisReply *)reply)->str);
        } else if (c->events->on_push == NULL || !c->events->on_push(c->ctx, reply)) {
            answer_question(c, reply);
        }
        if (!c->reply_taken) {
            freeReplyObject(reply);
        }
    }
}

static void on_end(void *ctx, int status, bool unread)
{
    fail_uv(ctx, status);
}

static const struct stream_events STREAM_EVENTS = {
    .on_connect = on_connect,
    .on_read = on_read,
    .on_end = on_end,
};

static void connect_now(struct redis_conn *c)
{
    struct stream_options opt = { .keepalive_s = KEEPALIVE_S,
                                  .user_timeout_ms = c->timeout_ms,
                                  .tls = c->url->tls };
    int r;

    c->state = CONN_CONNECTING;
    if (c->url->unix_path != NULL) {
        r = stream_connect_unix(c->io, c->url->unix_path, &STREAM_EVENTS, c,
                                &c->stream);
    } else {
        r = stream_connect_tcp(c->io, c->url->host, c->url->port, &opt, &STREAM_EVENTS,
                               c, &c->stream);
    }
    if (r != 0) {
        c->stream = NULL;
        fail_uv(c, r);
        return;
    }
    arm_timer(c, c->timeout_ms);
}

/* --- time ------------------------------------------------------------------------ */

/* Drops the connection if nothing was received for the timeout, while a question is
 * open. */
static void check_silence(struct redis_conn *c)
{
    const struct question *first = fifo_first(&c->questions);
    uint64_t now = clock_boot_us();
    uint64_t from;

    if (first != NULL) {
        from = first->asked_us + first->patience_ms * UINT64_C(1000);
        from = from > c->heard_us ? from : c->heard_us;
        if (now > from && now - from > c->timeout_ms * 1000) {
            fail_silent(c, "no answer for %llu ms", (unsigned long long)c->timeout_ms);
        }
    }
}

static void run_tick(struct redis_conn *c)
{
    check_silence(c);
    if (c->state == CONN_OPEN && c->pings && c->questions.count == 0) {
        redis_conn_ask(c, 1, (const char *const[]){ "PING" }, NULL, NULL);
    }
    if (c->state == CONN_OPEN && c->events->on_tick != NULL) {
        c->events->on_tick(c->ctx);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct redis_conn *c = container_of(timer, struct redis_conn, timer);

    switch (c->state) {
    case CONN_WAITING:
        connect_now(c);
        break;
    case CONN_CONNECTING:
        fail_silent(c, "no connection within %llu ms",
                    (unsigned long long)c->timeout_ms);
        break;
    case CONN_OPEN:
        if (clock_boot_us() > c->tick_due_us + (uint64_t)STALL_MS * 1000) {
            /* The process was stopped: answers may wait to be read. */
            c->heard_us = clock_boot_us();
        }
        arm_timer(c, tick_ms(c));
        run_tick(c);
        redis_conn_flush(c);
        break;
    case CONN_CLOSED:
        break;
    }
}

static void arm_timer(struct redis_conn *c, uint64_t ms)
{
    c->tick_due_us = clock_boot_us() + ms * 1000;
    uv_update_time(c->io->loop);
    (void)uv_timer_start(&c->timer, on_timer, ms, 0);
}

/* --- for the owner --------------------------------------------------------------- */

struct redis_conn *redis_conn_new(const struct redis_conn_setup *setup)
{
    struct redis_conn *c = xcalloc(1, sizeof(*c));

    c->io = setup->io;
    c->url = setup->url;
    c->module = setup->module;
    c->what = setup->what == NULL ? "Redis" : setup->what;
    c->pings = setup->pings;
    c->resp3 = setup->is_resp3 ? xcalloc(1, sizeof(*c->resp3)) : NULL;
    c->loss_level = setup->is_quiet ? LOG_DEBUG : LOG_WARNING;
    c->ready_level = setup->is_quiet ? LOG_DEBUG : LOG_NOTICE;
    c->backoff_max_ms =
        setup->backoff_max_ms == 0 ? BACKOFF_MAX_MS : setup->backoff_max_ms;
    c->timeout_ms = setup->timeout_ms;
    c->dice = setup->seed | 1;
    c->events = setup->events;
    c->ctx = setup->ctx;
    write_address(c);
    (void)uv_timer_init(c->io->loop, &c->timer);
    return c;
}

void redis_conn_start(struct redis_conn *c)
{
    arm_timer(c, 0);
}

void redis_conn_set_timeout(struct redis_conn *c, uint64_t timeout_ms)
{
    c->timeout_ms = timeout_ms;
}

const char *redis_conn_trouble(const struct redis_conn *c)
{
    return c->is_refused ? c->reason : NULL;
}

void redis_conn_take_reply(struct redis_conn *c)
{
    c->reply_taken = true;
}

struct buf *redis_conn_out(struct redis_conn *c)
{
    return &c->out;
}

void redis_conn_flush(struct redis_conn *c)
{
    if (c->state == CONN_OPEN && buf_len(&c->out) > 0) {
        stream_send(c->stream, &c->out);
    }
}

void redis_conn_ask(struct redis_conn *c, size_t count, const char *const *words,
                    redis_reply_fn *on_reply, void *of)
{
    command_words(&c->out, count, words);
    redis_conn_expect(c, 1, on_reply, of);
}

void redis_conn_expect(struct redis_conn *c, unsigned replies, redis_reply_fn *on_reply,
                       void *of)
{
    struct question *q = fifo_push(&c->questions, sizeof(*q));

    q->on_reply = on_reply;
    q->of = of;
    q->asked_us = clock_boot_us();
    q->replies = replies;
}

void redis_conn_be_patient(struct redis_conn *c, uint64_t ms)
{
    struct question *last = fifo_at(&c->questions, c->questions.count - 1);

    last->patience_ms = (uint32_t)ms;
}

bool redis_conn_is_asked(const struct redis_conn *c, redis_reply_fn *on_reply,
                         const void *of)
{
    const struct question *first = fifo_first(&c->questions);

    return first != NULL && first->on_reply == on_reply && first->of == of;
}

uint64_t redis_conn_asked_us(const struct redis_conn *c)
{
    return c->asked_us;
}

bool redis_conn_auth(struct redis_conn *c, redis_reply_fn *on_reply)
{
    const struct backend_url *url = c->url;

    if (url->password == NULL) {
        return false;
    }
    command_begin(&c->out, url->user == NULL ? 2 : 3);
    command_word(&c->out, SPAN("AUTH"));
    if (url->user != NULL) {
        command_word(&c->out, span_str(url->user));
    }
    command_word(&c->out, span_str(url->password));
    redis_conn_expect(c, 1, on_reply, NULL);
    return true;
}

void redis_conn_ready(struct redis_conn *c, const char *about)
{
    /* The end of a loss that was left out is left out as well. */
    enum log_level level =
        c->reason[0] == '\0' || c->reason_told ? c->ready_level : LOG_DEBUG;

    c->ready = true;
    c->is_refused = false;
    c->attempts = 0;
    c->reason[0] = '\0';
    log_write(level, c->module, "connected to %s%s%s", c->address,
              about[0] == '\0' ? "" : ", ", about);
}

uint64_t redis_conn_heard_us(const struct redis_conn *c)
{
    return c->heard_us;
}

const char *redis_conn_address(const struct redis_conn *c)
{
    return c->address;
}

static void on_closed(uv_handle_t *handle)
{
    struct redis_conn *c =
        container_of((uv_timer_t *)(void *)handle, struct redis_conn, timer);

    buf_reset(&c->out);
    fifo_fini(&c->questions);
    free(c->resp3);
    free(c);
}

void redis_conn_close(struct redis_conn *c)
{
    if (c == NULL || c->state == CONN_CLOSED) {
        return;
    }
    c->state = CONN_CLOSED;
    stream_close(c->stream);
    c->stream = NULL;
    if (c->reader != NULL) {
        redisReaderFree(c->reader);
        c->reader = NULL;
    }
    uv_close((uv_handle_t *)&c->timer, on_closed);
}

size_t redis_texts(const redisReply *reply, struct span *ret, size_t max)
{
    size_t count = 0;

    while (reply->type == REDIS_REPLY_ARRAY && count < max &&
           count < (size_t)reply->elements &&
           reply->element[count]->type == REDIS_REPLY_STRING) {
        ret[count] =
            span_of(reply->element[count]->str, (size_t)reply->element[count]->len);
        count++;
    }
    return count;
}

void redis_info_value(const redisReply *reply, const char *key, char *ret, size_t room)
{
    size_t key_len = strlen(key);

    ret[0] = '\0';
    if (reply->type != REDIS_REPLY_STRING) {
        return;
    }
    for (const char *line = reply->str; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n' ? 1 : 0;
        if (strncmp(line, key, key_len) == 0 && line[key_len] == ':') {
            size_t len = strcspn(line + key_len + 1, "\r\n");

            len = len < room ? len : room - 1;
            memcpy(ret, line + key_len + 1, len);
            ret[len] = '\0';
            return;
        }
    }
}
