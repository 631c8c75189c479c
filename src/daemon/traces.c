#include "daemon/traces.h"

#include "cmd/events.h"
#include "cmd/log_identity.h"
#include "cmd/slowlog.h"
#include "io/stream.h"
#include "latchd-config.h"
#include "latchd/protocol.h"
#include "util/alloc.h"
#include "util/buf.h"
#include "util/clock.h"
#include "util/json.h"
#include "util/log.h"
#include "util/text.h"
#include "util/transition.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    TRACE_BYTES = 16,
    SPAN_BYTES = 8,
    HEX_MAX = 2 * TRACE_BYTES,
    SECOND_MS = 1000,
    ANSWER_BYTES = 12, /* "HTTP/1.1 200" */
    HOST_ROOM = 256,
};

enum traces_state { TRACES_RESTING, TRACES_CONNECTING, TRACES_POSTED };

static const struct transitions STATES = {
    "traces",
    {
        [TRACES_RESTING] = { "RESTING", INTO(TRACES_CONNECTING) },
        [TRACES_CONNECTING] = { "CONNECTING",
                                INTO(TRACES_POSTED) | INTO(TRACES_RESTING) },
        [TRACES_POSTED] = { "POSTED", INTO(TRACES_RESTING) },
    },
};

/* Spans as JSON, with commas between them. */
struct span_list {
    struct buf json;
    size_t count;
};

struct traces {
    struct io *io;
    struct cmd *cmd;
    char instance[OP_INSTANCE_LEN + 1];
    bool is_on;
    uint64_t min_ms;
    struct traces_url url;
    enum traces_state state;
    struct stream *stream;  /* NULL while RESTING */
    struct span_list queue; /* for the next batch */
    struct span_list batch; /* being posted, or to be posted again */
    struct buf answer;
    uint64_t now_ms; /* of the last tick */
    uint64_t due_ms; /* RESTING: no post before this; else no answer after it counts */
    uint64_t failures; /* since the last success */
    struct log_recent told;
    uint64_t sent, dropped;
};

/* --- what users give ---------------------------------------------------- */

static bool copy_part(char *ret, size_t room, const char *text, size_t len)
{
    if (len == 0 || len >= room) {
        return false;
    }
    memcpy(ret, text, len);
    ret[len] = '\0';
    return true;
}

/* Splits `host`, `host:port` or `[address]:port`. */
static bool parse_authority(struct traces_url *url)
{
    const char *at = url->authority, *end, *host = at;
    uint64_t port;

    if (*at == '[') {
        host++;
        end = strchr(at, ']');
        at = end == NULL ? NULL : end + 1;
    } else {
        end = at = at + strcspn(at, ":");
    }
    if (at == NULL ||
        !copy_part(url->host, sizeof(url->host), host, (size_t)(end - host))) {
        return false;
    }
    if (*at == '\0') {
        return copy_part(url->port, sizeof(url->port), "80", 2);
    }
    return *at == ':' && parse_u64(span_str(at + 1), UINT16_MAX, &port) && port != 0 &&
           copy_part(url->port, sizeof(url->port), at + 1, strlen(at + 1));
}

bool traces_url_parse(const char *url, struct traces_url *ret)
{
    static const char SCHEME[] = "http://";
    size_t len;

    for (const char *ch = url; *ch != '\0'; ch++) {
        if (*ch <= ' ' || *ch > '~' || *ch == '@' || *ch == '#') {
            return false;
        }
    }
    if (strncmp(url, SCHEME, sizeof(SCHEME) - 1) != 0) {
        return false;
    }
    url += sizeof(SCHEME) - 1;
    len = strcspn(url, "/?");
    if (!copy_part(ret->authority, sizeof(ret->authority), url, len) ||
        strlen(url + len) > TRACES_URL_MAX) {
        return false;
    }
    (void)snprintf(ret->path, sizeof(ret->path), "%s%s", url[len] == '/' ? "" : "/",
                   url + len);
    return parse_authority(ret);
}

/* Lower-case hex digits, not all of them 0. */
static bool is_id(const char *hex, size_t len)
{
    return strspn(hex, "0") < len && strspn(hex, "0123456789abcdef") >= len;
}

