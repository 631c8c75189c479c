#include "cmd/stats.h"

#include "cmd/cmd_priv.h"
#include "latchd-config.h"

#include <malloc.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

const struct stat_row STATS[STAT_COUNT] = {
#define STAT(name, section, reader, value, type, metric, json, help)                   \
    [STAT_##name] = { #name, section, STAT_##type, 0, 0, metric, json, help },
#define TIMES(name, section, reader, value, first, last, metric, help)                 \
    [STAT_##name] = { #name, section, STAT_TIMES, first, last, metric, "", help },
#include "cmd/stats.def"
};

/* --- reading ---------------------------------------------------------- */

struct client_counts {
    uint64_t blocked, pubsub, monitors;
    uint64_t memory; /* bytes */
};

static void count_client(void *ctx, struct conn *conn)
{
    struct client_counts *counts = ctx;
    const struct client *client = conn_data(conn);

    counts->memory += conn_memory(conn);
    if (client != NULL) {
        counts->blocked += client_is_blocked(client);
        counts->pubsub += client_is_subscribed(client);
        counts->monitors += !list_empty(&client->monitors);
    }
}

/* A retained entry may have a LEASE. */
static uint64_t count_watchdog_entries(const struct engine_stats *s)
{
    uint64_t others = s->fixed_entries + s->retained_entries;

    return s->entries > others ? s->entries - others : 0;
}

static uint64_t count_errors(const struct cmd *c)
{
    uint64_t errors = 0;

    for (int i = OUTCOME_ERR; i < OUTCOME_COUNT; i++) {
        errors += stats_outcome(c, (enum outcome)i);
    }
    return errors;
}

static void read_clients(struct cmd *c, struct stats *ret)
{
    struct client_counts clients = { 0 };

    net_foreach(c->env.net, count_client, &clients);
#define READ_CLIENTS(set) set;
#define READ_CMD(set)
#define READ_DAEMON(set)
#define READ_SENTINEL(set)
#define READ_QUORUM(set)
#define STAT(name, section, reader, value, ...)                                        \
    READ_##reader(STAT_SET(ret, STAT_##name, value))
#define TIMES(...)
#include "cmd/stats.def"
#undef READ_CLIENTS
#undef READ_CMD
}

void stats_read(struct cmd *c, bool clients, struct stats *ret)
{
    const struct engine_timings *timings = engine_timings(c->env.engine);
    struct engine_stats engine;
    struct net_stats net;

    *ret = (struct stats){ 0 };
    engine_stats(c->env.engine, &engine);
    net_stats(c->env.net, &net);
#define READ_CLIENTS(set)
#define READ_CMD(set) set;
#define STAT(name, section, reader, value, ...)                                        \
    READ_##reader(STAT_SET(ret, STAT_##name, value))
#define TIMES(name, section, reader, value, ...)                                       \
    READ_##reader(STAT_SET_TIMES(ret, STAT_##name, value))
#include "cmd/stats.def"
    if (clients) {
        read_clients(c, ret);
    }
    if (c->env.stats != NULL) {
        c->env.stats(c->env.ctx, ret);
    }
}

/* --- INFO ------------------------------------------------------------- */

static void write_times(struct buf *out, const char *name, const struct histogram *h)
{
    buf_printf(out,
               "%s:count=%" PRIu64 ",mean=%.0f,p50=%" PRIu64 ",p99=%" PRIu64
               ",p99.9=%" PRIu64 ",max=%" PRIu64 "\r\n",
               name, h->count,
               h->count == 0 ? 0.0 : (double)h->sum_us / (double)h->count,
               histogram_quantile(h, 500), histogram_quantile(h, 990),
               histogram_quantile(h, 999), h->max_us);
}

/* Appends the lines of a section of INFO. */
static void stats_write_info(const struct stats *s, const char *section,
                             struct buf *out)
{
    for (size_t i = 0; i < STAT_COUNT; i++) {
        const struct stat_row *row = &STATS[i];
        const struct stat_value *v = &s->of[i];

        if (!v->known || strcmp(row->section, section) != 0) {
            continue;
        }
        if (row->type == STAT_TIMES) {
            write_times(out, row->name, v->times);
        } else if (row->type == STAT_SIGNED) {
            buf_printf(out, "%s:%" PRId64 "\r\n", row->name, (int64_t)v->number);
        } else {
            buf_printf(out, "%s:%" PRIu64 "\r\n", row->name, v->number);
        }
    }
}

/* --- rates ------------------------------------------------------------ */

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
    pollers_expire(&c->pollers, now_ms);
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

/* INFO: the numbers of stats.def, and what is no plain number. Fields that Redis has
 * are named as in Redis; latchd's own are described in latchd-protocol(7). */

static void info_server(struct cmd *c, struct buf *out)
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

static void info_memory(struct cmd *c, struct buf *out)
{
    struct mallinfo2 heap = mallinfo2();
    double used = (double)(heap.uordblks + heap.hblkhd);
    double resident = resident_bytes();
    struct rusage usage;

    (void)c;
    add_bytes(out, "used_memory", used);
    add_bytes(out, "used_memory_rss", resident);
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        add_bytes(out, "used_memory_peak", (double)usage.ru_maxrss * 1024);
    }
    add_bytes(out, "total_system_memory",
              (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE));
    buf_printf(out, "maxmemory:0\r\nmaxmemory_human:0B\r\n"
                    "maxmemory_policy:noeviction\r\n");
    buf_printf(out, "mem_fragmentation_ratio:%.2f\r\nmem_allocator:libc\r\n",
               used > 0 ? resident / used : 0.0);
}

static void info_persistence(struct cmd *c, struct buf *out)
{
    (void)c;
    buf_printf(out, "loading:0\r\nasync_loading:0\r\n");
}

static void info_rates(struct cmd *c, struct buf *out)
{
    const struct rates *rates = &c->rates;

    buf_printf(out, "instantaneous_ops_per_sec:%.0f\r\n", rates->calls);
    buf_printf(out,
               "instantaneous_input_kbps:%.2f\r\ninstantaneous_output_kbps:%.2f\r\n",
               rates->bytes_in / 1024, rates->bytes_out / 1024);
}

static void info_redis(struct cmd *c, struct buf *out)
{
    struct engine_stats s;

    engine_stats(c->env.engine, &s);
    buf_printf(out, "redis_link:%s\r\n", s.store_up ? "up" : "down");
}

static void add_cpu(struct buf *out, const char *suffix, const struct rusage *usage)
{
    buf_printf(out, "used_cpu_sys%s:%ld.%06ld\r\nused_cpu_user%s:%ld.%06ld\r\n", suffix,
               (long)usage->ru_stime.tv_sec, (long)usage->ru_stime.tv_usec, suffix,
               (long)usage->ru_utime.tv_sec, (long)usage->ru_utime.tv_usec);
}

static void info_cpu(struct cmd *c, struct buf *out)
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

static void info_replication(struct cmd *c, struct buf *out)
{
    (void)c;
    buf_printf(out, "role:master\r\nconnected_slaves:0\r\n");
}

static void info_cluster(struct cmd *c, struct buf *out)
{
    (void)c;
    buf_printf(out, "cluster_enabled:0\r\n");
}

static void info_keyspace(struct cmd *c, struct buf *out)
{
    struct engine_stats s;

    engine_stats(c->env.engine, &s);
    if (s.locks > 0) {
        buf_printf(out, "db0:keys=%" PRIu64 ",expires=0,avg_ttl=0\r\n", s.locks);
    }
}

/* --- commands --------------------------------------------------------- */

static void add_command(void *ctx, const struct cmd_stats *s)
{
    struct buf *out = ctx;

    buf_printf(out,
               "cmdstat_%s:calls=%" PRIu64 ",usec=%" PRIu64
               ",usec_per_call=%.2f,rejected_calls=%" PRIu64 ",failed_calls=%" PRIu64,
               s->name, s->calls, s->work->sum_us,
               s->calls == 0 ? 0.0 : (double)s->work->sum_us / (double)s->calls,
               s->rejected, s->failed);
    for (size_t i = 0; i < s->outcome_count; i++) {
        buf_printf(out, ",%s=%" PRIu64, s->outcomes[i].word, s->outcomes[i].count);
    }
    buf_add_str(out, "\r\n");
}

static void info_commandstats(struct cmd *c, struct buf *out)
{
    cmd_stats_each(c, add_command, out);
}

static void info_errorstats(struct cmd *c, struct buf *out)
{
    for (int i = OUTCOME_ERR; i < OUTCOME_COUNT; i++) {
        uint64_t count = stats_outcome(c, (enum outcome)i);

        if (count > 0) {
            buf_printf(out, "errorstat_%s:count=%" PRIu64 "\r\n",
                       outcome_word((enum outcome)i), count);
        }
    }
}

static void add_percentiles(struct buf *out, const char *field, const char *name,
                            const struct histogram *h)
{
    if (h != NULL && h->count > 0) {
        buf_printf(out,
                   "%s%s:p50=%" PRIu64 ".000,p99=%" PRIu64 ".000,p99.9=%" PRIu64
                   ".000\r\n",
                   field, name, histogram_quantile(h, 500), histogram_quantile(h, 990),
                   histogram_quantile(h, 999));
    }
}

static void add_latencies(void *ctx, const struct cmd_stats *s)
{
    add_percentiles(ctx, "latency_percentiles_usec_", s->name, s->work);
    add_percentiles(ctx, "latency_wait_percentiles_usec_", s->name, s->wait);
}

static void info_latencystats(struct cmd *c, struct buf *out)
{
    cmd_stats_each(c, add_latencies, out);
}

/* --- sections --------------------------------------------------------- */

enum section_flag {
    BY_DEFAULT = 1 << 0, /* also without arguments, not only with `all` */
    OF_CLIENTS = 1 << 1, /* walks over all connections */
};

static const struct {
    const char *name;
    void (*write)(struct cmd *c, struct buf *out); /* beside stats.def; NULL: nothing */
    unsigned flags;
} SECTIONS[] = {
    { "Server", info_server, BY_DEFAULT },
    { "Clients", NULL, BY_DEFAULT | OF_CLIENTS },
    { "Memory", info_memory, BY_DEFAULT | OF_CLIENTS },
    { "Persistence", info_persistence, BY_DEFAULT },
    { "Stats", info_rates, BY_DEFAULT },
    { "Locks", NULL, BY_DEFAULT },
    { "Watchdog", NULL, BY_DEFAULT },
    { "Redis", info_redis, BY_DEFAULT },
    { "Latency", NULL, BY_DEFAULT },
    { "Replication", info_replication, BY_DEFAULT },
    { "CPU", info_cpu, BY_DEFAULT },
    { "Commandstats", info_commandstats, 0 },
    { "Errorstats", info_errorstats, BY_DEFAULT },
    { "Latencystats", info_latencystats, 0 },
    { "Cluster", info_cluster, BY_DEFAULT },
    { "Keyspace", info_keyspace, BY_DEFAULT },
};

enum { SECTION_COUNT = sizeof(SECTIONS) / sizeof(SECTIONS[0]) };

static bool is_section_wanted(const struct command_ctx *ctx, size_t section)
{
    bool by_default = (SECTIONS[section].flags & BY_DEFAULT) != 0;

    if (ctx->argc == 1) {
        return by_default;
    }
    for (size_t i = 1; i < ctx->argc; i++) {
        if (ctx_arg_is(ctx, i, "all") || ctx_arg_is(ctx, i, "everything") ||
            ctx_arg_is(ctx, i, SECTIONS[section].name) ||
            (ctx_arg_is(ctx, i, "default") && by_default)) {
            return true;
        }
    }
    return false;
}

static void write_section(struct cmd *c, const struct stats *stats, size_t section,
                          struct buf *out)
{
    const char *name = SECTIONS[section].name;

    buf_printf(out, "%s# %s\r\n", buf_len(out) == 0 ? "" : "\r\n", name);
    if (SECTIONS[section].write != NULL) {
        SECTIONS[section].write(c, out);
    }
    stats_write_info(stats, name, out);
    if (c->env.info != NULL) {
        c->env.info(c->env.ctx, name, out);
    }
}

void cmd_info(struct command_ctx *ctx)
{
    struct buf text = { 0 };
    struct stats stats;
    bool clients = false;

    for (size_t i = 0; i < SECTION_COUNT; i++) {
        clients = clients ||
                  ((SECTIONS[i].flags & OF_CLIENTS) != 0 && is_section_wanted(ctx, i));
    }
    stats_read(ctx->cmd, clients, &stats);
    for (size_t i = 0; i < SECTION_COUNT; i++) {
        if (is_section_wanted(ctx, i)) {
            write_section(ctx->cmd, &stats, i, &text);
        }
    }
    resp_verbatim(ctx->out, ctx->proto, buf_span(&text));
    buf_reset(&text);
}
