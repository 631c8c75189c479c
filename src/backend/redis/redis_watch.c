#include "backend/redis/redis_watch.h"

#include "backend/redis/redis_command.h"
#include "backend/script/script_codec.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/fifo.h"
#include "util/log.h"
#include "util/text.h"
#include "util/transition.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    NAMES_MAX = 100,        /* of one EXISTS */
    TABLE_UNKNOWN = 500000, /* tracking-table-max-keys, if Redis does not tell it */
    MARK_MS = 1000,         /* about so often, while names are watched */
    WHY_ROOM = 160,
};

/*   DOWN --connected--> GREETING --> PROVING --> READY
 *     ^                     '-----------+--> REFUSED
 *     '------ lost: from everywhere ----'
 *
 * CLOSED comes from everywhere, and stays. */
enum watch_state {
    WATCH_DOWN,
    WATCH_GREETING, /* asks for the version, and for tracking */
    WATCH_PROVING,  /* until Redis tells of a key that the command link writes */
    WATCH_READY,
    WATCH_REFUSED, /* this server has no watch, as long as the connection lasts */
    WATCH_CLOSED,
};

static const struct transitions WATCH_TRANSITIONS = {
    .subject = "watch link",
    .states = {
        [WATCH_DOWN] = { "down", INTO(WATCH_GREETING) | INTO(WATCH_CLOSED) },
        [WATCH_GREETING] = { "greeting", INTO(WATCH_PROVING) | INTO(WATCH_REFUSED) |
                                             INTO(WATCH_DOWN) | INTO(WATCH_CLOSED) },
        [WATCH_PROVING] = { "proving", INTO(WATCH_READY) | INTO(WATCH_REFUSED) |
                                           INTO(WATCH_DOWN) | INTO(WATCH_CLOSED) },
        [WATCH_READY] = { "ready", INTO(WATCH_DOWN) | INTO(WATCH_CLOSED) },
        [WATCH_REFUSED] = { "refused", INTO(WATCH_DOWN) | INTO(WATCH_CLOSED) },
        [WATCH_CLOSED] = { "closed", 0 },
    },
};

/* How far the proof is. One that fails is begun anew after the timeout. */
enum proof {
    PROOF_NONE,
    PROOF_READ,    /* Redis tells of its key */
    PROOF_WRITTEN, /* by the command link */
    PROOF_TOLD,    /* and Redis has told of it: the first mark is sent */
    PROOF_FAILED,
};

/* The names of one EXISTS, one after the other, each behind its length. */
struct watch_batch {
    size_t count;
    struct buf names;
};

struct redis_watch {
    struct redis_conn *conn;
    const struct backend_url *url;
    struct redis_link *first;
    const char *instance;
    struct store_events events;
    uint64_t timeout_ms;
    size_t names_max;
    enum watch_state state;
    struct watch_batch batch; /* of this turn */
    struct fifo asked;        /* struct watch_batch: in the order of their EXISTS */
    uint64_t limit;           /* of the names that may be watched */
    enum proof proof;         /* PROVING */
    uint64_t proof_us;        /* since when it is WRITTEN, TOLD or FAILED */
    char proof_key[128];      /* the mark's as well */
    uint64_t mark_us;         /* when the last mark was sent */
    bool has_names;           /* some were read on this connection */
    char run_id[48];          /* of the server; empty: not known */
    char why[WHY_ROOM];       /* not READY; empty: not known */
    struct log_recent told;   /* lately */
};

/* --- states ----------------------------------------------------------------------- */

static void set_state(struct redis_watch *w, enum watch_state state)
{
    transition_check(&WATCH_TRANSITIONS, w->state, state);
    w->state = state;
}

static void tell_limit(struct redis_watch *w, uint64_t limit)
{
    store_tell(&w->events, &(struct store_event){ .kind = STORE_WATCH_CHANGED,
                                                  .watch = { .limit = limit } });
}

static void forget_batches(struct redis_watch *w)
{
    struct watch_batch batch;

    while (fifo_pop(&w->asked, &batch)) {
        buf_reset(&batch.names);
    }
    buf_reset(&w->batch.names);
    w->batch.count = 0;
}

