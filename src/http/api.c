#include "http/api.h"

#include "http/host.h"
#include "http/http.h"
#include "http/reply_json.h"
#include "http/response.h"
#include "latchd/protocol.h"
#include "util/alloc.h"
#include "util/buf.h"
#include "util/clock.h"
#include "util/list.h"
#include "util/log.h"
#include "util/text.h"
#include "util/transition.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOCKS_PATH "/v1/locks/"
#define EVENTS_PATH "/v1/events"
#define ID_OWNER "latchd:id:" /* how the owner of a hold begins that has an ID */

enum {
    PEER_ROOM = 64,
    READ_ROOM = 16 * 1024,
    MS_ROOM = 24,
    SECOND_MS = 1000,
};

enum call_state {
    CALL_READING,  /* its body comes */
    CALL_ASKING,   /* its commands run; it is suspended */
    CALL_ANSWERED, /* `code` and `out` are to be sent */
    CALL_STREAMING,
    CALL_OVER,
};

static const struct transitions STATES = {
    "http call",
    {
        [CALL_READING] = { "READING",
                           INTO(CALL_ASKING) | INTO(CALL_ANSWERED) | INTO(CALL_OVER) },
        [CALL_ASKING] = { "ASKING", INTO(CALL_ANSWERED) | INTO(CALL_STREAMING) |
                                        INTO(CALL_OVER) },
        [CALL_ANSWERED] = { "ANSWERED", INTO(CALL_OVER) },
        [CALL_STREAMING] = { "STREAMING", INTO(CALL_OVER) },
        [CALL_OVER] = { "OVER", 0 },
    },
};

/* A command whose reply comes next. */
enum ask {
    ASK_LOGIN,
    ASK_LOCK,
    ASK_RENEW, /* a grant may be old, or of an earlier PUT: its lease begins anew */
    ASK_CANCEL,
    ASK_UNLOCK,
    ASK_FORCE,
    ASK_INFO,
    ASK_LEADER,
    ASK_HOLDER, /* who has what Terraform wants */
    ASK_SUBSCRIBE,
    ASK_STATES, /* what the names of a stream are now */
};

/* The parameters of an address, a row for each. */
enum param {
    PARAM_WAIT,
    PARAM_LEASE,
    PARAM_ID,
    PARAM_KEEP,
    PARAM_DATA,
    PARAM_PRIORITY,
    PARAM_PERMITS,
    PARAM_OF,
    PARAM_KIND,
    PARAM_AFTER,
    PARAM_NAME,
    PARAMS
};

enum {
    FOR_PUT = 1,
    FOR_DELETE = 2,
    FOR_GET = 4,
    FOR_LOCK = 8,
    FOR_UNLOCK = 16,
    FOR_EVENTS = 32,
};

static const struct {
    const char *key;
    const char *word; /* of LOCK; NULL: none, or not so simple */
    bool is_time;
    unsigned verbs;
} PARAM_ROWS[PARAMS] = {
    [PARAM_WAIT] = { "wait", "WAIT", true, FOR_PUT | FOR_GET | FOR_LOCK },
    [PARAM_LEASE] = { "lease", "LEASE", true, FOR_PUT | FOR_LOCK },
    [PARAM_ID] = { "id", "ID", false, FOR_PUT | FOR_DELETE | FOR_EVENTS },
    [PARAM_KEEP] = { "keep", "KEEP", true, FOR_PUT | FOR_LOCK },
    [PARAM_DATA] = { "data", "DATA", false, FOR_PUT },
    [PARAM_PRIORITY] = { "priority", "PRIORITY", false, FOR_PUT | FOR_LOCK },
    [PARAM_PERMITS] = { "permits", "PERMITS", false, FOR_PUT },
    [PARAM_OF] = { "of", "OF", false, FOR_PUT },
    [PARAM_KIND] = { "kind", NULL, false, FOR_PUT },
    [PARAM_AFTER] = { "after", NULL, false, FOR_GET },
    [PARAM_NAME] = { "name", NULL, false, FOR_EVENTS },
};

static const struct verb {
    const char *method;
    bool is_events;
    bool has_body;
    unsigned bit;
    unsigned needs; /* parameters, as bits by their number */
    enum ask first; /* after the login */
} VERBS[] = {
    { "PUT", false, false, FOR_PUT, 1U << PARAM_LEASE | 1U << PARAM_ID, ASK_LOCK },
    { "DELETE", false, false, FOR_DELETE, 1U << PARAM_ID, ASK_CANCEL },
    { "GET", false, false, FOR_GET, 0, ASK_INFO },
    { "LOCK", false, true, FOR_LOCK, 1U << PARAM_LEASE, ASK_LOCK },
    { "UNLOCK", false, true, FOR_UNLOCK, 0, ASK_CANCEL },
    { "GET", true, false, FOR_EVENTS, 1U << PARAM_NAME, ASK_SUBSCRIBE },
};
enum { VERB_COUNT = sizeof(VERBS) / sizeof(VERBS[0]) };

struct api {
    struct api_setup setup;
    struct list calls;
    struct log_recent told;
    size_t serving; /* calls that ask or stream */
};

