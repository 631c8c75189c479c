/* INFO. Sections and fields that ready checks read are called as in Redis. */
#include "cmd/handlers.h"

#include "latchd-config.h"

#include <ctype.h>
#include <inttypes.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

static void server_section(struct cmd *c, struct buf *out)
{
    uint64_t up = (c->env.now_ms(c->env.ctx) - c->started_ms) / 1000;

    buf_printf(out, "latchd_version:%s\r\n", LATCHD_VERSION);
    buf_printf(out, "redis_version:%s\r\nredis_mode:standalone\r\n",
               REDIS_COMPAT_VERSION);
    buf_printf(out, "arch_bits:%zu\r\nprocess_id:%ld\r\n", 8 * sizeof(void *),
               (long)getpid());
    buf_printf(out, "run_id:%s\r\n", c->env.run_id == NULL ? "" : c->env.run_id);
    buf_printf(out, "uptime_in_seconds:%" PRIu64 "\r\nuptime_in_days:%" PRIu64 "\r\n",
               up, up / 86400);
}

struct client_counts {
    size_t blocked;
    size_t pubsub;
};

static void count_client(void *ctx, struct conn *conn)
{
    struct client_counts *counts = ctx;
    const struct client *client = conn_data(conn);

    if (client != NULL) {
        counts->blocked += client_is_blocked(client);
        counts->pubsub += client_is_subscribed(client);
    }
}

static void clients_section(struct cmd *c, struct buf *out)
{
    struct client_counts counts = { 0 };
    struct net_stats net;

    net_stats(c->env.net, &net);
    net_foreach(c->env.net, count_client, &counts);
    buf_printf(out, "connected_clients:%" PRIu64 "\r\n", net.open);
    buf_printf(out, "blocked_clients:%zu\r\npubsub_clients:%zu\r\n", counts.blocked,
               counts.pubsub);
    buf_printf(out, "tracking_clients:%zu\r\n", c->tracking.count);
}

static void memory_section(struct cmd *c, struct buf *out)
{
    struct mallinfo2 heap = mallinfo2();
    struct rusage usage;

    (void)c;
    buf_printf(out, "used_memory:%zu\r\n", heap.uordblks + heap.hblkhd);
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        buf_printf(out, "used_memory_peak_rss:%ld\r\n", usage.ru_maxrss * 1024);
    }
    buf_printf(out,
               "mem_allocator:libc\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n");
}

static void persistence_section(struct cmd *c, struct buf *out)
{
    (void)c;
    buf_printf(out, "loading:0\r\nasync_loading:0\r\n");
}

static void stats_section(struct cmd *c, struct buf *out)
{
    struct net_stats net;
    uint64_t errors = 0;

    for (int i = OUTCOME_ERR; i < OUTCOME_COUNT; i++) {
        errors += stats_outcome(c, (enum outcome)i);
    }
    net_stats(c->env.net, &net);
    buf_printf(out, "total_connections_received:%" PRIu64 "\r\n", net.accepted);
    buf_printf(out, "rejected_connections:%" PRIu64 "\r\n", net.refused);
    buf_printf(out, "total_commands_processed:%" PRIu64 "\r\n", stats_calls(c));
    buf_printf(out, "total_error_replies:%" PRIu64 "\r\n", errors);
    buf_printf(out, "unknown_commands:%" PRIu64 "\r\n", c->unknown);
    buf_printf(out, "total_net_input_bytes:%" PRIu64 "\r\n", net.bytes_in);
    buf_printf(out, "total_net_output_bytes:%" PRIu64 "\r\n", net.bytes_out);
    buf_printf(out, "pubsub_channels:%zu\r\n", pubsub_total(c->pubsub, PUBSUB_CHANNEL));
    buf_printf(out, "pubsub_patterns:%zu\r\n", pubsub_total(c->pubsub, PUBSUB_PATTERN));
}