bool trace_parent_parse(struct span text, struct trace_parent *ret)
{
    enum { VERSION = 0, TRACE = 3, PARENT = 36, FLAGS = 53, LEN = 55 };
    char copy[LEN + 1];
    int flags, version;

    if (text.len < LEN || (text.len > LEN && text.ptr[LEN] != '-')) {
        return false;
    }
    memcpy(copy, text.ptr, LEN);
    copy[LEN] = '\0';
    version = parse_hex_byte(copy[VERSION], copy[VERSION + 1]);
    flags = parse_hex_byte(copy[FLAGS], copy[FLAGS + 1]);
    if (version < 0 || version == 0xff || (version == 0 && text.len > LEN) ||
        flags < 0 || copy[TRACE - 1] != '-' || copy[PARENT - 1] != '-' ||
        copy[FLAGS - 1] != '-' || !is_id(copy + TRACE, HEX_MAX) ||
        !is_id(copy + PARENT, (size_t)2 * SPAN_BYTES)) {
        return false;
    }
    ret->trace_id = text.ptr + TRACE;
    ret->span_id = text.ptr + PARENT;
    ret->sampled = (flags & 1) != 0;
    return true;
}

/* --- spans -------------------------------------------------------------- */

/* A wait or a hold. */
struct span_facts {
    const char *name; /* of the span */
    const char *outcome;
    const char *error; /* NULL: it ended well */
    bool is_ok;        /* a wait or hold that ended otherwise may be no error, either */
    uint64_t ms;
    enum lock_kind lock_kind;
    struct span lock, owner, id, trace;
    uint64_t token, conn;
};

/* 64-bit numbers are texts in the JSON of Protobuf, too: `room` has DIGITS_MAX. */
static struct span write_decimal(char *room, uint64_t value)
{
    const char *first = digits_before(room + DIGITS_MAX, value);

    return span_of(first, (size_t)(room + DIGITS_MAX - first));
}

static void add_decimal(struct json *j, const char *key, uint64_t value)
{
    char room[DIGITS_MAX];

    json_bytes(j, key, write_decimal(room, value));
}

static void add_attribute(struct json *j, const char *key, const char *type,
                          struct span value)
{
    json_open(j, NULL, '{');
    json_text(j, "key", key);
    json_open(j, "value", '{');
    json_bytes(j, type, value);
    json_close(j, '}');
    json_close(j, '}');
}

static void add_string(struct json *j, const char *key, struct span value)
{
    add_attribute(j, key, "stringValue", value);
}

static void add_number(struct json *j, const char *key, uint64_t value)
{
    char room[DIGITS_MAX];

    add_attribute(j, key, "intValue", write_decimal(room, value));
}

static void add_random_id(struct json *j, const char *key, size_t bytes)
{
    uint8_t random[TRACE_BYTES];
    char hex[HEX_MAX];

    if (getrandom(random, bytes, 0) != (ssize_t)bytes) {
        abort();
    }
    random[0] |= 1; /* all 0 would be no ID */
    for (size_t i = 0; i < 2 * bytes; i++) {
        hex[i] = "0123456789abcdef"[random[i / 2] >> (i % 2 == 0 ? 4 : 0) & 15];
    }
    json_bytes(j, key, span_of(hex, 2 * bytes));
}

/* A TRACE that is no traceparent begins a new trace, as W3C says. */
static void add_ids(struct json *j, const struct trace_parent *parent)
{
    if (parent == NULL) {
        add_random_id(j, "traceId", TRACE_BYTES);
    } else {
        json_bytes(j, "traceId", span_of(parent->trace_id, HEX_MAX));
        json_bytes(j, "parentSpanId", span_of(parent->span_id, (size_t)2 * SPAN_BYTES));
    }
    add_random_id(j, "spanId", SPAN_BYTES);
}