/* Redis takes no writes for a while, and is the master still. */
static bool is_passing(const char *error)
{
    return strncmp(error, "BUSY ", 5) == 0 || strncmp(error, "MISCONF ", 8) == 0 ||
           strncmp(error, "OOM ", 4) == 0;
}

/* The log has from the command link that Redis takes no writes. */
static void say_why_not(struct redis_watch *w, const char *why)
{
    bool is_news = !is_passing(why) && log_is_news(&w->told, why);

    (void)snprintf(w->why, sizeof(w->why), "%s", why);
    log_write(is_news ? LOG_NOTICE : LOG_DEBUG, "redis",
              "%s tells of no change (%s): a hold that is deleted in Redis is found "
              "lost when it is renewed, up to a third of its lease later",
              redis_conn_address(w->conn), w->why);
}

static void refuse_watch(struct redis_watch *w, const char *why)
{
    if (w->state == WATCH_GREETING || w->state == WATCH_PROVING) {
        set_state(w, WATCH_REFUSED);
        say_why_not(w, why);
    }
}

/* As long as it lasts: the watch is proved again later. */
static void fail_proof(struct redis_watch *w, const char *why)
{
    w->proof = PROOF_FAILED;
    w->proof_us = clock_boot_us();
    say_why_not(w, why);
}

/* No right, no such command. Other errors pass: BUSY, MASTERDOWN, LOADING. */
static bool is_refusal(const char *error)
{
    return strncmp(error, "ERR ", 4) == 0 || strncmp(error, "NOPERM ", 7) == 0 ||
           strncmp(error, "NOPROTO ", 8) == 0;
}

static void on_error(struct redis_watch *w, const redisReply *reply)
{
    if (is_refusal(reply->str)) {
        refuse_watch(w, reply->str);
    } else if (w->state == WATCH_PROVING && strncmp(reply->str, "LOADING ", 8) != 0) {
        fail_proof(w, reply->str);
    } else if (w->state == WATCH_GREETING || w->state == WATCH_PROVING) {
        say_why_not(w, reply->str);
        redis_conn_fail(w->conn, "%s", reply->str);
    }
}

/* --- the greeting ----------------------------------------------------------------- */

bool redis_watch_is_safe(const char *version)
{
    unsigned long parts[3] = { 0 };
    char *end;

    for (size_t i = 0; i < 3; i++) {
        parts[i] = strtoul(version, &end, 10);
        version = *end == '.' ? end + 1 : end;
    }
    if (parts[0] == 6) {
        return parts[1] > 2 || (parts[1] == 2 && parts[2] >= 11);
    }
    if (parts[0] == 7 && parts[1] == 0) {
        return parts[2] >= 9;
    }
    return parts[0] >= 7;
}

/* --- the proof, and the mark ------------------------------------------------------ */

/* The mark is a write that changes nothing: only a master that takes writes does it. A
 * server that refuses it is no master any more, or may not be one for long. */
static void on_marked(void *ctx, void *of, const redisReply *reply)
{
    struct redis_watch *w = ctx;
    bool is_ok = reply->type == REDIS_REPLY_INTEGER;
    bool is_proof = w->state == WATCH_PROVING && w->proof == PROOF_TOLD;

    if (is_proof && is_ok) {
        redis_conn_ready(w->conn, "");
        w->why[0] = '\0';
        w->has_names = false;
        set_state(w, WATCH_READY);
        tell_limit(w, w->limit);
    } else if (is_proof && strncmp(reply->str, "READONLY ", 9) != 0) {
        fail_proof(w, reply->str);
    } else if (is_proof ||
               (w->state == WATCH_READY && !is_ok && !is_passing(reply->str))) {
        say_why_not(w, reply->str);
        redis_conn_fail(w->conn, "%s", reply->str);
    }
}

static void send_mark(struct redis_watch *w)
{
    w->mark_us = clock_boot_us();
    redis_conn_ask(w->conn, 2, (const char *const[]){ "DEL", w->proof_key }, on_marked,
                   NULL);
}

