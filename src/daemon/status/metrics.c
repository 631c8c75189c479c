/* The text of /metrics. Names of locks are never labels: there are too many. */
#include "daemon/process.h"
#include "daemon/server_state.h"
#include "daemon/status/web.h"
#include "http/prometheus.h"
#include "latchd-config.h"

/* Buckets of the histograms, as powers of two of microseconds. */
static const struct prom_range OF_LOCKS = { 10, 32 };    /* 1 ms to 72 min */
static const struct prom_range OF_REDIS = { 5, 23 };     /* 32 us to 8.4 s */
static const struct prom_range OF_THE_LOOP = { 10, 23 }; /* 1 ms to 8.4 s */

static void add_lock_counts(const struct engine_stats *n, struct buf *out)
{
    prom_gauge(out, "latchd_names", "Names that are held or waited for here.",
               n->locks);
    prom_gauge(out, "latchd_holds", "Locks that clients of this daemon hold.",
               n->holds);
    prom_gauge(out, "latchd_holds_uncertain",
               "Holds that Redis has to confirm before they can be relied on.",
               n->uncertain);
    prom_gauge(
        out, "latchd_names_resting",
        "Names that nobody is granted before ATLEAST of their last hold is over.",
        n->resting);
    prom_gauge(out, "latchd_entries",
               "What holds consist of: one for each LOCK that was granted.",
               n->entries);
    prom_gauge(out, "latchd_entries_fixed",
               "Entries with a LEASE of their own, which nobody renews.",
               n->fixed_entries);
    prom_gauge(out, "latchd_entries_kept",
               "Entries that were granted and wait for their client to come back.",
               n->retained_entries);
    prom_gauge(out, "latchd_permits",
               "Permits of semaphores that clients of this daemon have.", n->permits);
    prom_gauge(out, "latchd_waiters", "LOCKs that wait, kept places included.",
               n->waiters);
    prom_gauge(out, "latchd_followers", "LEADERs that wait.", n->followers);
    prom_gauge(out, "latchd_followed_names",
               "Names whose leaders clients of this daemon follow.", n->followed_names);
    prom_gauge(out, "latchd_awaits", "LATCH AWAITs that wait.", n->awaits);
    prom_gauge(out, "latchd_awaited_latches",
               "Latches that clients of this daemon wait for.", n->awaited_latches);
    prom_counter(out, "latchd_latch_counts_total", "LATCH COUNTs that were answered.",
                 n->latch_counts);
    prom_gauge(out, "latchd_waiters_kept",
               "Places in queues that are kept for clients that come back.",
               n->retained_waiters);
    prom_gauge(out, "latchd_names_lent",
               "Names that Redis has lent to this daemon, for grants from memory.",
               n->lent);
    prom_family(out, "latchd_longest_wait_seconds", "gauge",
                "How long the one that waits longest has been waiting.");
    prom_seconds(out, "latchd_longest_wait_seconds", NULL, n->oldest_wait_ms * 1000);
}

static void add_lock_events(const struct engine_stats *n, struct buf *out)
{
    prom_counter(out, "latchd_grants_total", "Grants, re-entries included.", n->grants);
    prom_counter(out, "latchd_handovers_total",
                 "Grants in the script of the release before.", n->handovers);
    prom_counter(out, "latchd_local_grants_total",
                 "Grants from memory, without a call to Redis.", n->local_grants);
    prom_counter(out, "latchd_loans_total",
                 "How often Redis lent a name, for grants from memory.", n->loans);
    prom_counter(out, "latchd_loans_settled_total",
                 "Loans that ended as the ordinary hold of a client.", n->settled);
    prom_counter(out, "latchd_loans_returned_total",
                 "Loans that were given back, for others or for the next waiter.",
                 n->returned);
    prom_counter(out, "latchd_loan_renewals_total",
                 "How often Redis confirmed a loan once more.", n->loan_renewals);
    prom_counter(out, "latchd_releases_total", "Holds that were released.",
                 n->releases);
    prom_counter(out, "latchd_yields_total",
                 "Releases that freed a name for waiters elsewhere, while the waiters "
                 "of this daemon stood back.",
                 n->yields);
    prom_counter(out, "latchd_losses_total",
                 "Holds that were lost: Redis did not know them any more, their lease "
                 "ran out unrenewed, or they were freed by force.",
                 n->lost);
    prom_counter(out, "latchd_expirations_total",
                 "Holds that expired: their LEASE was over, or their client had left.",
                 n->expired);
    prom_counter(out, "latchd_doubts_total", "Holds that became uncertain.", n->doubts);
    prom_counter(out, "latchd_failovers_total", "How often another Redis took over.",
                 n->failovers);
    prom_counter(out, "latchd_holds_restored_total",
                 "Holds that Redis had lost, and that were put back.", n->restored);
    prom_counter(out, "latchd_holds_not_restored_total",
                 "Holds that could not be put back, as somebody else had the name.",
                 n->lost_failover);
    prom_family(out, "latchd_quarantine_seconds", "gauge",
                "How long it is until all names are granted again after a failover.");
    prom_seconds(out, "latchd_quarantine_seconds", NULL, n->quarantine_left_ms * 1000);
    prom_counter(out, "latchd_wait_timeouts_total", "Waits that ended without a grant.",
                 n->timeouts);
    prom_counter(out, "latchd_wait_failures_total",
                 "Waits that ended with BACKEND, as Redis did not answer.",
                 n->unanswered);
    prom_counter(out, "latchd_queue_refusals_total",
                 "LOCKs that were refused, as many waited as their QUEUE allows.",
                 n->queue_refusals);
    prom_counter(out, "latchd_unacknowledged_grants_total",
                 "Grants that were undone, as too few replicas acknowledged them.",
                 n->unacked_grants);
    prom_counter(out, "latchd_unacknowledged_renewals_total",
                 "Renewals that did not count, as too few replicas acknowledged them.",
                 n->unacked_renewals);
    prom_counter(out, "latchd_renewals_total", "Renewals that Redis confirmed.",
                 n->renewals);
}

