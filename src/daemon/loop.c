#include "daemon/server_state.h"

#include "daemon/status/top_granted.h"
#include "daemon/status/web.h"
#include "daemon/tls_certs.h"
#include "util/clock.h"
#include "util/log.h"

enum {
    SECOND_MS = 1000,
    /* Replies let more requests run, which have more effects. After this many rounds
     * the rest waits for the next turn, so that other sockets get their share. */
    ROUNDS_MAX = 100,
};

/* Begins a turn of the loop, once there are events: reads the clock, and does what fell
 * due before anything else. */
static void loop_begin(void *ctx)
{
    struct server *s = ctx;

    if (s->phase >= SERVER_CLOSING) {
        return;
    }
    s->trim.turns++;
    s->now_ms = clock_boot_ms();
    engine_tick(s->engine, s->now_ms);
    engine_set_heard(s->engine, s->top_granted != NULL || cmd_has_subscribers(s->cmd));
    cmd_tick(s->cmd, s->now_ms);
    store_begin_turn(s->store);
}

static void do_effect(struct server *s, const struct effect *fx)
{
    switch (fx->kind) {
    case EFFECT_OP:
        store_submit(s->store, &fx->op);
        break;
    case EFFECT_REPLY:
        cmd_reply(s->cmd, &fx->reply);
        break;
    case EFFECT_NOTICE:
        if (s->top_granted != NULL && fx->notice.kind == NOTICE_GRANTED) {
            top_granted_count(s->top_granted, fx->notice.name);
        }
        cmd_notice(s->cmd, &fx->notice);
        break;
    case EFFECT_WAITED:
        cmd_waited(s->cmd, &fx->waited);
        break;
    case EFFECT_SUBSCRIBE:
        store_subscribe(s->store, fx->channel.name, fx->channel.lock_class);
        break;
    case EFFECT_UNSUBSCRIBE:
        if (fx->channel.member.len != 0) {
            store_unlisten(s->store, fx->channel.name, fx->channel.member);
        } else {
            store_unsubscribe(s->store, fx->channel.name, fx->channel.lock_class);
        }
        break;
    case EFFECT_HEARTBEAT:
        net_set_heartbeat(s->net, fx->heartbeat.conn, fx->heartbeat.every_ms);
        break;
    case EFFECT_LEADER:
        cmd_leader_changed(s->cmd, &fx->leader);
        break;
    case EFFECT_ANNOUNCE:
        store_announce(s->store, fx->announcement);
        break;
    }
}

/* Carries out the effects, by index, as carrying out one may append more. */
static void do_effects(struct server *s)
{
    struct effects *list = engine_effects(s->engine);

    for (size_t i = 0; i < list->count; i++) {
        do_effect(s, list->list[i]);
    }
    cmd_push(s->cmd);
    effects_reset(list);
}

static void check_ready(struct server *s)
{
    if (s->phase == SERVER_STARTING && s->listening && engine_is_up(s->engine)) {
        s->phase = SERVER_RUNNING;
        log_notice("server", "ready");
        notify_send(&s->notify, "READY=1\nSTATUS=Serving");
    }
}

void loop_end(struct server *s)
{
    if (s->phase < SERVER_CLOSING) {
        int round = 0;

        do {
            do_effects(s);
        } while ((net_run(s->net) || engine_effects(s->engine)->count != 0) &&
                 ++round < ROUNDS_MAX);
        store_end_turn(s->store);
        net_end_turn(s->net);
        check_ready(s);
    }
}

/* --- the timer -------------------------------------------------------- */

static void note_late(struct server *s)
{
    const struct engine_timings *timings = engine_timings(s->engine);
    struct store_info info;

    store_info(s->store, &info);
    cmd_latency(s->cmd, LATENCY_REDIS,
                histogram_longest_since(info.round_trips, &s->round_trips) / 1000);
    cmd_latency(s->cmd, LATENCY_RENEWAL,
                histogram_longest_since(&timings->renewal_lag, &s->renewal_lags) /
                    1000);
}

void loop_tell_trouble(struct server *s)
{
    struct store_info info;

    store_info(s->store, &info);
    engine_set_trouble(s->engine,
                       info.why_not == NULL ? SPAN_NONE : span_str(info.why_not));
}