static void on_proof_written(void *of, const char *error)
{
    struct redis_watch *w = of;

    if (w->state == WATCH_PROVING && w->proof == PROOF_WRITTEN) {
        fail_proof(w, error);
    }
}

static void write_proof(struct redis_watch *w)
{
    if (redis_link_touch(w->first, w->proof_key, on_proof_written, w)) {
        w->proof = PROOF_WRITTEN;
        w->proof_us = clock_boot_us();
    }
}

bool redis_watch_is_with_first(const struct redis_watch *w)
{
    return w->state != WATCH_READY ||
           strcmp(w->run_id, redis_link_run_id(w->first)) == 0;
}

/* Redis told of what the command link wrote. It would do so also behind a replica. */
static void on_proof_told(struct redis_watch *w)
{
    const char *first = redis_link_run_id(w->first);

    if (w->run_id[0] != '\0' && first[0] != '\0' && strcmp(w->run_id, first) != 0) {
        say_why_not(w, "another server answers");
        redis_conn_fail(w->conn, "another server answers");
        return;
    }
    w->proof = PROOF_TOLD;
    w->proof_us = clock_boot_us();
    send_mark(w);
}

static void on_proof_read(void *ctx, void *of, const redisReply *reply)
{
    struct redis_watch *w = ctx;

    if (w->state != WATCH_PROVING) {
        return;
    }
    if (reply->type == REDIS_REPLY_INTEGER) {
        w->proof = PROOF_READ;
        write_proof(w);
    } else if (reply->type == REDIS_REPLY_ERROR &&
               !script_reply_is_redirected(span_str(reply->str))) {
        on_error(w, reply);
    } /* else: of another slot; read with another tag at the next tick */
}

static void read_proof(struct redis_watch *w)
{
    unsigned tag = redis_link_look_tag(w->first);
    char text[DIGITS_MAX + 1] = "";

    if (tag != 0) {
        (void)snprintf(text, sizeof(text), "%u", tag);
    }
    w->proof = PROOF_NONE;
    (void)snprintf(w->proof_key, sizeof(w->proof_key),
                   "latchd:probe:{latchd:probe%s}:watch:%s", text, w->instance);
    redis_conn_ask(w->conn, 2, (const char *const[]){ "EXISTS", w->proof_key },
                   on_proof_read, NULL);
}

static void on_table(void *ctx, void *of, const redisReply *reply)
{
    struct redis_watch *w = ctx;
    uint64_t size = TABLE_UNKNOWN;

    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
        reply->element[1]->type == REDIS_REPLY_STRING) {
        (void)parse_u64(span_str(reply->element[1]->str), UINT64_MAX / 2, &size);
    }
    w->limit = size == 0 ? UINT64_MAX : size / 2;
}

static void on_tracking(void *ctx, void *of, const redisReply *reply)
{
    struct redis_watch *w = ctx;

    if (w->state != WATCH_GREETING) {
        return;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        on_error(w, reply);
        return;
    }
    set_state(w, WATCH_PROVING);
    read_proof(w);
}

/* The map of HELLO: a name, a value, and so on. */
static const char *version_of(const redisReply *reply)
{
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i + 1 < reply->elements;
         i += 2) {
        if (reply->element[i]->type == REDIS_REPLY_STRING &&
            reply->element[i + 1]->type == REDIS_REPLY_STRING &&
            strcmp(reply->element[i]->str, "version") == 0) {
            return reply->element[i + 1]->str;
        }
    }
    return "";
}

static void on_hello(void *ctx, void *of, const redisReply *reply)
{
    struct redis_watch *w = ctx;
    char why[64];

    if (reply->type == REDIS_REPLY_ERROR) {
        on_error(w, reply);
        return;
    }
    if (!redis_watch_is_safe(version_of(reply))) {
        (void)snprintf(why, sizeof(why), "version %.20s is not safe to be watched",
                       version_of(reply));
        refuse_watch(w, why);
        return;
    }
    redis_conn_ask(w->conn, 3,
                   (const char *const[]){ "CONFIG", "GET", "tracking-table-max-keys" },
                   on_table, NULL);
    redis_conn_ask(w->conn, 3, (const char *const[]){ "CLIENT", "TRACKING", "ON" },
                   on_tracking, NULL);
}