static void add_lock_times(const struct engine_timings *t, struct buf *out)
{
    prom_histogram(out, "latchd_wait_seconds",
                   "From asking for a lock to its grant; waits without a grant are not "
                   "in here.",
                   OF_LOCKS, &t->wait);
    prom_histogram(out, "latchd_hold_seconds", "From a grant to its end.", OF_LOCKS,
                   &t->hold);
    prom_histogram(out, "latchd_renewal_lag_seconds",
                   "By how much renewals were late; 0 for those in time.", OF_LOCKS,
                   &t->renewal_lag);
}

static void add_locks(const struct server *s, struct buf *out)
{
    struct engine_stats n;

    engine_stats(s->engine, &n);
    add_lock_counts(&n, out);
    add_lock_events(&n, out);
    add_lock_times(engine_timings(s->engine), out);
}

static void add_sentinels(const struct store_sentinel_info *n, struct buf *out)
{
    prom_gauge(out, "latchd_sentinels", "Sentinels that are known.", n->known);
    prom_gauge(out, "latchd_sentinels_reachable",
               "Sentinels that name the master when they are asked.", n->reachable);
    prom_counter(out, "latchd_redis_switches_total",
                 "Masters that took the place of another.", n->switches);
}

static void add_redis(const struct server *s, struct buf *out)
{
    struct store_info n;

    store_info(s->store, &n);
    prom_gauge(out, "latchd_redis_up", "1 while Redis answers.", n.up);
    prom_gauge(out, "latchd_redis_calls_in_flight", "Calls that are not answered yet.",
               n.in_flight);
    prom_counter(out, "latchd_redis_calls_total", "Calls to Redis.", n.calls);
    prom_counter(out, "latchd_redis_calls_unknown_total",
                 "Calls of which nobody knows whether they ran.", n.unknown);
    prom_counter(out, "latchd_redis_calls_late_total",
                 "Calls that came too late to be run.", n.late);
    prom_counter(out, "latchd_redis_calls_failed_total",
                 "Calls that Redis answered with an error.", n.errors);
    prom_counter(out, "latchd_redis_replica_waits_total",
                 "Waits for replicas to acknowledge grants and renewals.", n.waits);
    prom_counter(out, "latchd_redis_replica_waits_short_total",
                 "Those of them that found too few.", n.short_waits);
    prom_gauge(out, "latchd_redis_replicas_acknowledging",
               "Replicas that the last one of them found; 0 without min-replicas.",
               (uint64_t)n.replica_ack_replicas);
    prom_counter(out, "latchd_redis_reconnects_total",
                 "Links to Redis that replaced another.", n.reconnects);
    prom_histogram(out, "latchd_redis_round_trip_seconds",
                   "From a call to Redis to its answer.", OF_REDIS, n.round_trips);
    if (n.sentinel.master != NULL) {
        add_sentinels(&n.sentinel, out);
    }
}

static void add_clients(const struct server *s, struct buf *out)
{
    struct net_stats n;

    net_stats(s->net, &n);
    prom_gauge(out, "latchd_connections", "Connections of clients.", n.open);
    prom_counter(out, "latchd_connections_accepted_total", "Connections, ever.",
                 n.accepted);
    prom_counter(out, "latchd_connections_refused_total",
                 "Connections that were one too many, or refused by protected mode.",
                 n.refused);
    prom_counter(out, "latchd_heartbeats_missed_total",
                 "Connections that were silent for longer than their HEARTBEAT.",
                 n.silent);
    prom_counter(out, "latchd_received_bytes_total", "Bytes from clients.", n.bytes_in);
    prom_counter(out, "latchd_sent_bytes_total", "Bytes to clients.", n.bytes_out);
    prom_gauge(out, "latchd_connections_max", "maxclients.", s->config.net.max_clients);
    prom_gauge(out, "latchd_waiters_max", "max-waiters.", s->config.engine.max_waiters);
    prom_gauge(out, "latchd_holds_max", "max-holds.", s->config.engine.max_holds);
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
    prom_histogram(out, "latchd_loop_lag_seconds",
                   "How late the event loop was when something was due.", OF_THE_LOOP,
                   &s->loop_lag);
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
    add_locks(s, out);
    add_redis(s, out);
    add_clients(s, out);
    add_commands(s, out);
    add_process(s, out);
}
