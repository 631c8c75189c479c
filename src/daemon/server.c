#include "daemon/server.h"

#include "backend/slot_map.h"
#include "cmd/cmd.h"
#include "cmd/events.h"
#include "cmd/slowlog.h"
#include "cmd/stats.h"
#include "cmd/users.h"
#include "daemon/config_live.h"
#include "daemon/tls_certs.h"
#include "daemon/traces.h"
#include "daemon/web.h"
#include "http/http.h"
#include "latchd-config.h"
#include "net/conn.h"
#include "net/listener.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/hash.h"
#include "util/log.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

/* --- the numbers of stats.def that cmd/ cannot read ------------------- */

static void server_stats(void *ctx, struct stats *ret)
{
    const struct server *s = ctx;
    struct store_info store;

    store_info(s->store, &store);
#define READ_CMD(set)
#define READ_CLIENTS(set)
#define READ_DAEMON(set) set;
#define READ_SENTINEL(set)                                                             \
    if (store.sentinel.master != NULL) {                                               \
        set;                                                                           \
    }
#define READ_QUORUM(set)                                                               \
    if (store.quorum.servers != 0) {                                                   \
        set;                                                                           \
    }
#define STAT(name, section, reader, value, ...)                                        \
    READ_##reader(STAT_SET(ret, STAT_##name, value))
#define TIMES(name, section, reader, value, ...)                                       \
    READ_##reader(STAT_SET_TIMES(ret, STAT_##name, value))
#include "cmd/stats.def"
}

/* --- the rest of INFO ------------------------------------------------- */

struct node_list {
    struct buf *out;
    size_t count;
};

static void write_node(void *ctx, const struct store_node_info *node)
{
    struct node_list *list = ctx;

    buf_printf(list->out,
               "redis_node%zu:address=%s,role=%s,up=%d,reconnects=%" PRIu64
               ",calls_in_flight=%" PRIu64 ",round_trip_us=%" PRIu64 "\r\n",
               list->count++, node->address, node->role, node->up ? 1 : 0,
               node->reconnects, node->in_flight, node->round_trip_us);
}

static void redis_section(struct server *s, struct buf *out)
{
    struct node_list nodes = { .out = out };
    struct store_info info;

    store_info(s->store, &info);
    buf_printf(out, "redis_kind:%s\r\n",
               s->embedded != NULL ? "embedded" : info.topology);
    buf_printf(out, "redis_address:%s\r\n", info.address);
    buf_printf(out, "redis_server_name:%s\r\nredis_server_version:%s\r\n", info.product,
               info.version);
    buf_printf(out, "redis_run_id:%s\r\n", info.run_id);
    buf_printf(out, "redis_trouble:%s\r\n", info.why_not == NULL ? "" : info.why_not);
    if (strcmp(info.topology, "quorum") == 0) {
        buf_add_str(out, "redis_watch:no, not with a quorum\r\n");
    } else {
        const char *why_not = info.watch_why_not;
        bool watches = info.watchable > 0 && info.watches == info.watchable;

        why_not = watches || why_not == NULL ? "" : why_not;
        buf_printf(out, "redis_watch:%s%s%s\r\n", watches ? "yes" : "no",
                   why_not[0] == '\0' ? "" : ", ", why_not);
    }
    if (info.sentinel.master != NULL) {
        buf_printf(out, "redis_master_name:%s\r\n", info.sentinel.master);
    }
    store_each_node(s->store, write_node, &nodes);
}

static void info_section(void *ctx, const char *section, struct buf *out)
{
    struct server *s = ctx;

    if (strcmp(section, "Server") == 0) {
        buf_printf(out, "config_file:%s\r\n",
                   s->options->config_path == NULL ? "" : s->options->config_path);
    } else if (strcmp(section, "Redis") == 0) {
        redis_section(s, out);
    }
}

enum {
    NAME_ROOM = 160,
    ADDRESS_ROOM = 64, /* longer texts are no addresses, as config has checked */
};

static bool on_opened(struct server *s, int r, const char *what, const char *name,
                      bool tls)
{
    char text[128];

    if (r < 0) {
        (void)uv_strerror_r(r, text, sizeof(text));
        log_error(
            "server",
            "cannot listen on %s: %s: stop the program that uses it, or change bind, "
            "port, tls-port or unixsocket",
            what, text);
        return false;
    }
    s->listening = true;
    log_notice("server", "listening on %s%s", name, tls ? " with TLS" : "");
    return true;
}