static void on_info(void *ctx, void *of, const redisReply *reply)
{
    struct redis_watch *w = ctx;

    if (reply->type == REDIS_REPLY_ERROR && !is_refusal(reply->str)) {
        on_error(w, reply);
        return;
    }
    redis_info_value(reply, "run_id", w->run_id, sizeof(w->run_id));
}

static void on_selected(void *ctx, void *of, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR) {
        on_error(ctx, reply);
    }
}

static void on_open(void *ctx)
{
    struct redis_watch *w = ctx;
    char db[DIGITS_MAX + 1];

    set_state(w, WATCH_GREETING);
    if (w->url->db != 0) {
        (void)snprintf(db, sizeof(db), "%u", w->url->db);
        redis_conn_ask(w->conn, 2, (const char *const[]){ "SELECT", db }, on_selected,
                       NULL);
    }
    redis_conn_ask(w->conn, 2, (const char *const[]){ "INFO", "server" }, on_info,
                   NULL);
    redis_conn_ask(w->conn, 2, (const char *const[]){ "HELLO", "3" }, on_hello, NULL);
}

static void on_lost(void *ctx)
{
    struct redis_watch *w = ctx;
    bool was_ready = w->state == WATCH_READY;

    if (w->state != WATCH_CLOSED) {
        set_state(w, WATCH_DOWN);
    }
    forget_batches(w);
    if (was_ready) {
        tell_limit(w, 0);
    }
}

static void prove_later(struct redis_watch *w)
{
    char why[64];

    if (w->proof == PROOF_NONE) {
        read_proof(w);
    } else if (w->proof == PROOF_READ) {
        write_proof(w);
    } else if (w->proof != PROOF_TOLD &&
               clock_boot_us() - w->proof_us > w->timeout_ms * 1000) {
        if (w->proof == PROOF_WRITTEN) {
            (void)snprintf(why, sizeof(why), "nothing was told within %llu ms",
                           (unsigned long long)w->timeout_ms);
            say_why_not(w, why);
        }
        read_proof(w);
    }
}

static void on_tick(void *ctx)
{
    struct redis_watch *w = ctx;

    if (w->state == WATCH_PROVING) {
        prove_later(w);
    } else if (w->state == WATCH_READY && w->has_names &&
               clock_boot_us() - w->mark_us >= MARK_MS * UINT64_C(1000)) {
        send_mark(w);
    }
}

/* --- what Redis tells ------------------------------------------------------------- */

static void on_touched(struct redis_watch *w, struct span key)
{
    if (w->state == WATCH_PROVING && w->proof == PROOF_WRITTEN &&
        span_eq(key, span_str(w->proof_key))) {
        on_proof_told(w);
    } else if (w->state == WATCH_READY) {
        store_tell(&w->events, &(struct store_event){ .kind = STORE_TOUCHED,
                                                      .touched = { .name = key } });
    }
}

static bool on_push(void *ctx, const redisReply *reply)
{
    struct redis_watch *w = ctx;
    const redisReply *keys;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[0]->type != REDIS_REPLY_STRING ||
        strcmp(reply->element[0]->str, "invalidate") != 0) {
        return false;
    }
    keys = reply->element[1];
    if (keys->type == REDIS_REPLY_NIL && w->state == WATCH_READY) {
        store_tell(&w->events, &(struct store_event){ .kind = STORE_TOUCHED });
    } else if (keys->type == REDIS_REPLY_NIL && w->state == WATCH_PROVING &&
               (w->proof == PROOF_READ || w->proof == PROOF_WRITTEN)) {
        read_proof(w); /* Redis has forgotten it */
    }
    for (size_t i = 0; keys->type == REDIS_REPLY_ARRAY && i < keys->elements; i++) {
        if (keys->element[i]->type == REDIS_REPLY_STRING) {
            on_touched(w, span_of(keys->element[i]->str, keys->element[i]->len));
        }
    }
    return true;
}