/* "1.2.3.4:5", "[::1]:5" or "unix:/path", in the attributes that OpenTelemetry has. */
static void add_client(struct json *j, struct cmd *cmd, uint64_t conn)
{
    char room[REDACTED_PEER_ROOM];
    struct span address = span_str(client_address(cmd, conn, room));
    const char *colon =
        address.len == 0 ? NULL : memrchr(address.ptr, ':', address.len);
    uint64_t port;

    if (conn != 0) {
        add_number(j, "latchd.client.id", conn);
    }
    if (colon != NULL && !span_starts(address, SPAN("unix:")) &&
        parse_u64(span_str(colon + 1), UINT16_MAX, &port)) {
        bool is_v6 = address.ptr[0] == '[';

        address = span_of(address.ptr + is_v6,
                          (size_t)(colon - address.ptr) - (is_v6 ? 2 : 0));
        add_number(j, "client.port", port);
    }
    if (address.len != 0) {
        add_string(j, "client.address", address);
    }
}

static void add_attributes(struct json *j, struct cmd *cmd, const struct span_facts *f)
{
    json_open(j, "attributes", '[');
    add_string(j, "latchd.lock.name", f->lock);
    add_string(j, "latchd.lock.kind", span_str(lock_kind_name(f->lock_kind)));
    add_string(j, "latchd.outcome", span_str(f->outcome));
    if (f->owner.len != 0 &&
        !span_starts(f->owner, SPAN(LATCHD_RESERVED_OWNER_PREFIX))) {
        add_string(j, "latchd.owner", f->owner);
    }
    if (f->id.len != 0) {
        add_string(j, "latchd.request.id", f->id);
    }
    if (f->token != 0) {
        add_number(j, "latchd.token", f->token);
    }
    add_client(j, cmd, f->conn);
    json_close(j, ']');
}

static void add_status(struct json *j, const struct span_facts *f)
{
    enum { STATUS_OK = 1, STATUS_ERROR = 2 };

    json_open(j, "status", '{');
    if (f->error != NULL) {
        json_text(j, "message", f->error);
        json_uint(j, "code", STATUS_ERROR);
    } else if (f->is_ok) {
        json_uint(j, "code", STATUS_OK);
    }
    json_close(j, '}');
}

static void add_span(struct traces *t, const struct span_facts *f)
{
    enum { KIND_INTERNAL = 1 };
    uint64_t end_us = clock_wall_us();
    struct span_list *queue = &t->queue;
    struct json j = { .out = &queue->json, .more = queue->count > 0 };
    struct trace_parent parent;
    bool has_parent = trace_parent_parse(f->trace, &parent);

    if (!t->is_on || f->ms < t->min_ms || (has_parent && !parent.sampled)) {
        return;
    }
    if (queue->count >= TRACES_QUEUE_MAX ||
        buf_len(&queue->json) >= TRACES_QUEUE_BYTES) {
        t->dropped++;
        return;
    }
    json_open(&j, NULL, '{');
    add_ids(&j, has_parent ? &parent : NULL);
    json_text(&j, "name", f->name);
    json_uint(&j, "kind", KIND_INTERNAL);
    add_decimal(&j, "startTimeUnixNano", (end_us - f->ms * 1000) * 1000);
    add_decimal(&j, "endTimeUnixNano", end_us * 1000);
    add_attributes(&j, t->cmd, f);
    add_status(&j, f);
    json_close(&j, '}');
    queue->count++;
}

void traces_add_wait(struct traces *t, const struct effect_waited *waited)
{
    static const char *const ERRORS[] = {
        [WAIT_NULL] = "not granted in time", [WAIT_GONE] = "its client left"
    };
    struct span_facts f = { .name = "wait",
                            .outcome = wait_outcome(waited),
                            .error = waited->end == WAIT_REFUSED ? wait_outcome(waited)
                                                                 : ERRORS[waited->end],
                            .is_ok = waited->end == WAIT_GRANTED,
                            .ms = waited->waited_ms,
                            .lock_kind = waited->lock_kind,
                            .lock = waited->name,
                            .owner = waited->owner,
                            .id = waited->id,
                            .trace = waited->trace,
                            .token = waited->token,
                            .conn = waited->conn };

    add_span(t, &f);
}

