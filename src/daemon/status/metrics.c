/* The text of /metrics. Names of locks are never labels: there are too many. */
#include "cmd/observe/stats.h"
#include "daemon/process.h"
#include "daemon/server_state.h"
#include "daemon/status/web.h"
#include "http/prometheus.h"
#include "latchd-config.h"

static void add_numbers(const struct server *s, struct buf *out)
{
    struct stats stats;

    stats_read(s->cmd, false, &stats);
    for (size_t i = 0; i < STAT_COUNT; i++) {
        const struct stat_row *row = &STATS[i];
        const struct stat_value *v = &stats.of[i];

        if (!v->known || row->metric[0] == '\0') {
            continue;
        }
        if (row->type == STAT_TIMES) {
            prom_histogram(out, row->metric, row->help,
                           (struct prom_range){ row->first, row->last }, v->times);
        } else if (row->type == STAT_MS) {
            prom_family(out, row->metric, "gauge", row->help);
            prom_seconds(out, row->metric, NULL, v->number * 1000);
        } else if (row->type == STAT_COUNTER) {
            prom_counter(out, row->metric, row->help, v->number);
        } else {
            prom_gauge(out, row->metric, row->help, v->number);
        }
    }
}

/* --- commands --------------------------------------------------------- */

static void add_command(void *ctx, const struct cmd_stats *stats)
{
    struct buf *out = ctx;

    for (size_t i = 0; i < stats->outcome_count; i++) {
        struct buf labels = { 0 };

        prom_label(&labels, "command", span_str(stats->name));
        prom_label(&labels, "outcome", span_str(stats->outcomes[i].word));
        prom_uint(out, "latchd_commands_total", &labels, stats->outcomes[i].count);
        buf_reset(&labels);
    }
}

static void add_commands(const struct server *s, struct buf *out)
{
    prom_family(out, "latchd_commands_total", "counter",
                "Commands by what became of them: ok, null, gone (its client left), or "
                "the first word of the error.");
    cmd_stats_each(s->cmd, add_command, out);
}

/* --- the process ------------------------------------------------------ */

static void add_daemon(struct server *s, struct buf *out)
{
    struct store_info info;
    struct buf why = { 0 };
    struct buf labels = { 0 };

    prom_label(&labels, "version", SPAN(LATCHD_VERSION));
    store_info(s->store, &info);
    prom_label(&labels, "redis",
               s->embedded != NULL ? SPAN("embedded") : span_str(info.topology));
    prom_family(out, "latchd_build_info", "gauge", "1; what this is.");
    prom_uint(out, "latchd_build_info", &labels, 1);
    prom_gauge(out, "latchd_ready", "1 while locks are granted; see /healthz.",
               web_health(s, &why));
    buf_reset(&labels);
    buf_reset(&why);
}

static void add_process(const struct server *s, struct buf *out)
{
    struct process p;
    struct net_stats n;

    net_stats(s->net, &n);
    process_look(&p, n.open);
    prom_family(out, "process_cpu_seconds_total", "counter",
                "Processor time, user and system.");
    prom_seconds(out, "process_cpu_seconds_total", NULL, p.cpu_us);
    prom_family(out, "process_start_time_seconds", "gauge",
                "When the process started, since 1970.");
    prom_seconds(out, "process_start_time_seconds", NULL, s->started_wall_us);
    prom_gauge(out, "process_resident_memory_bytes", "Resident memory.",
               p.resident_bytes);
    prom_gauge(out, "process_virtual_memory_bytes", "Virtual memory.", p.virtual_bytes);
    prom_gauge(out, "process_max_fds", "Limit of open files.", p.max_fds);
    if (p.open_fds != 0) {
        prom_gauge(out, "process_open_fds", "Open files.", p.open_fds);
    }
}

void web_metrics(void *ctx, struct buf *out)
{
    struct server *s = ctx;

    add_daemon(s, out);
    add_numbers(s, out);
    add_commands(s, out);
    add_process(s, out);
}