/* --- names ------------------------------------------------------------------------ */

static struct span next_name(const struct buf *names, size_t *at)
{
    const char *from = buf_ptr(names) + *at;
    uint32_t len;

    memcpy(&len, from, sizeof(len));
    *at += sizeof(len) + len;
    return span_of(from + sizeof(len), len);
}

/* An error tells nothing of the names: they are watched when they are next asked for.
 */
static void on_exists(void *ctx, void *of, const redisReply *reply)
{
    struct redis_watch *w = ctx;
    struct watch_batch batch;

    if (!fifo_pop(&w->asked, &batch)) {
        return;
    }
    for (size_t i = 0, at = 0; reply->type == REDIS_REPLY_INTEGER && i < batch.count;
         i++) {
        struct store_event ev = {
            .kind = STORE_WATCHED,
            .touched = { .name = next_name(&batch.names, &at),
                         .missing = reply->integer < (long long)batch.count },
        };

        store_tell(&w->events, &ev);
    }
    buf_reset(&batch.names);
}

static void send_batch(struct redis_watch *w)
{
    struct buf *out = redis_conn_out(w->conn);

    if (w->batch.count == 0) {
        return;
    }
    command_begin(out, 1 + w->batch.count);
    command_word(out, SPAN("EXISTS"));
    for (size_t i = 0, at = 0; i < w->batch.count; i++) {
        command_word(out, next_name(&w->batch.names, &at));
    }
    redis_conn_expect(w->conn, 1, on_exists, NULL);
    w->has_names = true;
    *(struct watch_batch *)fifo_push(&w->asked, sizeof(w->batch)) = w->batch;
    w->batch = (struct watch_batch){ 0 };
}

void redis_watch_name(struct redis_watch *w, struct span name)
{
    uint32_t len = (uint32_t)name.len;

    if (w->state != WATCH_READY) {
        return;
    }
    buf_add(&w->batch.names, &len, sizeof(len));
    buf_add_span(&w->batch.names, name);
    if (++w->batch.count == w->names_max) {
        send_batch(w);
    }
}

void redis_watch_flush(struct redis_watch *w)
{
    send_batch(w);
    redis_conn_flush(w->conn);
}

/* --- for the node ----------------------------------------------------------------- */

static const struct redis_conn_events CONN_EVENTS = {
    .on_open = on_open,
    .on_push = on_push,
    .on_lost = on_lost,
    .on_tick = on_tick,
};

struct redis_watch *redis_watch_new(const struct redis_watch_setup *setup)
{
    struct redis_watch *w = xcalloc(1, sizeof(*w));
    struct redis_conn_setup conn = setup->conn;

    conn.module = "redis";
    conn.is_quiet = true;
    conn.is_resp3 = true;
    conn.pings = true;
    conn.events = &CONN_EVENTS;
    conn.ctx = w;
    w->url = conn.url;
    w->first = setup->first;
    w->instance = setup->instance;
    w->events = setup->events;
    w->timeout_ms = conn.timeout_ms;
    w->names_max = setup->is_clustered ? 1 : NAMES_MAX;
    w->conn = redis_conn_new(&conn);
    return w;
}

void redis_watch_start(struct redis_watch *w)
{
    redis_conn_start(w->conn);
}

void redis_watch_move(struct redis_watch *w)
{
    redis_conn_move(w->conn);
}

void redis_watch_set_timeout(struct redis_watch *w, uint64_t timeout_ms)
{
    w->timeout_ms = timeout_ms;
    redis_conn_set_timeout(w->conn, timeout_ms);
}

const char *redis_watch_why_not(const struct redis_watch *w)
{
    return w->state == WATCH_READY ? NULL : w->why;
}

void redis_watch_close(struct redis_watch *w)
{
    set_state(w, WATCH_CLOSED);
    redis_conn_close(w->conn);
}

void redis_watch_free(struct redis_watch *w)
{
    if (w == NULL) {
        return;
    }
    forget_batches(w);
    fifo_fini(&w->asked);
    free(w);
}