void traces_add_hold(struct traces *t, const struct effect_held *held)
{
    static const char *const OUTCOMES[] = {
        [HELD_RELEASED] = "released", [HELD_EXPIRED] = "expired", [HELD_LOST] = "lost"
    };

    add_span(t, &(struct span_facts){ .name = "hold",
                                      .outcome = OUTCOMES[held->end],
                                      .error = held->end == HELD_LOST
                                                   ? loss_cause_word(held->cause)
                                                   : NULL,
                                      .is_ok = held->end == HELD_RELEASED,
                                      .ms = held->held_ms,
                                      .lock_kind = held->lock_kind,
                                      .lock = held->name,
                                      .owner = held->owner,
                                      .id = held->id,
                                      .trace = held->trace,
                                      .token = held->token,
                                      .conn = held->conn });
}

/* --- posting ------------------------------------------------------------ */

static void set_state(struct traces *t, enum traces_state state)
{
    transition_check(&STATES, t->state, state);
    t->state = state;
}

static void list_clear(struct span_list *list)
{
    buf_reset(&list->json);
    list->count = 0;
}

/* Ends a post, or an attempt at one; the next one is not before the pause is over. */
static void pause_posts(struct traces *t, uint64_t pause_ms)
{
    stream_close(t->stream);
    t->stream = NULL;
    buf_reset(&t->answer);
    t->due_ms = t->now_ms + pause_ms;
    set_state(t, TRACES_RESTING);
}

/* The batch stays. */
static void fail_post(struct traces *t, const char *why)
{
    unsigned doublings = t->failures < 5 ? (unsigned)t->failures : 5;
    uint64_t pause_ms = (uint64_t)SECOND_MS << doublings;

    t->failures++;
    if (log_is_news(&t->told, why)) {
        log_warning(
            "traces",
            "%s does not take spans: %s; they are kept, up to a limit, and sent "
            "again later",
            t->url.authority, why);
    }
    pause_posts(t, pause_ms < TRACES_PAUSE_MAX_MS ? pause_ms : TRACES_PAUSE_MAX_MS);
}

/* The collector has taken the batch, or never will. */
static void finish_batch(struct traces *t, unsigned code)
{
    bool taken = code / 100 == 2;

    *(taken ? &t->sent : &t->dropped) += t->batch.count;
    list_clear(&t->batch);
    if (taken && t->failures > 0) {
        log_notice("traces", "%s takes spans again", t->url.authority);
        t->told = (struct log_recent){ 0 };
    }
    t->failures = 0;
    pause_posts(t, 0);
}

static void take_code(struct traces *t, unsigned code)
{
    char why[64];

    (void)snprintf(why, sizeof(why), "HTTP status %u", code);
    switch (code) {
    case 429:
    case 502:
    case 503:
    case 504:
        fail_post(t, why);
        return;
    default:
        break;
    }
    if (code / 100 != 2 && log_is_news(&t->told, why)) {
        log_warning("traces",
                    "%s refuses spans, which are dropped: %s: correct traces-url",
                    t->url.authority, why);
    }
    finish_batch(t, code);
}

/* Of an answer only the status counts. */
static void on_read(void *ctx, const char *data, size_t len)
{
    static const struct span VERSION = { "HTTP/1.", sizeof("HTTP/1.") - 1 };
    struct traces *t = ctx;
    struct span answer;
    uint64_t code;

    buf_add(&t->answer, data, len);
    answer = buf_span(&t->answer);
    if (answer.len < ANSWER_BYTES) {
        return;
    }
    if (t->state == TRACES_POSTED && span_starts(answer, VERSION) &&
        answer.ptr[ANSWER_BYTES - 4] == ' ' &&
        parse_u64(span_of(answer.ptr + ANSWER_BYTES - 3, 3), 999, &code)) {
        take_code(t, (unsigned)code);
    } else {
        fail_post(t, "it does not speak HTTP");
    }
}

static void on_end(void *ctx, int status, bool unread)
{
    char why[128];

    fail_post(ctx, status == UV_EOF ? "it closed the connection without an answer"
                                    : uv_strerror_r(status, why, sizeof(why)));
}

