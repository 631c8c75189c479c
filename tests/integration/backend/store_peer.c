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

static void on_result(void *ctx, const struct op_result *r)
{
    struct peer *p = heard(ctx);

    ck_assert_uint_lt(p->results, PEER_RESULTS_MAX);
    p->result[p->results].id = r->id;
    p->result[p->results].status = r->status;
    p->result[p->results].token = r->token;
    p->result[p->results].ups = p->ups;
    (void)snprintf(p->result[p->results].text, sizeof p->result[0].text, "%.*s",
                   (int)r->text.len, r->text.len == 0 ? "" : r->text.ptr);
    p->results++;
}

static void on_failed_over(void *ctx, store_concerns_fn *concerns, void *arg)
{
    struct peer *p = heard(ctx);

    p->failed_overs++;
    p->failed_over_ups = p->ups;
}

static void on_up(void *ctx, bool same_server)
{
    struct peer *p = heard(ctx);

    p->ups++;
    p->same_ups += same_server ? 1 : 0;
}

static void on_down(void *ctx)
{
    heard(ctx)->downs++;
}

static void on_clock_jumped(void *ctx)
{
    heard(ctx)->jumps++;
}

static void keep_name(struct peer *p, struct span name, enum lock_class lock_class)
{
    p->last_class = lock_class;
    (void)snprintf(p->last_name, sizeof p->last_name, "%.*s", (int)name.len, name.ptr);
}

static void on_subscribed(void *ctx, struct span name, enum lock_class lock_class)
{
    struct peer *p = heard(ctx);

    p->subscribed++;
    keep_name(p, name, lock_class);
}

static void on_listening(void *ctx)
{
}

static void on_announced(void *ctx, struct span text)
{
}

static void on_unsubscribed_all(void *ctx)
{
    heard(ctx)->unsubscribed++;
}

static void on_message(void *ctx, struct span name, enum lock_class lock_class,
                       struct span payload)
{
    struct peer *p = heard(ctx);

    p->messages++;
    keep_name(p, name, lock_class);
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
        .events = { .ctx = p,
                    .on_result = on_result,
                    .on_failed_over = on_failed_over,
                    .on_up = on_up,
                    .on_down = on_down },
        .listener = { .ctx = p,
                      .on_clock_jumped = on_clock_jumped,
                      .on_subscribed = on_subscribed,
                      .on_unsubscribed_all = on_unsubscribed_all,
                      .on_listening = on_listening,
                      .on_announced = on_announced,
                      .on_message = on_message },
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
        .acquire.claim = { .kind = OWNER_ANONYMOUS, .lease_ms = PEER_LEASE },
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
