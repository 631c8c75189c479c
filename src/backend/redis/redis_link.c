#include "backend/redis/redis_link.h"

#include "backend/redis/redis_command.h"
#include "backend/redis/redis_link_priv.h"
#include "backend/script/script_batch.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/log.h"

#include <stdio.h>
#include <stdlib.h>

/* Errors of a server that cannot do what a link is for: the ops were not run, and the
 * handshake finds out when it can again. The first REPLICA_ERRORS are those of a
 * replica. */
static const char *const USELESS[] = { "READONLY ", "MASTERDOWN ", "LOADING ",
                                       "NOAUTH ", "NOREPLICAS " };

enum { REPLICA_ERRORS = 2 };

struct redis_call *link_push(struct redis_link *l, enum call_what what)
{
    struct redis_call *call = call_fifo_push(&l->open);

    call->what = (uint8_t)what;
    call->sent_us = clock_boot_us();
    return call;
}

/* --- ready, and lost ------------------------------------------------------------- */

/* Whether the server began to run while the one before still answered. Redis tells its
 * age in whole seconds, so a second may be missing. */
static bool ran_beside_the_last(const struct redis_link *l)
{
    uint64_t age_s = strtoull(l->server.uptime_s, NULL, 10);

    return age_s > 1 && (age_s - 1) * 1000000 > clock_boot_us() - l->alive_us;
}

/* A master that gets its first replica, or has had none for long, begins another
 * history, too; but only one that was a replica knows which history came before. */
static bool was_promoted(const struct redis_link *l)
{
    return strcmp(l->before.history.id, l->server.history.id) != 0 &&
           l->server.history.before_end != 0;
}

enum link_change link_change_of(const struct redis_link *l)
{
    if (l->ready_count == 0) {
        return LINK_RESTARTED;
    }
    if (l->was_replica) {
        return LINK_FAILED_OVER;
    }
    if (l->before.run_id[0] == '\0' || l->server.run_id[0] == '\0') {
        return LINK_RESTARTED;
    }
    if (strcmp(l->before.run_id, l->server.run_id) == 0) {
        return was_promoted(l) ? LINK_FAILED_OVER : LINK_SAME;
    }
    return ran_beside_the_last(l) ? LINK_FAILED_OVER : LINK_RESTARTED;
}

/* Where Sentinels or a map tell of failovers, their line in the log says more. */
static void log_change(const struct redis_link *l, enum link_change change)
{
    if (change != LINK_FAILED_OVER || l->is_replicated || l->is_second) {
        return;
    }
    log_warning("redis",
                "failover: %s at %s; what the last master had not passed on is lost",
                strcmp(l->before.run_id, l->server.run_id) == 0
                    ? "a server that was a replica for a while answers"
                    : "another server answers",
                redis_conn_address(l->conn));
}

void link_become_ready(struct redis_link *l)
{
    struct call_fifo orphans = l->orphans;
    enum link_change change = link_change_of(l);
    struct redis_call call;
    char about[96];

    (void)snprintf(about, sizeof(about), "%s %s%s", l->server.product,
                   l->server.version,
                   l->is_second ? ", for what replicas acknowledge" : "");
    redis_conn_ready(l->conn, l->server.version[0] == '\0' ? "" : about);
    log_change(l, change);
    l->stage = LINK_READY;
    l->was_replica = false;
    l->alive_us = clock_boot_us();
    l->before = l->server;
    l->client_before = l->client_id;
    l->orphans = (struct call_fifo){ 0 };
    l->ready_count++;
    l->events->on_up(l->ctx, change);
    while (!l->closed && call_fifo_pop(&orphans, &call)) {
        l->events->on_reply(l->ctx, &call, NULL);
    }
    call_fifo_fini(&orphans);
}

static void on_lost(void *ctx)
{
    struct redis_link *l = ctx;
    bool was_ready = l->stage == LINK_READY;
    struct redis_call call;

    while (call_fifo_pop(&l->open, &call)) {
        if (call.what == CALL_OP) {
            *call_fifo_push(&l->orphans) = call;
        }
    }
    l->stage = LINK_DOWN;
    l->loading = 0;
    l->clock_asked = false;
    l->is_probed = false;
    l->fitness_asked = l->look_asked = l->look_refused = l->in_doubt = false;
    l->has_written = false;
    l->batch_refused = false;
    l->wait_us = 0;
    if (was_ready) {
        l->events->on_down(l->ctx);
    }
}

