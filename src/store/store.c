#include "store/store.h"

#include "store/redis_link.h"
#include "store/redis_sub.h"
#include "store/script_call.h"
#include "util/alloc.h"

#include <stdio.h>
#include <stdlib.h>

struct store {
    struct redis_link *link;
    struct redis_sub *sub;
    struct store_url url;
    char instance[OP_INSTANCE_LEN + 1];
    struct store_events events;
    uint64_t calls, unknown, late, errors;
    bool closed;
    struct script_result scratch;
};

/* --- from the links -------------------------------------------------------------- */

static void on_wake(void *ctx)
{
    struct store *s = ctx;

    s->events.on_event(s->events.ctx);
}

static void on_up(void *ctx, bool same_server)
{
    struct store *s = ctx;

    s->events.on_up(s->events.ctx, same_server);
}

static void on_down(void *ctx)
{
    struct store *s = ctx;

    s->events.on_down(s->events.ctx);
}

static void on_clock_jumped(void *ctx)
{
    struct store *s = ctx;

    s->events.on_clock_jumped(s->events.ctx);
}

static void count_result(struct store *s, enum op_status status)
{
    switch (status) {
    case OP_UNKNOWN:
        s->unknown++;
        break;
    case OP_LATE:
        s->late++;
        break;
    case OP_ERROR:
        s->errors++;
        break;
    default:
        break;
    }
}

static void on_reply(void *ctx, const struct redis_call *call, const redisReply *reply)
{
    struct store *s = ctx;
    struct script_result *r = &s->scratch;

    if (reply != NULL) {
        script_reply(reply, (enum op_kind)call->op_kind, call->item_count, r);
    } else {
        r->result = (struct op_result){ .status = OP_UNKNOWN };
    }
    r->result.id = call->op_id;
    count_result(s, r->result.status);
    s->events.on_result(s->events.ctx, &r->result);
    script_result_fini(r);
}

static void on_subscribed(void *ctx, struct span name, bool rw)
{
    struct store *s = ctx;

    s->events.on_subscribed(s->events.ctx, name, rw);
}

static void on_unsubscribed_all(void *ctx)
{
    struct store *s = ctx;

    s->events.on_unsubscribed_all(s->events.ctx);
}

static void on_message(void *ctx, struct span name, bool rw)
{
    struct store *s = ctx;

    s->events.on_message(s->events.ctx, name, rw);
}

static const struct redis_link_events LINK_EVENTS = {
    .on_wake = on_wake,
    .on_up = on_up,
    .on_down = on_down,
    .on_clock_jumped = on_clock_jumped,
    .on_reply = on_reply,
};

static const struct redis_sub_events SUB_EVENTS = {
    .on_wake = on_wake,
    .on_subscribed = on_subscribed,
    .on_unsubscribed_all = on_unsubscribed_all,
    .on_message = on_message,
};

/* --- for the daemon -------------------------------------------------------------- */

static char *copy(const char *text)
{
    return text == NULL ? NULL : xstrdup(text);
}

struct store *store_new(const struct store_setup *setup)
{
    struct store *s = xcalloc(1, sizeof(*s));
    struct redis_link_setup link = {
        .io = setup->io,
        .url = &s->url,
        .timeout_ms = setup->timeout_ms,
        .seed = setup->seed,
        .events = &LINK_EVENTS,
        .ctx = s,
    };
    struct redis_sub_setup sub = {
        .io = setup->io,
        .url = &s->url,
        .timeout_ms = setup->timeout_ms,
        .seed = ~setup->seed,
        .instance = setup->instance,
        .events = &SUB_EVENTS,
        .ctx = s,
    };

    s->url = (struct store_url){
        .unix_path = copy(setup->url.unix_path),
        .host = copy(setup->url.host),
        .port = copy(setup->url.port),
        .user = copy(setup->url.user),
        .password = copy(setup->url.password),
        .db = setup->url.db,
        .wants_tls = setup->url.wants_tls,
        .tls = setup->url.tls == NULL ? NULL : tls_ref(setup->url.tls),
    };
    if (s->url.wants_tls && s->url.tls == NULL) {
        abort(); /* or passwords would go out in the clear */
    }
    memcpy(s->instance, setup->instance, sizeof(s->instance));
    s->events = setup->events;
    s->link = redis_link_new(&link);
    s->sub = redis_sub_new(&sub);
    return s;
}

void store_start(struct store *s)
{
    redis_link_start(s->link);
    redis_sub_start(s->sub);
}

void store_set_tls(struct store *s, struct tls *tls)
{
    if (s->url.wants_tls) {
        tls_unref(s->url.tls);
        s->url.tls = tls_ref(tls);
    }
}

void store_set_timeout(struct store *s, uint64_t timeout_ms)
{
    redis_link_set_timeout(s->link, timeout_ms);
    redis_sub_set_timeout(s->sub, timeout_ms);
}

void store_submit(struct store *s, const struct op *op)
{
    struct op_times times;
    struct buf *out;

    if (s->closed) {
        return;
    }
    s->calls++;
    out = redis_link_call(s->link, op, &times);
    if (out != NULL) {
        script_call(out, op, s->instance, times);
    }
}

void store_subscribe(struct store *s, struct span name, bool rw)
{
    if (!s->closed) {
        redis_sub_add(s->sub, name, rw);
    }
}

void store_unsubscribe(struct store *s, struct span name, bool rw)
{
    if (!s->closed) {
        redis_sub_remove(s->sub, name, rw);
    }
}

void store_end_turn(struct store *s)
{
    if (!s->closed) {
        redis_link_flush(s->link);
        redis_sub_flush(s->sub);
    }
}

void store_info(const struct store *s, struct store_info *ret)
{
    *ret = (struct store_info){
        .calls = s->calls,
        .unknown = s->unknown,
        .late = s->late,
        .errors = s->errors,
        .round_trips = redis_link_round_trips(s->link),
    };
    if (!s->closed) {
        redis_link_info(s->link, ret);
    }
}

void store_close(struct store *s)
{
    if (s != NULL && !s->closed) {
        s->closed = true;
        redis_link_close(s->link);
        redis_sub_close(s->sub);
    }
}

void store_free(struct store *s)
{
    if (s == NULL) {
        return;
    }
    redis_link_free(s->link);
    redis_sub_free(s->sub);
    store_url_fini(&s->url);
    free(s);
}