struct call {
    struct list all;
    struct api *api;
    struct MHD_Connection *connection;
    enum call_state state;
    unsigned refs; /* libmicrohttpd's, and each open handle's */
    bool suspended;
    const struct verb *verb;
    enum ask ask;
    uint64_t asked_ms; /* when the LOCK was sent */
    uint64_t token;
    uint64_t cancelled;               /* waits that CANCEL ended */
    struct span name;                 /* libmicrohttpd's, as the parameters */
    struct span params[PARAMS];       /* ptr NULL: not given */
    char times[PARAMS][MS_ROOM];      /* those that are times, in ms */
    struct span names[API_NAMES_MAX]; /* of a stream */
    size_t name_count;
    size_t replies_left;        /* of ASK_SUBSCRIBE and ASK_STATES */
    char id[LATCHD_ID_MAX + 1]; /* from the body */
    const char *objection;      /* to a parameter */
    bool too_large;
    struct buf body;
    int fd; /* to the daemon; -1: none */
    uv_poll_t link, peer;
    struct buf in;  /* from the daemon */
    struct buf out; /* to the client */
    unsigned code;
    uint64_t sent_ms; /* when the stream was last given something */
};

/* --- life -------------------------------------------------------------- */

static void call_set_state(struct call *call, enum call_state state)
{
    bool served = call->state == CALL_ASKING || call->state == CALL_STREAMING;
    bool serving = state == CALL_ASKING || state == CALL_STREAMING;

    transition_check(&STATES, call->state, state);
    call->state = state;
    call->api->serving += (size_t)serving - (size_t)served;
}

static struct call *call_new(struct api *api, struct MHD_Connection *connection,
                             const struct verb *verb)
{
    struct call *call = xcalloc(1, sizeof(*call));

    call->api = api;
    call->connection = connection;
    call->verb = verb;
    call->refs = 1;
    call->fd = -1;
    list_append(&api->calls, &call->all);
    return call;
}

static void call_unref(struct call *call)
{
    if (--call->refs == 0) {
        buf_reset(&call->body);
        buf_reset(&call->in);
        buf_reset(&call->out);
        free(call);
    }
}

static void on_handle_closed(uv_handle_t *handle)
{
    call_unref(handle->data);
}

/* Leaves the daemon, as a client that closes its connection. */
static void call_hang_up(struct call *call)
{
    if (call->fd >= 0) {
        uv_close((uv_handle_t *)&call->link, on_handle_closed);
        uv_close((uv_handle_t *)&call->peer, on_handle_closed);
        (void)close(call->fd);
        call->fd = -1;
    }
}

/* Lets libmicrohttpd call us again. */
static void call_wake(struct call *call)
{
    if (call->suspended) {
        call->suspended = false;
        MHD_resume_connection(call->connection);
        call->api->setup.run_soon(call->api->setup.run_ctx);
    }
}

static void call_end(struct call *call)
{
    call_hang_up(call);
    if (call->state != CALL_OVER) {
        call_set_state(call, CALL_OVER);
    }
    call_wake(call);
}

/* --- answers ------------------------------------------------------------ */

/* Ends the JSON that was begun in call->out, and the call with it. */
static void answer_call(struct call *call, unsigned code)
{
    buf_add_str(&call->out, "}\n");
    call->code = code;
    call_hang_up(call);
    call_set_state(call, CALL_ANSWERED);
    call_wake(call);
}

/* Begins an answer with the name of the lock. */
static struct json begin_answer(struct call *call)
{
    struct json j = { .out = &call->out };

    buf_clear(&call->out);
    json_open(&j, NULL, '{');
    json_bytes(&j, "name", call->name);
    return j;
}

static void answer_error_span(struct call *call, unsigned code, struct span word,
                              struct span text)
{
    struct json j = { .out = &call->out };

    buf_clear(&call->out);
    json_open(&j, NULL, '{');
    json_bytes(&j, "error", word);
    json_bytes(&j, "message", text);
    answer_call(call, code);
}

static void answer_error(struct call *call, unsigned code, const char *word,
                         const char *text)
{
    answer_error_span(call, code, span_str(word), span_str(text));
}

/* The code of HTTP for an error of the daemon. */
static unsigned code_of_error(const struct call *call, struct span word)
{
    static const struct {
        const char *word;
        unsigned code;
    } CODES[] = {
        { LATCHD_ERR_NOAUTH, MHD_HTTP_UNAUTHORIZED },
        { LATCHD_ERR_WRONGPASS, MHD_HTTP_UNAUTHORIZED },
        { LATCHD_ERR_NOPERM, MHD_HTTP_FORBIDDEN },
        { LATCHD_ERR_DENIED, MHD_HTTP_FORBIDDEN },
        { LATCHD_ERR_WRONGTYPE, MHD_HTTP_CONFLICT },
        { LATCHD_ERR_DEADLOCK, MHD_HTTP_CONFLICT },
        { LATCHD_ERR_LIMIT, MHD_HTTP_TOO_MANY_REQUESTS },
        { LATCHD_ERR_BACKEND, MHD_HTTP_SERVICE_UNAVAILABLE },
        { LATCHD_ERR_NOREPLICAS, MHD_HTTP_SERVICE_UNAVAILABLE },
        { LATCHD_ERR_GOAWAY, MHD_HTTP_SERVICE_UNAVAILABLE },
        { LATCHD_ERR_UNBLOCKED, MHD_HTTP_SERVICE_UNAVAILABLE },
    };

    for (size_t i = 0; i < sizeof(CODES) / sizeof(CODES[0]); i++) {
        if (span_eq(word, span_str(CODES[i].word))) {
            return CODES[i].code;
        }
    }
    if (span_eq(word, SPAN(LATCHD_ERR_NOTHELD))) {
        return call->ask == ASK_UNLOCK ? MHD_HTTP_NOT_FOUND : MHD_HTTP_GONE;
    }
    /* Of the login it is said that there are too many clients. */
    return call->ask == ASK_LOGIN ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_BAD_REQUEST;
}