static void locks_section(struct cmd *c, struct buf *out)
{
    struct locks_stats s;

    locks_stats(c->env.locks, &s);
    buf_printf(out, "locks:%" PRIu64 "\r\nholds:%" PRIu64 "\r\n", s.locks, s.holds);
    buf_printf(out, "waiters:%" PRIu64 "\r\n", s.waiters);
    buf_printf(out, "ops_in_flight:%" PRIu64 "\r\n", s.ops_in_flight);
    buf_printf(out, "grants:%" PRIu64 "\r\nhandovers:%" PRIu64 "\r\n", s.grants,
               s.handovers);
    buf_printf(out, "releases:%" PRIu64 "\r\nlost:%" PRIu64 "\r\n", s.releases, s.lost);
    buf_printf(out, "timeouts:%" PRIu64 "\r\nrenewals:%" PRIu64 "\r\n", s.timeouts,
               s.renewals);
}

static void replication_section(struct cmd *c, struct buf *out)
{
    (void)c;
    buf_printf(out, "role:master\r\nconnected_slaves:0\r\n");
}

static void redis_section(struct cmd *c, struct buf *out)
{
    struct locks_stats s;

    locks_stats(c->env.locks, &s);
    buf_printf(out, "redis_link:%s\r\n", s.store_up ? "up" : "down");
}

static void cpu_section(struct cmd *c, struct buf *out)
{
    struct rusage usage;

    (void)c;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        buf_printf(out, "used_cpu_sys:%ld.%06ld\r\nused_cpu_user:%ld.%06ld\r\n",
                   (long)usage.ru_stime.tv_sec, (long)usage.ru_stime.tv_usec,
                   (long)usage.ru_utime.tv_sec, (long)usage.ru_utime.tv_usec);
    }
}

static void commandstats_section(struct cmd *c, struct buf *out)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const struct command_stat *s = &c->stats[i];

        if (s->calls + s->rejected != 0) {
            buf_printf(out,
                       "cmdstat_%s:calls=%" PRIu64 ",usec=%" PRIu64
                       ",usec_per_call=%.2f,rejected_calls=%" PRIu64
                       ",failed_calls=%" PRIu64 "\r\n",
                       COMMANDS[i].name, s->calls, s->work.sum_us,
                       s->calls == 0 ? 0.0 : (double)s->work.sum_us / (double)s->calls,
                       s->rejected, s->failed);
        }
    }
}

static void cluster_section(struct cmd *c, struct buf *out)
{
    (void)c;
    buf_printf(out, "cluster_enabled:0\r\n");
}

static const struct {
    const char *name;
    void (*write)(struct cmd *c, struct buf *out);
    bool everything_only; /* not by default */
} SECTIONS[] = {
    { "Server", server_section, false },
    { "Clients", clients_section, false },
    { "Memory", memory_section, false },
    { "Persistence", persistence_section, false },
    { "Stats", stats_section, false },
    { "Locks", locks_section, false },
    { "Redis", redis_section, false },
    { "Replication", replication_section, false },
    { "CPU", cpu_section, false },
    { "Commandstats", commandstats_section, true },
    { "Cluster", cluster_section, false },
};

enum { SECTION_COUNT = sizeof(SECTIONS) / sizeof(SECTIONS[0]) };

static bool wanted(const struct call *call, size_t section)
{
    if (call->argc == 1) {
        return !SECTIONS[section].everything_only;
    }
    for (size_t i = 1; i < call->argc; i++) {
        if (call_arg_is(call, i, "all") || call_arg_is(call, i, "everything") ||
            call_arg_is(call, i, SECTIONS[section].name) ||
            (call_arg_is(call, i, "default") && !SECTIONS[section].everything_only)) {
            return true;
        }
    }
    return false;
}

static void write_section(struct cmd *c, size_t section, struct buf *out)
{
    char name[32];
    size_t len = strlen(SECTIONS[section].name);

    for (size_t i = 0; i <= len; i++) {
        name[i] = (char)tolower((unsigned char)SECTIONS[section].name[i]);
    }
    buf_printf(out, "%s# %s\r\n", buf_len(out) == 0 ? "" : "\r\n",
               SECTIONS[section].name);
    SECTIONS[section].write(c, out);
    if (c->env.info != NULL) {
        c->env.info(c->env.ctx, name, out);
    }
}

void cmd_info(struct call *call)
{
    struct buf text = { 0 };

    for (size_t i = 0; i < SECTION_COUNT; i++) {
        if (wanted(call, i)) {
            write_section(call->cmd, i, &text);
        }
    }
    resp_verbatim(call->out, call->proto, buf_span(&text));
    buf_reset(&text);
}