static bool listen_handed_over(struct server *s, int count, uint64_t tls_mask)
{
    char name[NAME_ROOM];
    char what[32];

    for (int i = 0; i < count; i++) {
        bool tls = (tls_mask >> i & 1) != 0;
        int fd = NOTIFY_FIRST_FD + i;
        int r;

        (void)snprintf(what, sizeof(what), "socket %d of systemd", fd);
        if (tls && s->tls == NULL) {
            log_error("server", "%s is called `tls`: set tls-cert-file", what);
            return false;
        }
        r = listeners_add_fd(net_listeners(s->net), fd, SOMAXCONN, tls, false, name,
                             sizeof(name));
        if (!on_opened(s, r, what, name, tls)) {
            return false;
        }
    }
    return true;
}

/* The default has ::1, which must not fail on machines without IPv6. */
static bool may_be_missing(const char *address, int r)
{
    return strcmp(address, "::1") == 0 &&
           (r == UV_EADDRNOTAVAIL || r == UV_EAFNOSUPPORT);
}

static uint64_t port_of(const char *name)
{
    const char *colon = strrchr(name, ':');

    return colon == NULL ? 0 : strtoull(colon + 1, NULL, 10);
}

static bool listen_address(struct server *s, const char *address, bool tls)
{
    uint64_t port = tls ? s->tls_port : s->config.port;
    char name[NAME_ROOM];
    char what[ADDRESS_ROOM + 32];
    int r = listeners_add_tcp(net_listeners(s->net), address, (int)port,
                              (int)s->config.tcp_backlog, tls, name, sizeof(name));

    if (r < 0 && may_be_missing(address, r)) {
        log_info("server", "not listening on ::1: this machine has no IPv6");
        return true;
    }
    (void)snprintf(what, sizeof(what), "%s port %" PRIu64, address, port);
    if (!on_opened(s, r, what, name, tls)) {
        return false;
    }
    if (tls) {
        s->tls_port = port_of(name); /* the next address uses the same port */
    }
    return true;
}

static bool listen_tcp(struct server *s, bool tls)
{
    char word[ADDRESS_ROOM];
    const char *at = s->config.bind;

    while (*at != '\0') {
        size_t len = strcspn(at, " ");

        (void)snprintf(word, sizeof(word), "%.*s", (int)len, at);
        if (len > 0 && !listen_address(s, word, tls)) {
            return false;
        }
        at += len + (at[len] == ' ' ? 1 : 0);
    }
    return true;
}

static bool listen_tls(struct server *s)
{
    s->tls_port = s->config.tls_port == CONFIG_PORT_AUTO ? 0 : s->config.tls_port;
    return listen_tcp(s, true);
}

static bool listen_unix(struct server *s)
{
    char name[NAME_ROOM];
    int r = listeners_add_unix(net_listeners(s->net), s->config.unixsocket,
                               (unsigned)s->config.unixsocketperm,
                               (int)s->config.tcp_backlog, name, sizeof(name));

    return on_opened(s, r, s->config.unixsocket, name, false);
}

/* Opens all listeners; logs each address, or why it failed. */
static bool listen_all(struct server *s)
{
    bool has_unix = s->config.unixsocket[0] != '\0';
    bool has_tls = s->config.tls_port != 0;
    uint64_t tls_mask;
    int handed_over = notify_listen_fds(&tls_mask);

    /* A socket of systemd's may be the one for TLS; if none is, tls-port is opened
     * beside them. */
    if (has_tls && tls_mask == 0 && !listen_tls(s)) {
        return false;
    }
    if (handed_over > 0) {
        return listen_handed_over(s, handed_over, tls_mask);
    }
    if (has_unix && !listen_unix(s)) {
        return false;
    }
    if ((s->config.port != 0 || (!has_unix && !has_tls)) && !listen_tcp(s, false)) {
        return false;
    }
    if (!s->listening) {
        log_error("server", "no address of `bind` exists on this machine: correct it");
    }
    return s->listening;
}

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
        if (s->config.long_wait_ms >= 0 &&
            fx->waited.waited_ms >= (uint64_t)s->config.long_wait_ms) {
            cmd_waited(s->cmd, &fx->waited);
        }
        traces_add_wait(s->traces, &fx->waited);
        break;
    case EFFECT_HELD:
        traces_add_hold(s->traces, &fx->held);
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
    case EFFECT_WATCH:
        store_watch(s->store, fx->channel.name);
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
    if (s->phase == SERVER_STARTING && !s->listening && engine_is_up(s->engine)) {
        upgrade_say_ready(s->upgrade); /* the sockets come then */
    } else if (s->phase == SERVER_STARTING && s->listening && engine_is_up(s->engine)) {
        s->phase = SERVER_RUNNING;
        log_notice("server", "ready");
        notify_send(&s->notify, "READY=1\nSTATUS=Serving");
    }
}

/* Ends a turn of the loop: carries out the engine's effects, and sends what they
 * produced. */
