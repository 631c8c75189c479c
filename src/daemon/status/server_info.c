#include "daemon/server_state.h"

#include <inttypes.h>
#include <string.h>

static void server_section(struct server *s, struct buf *out)
{
    buf_printf(out, "tcp_port:%" PRIu64 "\r\n", s->config.port);
    buf_printf(out, "tls_port:%" PRIu64 "\r\n", s->tls_port);
    buf_printf(out, "config_file:%s\r\n",
               s->options->config_path == NULL ? "" : s->options->config_path);
}

static void clients_section(struct server *s, struct buf *out)
{
    buf_printf(out, "maxclients:%" PRIu64 "\r\n", s->config.net.max_clients);
    buf_printf(out, "tls_clients:%" PRIu64 "\r\n", s->io.stats.tls_open);
}

static void stats_section(struct server *s, struct buf *out)
{
    const struct io_stats *io = &s->io.stats;

    buf_printf(out, "tls_handshakes:%" PRIu64 "\r\n", io->handshakes);
    buf_printf(out, "tls_handshakes_failed:%" PRIu64 "\r\n", io->handshakes_failed);
}

static void watchdog_section(struct server *s, struct buf *out)
{
    buf_printf(out, "watchdog_timeout_ms:%" PRIu64 "\r\n",
               s->config.engine.watchdog_ms);
}

static void latency_section(struct server *s, struct buf *out)
{
    struct store_info info;

    store_info(s->store, &info);
    cmd_info_histogram(out, "redis_round_trip_usec", info.round_trips);
    cmd_info_histogram(out, "loop_lag_usec", &s->loop_lag);
}

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
    struct engine_stats locks;

    store_info(s->store, &info);
    engine_stats(s->engine, &locks);
    buf_printf(out, "redis_kind:%s\r\n",
               s->embedded != NULL ? "embedded" : info.topology);
    buf_printf(out, "redis_address:%s\r\n", info.address);
    buf_printf(out, "redis_server_name:%s\r\nredis_server_version:%s\r\n", info.product,
               info.version);
    buf_printf(out, "redis_run_id:%s\r\n", info.run_id);
    buf_printf(out, "redis_trouble:%s\r\n", info.why_not == NULL ? "" : info.why_not);
    buf_printf(out, "redis_reconnects:%" PRIu64 "\r\n", info.reconnects);
    buf_printf(out, "redis_calls:%" PRIu64 "\r\n", info.calls);
    buf_printf(out, "redis_calls_in_flight:%" PRIu64 "\r\n", info.in_flight);
    buf_printf(out, "redis_calls_unknown:%" PRIu64 "\r\n", info.unknown);
    buf_printf(out, "redis_calls_late:%" PRIu64 "\r\n", info.late);
    buf_printf(out, "redis_calls_failed:%" PRIu64 "\r\n", info.errors);
    buf_printf(out, "redis_replica_waits:%" PRIu64 "\r\n", info.waits);
    buf_printf(out, "redis_replica_waits_short:%" PRIu64 "\r\n", info.short_waits);
    buf_printf(out, "redis_replicas_acknowledging:%" PRId64 "\r\n",
               info.replica_ack_replicas);
    buf_printf(out, "redis_unacknowledged_grants:%" PRIu64 "\r\n",
               locks.unacked_grants);
    buf_printf(out, "redis_unacknowledged_renewals:%" PRIu64 "\r\n",
               locks.unacked_renewals);
    buf_printf(out, "redis_round_trip_us:%" PRIu64 "\r\n", info.round_trip_us);
    buf_printf(out, "redis_clock_offset_us:%" PRId64 "\r\n", info.clock_offset_us);
    if (info.sentinel.master != NULL) {
        buf_printf(out, "redis_master_name:%s\r\n", info.sentinel.master);
        buf_printf(out, "redis_master_epoch:%" PRIu64 "\r\n", info.sentinel.epoch);
        buf_printf(out, "redis_switches:%" PRIu64 "\r\n", info.sentinel.switches);
        buf_printf(out, "redis_sentinels:%zu\r\n", info.sentinel.known);
        buf_printf(out, "redis_sentinels_reachable:%zu\r\n", info.sentinel.reachable);
    }
    if (info.quorum.servers != 0) {
        buf_printf(out, "redis_quorum_servers:%zu\r\n", info.quorum.servers);
        buf_printf(out, "redis_quorum_splits:%" PRIu64 "\r\n", info.quorum.splits);
        buf_printf(out, "redis_quorum_undone:%" PRIu64 "\r\n", info.quorum.undone);
        buf_printf(out, "redis_quorum_healed:%" PRIu64 "\r\n", info.quorum.healed);
        buf_printf(out, "redis_quorum_chores:%" PRIu64 "\r\n",
                   info.quorum.deferred_ops);
        buf_printf(out, "redis_quorum_forgotten:%" PRIu64 "\r\n",
                   info.quorum.forgotten);
    }
    store_each_node(s->store, write_node, &nodes);
}

void info_section(void *ctx, const char *section, struct buf *out)
{
    static const struct {
        const char *name;
        void (*write)(struct server *s, struct buf *out);
    } SECTIONS[] = {
        { "server", server_section },     { "clients", clients_section },
        { "stats", stats_section },       { "redis", redis_section },
        { "watchdog", watchdog_section }, { "latency", latency_section },
    };

    for (size_t i = 0; i < sizeof(SECTIONS) / sizeof(SECTIONS[0]); i++) {
        if (strcmp(section, SECTIONS[i].name) == 0) {
            SECTIONS[i].write(ctx, out);
        }
    }
}