static void each_second(struct server *s)
{
    if (s->now_ms >= s->next_second_ms) {
        s->next_second_ms = s->now_ms + SECOND_MS;
        io_tick(&s->io);
        net_tick(s->net, s->now_ms);
        tls_certs_tick(s);
        note_late(s);
        loop_tell_trouble(s);
        cmd_second(s->cmd, s->now_ms);
        log_second();
        memory_trim_second(&s->trim, s->engine);
    }
    if (s->notify.watchdog_ms != 0 && s->now_ms >= s->next_alive_ms) {
        s->next_alive_ms = s->now_ms + s->notify.watchdog_ms;
        notify_send(&s->notify, "WATCHDOG=1");
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct server *s = timer->data;

    uint64_t due = s->armed_at;

    s->armed_at = 0;
    if (due != 0) {
        histogram_add(&s->loop_lag, s->now_ms > due ? (s->now_ms - due) * 1000 : 0);
    }
    if (s->phase < SERVER_CLOSING) {
        net_sweep_heartbeats(s->net, s->now_ms);
        each_second(s);
        web_tick(s);
    }
}

static uint64_t earlier_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void arm_timer(struct server *s)
{
    uint64_t at = earlier_of(s->next_second_ms, engine_next_deadline(s->engine));
    uint64_t now;

    at = earlier_of(at, cmd_next_deadline(s->cmd));
    at = earlier_of(at, net_next_sweep(s->net));
    at = earlier_of(at, web_next_ms(s));
    if (s->notify.watchdog_ms != 0) {
        at = earlier_of(at, s->next_alive_ms);
    }
    if (s->phase == SERVER_STOPPING) {
        at = earlier_of(at, s->stop_deadline_ms);
    }
    if (engine_effects(s->engine)->count != 0) {
        at = 0;
    }
    if (at == s->armed_at && at != 0) {
        return;
    }
    now = clock_boot_ms();
    s->armed_at = at;
    /* libuv counts from its cached time. */
    uv_update_time(&s->loop);
    (void)uv_timer_start(&s->timer, on_timer, at > now ? at - now : 0, 0);
}

/* --- the end ---------------------------------------------------------- */

/* The last step: only closing handles are left in the loop. */
static void let_go(struct server *s)
{
    s->phase = SERVER_GONE;
    uv_close((uv_handle_t *)&s->timer, NULL);
    for (int i = 0; i < s->signal_count; i++) {
        uv_close((uv_handle_t *)&s->signals[i], NULL);
    }
}

void shutdown_on_embedded(void *ctx)
{
    let_go(ctx);
}

/* Closes the links before the embedded Redis gets its signal. */
void shutdown_close(struct server *s)
{
    s->phase = SERVER_CLOSING;
    web_close(s);
    if (s->net != NULL) {
        net_close(s->net);
    }
    if (s->store != NULL) {
        store_close(s->store);
    }
    if (s->embedded != NULL) {
        embedded_stop(s->embedded);
    } else {
        let_go(s);
    }
}

void shutdown_begin(struct server *s)
{
    switch (s->phase) {
    case SERVER_STARTING:
    case SERVER_RUNNING:
        log_notice("server", "stopping");
        notify_send(&s->notify, "STOPPING=1\nSTATUS=Stopping");
        s->phase = SERVER_STOPPING;
        s->stop_deadline_ms = s->now_ms + s->config.store.timeout_ms;
        net_stop_listening(s->net);
        engine_stop(s->engine);
        cmd_stop(s->cmd);
        break;
    case SERVER_STOPPING:
        log_notice("server", "told again to stop: not waiting for Redis");
        s->stop_deadline_ms = 0;
        break;
    case SERVER_CLOSING:
        embedded_stop(s->embedded);
        break;
    case SERVER_GONE:
        break;
    }
}

/* Called after a turn: the effects of engine_stop() were sent, and replies written. */
static void shutdown_check(struct server *s)
{
    if (s->phase == SERVER_STOPPING &&
        (engine_stopped(s->engine) || clock_boot_ms() >= s->stop_deadline_ms)) {
        shutdown_close(s);
    }
}

/* --- turns of the loop ------------------------------------------------ */

static void note_turn(struct server *s)
{
    if (s->phase < SERVER_CLOSING) {
        cmd_latency(s->cmd, LATENCY_LOOP, clock_boot_ms() - s->now_ms);
    }
}

static void before_wait(void *ctx)
{
    struct server *s = ctx;

    if (s->phase < SERVER_CLOSING && net_has_backlog(s->net)) {
        loop_begin(s); /* the first half of the turn may have taken long */
        loop_end(s);
        note_turn(s);
    } else {
        loop_end(s);
    }
    shutdown_check(s);
    if (s->phase < SERVER_CLOSING) {
        arm_timer(s);
    }
}

static void after_events(void *ctx)
{
    loop_end(ctx);
    note_turn(ctx);
}

void loop_init(struct server *s)
{
    (void)uv_timer_init(&s->loop, &s->timer);
    s->timer.data = s;
    s->next_alive_ms = s->next_second_ms = s->now_ms;
}

int loop_run(struct server *s)
{
    static const struct io_turn TURN = { before_wait, loop_begin, after_events };

    return io_run(&s->io, &TURN, s);
}