static void answer_unreadable(struct call *call)
{
    answer_error(call, MHD_HTTP_INTERNAL_SERVER_ERROR, LATCHD_ERR,
                 "the reply has no form in JSON: please report it");
}

static void answer_daemon_error(struct call *call, const struct reply_value *v)
{
    struct span text, word = reply_error_word(v, &text);

    answer_error_span(call, code_of_error(call, word), word, text);
}

/* --- asking the daemon --------------------------------------------------- */

struct command {
    struct buf words;
    size_t count;
};

static void add_words(struct command *k, struct span a, struct span b)
{
    buf_printf(&k->words, "$%zu\r\n", a.len + b.len);
    buf_add_span(&k->words, a);
    buf_add_span(&k->words, b);
    buf_add_str(&k->words, "\r\n");
    k->count++;
}

static void add_word(struct command *k, struct span word)
{
    add_words(k, word, SPAN_NONE);
}

static void add_text(struct command *k, const char *word)
{
    add_word(k, span_str(word));
}

/* The request's user, of HTTP's Basic authentication. */
static void add_login(struct call *call, struct command *k)
{
    char *password = NULL;
    char *user = MHD_basic_auth_get_username_password(call->connection, &password);

    add_text(k, "HELLO");
    add_text(k, "3");
    if (user != NULL) {
        add_text(k, "AUTH");
        add_text(k, user[0] == '\0' ? "default" : user);
        add_text(k, password == NULL ? "" : password);
    }
    add_text(k, "SETNAME");
    add_text(k, "http");
    MHD_free(user);
    MHD_free(password);
}

/* A time that was not given is 0. */
static struct span param_value(const struct call *call, unsigned p)
{
    return !PARAM_ROWS[p].is_time        ? call->params[p]
           : call->params[p].ptr == NULL ? SPAN("0")
                                         : span_str(call->times[p]);
}

/* W3C's header, which must not make a request fail. */
static void add_trace(struct call *call, struct command *k)
{
    const char *parent =
        MHD_lookup_connection_value(call->connection, MHD_HEADER_KIND, "traceparent");

    if (parent != NULL && strlen(parent) == LATCHD_TRACE_MIN &&
        strspn(parent, "0123456789abcdef-") == LATCHD_TRACE_MIN) {
        add_text(k, "TRACE");
        add_text(k, parent);
    }
}

/* WAIT and KEEP are 0 unless they are given: who leaves leaves nothing. */
static void add_lock(struct call *call, struct command *k)
{
    add_text(k, "LOCK");
    add_word(k, call->name);
    for (unsigned p = 0; p < PARAMS; p++) {
        if (PARAM_ROWS[p].word != NULL && param_value(call, p).ptr != NULL) {
            add_text(k, PARAM_ROWS[p].word);
            add_word(k, param_value(call, p));
        }
    }
    if (call->params[PARAM_KIND].ptr != NULL) {
        add_word(k, call->params[PARAM_KIND]);
    }
    add_trace(call, k);
    call->asked_ms = clock_boot_ms();
}

static const char *const EVENT_CHANNELS[] = { "lost:", "uncertain:", "expired:" };
enum { EVENT_KINDS = sizeof(EVENT_CHANNELS) / sizeof(EVENT_CHANNELS[0]) };

static void add_subscribe(struct call *call, struct command *k)
{
    add_text(k, "SUBSCRIBE");
    for (size_t i = 0; i < call->name_count; i++) {
        for (size_t kind = 0; kind < EVENT_KINDS; kind++) {
            add_words(k, span_str(EVENT_CHANNELS[kind]), call->names[i]);
        }
    }
    call->replies_left = call->name_count * EVENT_KINDS;
}

/* The words of the commands that are always the same; a word with a '$' is what the
 * request says. */
static const char *const COMMANDS[][8] = {
    [ASK_RENEW] = { "RENEW", "$name", "ID", "$id", "LEASE", "$lease" },
    [ASK_CANCEL] = { "CANCEL", "$name", "ID", "$id" },
    [ASK_UNLOCK] = { "UNLOCK", "$name", "ID", "$id" },
    [ASK_FORCE] = { "FORCEUNLOCK", "$name", "ANY" },
    [ASK_INFO] = { "LOCKINFO", "$name" },
    [ASK_LEADER] = { "LEADER", "$name", "AFTER", "$after", "WAIT", "$wait" },
    [ASK_HOLDER] = { "LEADER", "$name" },
    [ASK_STATES] = { "LOCKINFO", "$name" },
};

static struct span value_of_word(const struct call *call, const char *word)
{
    unsigned p = 0;

    if (word[0] != '$') {
        return span_str(word);
    }
    if (strcmp(word, "$name") == 0) {
        return call->ask == ASK_STATES
                   ? call->names[call->name_count - call->replies_left]
                   : call->name;
    }
    while (strcmp(PARAM_ROWS[p].key, word + 1) != 0) {
        p++;
    }
    return param_value(call, p);
}

static void add_command(struct call *call, struct command *k)
{
    if (call->ask == ASK_LOGIN) {
        add_login(call, k);
    } else if (call->ask == ASK_LOCK) {
        add_lock(call, k);
    } else if (call->ask == ASK_SUBSCRIBE) {
        add_subscribe(call, k);
    } else {
        for (size_t i = 0; COMMANDS[call->ask][i] != NULL; i++) {
            add_word(k, value_of_word(call, COMMANDS[call->ask][i]));
        }
    }
}

