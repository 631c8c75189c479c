/* INFO about the process: version, clients, resources. */
#include "cmd/observe/info.h"

#include "cmd/cmd_priv.h"
#include "cmd/library/pollers.h"
#include "util/clock.h"

#include "latchd-config.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

void info_server(struct cmd *c, struct buf *out)
{
    uint64_t up = (c->env.now_ms(c->env.ctx) - c->started_ms) / 1000;
    struct utsname host;

    buf_printf(out, "latchd_version:%s\r\n", LATCHD_VERSION);
    buf_printf(out, "redis_version:%s\r\nredis_mode:standalone\r\n",
               REDIS_COMPAT_VERSION);
    if (uname(&host) == 0) {
        buf_printf(out, "os:%s %s %s\r\n", host.sysname, host.release, host.machine);
    }
    buf_printf(out, "arch_bits:%zu\r\nmultiplexing_api:epoll\r\nprocess_id:%ld\r\n",
               8 * sizeof(void *), (long)getpid());
    buf_printf(out, "process_supervised:%s\r\n",
               getenv("NOTIFY_SOCKET") == NULL ? "no" : "systemd");
    buf_printf(out, "run_id:%s\r\n", c->env.run_id == NULL ? "" : c->env.run_id);
    buf_printf(out, "server_time_usec:%" PRIu64 "\r\n", clock_wall_us());
    buf_printf(out, "uptime_in_seconds:%" PRIu64 "\r\nuptime_in_days:%" PRIu64 "\r\n",
               up, up / 86400);
}

struct client_counts {
    size_t blocked;
    size_t pubsub;
    size_t monitors;
};

static void count_client(void *ctx, struct conn *conn)
{
    struct client_counts *counts = ctx;
    const struct client *client = conn_data(conn);

    if (client != NULL) {
        counts->blocked += client_is_blocked(client);
        counts->pubsub += client_is_subscribed(client);
        counts->monitors += !list_empty(&client->monitors);
    }
}

void info_clients(struct cmd *c, struct buf *out)
{
    struct client_counts counts = { 0 };
    struct net_stats net;

    net_stats(c->env.net, &net);
    net_foreach(c->env.net, count_client, &counts);
    buf_printf(out, "connected_clients:%" PRIu64 "\r\n", net.open);
    buf_printf(out, "unauthenticated_clients:%" PRIu64 "\r\n", net.unauthenticated);
    buf_printf(out, "blocked_clients:%zu\r\npubsub_clients:%zu\r\n", counts.blocked,
               counts.pubsub);
    buf_printf(out, "tracking_clients:%zu\r\nmonitor_clients:%zu\r\n",
               c->tracking.count, counts.monitors);
}

/* --- memory ----------------------------------------------------------- */

/* A number of bytes, and the same in readable form. */
static void add_bytes(struct buf *out, const char *field, double bytes)
{
    static const char UNITS[] = "BKMGT";
    double rest = bytes;
    size_t unit = 0;

    while (rest >= 1024 && unit < 4) {
        rest /= 1024;
        unit++;
    }
    buf_printf(out, "%s:%.0f\r\n%s_human:%.*f%c\r\n", field, bytes, field,
               unit == 0 ? 0 : 2, rest, UNITS[unit]);
}

/* The resident memory; 0: not known. */
static double resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    char line[128] = "";
    char *second;
    double pages = 0;

    if (file == NULL) {
        return 0;
    }
    if (fgets(line, sizeof(line), file) != NULL) {
        second = strchr(line, ' ');
        pages = second == NULL ? 0 : (double)strtoull(second, NULL, 10);
    }
    (void)fclose(file);
    return pages * (double)sysconf(_SC_PAGESIZE);
}

static void add_memory(void *ctx, struct conn *conn)
{
    *(double *)ctx += (double)conn_memory(conn);
}

void info_memory(struct cmd *c, struct buf *out)
{
    double clients = 0;
    struct mallinfo2 heap = mallinfo2();
    double used = (double)(heap.uordblks + heap.hblkhd);
    double resident = resident_bytes();
    struct rusage usage;

    net_foreach(c->env.net, add_memory, &clients);
    add_bytes(out, "used_memory", used);
    add_bytes(out, "used_memory_rss", resident);
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        add_bytes(out, "used_memory_peak", (double)usage.ru_maxrss * 1024);
    }
    add_bytes(out, "total_system_memory",
              (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE));
    buf_printf(out, "maxmemory:0\r\nmaxmemory_human:0B\r\n"
                    "maxmemory_policy:noeviction\r\n");
    buf_printf(out, "mem_clients_normal:%.0f\r\n", clients);
    buf_printf(out, "mem_fragmentation_ratio:%.2f\r\nmem_allocator:libc\r\n",
               used > 0 ? resident / used : 0.0);
}

