#include "store_peer.h"

#include "support/daemon.h"

#include <check.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { CLOCK_MS = 2 };

static struct peer *heard(void *ctx)
{
    struct peer *p = ctx;

    ck_assert_msg(!p->in_call, "an event during a call");
    return p;
}

static void keep_result(struct peer *p, const struct op_result *r)
{
    ck_assert_uint_lt(p->results, PEER_RESULTS_MAX);
    p->result[p->results].id = r->id;
    p->result[p->results].status = r->status;
    p->result[p->results].token = r->token;
    p->result[p->results].ups = p->ups;
    (void)snprintf(p->result[p->results].text, sizeof p->result[0].text, "%.*s",
                   (int)r->text.len, r->text.len == 0 ? "" : r->text.ptr);
    p->results++;
}

static void keep_name(struct peer *p, const struct store_event *ev)
{
    p->last_class = ev->channel.lock_class;
    (void)snprintf(p->last_name, sizeof p->last_name, "%.*s", (int)ev->channel.name.len,
                   ev->channel.name.ptr);
}

static void on_event(void *ctx, const struct store_event *ev)
{
    struct peer *p = heard(ctx);

    switch (ev->kind) {
    case STORE_RESULT:
        keep_result(p, ev->result);
        break;
    case STORE_FAILED_OVER:
        p->failed_overs++;
        p->failed_over_ups = p->ups;
        break;
    case STORE_UP:
        p->ups++;
        p->same_ups += ev->same_server ? 1 : 0;
        break;
    case STORE_DOWN:
        p->downs++;
        break;
    case STORE_CLOCK_JUMPED:
        p->jumps++;
        break;
    case STORE_SUBSCRIBED:
        p->subscribed++;
        keep_name(p, ev);
        break;
    case STORE_UNSUBSCRIBED_ALL:
        p->unsubscribed++;
        break;
    case STORE_MESSAGE:
        p->messages++;
        keep_name(p, ev);
        break;
    default:
        break;
    }
}

static void on_clock(uv_timer_t *timer)
{
}

struct peer *peer_open(const char *url, uint64_t timeout_ms)
{
    struct peer *p = calloc(1, sizeof *p);
    struct store_setup setup = {
        .options = { .timeout_ms = timeout_ms },
        .instance = PEER_INSTANCE,
        .seed = 7,
        .events = { on_event, p },
    };
    const char *err = NULL;

    ck_assert_ptr_nonnull(p);
    (void)signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(uv_loop_init(&p->loop), 0);
    ck_assert_int_eq(io_init(&p->io, &p->loop), 0);
    ck_assert_int_eq(uv_timer_init(&p->loop, &p->clock), 0);
    ck_assert_int_eq(uv_timer_start(&p->clock, on_clock, CLOCK_MS, CLOCK_MS), 0);
    ck_assert_msg(backend_config_parse(url, &setup.config, &err), "%s: %s", url, err);
    setup.io = &p->io;
    p->store = store_new(&setup);
    backend_config_fini(&setup.config);
    p->in_call = true;
    store_start(p->store);
    p->in_call = false;
    return p;
}

struct peer *peer_open_redis(struct test_redis *r, uint64_t timeout_ms)
{
    char url[200];

    (void)snprintf(url, sizeof url, "unix://%s", redis_path(r));
    return peer_open(url, timeout_ms);
}

void peer_close(struct peer *p)
{
    p->in_call = true;
    store_close(p->store);
    store_close(p->store);
    uv_close((uv_handle_t *)&p->clock, NULL);
    (void)uv_run(&p->loop, UV_RUN_DEFAULT); /* and no event comes any more */
    store_free(p->store);
    ck_assert_int_eq(uv_loop_close(&p->loop), 0);
    io_fini(&p->io);
    free(p);
}

void peer_turn(struct peer *p)
{
    store_begin_turn(p->store);
    (void)uv_run(&p->loop, UV_RUN_ONCE);
    p->in_call = true;
    store_end_turn(p->store);
    p->in_call = false;
}

void peer_run_ms(struct peer *p, uint64_t ms)
{
    uint64_t end = test_now_ms() + ms;

    while (test_now_ms() < end) {
        peer_turn(p);
    }
}

void peer_await_count(struct peer *p, const unsigned *counter, unsigned value)
{
    uint64_t end = test_now_ms() + PEER_WAIT_MS;

    while (*counter < value) {
        ck_assert_msg(test_now_ms() < end, "waited for %u, is %u", value, *counter);
        peer_turn(p);
    }
}

void peer_await_results(struct peer *p, size_t count)
{
    uint64_t end = test_now_ms() + PEER_WAIT_MS;

    while (p->results < count) {
        ck_assert_msg(test_now_ms() < end, "waited for %zu results, are %zu", count,
                      p->results);
        peer_turn(p);
    }
}

void peer_acquire(struct peer *p, const char *name, uint64_t id)
{
    char request[64];
    struct op op = {
        .kind = OP_ACQUIRE,
        .id = id,
        .name = span_str(name),
        .acquire.claim = { .owner_kind = OWNER_ANONYMOUS, .lease_ms = PEER_LEASE },
    };

    (void)snprintf(request, sizeof request, "%s:%s", PEER_INSTANCE, name);
    op.acquire.claim.entry = span_str(request);
    p->in_call = true;
    store_submit(p->store, &op);
    p->in_call = false;
}

void peer_release(struct peer *p, const char *name, uint64_t id)
{
    char request[64];
    struct op op = {
        .kind = OP_RELEASE,
        .id = id,
        .name = span_str(name),
        .release.target = { .kind = TARGET_REQUEST },
        .release.leave_tombstone = true,
    };

    (void)snprintf(request, sizeof request, "%s:%s", PEER_INSTANCE, name);
    op.release.target.entry = span_str(request);
    p->in_call = true;
    store_submit(p->store, &op);
    p->in_call = false;
}

void peer_subscribe(struct peer *p, const char *name)
{
    p->in_call = true;
    store_subscribe(p->store, span_str(name), false);
    p->in_call = false;
}

void peer_subscribe_rw(struct peer *p, const char *name)
{
    p->in_call = true;
    store_subscribe(p->store, span_str(name), true);
    p->in_call = false;
}

void peer_unsubscribe(struct peer *p, const char *name)
{
    p->in_call = true;
    store_unsubscribe(p->store, span_str(name), false);
    p->in_call = false;
}