static void end_without_daemon(struct call *call)
{
    if (call->state == CALL_STREAMING) {
        call_end(call);
    } else {
        answer_error(call, MHD_HTTP_SERVICE_UNAVAILABLE, LATCHD_ERR_GOAWAY,
                     "latchd closed the connection: it stops, or has too many clients");
    }
}

/* The socketpair is empty, and larger than any command. */
static void ask_daemon(struct call *call, enum ask ask)
{
    struct command k = { 0 };
    struct buf out = { 0 };

    call->ask = ask;
    add_command(call, &k);
    buf_printf(&out, "*%zu\r\n", k.count);
    buf_add_span(&out, buf_span(&k.words));
    if (send(call->fd, buf_ptr(&out), buf_len(&out), MSG_NOSIGNAL) !=
        (ssize_t)buf_len(&out)) {
        end_without_daemon(call);
    }
    buf_reset(&k.words);
    buf_reset(&out);
}

/* --- a lock ------------------------------------------------------------- */

static bool is_terraform(const struct call *call)
{
    return call->verb->has_body;
}

static void on_locked(struct call *call, const struct reply_value *v)
{
    struct json j;

    if (v->type == ':') {
        call->token = (uint64_t)v->number;
        ask_daemon(call, ASK_RENEW);
    } else if (is_terraform(call)) {
        ask_daemon(call, ASK_HOLDER);
    } else {
        j = begin_answer(call);
        json_text(&j, "error", "HELD");
        json_text(&j, "message", "others hold it, or were first");
        json_uint(&j, "waited_ms", clock_boot_ms() - call->asked_ms);
        answer_call(call, MHD_HTTP_CONFLICT);
    }
}

static void on_renewed(struct call *call, const struct reply_value *v)
{
    struct json j = begin_answer(call);

    json_bytes(&j, "id", call->params[PARAM_ID]);
    json_uint(&j, "token", call->token);
    json_uint(&j, "lease_ms", (uint64_t)v->number);
    answer_call(call, MHD_HTTP_OK);
}

static void on_unlocked(struct call *call)
{
    struct json j = begin_answer(call);

    if (call->params[PARAM_ID].ptr != NULL) {
        json_bytes(&j, "id", call->params[PARAM_ID]);
    }
    answer_call(call, MHD_HTTP_OK);
}

static void on_forced(struct call *call, const struct reply_value *v)
{
    if (v->number > 0) {
        on_unlocked(call);
    } else {
        answer_error(call, MHD_HTTP_NOT_FOUND, LATCHD_ERR_NOTHELD, "nobody holds it");
    }
}

/* Reads an array or push of three: of LEADER the token, the owner and the data. */
static bool read_three(struct span reply, struct reply_value parts[3])
{
    struct reply_value v;

    if (reply_read_value(&reply, &v) != REPLY_READ || v.parts != 3) {
        return false;
    }
    for (size_t i = 0; i < 3; i++) {
        if (reply_read_value(&reply, &parts[i]) != REPLY_READ) {
            return false;
        }
    }
    return true;
}

static void on_leader(struct call *call, const struct reply_value leader[3])
{
    struct json j = begin_answer(call);

    json_uint(&j, "token", (uint64_t)leader[0].number);
    json_bytes(&j, "owner", leader[1].text);
    json_bytes(&j, "data", leader[2].text);
    answer_call(call, MHD_HTTP_OK);
}

static bool find_id(struct span json, char id[LATCHD_ID_MAX + 1]);

/* Terraform shows who has the lock, as that one described itself. */
static void on_holder(struct call *call, const struct reply_value leader[3])
{
    char id[LATCHD_ID_MAX + 1];
    struct json j = { .out = &call->out };

    buf_clear(&call->out);
    if (find_id(leader[2].text, id)) {
        /* As it came, but for the end, which answer_call() adds. */
        struct span data = leader[2].text;

        while (data.ptr[data.len - 1] != '}') {
            data.len--;
        }
        buf_add(&call->out, data.ptr, data.len - 1);
    } else {
        json_open(&j, NULL, '{');
        json_bytes(&j, "ID", leader[1].text);
        json_text(&j, "Info",
                  leader[1].text.len == 0 ? "it has just become free: try again"
                                          : "held by a client that is not Terraform");
    }
    answer_call(call, MHD_HTTP_LOCKED);
}

static void on_info(struct call *call, struct span reply)
{
    struct json j = { .out = &call->out };

    buf_clear(&call->out);
    if (reply.ptr[0] == '%' && reply_add_json(&j, NULL, reply)) {
        call->out.tail--; /* the bracket, which answer_call() adds */
        answer_call(call, MHD_HTTP_OK);
    } else {
        answer_unreadable(call);
    }
}

/* --- events -------------------------------------------------------------- */

static void send_event(struct call *call, struct span event, struct span data)
{
    if (buf_len(&call->out) + data.len > API_UNSENT_MAX) {
        if (call->state == CALL_STREAMING) {
            call_end(call);
        } else {
            answer_error(call, MHD_HTTP_SERVICE_UNAVAILABLE, LATCHD_ERR_LIMIT,
                         "there is more than 256 KiB to tell of these names: ask for "
                         "fewer");
        }
        return;
    }
    buf_printf(&call->out, "event: %.*s\ndata: ", (int)event.len, event.ptr);
    buf_add_span(&call->out, data);
    buf_add_str(&call->out, "\n\n");
    call->sent_ms = clock_boot_ms();
    if (call->state == CALL_STREAMING) {
        call_wake(call);
    }
}

