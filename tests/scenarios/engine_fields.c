#include "scenarios/engine_fields.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

void set_engine_config(struct engine_config *config, const char *word)
{
    static const struct scn_field FIELDS[] = {
        SCN_FIELD(struct engine_config, watchdog_ms),
        SCN_FIELD(struct engine_config, redis_timeout_ms),
        SCN_FIELD(struct engine_config, fair_wait_ms),
        SCN_FIELD(struct engine_config, fair_window),
        SCN_FIELD(struct engine_config, recheck_ms),
        SCN_FIELD(struct engine_config, handover_limit),
        SCN_FIELD(struct engine_config, handover_pause_ms),
        SCN_FIELD(struct engine_config, grace_ms),
        SCN_FIELD(struct engine_config, endless_lease_ms),
        SCN_FIELD(struct engine_config, max_waiters),
        SCN_FIELD(struct engine_config, max_holds),
        SCN_FIELD(struct engine_config, long_wait_ms),
        SCN_FIELD(struct engine_config, quarantine_ms),
        SCN_FIELD(struct engine_config, fence_ttl_ms),
        SCN_FIELD(struct engine_config, local_window_ms),
        SCN_FIELD(struct engine_config, priority_aging_ms),
    };

    scn_set_field(config, FIELDS, COUNT(FIELDS), word);
}

void put_engine_stats(struct value *map, const struct engine *eng)
{
    static const struct scn_field FIELDS[] = {
        SCN_FIELD(struct engine_stats, locks),
        SCN_FIELD(struct engine_stats, holds),
        SCN_FIELD(struct engine_stats, waiters),
        SCN_FIELD(struct engine_stats, ops_in_flight),
        SCN_FIELD(struct engine_stats, resting),
        SCN_FIELD(struct engine_stats, grants),
        SCN_FIELD(struct engine_stats, handovers),
        SCN_FIELD(struct engine_stats, releases),
        SCN_FIELD(struct engine_stats, lost),
        SCN_FIELD(struct engine_stats, timeouts),
        SCN_FIELD(struct engine_stats, renewals),
        SCN_FIELD(struct engine_stats, expired),
        SCN_FIELD(struct engine_stats, yields),
        SCN_FIELD(struct engine_stats, lent),
        SCN_FIELD(struct engine_stats, loans),
        SCN_FIELD(struct engine_stats, settled),
        SCN_FIELD(struct engine_stats, returned),
        SCN_FIELD(struct engine_stats, loan_renewals),
        SCN_FIELD(struct engine_stats, local_grants),
        SCN_FIELD(struct engine_stats, uncertain),
        SCN_FIELD(struct engine_stats, entries),
        SCN_FIELD(struct engine_stats, fixed_entries),
        SCN_FIELD(struct engine_stats, retained_entries),
        SCN_FIELD(struct engine_stats, permits),
        SCN_FIELD(struct engine_stats, retained_waiters),
        SCN_FIELD(struct engine_stats, oldest_wait_ms),
        SCN_FIELD(struct engine_stats, doubts),
        SCN_FIELD(struct engine_stats, unanswered),
        SCN_FIELD(struct engine_stats, queue_refusals),
        SCN_FIELD(struct engine_stats, unacked_grants),
        SCN_FIELD(struct engine_stats, unacked_renewals),
        SCN_FIELD(struct engine_stats, failovers),
        SCN_FIELD(struct engine_stats, restoring),
        SCN_FIELD(struct engine_stats, restored),
        SCN_FIELD(struct engine_stats, lost_failover),
        SCN_FIELD(struct engine_stats, quarantine_left_ms),
        SCN_FIELD(struct engine_stats, other_daemons),
        SCN_FIELD(struct engine_stats, followers),
        SCN_FIELD(struct engine_stats, followed_names),
        SCN_FIELD(struct engine_stats, awaits),
        SCN_FIELD(struct engine_stats, awaited_latches),
        SCN_FIELD(struct engine_stats, latch_counts),
        SCN_FIELD(struct engine_stats, store_up),
    };
    struct engine_stats stats;

    engine_stats(eng, &stats);
    scn_put_fields(map, &stats, FIELDS, COUNT(FIELDS));
}
