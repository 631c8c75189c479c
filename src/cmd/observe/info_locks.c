/* INFO about locks, their renewal, and latencies. */
#include "cmd/observe/info.h"

#include "cmd/cmd_priv.h"

#include <inttypes.h>

void info_locks(struct cmd *c, struct buf *out)
{
    struct engine_stats s;

    engine_stats(c->env.engine, &s);
    buf_printf(out, "locks:%" PRIu64 "\r\nholds:%" PRIu64 "\r\n", s.locks, s.holds);
    buf_printf(out, "uncertain:%" PRIu64 "\r\nresting:%" PRIu64 "\r\n", s.uncertain,
               s.resting);
    buf_printf(out, "entries:%" PRIu64 "\r\nkept_entries:%" PRIu64 "\r\n", s.entries,
               s.retained_entries);
    buf_printf(out, "permits:%" PRIu64 "\r\n", s.permits);
    buf_printf(out, "waiters:%" PRIu64 "\r\nkept_waiters:%" PRIu64 "\r\n", s.waiters,
               s.retained_waiters);
    buf_printf(out, "oldest_wait_ms:%" PRIu64 "\r\n", s.oldest_wait_ms);
    buf_printf(out, "ops_in_flight:%" PRIu64 "\r\n", s.ops_in_flight);
    buf_printf(out, "grants:%" PRIu64 "\r\nhandovers:%" PRIu64 "\r\n", s.grants,
               s.handovers);
    buf_printf(out, "releases:%" PRIu64 "\r\nyields:%" PRIu64 "\r\n", s.releases,
               s.yields);
    buf_printf(out, "lost:%" PRIu64 "\r\nexpired:%" PRIu64 "\r\n", s.lost, s.expired);
    buf_printf(out, "lent:%" PRIu64 "\r\nloans:%" PRIu64 "\r\n", s.lent, s.loans);
    buf_printf(out, "loans_settled:%" PRIu64 "\r\nloans_returned:%" PRIu64 "\r\n",
               s.settled, s.returned);
    buf_printf(out, "loan_renewals:%" PRIu64 "\r\n", s.loan_renewals);
    buf_printf(out, "local_grants:%" PRIu64 "\r\n", s.local_grants);
    buf_printf(out, "timeouts:%" PRIu64 "\r\nunanswered:%" PRIu64 "\r\n", s.timeouts,
               s.unanswered);
    buf_printf(out, "queue_refusals:%" PRIu64 "\r\n", s.queue_refusals);
}

void cmd_info_histogram(struct buf *out, const char *field, const struct histogram *h)
{
    buf_printf(out,
               "%s:count=%" PRIu64 ",mean=%.0f,p50=%" PRIu64 ",p99=%" PRIu64
               ",p99.9=%" PRIu64 ",max=%" PRIu64 "\r\n",
               field, h->count,
               h->count == 0 ? 0.0 : (double)h->sum_us / (double)h->count,
               histogram_quantile(h, 500), histogram_quantile(h, 990),
               histogram_quantile(h, 999), h->max_us);
}

void info_watchdog(struct cmd *c, struct buf *out)
{
    struct engine_stats s;
    uint64_t others;

    engine_stats(c->env.engine, &s);
    /* a retained one may have a LEASE */
    others = s.fixed_entries + s.retained_entries;
    buf_printf(out, "watchdog_entries:%" PRIu64 "\r\n",
               s.entries > others ? s.entries - others : 0);
    buf_printf(out, "fixed_entries:%" PRIu64 "\r\n", s.fixed_entries);
    buf_printf(out, "renewals:%" PRIu64 "\r\ndoubts:%" PRIu64 "\r\n", s.renewals,
               s.doubts);
    cmd_info_histogram(out, "renewal_lag_usec",
                       &engine_timings(c->env.engine)->renewal_lag);
}

void info_redis(struct cmd *c, struct buf *out)
{
    struct engine_stats s;

    engine_stats(c->env.engine, &s);
    buf_printf(out, "redis_link:%s\r\n", s.store_up ? "up" : "down");
    buf_printf(out, "failovers:%" PRIu64 "\r\nquarantine_left_ms:%" PRIu64 "\r\n",
               s.failovers, s.quarantine_left_ms);
    buf_printf(out, "followers:%" PRIu64 "\r\n", s.followers);
    buf_printf(out, "followed_names:%" PRIu64 "\r\n", s.followed_names);
    buf_printf(out, "awaits:%" PRIu64 "\r\nawaited_latches:%" PRIu64 "\r\n", s.awaits,
               s.awaited_latches);
    buf_printf(out, "latch_counts:%" PRIu64 "\r\n", s.latch_counts);
    buf_printf(out, "other_daemons:%" PRIu64 "\r\n", s.other_daemons);
    buf_printf(out,
               "holds_restoring:%" PRIu64 "\r\nholds_restored:%" PRIu64
               "\r\nholds_not_restored:%" PRIu64 "\r\n",
               s.restoring, s.restored, s.lost_failover);
}

void info_keyspace(struct cmd *c, struct buf *out)
{
    struct engine_stats s;

    engine_stats(c->env.engine, &s);
    if (s.locks > 0) {
        buf_printf(out, "db0:keys=%" PRIu64 ",expires=0,avg_ttl=0\r\n", s.locks);
    }
}

void info_latency(struct cmd *c, struct buf *out)
{
    const struct engine_timings *t = engine_timings(c->env.engine);

    cmd_info_histogram(out, "wait_usec", &t->wait);
    cmd_info_histogram(out, "hold_usec", &t->hold);
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

void info_commandstats(struct cmd *c, struct buf *out)
{
    cmd_stats_each(c, add_command, out);
}

void info_errorstats(struct cmd *c, struct buf *out)
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

void info_latencystats(struct cmd *c, struct buf *out)
{
    cmd_stats_each(c, add_latencies, out);
}
