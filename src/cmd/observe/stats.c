#include "cmd/observe/stats.h"

#include "cmd/cmd_priv.h"
#include "cmd/library/pollers.h"

#include <inttypes.h>

const struct stat_row STATS[STAT_COUNT] = {
#define STAT(name, section, reader, value, type, metric, json, help)                   \
    [STAT_##name] = { #name, section, STAT_##type, 0, 0, metric, json, help },
#define TIMES(name, section, reader, value, first, last, metric, help)                 \
    [STAT_##name] = { #name, section, STAT_TIMES, first, last, metric, "", help },
#include "cmd/observe/stats.def"
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
#include "cmd/observe/stats.def"
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
#include "cmd/observe/stats.def"
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

void stats_write_info(const struct stats *s, const char *section, struct buf *out)
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