/* Begins the stream: what is true now is its first events. */
static void on_state(struct call *call, struct span reply)
{
    struct buf text = { 0 };
    struct json j = { .out = &text };

    if (reply_add_json(&j, NULL, reply)) {
        send_event(call, SPAN("state"), buf_span(&text));
    }
    buf_reset(&text);
    if (call->state != CALL_ASKING) {
        return;
    }
    if (--call->replies_left > 0) {
        ask_daemon(call, ASK_STATES);
    } else {
        call_set_state(call, CALL_STREAMING);
        call_wake(call);
    }
}

/* A message has the owner, a space and the token; those of other IDs are left out. */
static void send_notice(struct call *call, struct span channel, struct span message)
{
    struct span id = call->params[PARAM_ID], event = SPAN_NONE, owner = SPAN_NONE;
    struct buf text = { 0 };
    struct json j = { .out = &text };
    uint64_t token = 0;

    if (span_cut(&channel, ':', &event) && span_cut_last(&message, ' ', &owner) &&
        parse_u64(message, UINT64_MAX, &token) &&
        (id.ptr == NULL || (span_starts(owner, SPAN(ID_OWNER)) &&
                            span_eq(span_after(owner, sizeof(ID_OWNER) - 1), id)))) {
        json_open(&j, NULL, '{');
        json_bytes(&j, "name", channel);
        json_bytes(&j, "owner", owner);
        json_uint(&j, "token", token);
        json_close(&j, '}');
        send_event(call, event, buf_span(&text));
    }
    buf_reset(&text);
}

static void on_push(struct call *call, struct span reply)
{
    struct reply_value parts[3];

    if (!read_three(reply, parts)) {
        return;
    }
    if (!span_eq(parts[0].text, SPAN("subscribe"))) {
        send_notice(call, parts[1].text, parts[2].text);
    } else if (--call->replies_left == 0) {
        call->replies_left = call->name_count;
        ask_daemon(call, ASK_STATES);
    }
}

/* --- replies ------------------------------------------------------------- */

static void on_login(struct call *call)
{
    if (call->verb->first == ASK_INFO && call->params[PARAM_AFTER].ptr != NULL) {
        ask_daemon(call, ASK_LEADER);
    } else if (call->verb->bit == FOR_UNLOCK && call->params[PARAM_ID].ptr == NULL) {
        ask_daemon(call, ASK_FORCE);
    } else {
        ask_daemon(call, call->verb->first);
    }
}

static void on_error(struct call *call, const struct reply_value *v)
{
    struct span text, word = reply_error_word(v, &text);

    if (call->ask == ASK_UNLOCK && call->cancelled > 0 &&
        span_eq(word, SPAN(LATCHD_ERR_NOTHELD))) {
        on_unlocked(call); /* it waited, or had a place */
    } else {
        answer_daemon_error(call, v);
    }
}

static void on_reply(struct call *call, struct span reply)
{
    struct span rest = reply;
    struct reply_value v, leader[3];

    if (reply_read_value(&rest, &v) != REPLY_READ) {
        return;
    }
    if (v.type == '>') {
        on_push(call, reply);
        return;
    }
    if (call->state == CALL_STREAMING) {
        call_end(call); /* an error, as nothing was asked */
        return;
    }
    if (v.type == '-') {
        on_error(call, &v);
        return;
    }
    switch (call->ask) {
    case ASK_LOGIN:
        on_login(call);
        break;
    case ASK_LOCK:
        on_locked(call, &v);
        break;
    case ASK_RENEW:
        on_renewed(call, &v);
        break;
    case ASK_CANCEL:
        call->cancelled = (uint64_t)v.number;
        ask_daemon(call, ASK_UNLOCK);
        break;
    case ASK_UNLOCK:
        on_unlocked(call);
        break;
    case ASK_FORCE:
        on_forced(call, &v);
        break;
    case ASK_LEADER:
    case ASK_HOLDER:
        if (!read_three(reply, leader)) {
            answer_unreadable(call);
        } else if (call->ask == ASK_LEADER) {
            on_leader(call, leader);
        } else {
            on_holder(call, leader);
        }
        break;
    case ASK_INFO:
        on_info(call, reply);
        break;
    case ASK_STATES:
        on_state(call, reply);
        break;
    case ASK_SUBSCRIBE: /* answered by pushes */
        break;
    }
}

/* Takes the replies that are complete. */
static void take_replies(struct call *call)
{
    struct span in = buf_span(&call->in), reply;
    enum reply_read r = REPLY_READ;

    while (call->fd >= 0 && (r = reply_cut(&in, &reply)) == REPLY_READ) {
        on_reply(call, reply);
    }
    buf_drop(&call->in, buf_len(&call->in) - in.len);
    if (call->fd >= 0 && (r == REPLY_MALFORMED || buf_len(&call->in) > API_REPLY_MAX)) {
        end_without_daemon(call);
    }
}

static void on_link(uv_poll_t *poll, int status, int events)
{
    struct call *call = poll->data;
    ssize_t n;

    do {
        n = recv(call->fd, buf_reserve(&call->in, READ_ROOM), READ_ROOM, 0);
        if (n > 0) {
            buf_grew(&call->in, (size_t)n);
        }
    } while (n == READ_ROOM && buf_len(&call->in) <= API_REPLY_MAX);
    take_replies(call);
    if (call->fd >= 0 &&
        (status < 0 || n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))) {
        end_without_daemon(call);
    }
}