static void loop_end(struct server *s)
{
    if (s->phase < SERVER_CLOSING) {
        int round = 0;

        do {
            do_effects(s);
        } while ((net_run(s->net) || engine_effects(s->engine)->count != 0) &&
                 ++round < ROUNDS_MAX);
        store_end_turn(s->store);
        s->has_rest = net_end_turn(s->net);
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

/* Once a second: tells the engine why Redis cannot be used. */
static void loop_tell_trouble(struct server *s)
{
    struct store_info info;

    store_info(s->store, &info);
    engine_set_trouble(s->engine,
                       info.why_not == NULL ? SPAN_NONE : span_str(info.why_not));
}

static void shutdown_begin(struct server *s);

struct move {
    struct server *server;
    struct buf words;
    bool is_full;
};

static void move_client(void *ctx, struct conn *conn)
{
    struct move *move = ctx;
    struct server *s = move->server;
    struct conn_info info;

    buf_clear(&move->words);
    if (move->is_full || !cmd_write_client(s->cmd, conn, &move->words)) {
        return;
    }
    conn_info(conn, &info);
    if (upgrade_move(s->upgrade, conn_id(conn), info.fd,
                     strncmp(info.local, "unix", 4) == 0, buf_span(&move->words))) {
        conn_set_end(conn, END_MOVED);
        conn_close(conn);
    } else {
        move->is_full = true; /* on_writable or the next second goes on */
    }
}

/* A client that is at rest is served by the new process from now on. What the client
 * may have sent meanwhile is in its socket, and goes there as well. */
static void move_clients(struct server *s)
{
    struct move move = { .server = s };

    net_foreach(s->net, move_client, &move);
    buf_reset(&move.words);
}

/* Whether places or grants wait for clients that come back, as KEEP says: the new
 * process does not know of them. */
static bool keeps_for_clients(const struct server *s)
{
    struct engine_stats stats;

    engine_stats(s->engine, &stats);
    return stats.waiters != 0 || stats.retained_entries != 0;
}

/* A retired process stops after its last client, and after its predecessor, which
 * nobody else can tell to stop. */
static void check_retired(struct server *s)
{
    struct net_stats stats;

    if (upgrade_state(s->upgrade) != UPGRADE_RETIRED || s->phase >= SERVER_STOPPING) {
        return;
    }
    move_clients(s);
    net_stats(s->net, &stats);
    if (stats.open == 0 && !keeps_for_clients(s) &&
        !upgrade_has_predecessor(s->upgrade)) {
        log_notice("server", "the last client has left");
        shutdown_begin(s);
    }
}

static void each_second(struct server *s)
{
    if (s->now_ms >= s->next_second_ms) {
        s->next_second_ms = s->now_ms + SECOND_MS;
        io_tick(&s->io);
        net_tick(s->net, s->now_ms);
        tls_certs_tick(s);
        traces_tick(s->traces, s->now_ms);
        note_late(s);
        loop_tell_trouble(s);
        cmd_second(s->cmd, s->now_ms);
        log_second();
        memory_trim_second(&s->trim, s->engine);
        upgrade_tick(s->upgrade, s->now_ms);
        check_retired(s);
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

static void shutdown_on_embedded(void *ctx)
{
    let_go(ctx);
}

/* Closes everything at once: the links before the embedded Redis gets its signal. */
static void shutdown_close(struct server *s)
{
    s->phase = SERVER_CLOSING;
    upgrade_close(s->upgrade);
    web_close(s);
    traces_close(s->traces);
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

/* Called again: stops waiting. */
static void shutdown_begin(struct server *s)
{
    switch (s->phase) {
    case SERVER_STARTING:
    case SERVER_RUNNING:
        log_notice("server", "stopping");
        notify_send(&s->notify, "STOPPING=1\nSTATUS=Stopping");
        s->phase = SERVER_STOPPING;
        s->stop_deadline_ms = s->now_ms + s->config.store.timeout_ms;
        if (upgrade_shares_sockets(s->upgrade)) {
            listeners_leave_files(net_listeners(s->net));
        }
        upgrade_say_stop(s->upgrade);
        net_stop_listening(s->net);
        engine_stop(s->engine);
        cmd_stop(s->cmd);
        break;
    case SERVER_STOPPING:
        log_notice("server", "second signal: latchd stops without waiting for Redis");
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
        ((engine_stopped(s->engine) && !upgrade_has_predecessor(s->upgrade)) ||
         clock_boot_ms() >= s->stop_deadline_ms)) {
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
    } else if (s->has_rest || engine_effects(s->engine)->count != 0) {
        /* An end without anything to do takes 5 % of the instructions of a lonely pair
         * of LOCK and UNLOCK. */
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

static void loop_init(struct server *s)
{
    (void)uv_timer_init(&s->loop, &s->timer);
    s->timer.data = s;
    s->has_rest = true;
    s->next_alive_ms = s->next_second_ms = s->now_ms;
}

static int loop_run(struct server *s)
{
    static const struct io_turn TURN = { before_wait, loop_begin, after_events };

    return io_run(&s->io, &TURN, s);
}

enum { YOUNG_MS = 3000 }; /* a Redis with less uptime counts as just started */

/* --- events of the store ---------------------------------------------- */

/* A cursor of LOCKS REDIS is the part of the store, and the cursor of its server: in a
 * Cluster that is at most 14 bits of slot and as many as the server's table has. The id
 * of an op tells its part again. */
enum { CURSOR_BITS = 50, PART_SHIFT = 32 };
#define CURSOR_MAX ((1ULL << CURSOR_BITS) - 1)

static void on_scanned(struct server *s, const struct op_result *result)
{
    uint32_t part = (uint32_t)((result->id & ~STORE_SCAN_ID) >> PART_SHIFT);
    uint32_t next = part + 1;
    struct scanned_names names = { .error = SPAN("Redis did not answer") };

    if (result->status == OP_OK && result->scan.cursor <= CURSOR_MAX) {
        names = (struct scanned_names){ .list = result->scan.names,
                                        .count = result->scan.count };
        if (result->scan.cursor != 0) {
            names.cursor = (uint64_t)part << CURSOR_BITS | result->scan.cursor;
        } else if (store_seek_part(s->store, &next)) {
            names.cursor = (uint64_t)next << CURSOR_BITS;
        }
    } else if (result->text.len != 0) {
        names.error = result->text;
    }
    cmd_on_scanned(s->cmd, result->id, &names);
}

static void on_result(struct server *s, const struct op_result *result)
{
    if ((result->id & STORE_SCAN_ID) != 0) {
        on_scanned(s, result);
    } else {
        engine_on_op_result(s->engine, result);
    }
}

/* Tells the engine if Redis has just started. The embedded Redis is left out, as
 * nobody else uses it. */
static void look_at_age(struct server *s)
{
    struct store_info info;

    store_info(s->store, &info);
    if (s->embedded == NULL && info.run_id[0] != '\0' && info.running_ms < YOUNG_MS) {
        engine_store_is_young(s->engine);
    }
}

static uint64_t quarantine_left_ms(const struct server *s)
{
    struct engine_stats stats;

    engine_stats(s->engine, &stats);
    return stats.quarantine_left_ms;
}

/* Logs that names are withheld, if none were before. */
static void log_withheld(const struct server *s, uint64_t before_ms)
{
    struct engine_stats stats;

    engine_stats(s->engine, &stats);
    if (before_ms == 0 && stats.quarantine_left_ms != 0) {
        log_warning("locks",
                    "Redis may have lost what clients of %" PRIu64 " other daemons "
                    "hold: names that nobody holds here are granted again in %" PRIu64
                    " ms, when the others have restored theirs",
                    stats.other_daemons, stats.quarantine_left_ms);
    }
}

static void on_up(struct server *s, bool same_server)
{
    uint64_t left_ms = quarantine_left_ms(s);

    s->redis_answered = true;
    look_at_age(s);
    engine_on_store_up(s->engine, same_server);
    log_withheld(s, left_ms);
    if (s->phase == SERVER_RUNNING) {
        notify_send(&s->notify, "STATUS=Serving");
    }
}

static void on_down(struct server *s)
{
    loop_tell_trouble(s);
    engine_on_store_down(s->engine);
    if (s->phase == SERVER_RUNNING) {
        notify_send(&s->notify, "STATUS=Redis is out of reach");
    }
}

static void on_failed_over(struct server *s, const struct store_event *ev)
{
    struct engine_stats stats;

    engine_on_failover(s->engine, ev->groups.concerns, ev->groups.ctx);
    engine_stats(s->engine, &stats);
    log_warning("locks",
                "Redis has failed over, and may have lost the last grants: %" PRIu64
                " holds are restored; names that nobody holds here are granted again "
                "in %" PRIu64 " ms",
                stats.restoring, stats.quarantine_left_ms);
}

/* Passes an event of the store to the engine, or to the commands. */
static void on_store_event(void *ctx, const struct store_event *ev)
{
    struct server *s = ctx;
    uint64_t left_ms;

    switch (ev->kind) {
    case STORE_RESULT:
        on_result(s, ev->result);
        break;
    case STORE_FAILED_OVER:
        on_failed_over(s, ev);
        break;
    case STORE_LOST_NOTHING:
        engine_on_lossless_failover(s->engine, ev->groups.concerns, ev->groups.ctx);
        break;
    case STORE_UP:
        on_up(s, ev->same_server);
        break;
    case STORE_DOWN:
        on_down(s);
        break;
    case STORE_CLOCK_JUMPED:
        engine_on_clock_jump(s->engine);
        break;
    case STORE_CLOCK_BEHIND:
        engine_on_clock_behind(s->engine, ev->clock_us);
        break;
    case STORE_SUBSCRIBED:
        engine_on_subscribed(s->engine, ev->channel.name, ev->channel.lock_class);
        break;
    case STORE_UNSUBSCRIBED_ALL:
        engine_on_subscriptions_lost(s->engine);
        break;
    case STORE_MESSAGE:
        engine_on_message(s->engine, ev->channel.name, ev->channel.lock_class,
                          ev->channel.payload);
        break;
    case STORE_LISTENING:
        engine_listening(s->engine);
        break;
    case STORE_ANNOUNCED:
        left_ms = quarantine_left_ms(s);
        engine_announced(s->engine, ev->text);
        log_withheld(s, left_ms);
        break;
    case STORE_PUBLISHED:
        cmd_published(s->cmd, ev->published.pattern, ev->published.channel,
                      ev->published.text);
        break;
    case STORE_WATCH_CHANGED:
        engine_on_watch(s->engine, ev->watch.limit, ev->watch.concerns, ev->watch.ctx);
        break;
    case STORE_WATCHED:
        engine_on_watched(s->engine, ev->touched.name, ev->touched.missing);
        break;
    case STORE_TOUCHED:
        engine_on_touched(s->engine, ev->touched.name, ev->touched.concerns,
                          ev->touched.ctx);
        break;
    case STORE_MOVED: /* stays in the store */
        break;
    }
}

/* The store reconnects by itself when the embedded Redis comes up again. */
static void on_embedded_up(void *ctx)
{
    struct server *s = ctx;

    if (!s->store_started && s->phase < SERVER_CLOSING) {
        s->store_started = true;
        store_start(s->store);
    }
}

/* --- the env of commands ---------------------------------------------- */

static uint64_t env_now(void *ctx)
{
    const struct server *s = ctx;

    return s->now_ms;
}

/* Metrics never go back, so that CONFIG RESETSTAT does not confuse their readers. */
static void env_reset_stats(void *ctx)
{
}

static void env_hear(void *ctx, bool is_pattern, struct span name, bool wanted)
{
    struct server *s = ctx;

    store_hear(s->store, is_pattern, name, wanted);
}

static bool env_hears(void *ctx, bool is_pattern, struct span name)
{
    const struct server *s = ctx;

    return store_hears(s->store, is_pattern, name);
}

static bool env_publish(void *ctx, struct span channel, struct span text)
{
    struct server *s = ctx;

    return store_publish(s->store, channel, text);
}

static uint64_t env_scan_redis(void *ctx, uint64_t cursor, size_t count)
{
    struct server *s = ctx;
    uint32_t part = (uint32_t)(cursor >> CURSOR_BITS);
    struct op op = { .kind = OP_SCAN,
                     .scan = { .cursor = cursor & CURSOR_MAX,
                               .count = (uint32_t)count } };

    if (!engine_is_up(s->engine) ||
        (op.scan.cursor == 0 && !store_seek_part(s->store, &part))) {
        return 0;
    }
    op.group = part;
    op.id = STORE_SCAN_ID | (uint64_t)part << PART_SHIFT | ++s->scans;
    store_submit(s->store, &op);
    return op.id;
}

static void env_shutdown(void *ctx)
{
    shutdown_begin(ctx);
}

/* --- creating the parts ----------------------------------------------- */

static void lower_maxclients(struct server *s)
{
    uint64_t possible = clients_possible(&s->config);

    if (possible < s->config.net.max_clients) {
        log_warning("server",
                    "maxclients is %" PRIu64 " instead of %" PRIu64
                    ": the limit of open files allows no more, raise it (LimitNOFILE=)",
                    possible, s->config.net.max_clients);
        s->config.net.max_clients = possible;
    }
}

static bool open_embedded(struct server *s)
{
    char err[CONFIG_ERROR_MAX];
    char *dir = config_state_dir(&s->config);
    struct embedded_setup setup = {
        .io = &s->io,
        .dir = dir,
        .boot_id_path = getenv("LATCHD_BOOT_ID_FILE"),
        .fsync_always = s->config.embedded_fsync == FSYNC_ALWAYS,
        .hold_off_ms = s->config.engine.watchdog_ms,
        .ctx = s,
        .on_up = on_embedded_up,
        .on_stopped = shutdown_on_embedded,
    };

    if (dir == NULL) {
        log_error("server", "nothing says where the embedded Redis may keep its data: "
                            "set state-dir");
        return false;
    }
    s->embedded = embedded_new(&setup, err, sizeof(err));
    free(dir);
    if (s->embedded == NULL) {
        log_error("server", "%s", err);
    }
    return s->embedded != NULL;
}

static bool may_tell(void *ctx, uint32_t user, struct span name)
{
    const struct server *s = ctx;

    return sight_user_may_read(s->cmd, user, name);
}

static void make_locks(struct server *s)
{
    struct engine_setup setup = {
        .config = s->config.engine,
        .now_ms = s->now_ms,
        .seed = s->seed,
        .read_clock = clock_boot_ms,
        .may_tell = may_tell,
        .may_tell_ctx = s,
    };

    if (s->embedded != NULL && embedded_lost_power(s->embedded)) {
        s->no_grants_until_ms = s->now_ms + s->config.engine.watchdog_ms;
        setup.no_grants_until_ms = s->no_grants_until_ms;
    }
    if (config_is_cluster(&s->config)) {
        setup.group_of = slot_of;
        setup.group_count = SLOT_COUNT;
    }
    setup.quorum = backend_config_is_quorum(s->config.redis);
    memcpy(setup.instance, s->instance, sizeof(setup.instance));
    s->engine = engine_new(&setup);
}

static bool make_store(struct server *s, struct tls *tls)
{
    char err[CONFIG_ERROR_MAX];
    struct store_setup setup = {
        .io = &s->io,
        .options = s->config.store,
        .seed = s->seed,
        .events = { on_store_event, s },
    };

    memcpy(setup.instance, s->instance, sizeof(setup.instance));
    if (s->embedded != NULL) {
        struct backend_url url = { .unix_path = xstrdup(embedded_socket(s->embedded)) };

        backend_config_add(&setup.config, &url);
    } else if (!redis_places_read(&s->config, &setup.config, err, sizeof(err))) {
        log_error("server", "%s", err);
        return false;
    }
    backend_config_set_tls(&setup.config, tls);
    s->store = store_new(&setup);
    backend_config_fini(&setup.config);
    return true;
}

static void make_clients_side(struct server *s)
{
    struct cmd_env env = {
        .engine = s->engine,
        .ctx = s,
        .now_ms = env_now,
        .config_each = config_live_each,
        .config_set = config_live_set,
        .config_rewrite = config_live_rewrite,
        .reset_stats = env_reset_stats,
        .scan_redis = env_scan_redis,
        .password = config_live_password,
        .acl_file = acl_file,
        .acl_read = acl_file_read,
        .acl_write = acl_file_write,
        .stats = server_stats,
        .info = info_section,
        .shutdown = env_shutdown,
        .hear = env_hear,
        .hears = env_hears,
        .publish = env_publish,
        .run_id = s->run_id,
    };

    s->net = env.net = net_new(&s->io, &s->config.net);
    s->cmd = cmd_new(&env, &s->config.cmd);
    s->traces = traces_new(&s->io, s->cmd, s->instance);
    traces_configure(s->traces, &s->config.traces);
    net_set_handler(s->net, &(struct conn_handler){
                                .ctx = s->cmd,
                                .on_event = cmd_on_event,
                                .on_open = cmd_on_open,
                                .on_request = cmd_on_request,
                                .on_again = cmd_on_again,
                                .on_ran = cmd_on_ran,
                                .on_close = cmd_on_close,
                                .is_busy = cmd_is_busy,
                                .heartbeat = cmd_heartbeat,
                                .is_unauthenticated = cmd_is_unauthenticated,
                                .keeps = cmd_keeps,
                            });
}

/* Makes the parts that need TLS files: without these nothing may be served. */
static bool make_ends(struct server *s)
{
    char err[CONFIG_ERROR_MAX];
    struct tls_certs sec;

    if (!tls_certs_read(&s->config, &sec, err, sizeof(err))) {
        log_error("server", "%s", err);
        return false;
    }
    if (!make_store(s, sec.redis)) {
        tls_certs_fini(&sec);
        return false;
    }
    make_clients_side(s);
    tls_certs_use(s, &sec);
    return true;
}

/* Makes and starts everything; what it made before it failed is closed by
 * shutdown_close().
 */
static bool wiring_start(struct server *s)
{
    if (strcmp(s->config.redis, "embedded") == 0 && !open_embedded(s)) {
        return false;
    }
    lower_maxclients(s);
    config_derive(&s->config);
    make_locks(s);
    if (!make_ends(s) || !acl_file_load(s) || !upgrade_join(s->upgrade)) {
        return false;
    }
    if (!upgrade_has_predecessor(s->upgrade) && (!listen_all(s) || !web_open(s))) {
        return false;
    }
    notify_send(&s->notify, "STATUS=Waiting for Redis");
    if (s->embedded != NULL) {
        embedded_start(s->embedded);
    } else {
        on_embedded_up(s);
    }
    return true;
}

/* Frees everything, after the loop has ended. */
static void wiring_free(struct server *s)
{
    traces_free(s->traces);
    cmd_free(s->cmd);
    net_free(s->net);
    tls_unref(s->tls);
    store_free(s->store);
    engine_free(s->engine);
    embedded_free(s->embedded);
    upgrade_free(s->upgrade);
}

/* --- upgrade ---------------------------------------------------------- */

static void offer_socket(void *ctx, int fd, bool tls, bool owns_file)
{
    const struct server *s = ctx;

    upgrade_offer(s->upgrade, tls ? UPGRADE_TLS : UPGRADE_PLAIN, fd, owns_file);
}

/* NULL: a successor may take over now. It knows nothing of a failover that only this
 * process has seen. */
static const char *why_no_handover(const struct server *s)
{
    if (s->phase != SERVER_RUNNING || !engine_is_up(s->engine)) {
        return "Redis is out of reach, or this process starts or stops: try later";
    }
    if (quarantine_left_ms(s) != 0) {
        return "names are withheld after a failover, which only this process knows: "
               "try later";
    }
    return NULL;
}

static void on_successor_ready(void *ctx)
{
    struct server *s = ctx;
    const char *why = why_no_handover(s);
    struct net_stats stats;

    if (why != NULL) {
        upgrade_give_up(s->upgrade, why);
        return;
    }
    net_stats(s->net, &stats);
    listeners_foreach(net_listeners(s->net), offer_socket, s);
    if (web_fd(s) >= 0) {
        upgrade_offer(s->upgrade, UPGRADE_HTTP, web_fd(s), false);
    }
    upgrade_go(s->upgrade, stats.last_id);
}

static void on_retired(void *ctx, uint64_t pid)
{
    struct server *s = ctx;
    struct net_stats stats;

    listeners_leave_files(net_listeners(s->net));
    net_stop_listening(s->net);
    web_stop_listening(s);
    net_stats(s->net, &stats);
    log_notice("server",
               "the new latchd, process %" PRIu64
               ", takes new clients; this one serves %" PRIu64 " until they leave",
               pid, stats.open);
    /* The new one's first sign of life may come a whole watchdog interval later. */
    notify_send(&s->notify, "MAINPID=%" PRIu64 "\nWATCHDOG=1\nSTATUS=Serving", pid);
    notify_fini(&s->notify);
    s->notify.watchdog_ms = 0;
}

static void on_stop_asked(void *ctx)
{
    struct server *s = ctx;

    if (s->phase < SERVER_STOPPING) {
        shutdown_begin(s);
    }
}

static void on_talk_writable(void *ctx)
{
    struct server *s = ctx;

    if (s->phase < SERVER_STOPPING) {
        move_clients(s);
    }
}

static bool on_socket(void *ctx, enum upgrade_socket kind, int fd, bool owns_file)
{
    struct server *s = ctx;
    bool tls = kind == UPGRADE_TLS;
    char name[NAME_ROOM];
    int r;

    if (kind == UPGRADE_HTTP) {
        s->http_fd = fd;
        return true;
    }
    if (tls && s->tls == NULL) {
        log_error("server", "a socket of the old latchd is for TLS: set tls-cert-file");
        (void)close(fd);
        return false;
    }
    r = listeners_add_fd(net_listeners(s->net), fd, (int)s->config.tcp_backlog, tls,
                         owns_file, name, sizeof(name));
    if (!on_opened(s, r, "a socket of the old latchd", name, tls)) {
        return false;
    }
    if (tls) {
        s->tls_port = port_of(name);
    }
    return true;
}

static bool on_go(void *ctx, uint64_t id)
{
    struct server *s = ctx;

    net_set_last_id(s->net, id);
    return s->listening && web_open(s);
}

static void on_client(void *ctx, uint64_t id, int fd, bool is_unix, struct span words)
{
    struct server *s = ctx;
    struct conn *conn;

    if (s->phase >= SERVER_STOPPING || net_find(s->net, id) != NULL) {
        (void)close(fd);
        return;
    }
    conn = net_adopt(s->net, fd, is_unix, id);
    if (conn != NULL) {
        (void)cmd_take_client(s->cmd, conn, words);
    }
}

static void on_upgrade_failed(void *ctx)
{
    struct server *s = ctx;

    /* The old latchd goes on with the sockets, and their files. */
    listeners_leave_files(net_listeners(s->net));
    s->failed = true;
    if (s->phase < SERVER_CLOSING) {
        shutdown_close(s);
    }
}

static void make_upgrade(struct server *s)
{
    s->http_fd = -1;
    s->upgrade = upgrade_new(&s->loop, &(struct upgrade_events){
                                           .ctx = s,
                                           .on_ready = on_successor_ready,
                                           .on_retired = on_retired,
                                           .on_stop = on_stop_asked,
                                           .on_writable = on_talk_writable,
                                           .on_socket = on_socket,
                                           .on_go = on_go,
                                           .on_client = on_client,
                                           .on_failed = on_upgrade_failed,
                                       });
}

/* NULL: an upgrade may begin. */
static const char *why_no_upgrade(const struct server *s)
{
    if (s->embedded != NULL) {
        return "the embedded Redis ends with this process: restart it instead";
    }
    if (upgrade_state(s->upgrade) == UPGRADE_RETIRED) {
        return "another latchd has taken over already";
    }
    if (upgrade_state(s->upgrade) != UPGRADE_ALONE) {
        return "one is under way";
    }
    return why_no_handover(s);
}

static void upgrade_asked(struct server *s)
{
    const char *why = why_no_upgrade(s);
    struct buf socket = { 0 }, watchdog = { 0 };
    const char *variables[3] = { NULL };
    size_t count = 0;

    if (why != NULL) {
        log_warning("server", "no upgrade: %s", why);
        return;
    }
    notify_write_env(&s->notify, &socket, &watchdog);
    if (buf_len(&socket) != 0) {
        variables[count++] = buf_ptr(&socket);
    }
    if (buf_len(&watchdog) != 0) {
        variables[count] = buf_ptr(&watchdog);
    }
    if (upgrade_start(s->upgrade, s->options->argv, variables, s->now_ms)) {
        log_notice("server", "a new latchd starts: %s", s->options->argv[0]);
    }
    buf_reset(&socket);
    buf_reset(&watchdog);
}

/* --- signals ---------------------------------------------------------- */

static void on_signal(uv_signal_t *handle, int signum)
{
    struct server *s = handle->data;

    if (signum == SIGHUP) {
        config_live_reload(s);
    } else if (signum == SIGUSR2) {
        upgrade_asked(s);
    } else {
        shutdown_begin(s);
    }
}

static int open_signals(struct server *s)
{
    static const int SIGNALS[SERVER_SIGNALS] = { SIGTERM, SIGINT, SIGHUP, SIGUSR2 };

    for (int i = 0; i < SERVER_SIGNALS; i++) {
        int r = uv_signal_init(&s->loop, &s->signals[i]);

        if (r < 0) {
            return r;
        }
        s->signal_count++;
        s->signals[i].data = s;
        r = uv_signal_start(&s->signals[i], on_signal, SIGNALS[i]);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static void random_hex(char *out, size_t digits)
{
    uint8_t byte = 0;

    for (size_t i = 0; i < digits; i++) {
        if (i % 2 == 0 && getrandom(&byte, 1, 0) != 1) {
            abort(); /* without random bytes, IDs would be predictable, or not unique */
        }
        out[i] = "0123456789abcdef"[i % 2 == 0 ? byte >> 4 : byte & 15];
    }
    out[digits] = '\0';
}

static uint64_t random_u64(void)
{
    uint64_t value;

    if (getrandom(&value, sizeof(value), 0) != (ssize_t)sizeof(value)) {
        abort();
    }
    return value;
}

/* --- start and end ---------------------------------------------------- */

/* Runs the loop. True: everything was closed at the end. */
static bool run_loop(struct server *s)
{
    int r = io_init(&s->io, &s->loop);
    bool ok = r == 0;

    if (ok) {
        s->io.runs = true;
        loop_init(s);
        make_upgrade(s);
        ok = open_signals(s) == 0 && wiring_start(s);
        if (!ok) {
            shutdown_close(s);
        }
        ok = loop_run(s) == 0 && ok && !s->failed;
        wiring_free(s);
        io_fini(&s->io);
    }
    r = uv_loop_close(&s->loop);
    if (r != 0) {
        log_error("server", "the loop still has handles: %d: a bug, please report it",
                  r);
    }
    return ok && r == 0;
}

static void seed_hash(void)
{
    uint64_t key[2] = { random_u64(), random_u64() };

    hash_seed((const uint8_t *)key);
}

bool server_main(const struct options *options, const struct config *config)
{
    struct server *s = xcalloc(1, sizeof(*s));
    bool ok;

    log_setup(config->log_level, config->log_format);
    (void)signal(SIGPIPE, SIG_IGN);
    process_hide();
    seed_hash();
    s->options = options;
    config_copy(&s->config, config);
    s->started_ms = s->now_ms = clock_boot_ms();
    s->started_wall_us = clock_wall_us();
    random_hex(s->run_id, RUN_ID_LEN);
    random_hex(s->instance, OP_INSTANCE_LEN);
    s->seed = random_u64();
    notify_init(&s->notify);
    log_notice("server", "latchd " LATCHD_VERSION " starts, instance %s", s->instance);
    unsafe_warn(options, config);
    ok = uv_loop_init(&s->loop) == 0 && run_loop(s);
    log_second();
    log_notice("server", ok ? "stopped" : "stopped after an error");
    notify_fini(&s->notify);
    config_fini(&s->config);
    free(s);
    return ok;
}
