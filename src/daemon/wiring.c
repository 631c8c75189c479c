#include "daemon/server_state.h"

#include "backend/cluster/slot.h"
#include "cmd/acl/sight.h"
#include "daemon/config/config_live.h"
#include "daemon/status/web.h"
#include "daemon/tls_certs.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
                    "hold: what nobody holds here is granted again in %" PRIu64 " ms, "
                    "when they have put it back",
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
                " holds are put back; what nobody holds here is granted again in "
                "%" PRIu64 " ms",
                stats.restoring, stats.quarantine_left_ms);
}

/* What an event of the store is to the engine, or to the commands. */
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
    uint64_t possible = listen_raise_limit(s->config.net.max_clients);

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

bool wiring_start(struct server *s)
{
    if (strcmp(s->config.redis, "embedded") == 0 && !open_embedded(s)) {
        return false;
    }
    lower_maxclients(s);
    config_derive(&s->config);
    make_locks(s);
    if (!make_ends(s) || !acl_file_load(s) || !listen_all(s) || !web_open(s)) {
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

void wiring_free(struct server *s)
{
    cmd_free(s->cmd);
    net_free(s->net);
    tls_unref(s->tls);
    store_free(s->store);
    engine_free(s->engine);
    embedded_free(s->embedded);
}