/* The client closed its connection, or its half of it. */
static void on_peer(uv_poll_t *poll, int status, int events)
{
    call_end(poll->data);
}

/* --- the request ---------------------------------------------------------- */

static void format_peer(struct MHD_Connection *connection, char out[PEER_ROOM],
                        bool *ret_local)
{
    const struct sockaddr *from =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)
            ->client_addr;
    bool v6 = from->sa_family == AF_INET6;
    char host[INET6_ADDRSTRLEN] = "", port[MS_ROOM] = "";

    (void)getnameinfo(
        from, v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in), host,
        sizeof(host), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
    *ret_local = host_is_loopback(host);
    (void)snprintf(out, PEER_ROOM, v6 ? "[%s]:%s" : "%s:%s", host, port);
}

/* Watches both ends. False: the descriptors cannot be watched. */
static bool watch_ends(struct call *call)
{
    uv_loop_t *loop = call->api->setup.loop;
    int peer =
        MHD_get_connection_info(call->connection, MHD_CONNECTION_INFO_CONNECTION_FD)
            ->connect_fd;

    if (uv_poll_init(loop, &call->link, call->fd) < 0) {
        return false;
    }
    call->link.data = call;
    call->refs++;
    if (uv_poll_init(loop, &call->peer, peer) < 0) {
        uv_close((uv_handle_t *)&call->link, on_handle_closed);
        return false;
    }
    call->peer.data = call;
    call->refs++;
    (void)uv_poll_start(&call->link, UV_READABLE, on_link);
    (void)uv_poll_start(&call->peer, UV_DISCONNECT, on_peer);
    return true;
}

static void begin_asking(struct call *call)
{
    struct api *api = call->api;
    char peer[PEER_ROOM];
    bool is_local;

    if (api->serving >= HTTP_CALLS_MAX) {
        if (log_is_news(&api->told, "calls")) {
            log_warning("http",
                        "%d requests for locks wait, and one more is refused: use "
                        "another daemon, or clients that keep a connection",
                        HTTP_CALLS_MAX);
        }
        answer_error(call, MHD_HTTP_SERVICE_UNAVAILABLE, LATCHD_ERR_LIMIT,
                     "too many requests wait already");
        return;
    }
    format_peer(call->connection, peer, &is_local);
    call->fd = api->setup.connect(api->setup.ctx, peer, is_local);
    if (call->fd < 0 || !watch_ends(call)) {
        if (call->fd >= 0) {
            (void)close(call->fd);
            call->fd = -1;
        }
        answer_error(call, MHD_HTTP_SERVICE_UNAVAILABLE, LATCHD_ERR_GOAWAY,
                     "latchd stops, or can open no more files");
        return;
    }
    call_set_state(call, CALL_ASKING);
    call->suspended = true;
    MHD_suspend_connection(call->connection);
    ask_daemon(call, ASK_LOGIN);
}

/* Plain digits are seconds. */
static bool parse_time(struct span text, char out[MS_ROOM])
{
    uint64_t ms;

    if (text.len > 0 && isdigit((unsigned char)text.ptr[text.len - 1]) != 0) {
        if (!parse_u64(text, UINT64_MAX / SECOND_MS, &ms)) {
            return false;
        }
        ms *= SECOND_MS;
    } else if (!parse_msec(text, &ms)) {
        return false;
    }
    (void)snprintf(out, MS_ROOM, "%" PRIu64, ms);
    return true;
}

static bool is_kind(struct span word)
{
    return span_eq(word, SPAN("fair")) || span_eq(word, SPAN("read")) ||
           span_eq(word, SPAN("write"));
}

/* MHD_KeyValueIteratorN: one parameter. */
static enum MHD_Result take_param(void *cls, enum MHD_ValueKind kind, const char *key,
                                  size_t key_len, const char *value, size_t value_len)
{
    struct call *call = cls;
    struct span word = span_of(key, key_len);
    struct span text = value == NULL ? SPAN("") : span_of(value, value_len);
    unsigned p = 0;

    while (p < PARAMS && !((PARAM_ROWS[p].verbs & call->verb->bit) != 0 &&
                           span_eq(word, span_str(PARAM_ROWS[p].key)))) {
        p++;
    }
    if (p == PARAMS) {
        call->objection = "an address with a parameter that this method does not have";
    } else if (p == PARAM_NAME && call->name_count == API_NAMES_MAX) {
        call->objection = "a stream has at most 64 names";
    } else if (p == PARAM_NAME) {
        call->names[call->name_count++] = text;
        call->params[p] = text;
    } else if (call->params[p].ptr != NULL) {
        call->objection = "a parameter is given twice";
    } else if (PARAM_ROWS[p].is_time && !parse_time(text, call->times[p])) {
        call->objection =
            "a time is a number of seconds, or has a unit: 500ms, 30s, 5m";
    } else if (p == PARAM_KIND && !is_kind(text)) {
        call->objection = "kind= is fair, read or write";
    } else {
        call->params[p] = text;
    }
    return call->objection == NULL ? MHD_YES : MHD_NO;
}

/* Skips spaces; returns the next byte, 0 at the end. */
static char json_peek(struct span *in)
{
    while (in->len > 0 && isspace((unsigned char)in->ptr[0]) != 0) {
        *in = span_after(*in, 1);
    }
    return in->len == 0 ? '\0' : in->ptr[0];
}