void info_persistence(struct cmd *c, struct buf *out)
{
    (void)c;
    buf_printf(out, "loading:0\r\nasync_loading:0\r\n");
}

/* --- numbers ---------------------------------------------------------- */

void info_stats(struct cmd *c, struct buf *out)
{
    const struct rates *rates = &c->rates;
    uint64_t errors = 0;
    struct net_stats net;

    for (int i = OUTCOME_ERR; i < OUTCOME_COUNT; i++) {
        errors += stats_outcome(c, (enum outcome)i);
    }
    net_stats(c->env.net, &net);
    buf_printf(out, "total_connections_received:%" PRIu64 "\r\n", net.accepted);
    buf_printf(out, "total_commands_processed:%" PRIu64 "\r\n", stats_calls(c));
    buf_printf(out, "instantaneous_ops_per_sec:%.0f\r\n", rates->calls);
    buf_printf(out, "total_net_input_bytes:%" PRIu64 "\r\n", net.bytes_in);
    buf_printf(out, "total_net_output_bytes:%" PRIu64 "\r\n", net.bytes_out);
    buf_printf(out,
               "instantaneous_input_kbps:%.2f\r\ninstantaneous_output_kbps:%.2f\r\n",
               rates->bytes_in / 1024, rates->bytes_out / 1024);
    buf_printf(out, "rejected_connections:%" PRIu64 "\r\n", net.refused);
    buf_printf(out, "auth_timeouts:%" PRIu64 "\r\nauth_displaced:%" PRIu64 "\r\n",
               net.late, net.evicted_unauthenticated);
    buf_printf(out, "heartbeats_missed:%" PRIu64 "\r\n", net.silent);
    buf_printf(out, "evicted_clients:%" PRIu64 "\r\n", net.evicted);
    buf_printf(out, "total_error_replies:%" PRIu64 "\r\n", errors);
    buf_printf(out, "acl_access_denied_auth:%" PRIu64 "\r\n",
               denials_total(c->users.denials, DENIAL_LOGIN));
    buf_printf(out, "acl_access_denied_cmd:%" PRIu64 "\r\n",
               denials_total(c->users.denials, DENIAL_COMMAND));
    buf_printf(out, "acl_access_denied_key:%" PRIu64 "\r\n",
               denials_total(c->users.denials, DENIAL_NAME));
    buf_printf(out, "acl_access_denied_channel:%" PRIu64 "\r\n",
               denials_total(c->users.denials, DENIAL_CHANNEL));
    buf_printf(out, "unknown_commands:%" PRIu64 "\r\n", c->unknown);
    buf_printf(out, "pubsub_channels:%zu\r\n", pubsub_total(c->pubsub, PUBSUB_CHANNEL));
    buf_printf(out, "pubsub_patterns:%zu\r\n", pubsub_total(c->pubsub, PUBSUB_PATTERN));
    buf_printf(out, "slowlog_entries:%zu\r\n", c->slow.count);
}

static double per_second(uint64_t now, uint64_t before, uint64_t ms)
{
    return now > before ? (double)(now - before) * 1000.0 / (double)ms : 0;
}

void cmd_second(struct cmd *c, uint64_t now_ms)
{
    struct rates *r = &c->rates;
    uint64_t calls = stats_calls(c);
    struct net_stats net;

    net_stats(c->env.net, &net);
    pollers_expire(c->pollers, now_ms);
    if (now_ms > r->at_ms) {
        r->calls = per_second(calls, r->calls_before, now_ms - r->at_ms);
        r->bytes_in = per_second(net.bytes_in, r->in_before, now_ms - r->at_ms);
        r->bytes_out = per_second(net.bytes_out, r->out_before, now_ms - r->at_ms);
    }
    r->at_ms = now_ms;
    r->calls_before = calls;
    r->in_before = net.bytes_in;
    r->out_before = net.bytes_out;
}

static void add_cpu(struct buf *out, const char *suffix, const struct rusage *usage)
{
    buf_printf(out, "used_cpu_sys%s:%ld.%06ld\r\nused_cpu_user%s:%ld.%06ld\r\n", suffix,
               (long)usage->ru_stime.tv_sec, (long)usage->ru_stime.tv_usec, suffix,
               (long)usage->ru_utime.tv_sec, (long)usage->ru_utime.tv_usec);
}

void info_cpu(struct cmd *c, struct buf *out)
{
    struct rusage usage;

    (void)c;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        add_cpu(out, "", &usage);
    }
    if (getrusage(RUSAGE_CHILDREN, &usage) == 0) {
        add_cpu(out, "_children", &usage);
    }
}

void info_replication(struct cmd *c, struct buf *out)
{
    (void)c;
    buf_printf(out, "role:master\r\nconnected_slaves:0\r\n");
}

void info_cluster(struct cmd *c, struct buf *out)
{
    (void)c;
    buf_printf(out, "cluster_enabled:0\r\n");
}