/* --- replies --------------------------------------------------------------------- */

/* The error that a script met stands at the beginning of the text, before Redis 7
 * inside a sentence. */
static bool is_useless(const redisReply *reply, size_t errors)
{
    if (reply == NULL || reply->type != REDIS_REPLY_ERROR) {
        return false;
    }
    for (size_t i = 0; i < errors; i++) {
        if (strstr(reply->str, USELESS[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* The part of the reply to `count` ops that says so. NULL: none does. */
static const redisReply *find_useless(const redisReply *reply, size_t count)
{
    const size_t errors = sizeof(USELESS) / sizeof(USELESS[0]);

    if (is_useless(reply, errors)) {
        return reply;
    }
    for (size_t i = 0; count > 1 && i < count; i++) {
        const redisReply *part = script_reply_part(reply, i, count);

        if (is_useless(part, errors)) {
            return part;
        }
    }
    return NULL;
}

/* The clock was read when the bytes came: once, however many answers they hold. */
static void count_round_trip(struct redis_link *l, const struct redis_call *call)
{
    uint64_t now_us = redis_conn_heard_us(l->conn);

    histogram_add(l->round_trips, now_us > call->sent_us ? now_us - call->sent_us : 0);
}

static void on_op_reply(struct redis_link *l, const redisReply *reply)
{
    struct redis_call calls[SCRIPT_BATCH_MAX];
    size_t count = 1U + call_fifo_first(&l->open)->more;
    const redisReply *useless = find_useless(reply, count);

    if (useless != NULL) {
        l->was_replica = l->was_replica || is_useless(useless, REPLICA_ERRORS);
        redis_conn_fail(l->conn, "%s", useless->str); /* the ops become orphans */
        return;
    }
    for (size_t i = 0; i < count; i++) {
        (void)call_fifo_pop(&l->open, &calls[i]);
        count_round_trip(l, &calls[i]);
    }
    if (reply->type == REDIS_REPLY_ERROR && strcasestr(reply->str, "evalsha") != NULL) {
        l->in_doubt = true;
    }
    if (reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOSCRIPT", 8) == 0) {
        /* The script did not run. An op that is sent again comes after SCRIPT LOAD. */
        link_load_scripts(l);
        reply = NULL;
    } else if (script_reply_part(reply, 0, count) == NULL) {
        log_write(log_is_news(&l->told, "batch") ? LOG_NOTICE : LOG_DEBUG, "redis",
                  "each lock is asked for by a call of its own now: %s",
                  reply->type == REDIS_REPLY_ERROR ? reply->str : "odd answer");
        l->batch_refused = true;
    }
    for (size_t i = 0; i < count && !l->closed; i++) {
        if (calls[i].what == CALL_OP) {
            l->events->on_reply(l->ctx, &calls[i], script_reply_part(reply, i, count));
        }
    }
}

/* The mark comes first: without it what is acknowledged may be of nobody's writing. */
static void on_acked(struct redis_link *l, const redisReply *reply)
{
    bool told = reply->type == REDIS_REPLY_INTEGER && l->has_written;

    l->wait_us = 0;
    l->events->on_acked(l->ctx, told ? reply->integer : -1,
                        reply->type == REDIS_REPLY_ERROR ? reply->str : "");
}

static void on_reply(void *ctx, const redisReply *reply)
{
    struct redis_link *l = ctx;
    const struct redis_call *first = call_fifo_first(&l->open);
    struct redis_call call;

    if (first == NULL) {
        redis_conn_fail(l->conn, "it answers what was not asked");
        return;
    }
    if (l->stage == LINK_READY) {
        l->alive_us = first->sent_us;
    }
    if (first->what == CALL_OP || first->more != 0) {
        on_op_reply(l, reply);
        return;
    }
    if (first->what == CALL_ABANDONED) {
        (void)call_fifo_pop(&l->open, &call);
        return;
    }
    (void)call_fifo_pop(&l->open, &call);
    if (call.what == CALL_WAIT) {
        on_acked(l, reply);
        return;
    }
    if (call.what == CALL_MARK) {
        l->has_written = reply->type == REDIS_REPLY_STATUS;
        return;
    }
    if (link_on_own_reply(l, &call, reply)) {
        redis_conn_flush(l->conn);
    }
}

static void on_open(void *ctx)
{
    link_greet(ctx);
}

static void on_wake(void *ctx)
{
    struct redis_link *l = ctx;

    l->events->on_wake(l->ctx);
}

static void on_tick(void *ctx)
{
    struct redis_link *l = ctx;
    const struct redis_call *first = call_fifo_first(&l->open);

    if (first != NULL) {
        redis_conn_check_silence(l->conn, first->sent_us + l->wait_us);
    }
    if (l->wait_us != 0) {
        l->clock_due = true; /* an answer from behind a WAIT tells little */
    } else if (!l->clock_asked &&
               (l->stage == LINK_READY || l->stage == LINK_WAITING)) {
        link_ask_clock(l);
        link_look(l);
    }
    link_probe(l);
}

static const struct redis_conn_events CONN_EVENTS = {
    .on_wake = on_wake,
    .on_open = on_open,
    .on_reply = on_reply,
    .on_lost = on_lost,
    .on_tick = on_tick,
};

/* --- for the store --------------------------------------------------------------- */

struct redis_link *redis_link_new(const struct redis_link_setup *setup)
{
    struct redis_link *l = xcalloc(1, sizeof(*l));
    struct redis_conn_setup conn = setup->conn;

    conn.module = "redis";
    conn.events = &CONN_EVENTS;
    conn.ctx = l;
    l->url = conn.url;
    l->events = setup->events;
    l->listener = setup->listener;
    l->ctx = setup->ctx;
    l->timeout_ms = conn.timeout_ms;
    l->is_replicated = setup->is_replicated;
    l->is_second = setup->is_second;
    l->wanted = setup->publish;
    l->round_trips = setup->round_trips;
    l->conn = redis_conn_new(&conn);
    return l;
}

void redis_link_start(struct redis_link *l)
{
    redis_conn_start(l->conn);
}

void redis_link_move(struct redis_link *l)
{
    redis_conn_move(l->conn);
}

void redis_link_set_timeout(struct redis_link *l, uint64_t timeout_ms)
{
    l->timeout_ms = timeout_ms;
    redis_conn_set_timeout(l->conn, timeout_ms);
}

struct buf *redis_link_call_batch(struct redis_link *l, const struct op *ops,
                                  size_t count, struct op_times *ret)
{
    bool ready = l->stage == LINK_READY;
    uint64_t now_us = clock_boot_us();

    ret->asked_us = redis_clock_at(&l->clock, now_us);
    ret->deadline_us = ret->asked_us + l->timeout_ms * 1000;
    ret->publish = l->publish;
    for (size_t i = 0; i < count; i++) {
        struct redis_call *call = call_fifo_push(ready ? &l->open : &l->orphans);

        call->what = CALL_OP;
        call->sent_us = now_us;
        call->op_id = ops[i].id;
        call->op_kind = (uint8_t)ops[i].kind;
        call->item_count = (uint8_t)op_item_count(&ops[i]);
        call->group = ops[i].group;
        call->more = i == 0 ? (uint8_t)(count - 1) : 0;
        call->deadline_us = ready ? ret->deadline_us : 0;
    }
    return ready ? redis_conn_out(l->conn) : NULL;
}

bool redis_link_takes_batch(const struct redis_link *l)
{
    return !l->batch_refused;
}

struct buf *redis_link_call(struct redis_link *l, const struct op *op,
                            struct op_times *ret)
{
    return redis_link_call_batch(l, op, 1, ret);
}

void redis_link_wait(struct redis_link *l, struct span name, unsigned replicas,
                     uint64_t ms)
{
    struct buf *out = redis_conn_out(l->conn);

    if (!l->has_written) {
        command_begin(out, 5);
        command_word(out, SPAN("SET"));
        command_key(out, SPAN("latchd:acked:"), name, SPAN_NONE);
        command_word(out, SPAN("1"));
        command_word(out, SPAN("PX"));
        command_word(out, SPAN("1"));
        (void)link_push(l, CALL_MARK);
    }
    if (l->clock_due && !l->clock_asked) {
        link_ask_clock(l);
    }
    l->clock_due = false;
    command_begin(out, 3);
    command_word(out, SPAN("WAIT"));
    command_uint(out, replicas);
    command_uint(out, ms);
    (void)link_push(l, CALL_WAIT);
    l->wait_us = ms * 1000;
}

void redis_link_take_reply(struct redis_link *l)
{
    redis_conn_take_reply(l->conn);
}

bool redis_link_is_ready(const struct redis_link *l)
{
    return l->stage == LINK_READY;
}

bool redis_link_same_server(const struct redis_link *a, const struct redis_link *b)
{
    return strcmp(a->server.run_id, b->server.run_id) == 0 &&
           strcmp(a->server.history.id, b->server.history.id) == 0;
}

const struct redis_history *redis_link_history(const struct redis_link *l)
{
    return &l->server.history;
}

void redis_link_drop(struct redis_link *l, const char *why)
{
    redis_conn_fail(l->conn, "%s", why);
}

unsigned redis_link_replicas(const struct redis_link *l)
{
    return l->server.replicas;
}

const char *redis_link_why_not(const struct redis_link *l)
{
    if (l->stage != LINK_READY) {
        return redis_conn_trouble(l->conn);
    }
    return l->refusal[0] == '\0' ? NULL : l->refusal;
}

bool redis_link_lacks_replicas(const struct redis_link *l, unsigned wanted)
{
    return l->stage == LINK_READY && l->wanted == PUBLISH_PLAIN &&
           l->replicas_counted && l->server.replicas < wanted;
}

size_t redis_link_in_flight(const struct redis_link *l)
{
    size_t ops = l->orphans.count;

    for (size_t i = 0; i < l->open.count; i++) {
        ops += l->open.ring[(l->open.first + i) & (l->open.room - 1)].what == CALL_OP;
    }
    return ops;
}

uint64_t redis_link_reconnects(const struct redis_link *l)
{
    return l->ready_count == 0 ? 0 : l->ready_count - 1;
}

void redis_link_abandon(struct redis_link *l, redis_group_fn *concerns, void *ctx,
                        bool sent_too)
{
    struct call_fifo gone = { 0 };
    struct redis_call call;

    for (size_t i = 0; sent_too && i < l->open.count; i++) {
        struct redis_call *at = &l->open.ring[(l->open.first + i) & (l->open.room - 1)];

        if (at->what == CALL_OP && concerns(ctx, at->group)) {
            *call_fifo_push(&gone) = *at;
            at->what = CALL_ABANDONED;
        }
    }
    for (size_t i = l->orphans.count; i > 0; i--) {
        (void)call_fifo_pop(&l->orphans, &call);
        *call_fifo_push(concerns(ctx, call.group) ? &gone : &l->orphans) = call;
    }
    while (!l->closed && call_fifo_pop(&gone, &call)) {
        l->events->on_reply(l->ctx, &call, NULL);
    }
    call_fifo_fini(&gone);
}

void redis_link_flush(struct redis_link *l)
{
    redis_conn_flush(l->conn);
}

void redis_link_info(const struct redis_link *l, struct store_info *ret)
{
    ret->up = l->stage == LINK_READY;
    ret->why_not = redis_link_why_not(l);
    (void)snprintf(ret->version, sizeof(ret->version), "%s", l->before.version);
    (void)snprintf(ret->product, sizeof(ret->product), "%s",
                   l->before.product == NULL ? "" : l->before.product);
    (void)snprintf(ret->run_id, sizeof(ret->run_id), "%s", l->before.run_id);
    (void)snprintf(ret->address, sizeof(ret->address), "%s",
                   redis_conn_address(l->conn));
    ret->running_ms = strtoull(l->before.uptime_s, NULL, 10) * 1000;
    ret->reconnects += redis_link_reconnects(l);
    ret->in_flight += l->open.count + l->orphans.count;
    ret->clock_offset_us = l->clock.offset_us;
    ret->round_trip_us = l->clock.round_trip_us;
}

void redis_link_close(struct redis_link *l)
{
    l->closed = true;
    l->stage = LINK_DOWN;
    redis_conn_close(l->conn);
}

void redis_link_free(struct redis_link *l)
{
    if (l == NULL) {
        return;
    }
    call_fifo_fini(&l->open);
    call_fifo_fini(&l->orphans);
    free(l);
}