/* Takes a string at the start of *in, without its quotes. False: there is none. */
static bool json_take_string(struct span *in, struct span *ret)
{
    size_t i = 1;

    if (json_peek(in) != '"') {
        return false;
    }
    while (i < in->len && in->ptr[i] != '"' && (unsigned char)in->ptr[i] >= ' ') {
        i += in->ptr[i] == '\\' ? 2 : 1;
    }
    if (i >= in->len || in->ptr[i] != '"') {
        return false;
    }
    *ret = span_of(in->ptr + 1, i - 1);
    *in = span_after(*in, i + 1);
    return true;
}

/* Skips a value, up to the comma or bracket behind it. */
static bool json_skip_value(struct span *in)
{
    size_t depth = 0;
    struct span ignored;

    for (char c; (c = json_peek(in)) != '\0';) {
        if (c == '"') {
            if (!json_take_string(in, &ignored)) {
                return false;
            }
            continue;
        }
        if (depth == 0 && (c == ',' || c == '}')) {
            return true;
        }
        depth += c == '{' || c == '[';
        depth -= depth > 0 && (c == '}' || c == ']');
        *in = span_after(*in, 1);
    }
    return false;
}

/* Finds "ID" in an object. False: there is none that can be an ID. */
static bool find_id(struct span json, char id[LATCHD_ID_MAX + 1])
{
    struct span key, value = SPAN_NONE;

    id[0] = '\0';
    if (json_peek(&json) != '{') {
        return false;
    }
    do {
        json = span_after(json, 1);
        if (!json_take_string(&json, &key) || json_peek(&json) != ':') {
            return false;
        }
        json = span_after(json, 1);
        if (span_eq(key, SPAN("ID")) && json_take_string(&json, &value) &&
            value.len <= LATCHD_ID_MAX &&
            (value.len == 0 || memchr(value.ptr, '\\', value.len) == NULL)) {
            memcpy(id, value.ptr, value.len);
            id[value.len] = '\0';
        }
        if (!json_skip_value(&json)) {
            return false;
        }
    } while (json.ptr[0] == ',');
    json = span_after(json, 1);
    return id[0] != '\0' && json_peek(&json) == '\0';
}

/* Terraform says in the body which lock it means. No body: it forces the lock open. */
static void take_body(struct call *call)
{
    struct span body = buf_span(&call->body);

    if (body.len == 0 && call->verb->bit == FOR_UNLOCK) {
        return;
    }
    if (!find_id(body, call->id)) {
        call->objection = "the body is no lock info of Terraform, with an ID";
        return;
    }
    call->params[PARAM_ID] = span_str(call->id);
    if (call->verb->bit == FOR_LOCK) {
        call->params[PARAM_DATA] = body;
    }
}

/* The whole request is there. */
static void begin_call(struct call *call)
{
    unsigned missing = call->verb->needs;

    (void)MHD_get_connection_values_n(call->connection, MHD_GET_ARGUMENT_KIND,
                                      take_param, call);
    for (unsigned p = 0; p < PARAMS; p++) {
        missing &= call->params[p].ptr == NULL ? ~0U : ~(1U << p);
    }
    if (call->verb->bit == FOR_GET && call->params[PARAM_WAIT].ptr != NULL &&
        call->params[PARAM_AFTER].ptr == NULL) {
        call->objection = "wait= needs after=, the token of the last answer";
    }
    if (call->objection == NULL && call->verb->has_body) {
        take_body(call);
    }
    if (call->too_large) {
        answer_error(call, MHD_HTTP_CONTENT_TOO_LARGE, LATCHD_ERR_LIMIT,
                     "a body has at most 4096 bytes");
    } else if (call->objection != NULL) {
        answer_error(call, MHD_HTTP_BAD_REQUEST, LATCHD_ERR, call->objection);
    } else if (missing != 0) {
        answer_error(call, MHD_HTTP_BAD_REQUEST, LATCHD_ERR,
                     (missing & 1U << PARAM_LEASE) != 0
                         ? "lease= is missing: how long the hold lasts, in seconds"
                     : (missing & 1U << PARAM_ID) != 0
                         ? "id= is missing: 16 to 64 bytes that name the request"
                         : "name= is missing: the lock to hear of");
    } else {
        begin_asking(call);
    }
}

/* --- libmicrohttpd --------------------------------------------------------- */

static ssize_t read_events(void *cls, uint64_t pos, char *out, size_t room)
{
    struct call *call = cls;
    size_t len = buf_len(&call->out);

    if (len > 0) {
        len = len < room ? len : room;
        memcpy(out, buf_ptr(&call->out), len);
        buf_drop(&call->out, len);
        return (ssize_t)len;
    }
    if (call->state == CALL_OVER) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    call->suspended = true;
    MHD_suspend_connection(call->connection);
    return 0;
}

static enum MHD_Result send_stream(struct call *call)
{
    enum { BLOCK = 4096 };
    struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK,
                                                               read_events, call, NULL);

    return response_send(call->connection, MHD_HTTP_OK,
                         response_with_headers(r, "text/event-stream"));
}

static enum MHD_Result send_answer(struct call *call)
{
    struct MHD_Response *r = response_from("application/json", &call->out);

    call->out = (struct buf){ 0 };
    call_set_state(call, CALL_OVER);
    if (call->code == MHD_HTTP_UNAUTHORIZED) {
        response_add_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
                            "Basic realm=\"latchd\"");
    } else if (call->code == MHD_HTTP_METHOD_NOT_ALLOWED) {
        response_add_header(r, MHD_HTTP_HEADER_ALLOW,
                            call->name.ptr == NULL ? "GET"
                                                   : "GET, PUT, DELETE, LOCK, UNLOCK");
    } else if (call->code == MHD_HTTP_SERVICE_UNAVAILABLE ||
               call->code == MHD_HTTP_TOO_MANY_REQUESTS) {
        response_add_header(r, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    }
    return response_send(call->connection, call->code, r);
}