static void write_body(const struct traces *t, struct buf *out)
{
    struct json j = { .out = out };
    char host[HOST_ROOM];

    json_open(&j, NULL, '{');
    json_open(&j, "resourceSpans", '[');
    json_open(&j, NULL, '{');
    json_open(&j, "resource", '{');
    json_open(&j, "attributes", '[');
    add_string(&j, "service.name", SPAN("latchd"));
    add_string(&j, "service.version", SPAN(LATCHD_VERSION));
    add_string(&j, "service.instance.id", span_str(t->instance));
    if (gethostname(host, sizeof(host)) == 0) {
        host[sizeof(host) - 1] = '\0';
        add_string(&j, "host.name", span_str(host));
    }
    json_close(&j, ']');
    json_close(&j, '}');
    json_open(&j, "scopeSpans", '[');
    json_open(&j, NULL, '{');
    json_open(&j, "scope", '{');
    json_text(&j, "name", "latchd");
    json_close(&j, '}');
    json_open(&j, "spans", '[');
    buf_add_span(out, buf_span(&t->batch.json));
    json_close(&j, ']');
    json_close(&j, '}');
    json_close(&j, ']');
    json_close(&j, '}');
    json_close(&j, ']');
    json_close(&j, '}');
}

static void on_connect(void *ctx, int status)
{
    struct traces *t = ctx;
    struct buf body = { 0 }, out = { 0 };
    char why[128];

    if (status != 0) {
        fail_post(t, uv_strerror_r(status, why, sizeof(why)));
        return;
    }
    write_body(t, &body);
    buf_printf(&out,
               "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: latchd/" LATCHD_VERSION
               "\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
               "Connection: close\r\n\r\n",
               t->url.path, t->url.authority, buf_len(&body));
    buf_add_span(&out, buf_span(&body));
    buf_reset(&body);
    set_state(t, TRACES_POSTED);
    stream_send(t->stream, &out);
    buf_reset(&out);
}

static void post_batch(struct traces *t)
{
    static const struct stream_events EVENTS = {
        .on_connect = on_connect,
        .on_read = on_read,
        .on_end = on_end,
    };
    const struct stream_options opt = { 0 };
    char why[128];
    int r;

    if (t->batch.count == 0) {
        struct span_list empty = t->batch;

        t->batch = t->queue;
        t->queue = empty;
    }
    set_state(t, TRACES_CONNECTING);
    t->due_ms = t->now_ms + TRACES_ANSWER_MS;
    r = stream_connect_tcp(t->io, t->url.host, t->url.port, &opt, &EVENTS, t,
                           &t->stream);
    if (r != 0) {
        t->stream = NULL;
        fail_post(t, uv_strerror_r(r, why, sizeof(why)));
    }
}

void traces_tick(struct traces *t, uint64_t now_ms)
{
    t->now_ms = now_ms;
    if (now_ms < t->due_ms) {
        return;
    }
    if (t->state != TRACES_RESTING) {
        fail_post(t, "no answer in time");
    } else if (t->batch.count + t->queue.count > 0) {
        post_batch(t);
    }
}

/* --- life --------------------------------------------------------------- */

struct traces *traces_new(struct io *io, struct cmd *cmd, const char *instance)
{
    struct traces *t = xcalloc(1, sizeof(*t));

    t->io = io;
    t->cmd = cmd;
    (void)snprintf(t->instance, sizeof(t->instance), "%s", instance);
    return t;
}

void traces_close(struct traces *t)
{
    if (t == NULL) {
        return;
    }
    t->is_on = false;
    if (t->state != TRACES_RESTING) {
        pause_posts(t, 0);
    }
    t->dropped += t->batch.count + t->queue.count;
    list_clear(&t->batch);
    list_clear(&t->queue);
}

void traces_free(struct traces *t)
{
    free(t);
}

void traces_configure(struct traces *t, const struct traces_options *opt)
{
    struct traces_url parsed;
    bool is_on = opt->url[0] != '\0' && traces_url_parse(opt->url, &parsed);

    t->min_ms = opt->min_ms;
    if (!is_on) {
        traces_close(t);
        return;
    }
    if (t->is_on && strcmp(t->url.authority, parsed.authority) == 0 &&
        strcmp(t->url.path, parsed.path) == 0) {
        return;
    }
    if (t->state != TRACES_RESTING) {
        pause_posts(t, 0); /* the batch is posted again, to the new place */
    }
    t->is_on = true;
    t->url = parsed;
}

struct traces_stats traces_stats(const struct traces *t)
{
    return (struct traces_stats){ .sent = t->sent,
                                  .dropped = t->dropped,
                                  .queued = t->queue.count + t->batch.count };
}