static enum MHD_Result send_call(struct call *call)
{
    switch (call->state) {
    case CALL_READING:
    case CALL_ASKING:
        return MHD_YES;
    case CALL_ANSWERED:
        return send_answer(call);
    case CALL_STREAMING:
        return send_stream(call);
    case CALL_OVER:
        break;
    }
    return MHD_NO;
}

bool api_owns_path(const char *url)
{
    return strncmp(url, LOCKS_PATH, sizeof(LOCKS_PATH) - 1) == 0 ||
           strcmp(url, EVENTS_PATH) == 0;
}

static const char NUL_IN_PATH; /* its address is the state of such a request */

void *api_note_uri(const char *uri)
{
    const char *nul = strstr(uri, "%00");

    return nul != NULL && nul < uri + strcspn(uri, "?")
               ? (void *)(uintptr_t)&NUL_IN_PATH
               : NULL;
}

static bool is_call(const void *state)
{
    return state != NULL && state != &NUL_IN_PATH;
}

static const struct verb *find_verb(bool is_events, const char *method)
{
    size_t i = 0;

    while (i < VERB_COUNT &&
           !(VERBS[i].is_events == is_events && strcmp(method, VERBS[i].method) == 0)) {
        i++;
    }
    return i == VERB_COUNT ? NULL : &VERBS[i];
}

/* Whether the login can be read: another kind must not seem to be none. */
static bool has_basic_login(struct MHD_Connection *connection)
{
    char *user = MHD_basic_auth_get_username_password(connection, NULL);

    MHD_free(user);
    return user != NULL;
}

/* Browsers say so, also of a page that has made a name its own that leads here. */
static bool is_from_a_page(struct MHD_Connection *connection)
{
    const char *site =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site");

    return (site != NULL && strcmp(site, "none") != 0) ||
           MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
                                       MHD_HTTP_HEADER_ORIGIN) != NULL;
}

/* The head of a request is there. */
static enum MHD_Result meet_request(struct api *api, struct MHD_Connection *connection,
                                    const char *url, const char *method, void **state)
{
    bool is_events = strcmp(url, EVENTS_PATH) == 0;
    bool has_nul = *state == &NUL_IN_PATH;
    const char *login = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
                                                    MHD_HTTP_HEADER_AUTHORIZATION);
    struct call *call = call_new(api, connection, find_verb(is_events, method));

    *state = call;
    if (!is_events) {
        call->name = span_str(url + sizeof(LOCKS_PATH) - 1);
    }
    if (call->verb == NULL) {
        answer_error(call, MHD_HTTP_METHOD_NOT_ALLOWED, LATCHD_ERR,
                     "there is no such method here");
    } else if (has_nul) {
        answer_error(call, MHD_HTTP_BAD_REQUEST, LATCHD_ERR,
                     "a name with a zero byte cannot be in an address");
    } else if (is_from_a_page(connection)) {
        answer_error(call, MHD_HTTP_FORBIDDEN, LATCHD_ERR_DENIED,
                     "a web page in a browser cannot use this");
    } else if (login != NULL && !has_basic_login(connection)) {
        answer_error(call, MHD_HTTP_UNAUTHORIZED, LATCHD_ERR_NOAUTH,
                     "log in by Basic authentication: a user and a password");
    }
    return MHD_YES;
}

enum MHD_Result api_answer(struct api *api, struct MHD_Connection *connection,
                           const char *url, const char *method, size_t *upload_size,
                           const char *upload, void **state)
{
    struct call *call;

    if (!is_call(*state)) {
        return meet_request(api, connection, url, method, state);
    }
    call = *state;
    if (*upload_size > 0) {
        call->too_large |= buf_len(&call->body) + *upload_size > API_BODY_MAX;
        if (!call->too_large) {
            buf_add(&call->body, upload, *upload_size);
        }
        *upload_size = 0;
        return MHD_YES;
    }
    if (call->state == CALL_READING) {
        begin_call(call);
    }
    return send_call(call);
}

bool api_is_serving(const void *state)
{
    const struct call *call = state;

    return is_call(state) &&
           (call->state == CALL_ASKING || call->state == CALL_STREAMING);
}

void api_completed(void **state)
{
    struct call *call = *state;

    if (is_call(call)) {
        call_hang_up(call);
        if (call->state != CALL_OVER) {
            call_set_state(call, CALL_OVER);
        }
        list_del(&call->all);
        call_unref(call);
    }
    *state = NULL;
}

void api_tick(struct api *api, uint64_t now_ms)
{
    struct call *call;

    LIST_EACH(call, &api->calls, all) {
        if (call->state == CALL_STREAMING && now_ms - call->sent_ms > API_COMMENT_MS) {
            call->sent_ms = now_ms;
            buf_add_str(&call->out, ":\n\n");
            call_wake(call);
        }
    }
}

struct api *api_new(const struct api_setup *setup)
{
    struct api *api = xcalloc(1, sizeof(*api));

    api->setup = *setup;
    list_init(&api->calls);
    return api;
}

void api_stop(struct api *api)
{
    struct call *call;

    LIST_EACH(call, &api->calls, all) {
        if (call->state == CALL_ASKING) {
            end_without_daemon(call);
        } else if (call->state != CALL_ANSWERED) {
            call_end(call);
        }
    }
}

void api_free(struct api *api)
{
    free(api);
}
