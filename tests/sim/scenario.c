#include "sim/scenario.h"

#include "sim/sim_redis_foreign.h"

#include <inttypes.h>

enum { ALL_LEASES_MS = 200000, OVER_MS = 300000 };

static const char FOREIGN[] = "7d1f6bd4-83a1-4ce0-9b43-0f6a1d7b2a10:42";

struct locks_config scenario_config(void)
{
    return (struct locks_config){
        .watchdog_ms = 30000,
        .redis_timeout_ms = 3000,
        .fair_wait_ms = 30000,
        .fair_window = 1024,
        .recheck_ms = 5000,
        .handoff_limit = 64,
        .handoff_pause_ms = 2,
        .grace_ms = -1,
        .max_keep_ms = 30000,
        .max_lease_ms = 86400000,
        .max_waiters = 100000,
        .max_holds = 100000,
    };
}

struct sim *scenario_with(size_t daemons, const struct locks_config *config)
{
    struct sim *s = sim_new(1, false);

    s->profile.steady = true;
    s->profile.names = 1;
    s->daemon_count = daemons;
    s->names[0] = sim_redis_name(sim_redis_now(s), SPAN("job"));
    for (size_t i = 0; i < daemons; i++) {
        sim_start_daemon(s, i, config);
    }
    sim_run(s, 10);
    return s;
}

struct sim *scenario_new(size_t daemons)
{
    struct locks_config config = scenario_config();

    return scenario_with(daemons, &config);
}

void scenario_end(struct sim *s)
{
    ck_assert_msg(!s->failed, "%s", s->failure);
    scenario_foreign_releases(s, true);
    faults_stop(s);
    for (size_t i = 0; i < s->clients.count; i++) {
        sim_close(s, i);
    }
    sim_run(s, ALL_LEASES_MS + OVER_MS);
    check_end(s);
    ck_assert_msg(!s->failed, "%s", s->failure);
    sim_free(s);
}

struct redis_name *scenario_job(struct sim *s)
{
    return sim_redis_name(sim_redis_now(s), SPAN("job"));
}

const char *scenario_holder(struct sim *s)
{
    struct redis_name *n = scenario_job(s);

    return n->field_count == 0 ? "" : n->fields[0].owner.s;
}

int64_t scenario_ttl(struct sim *s)
{
    return redis_pttl(&s->redis, scenario_job(s));
}

void scenario_foreign_takes(struct sim *s, uint64_t lease_ms)
{
    ck_assert(redis_foreign_take(&s->redis, scenario_job(s), SPAN(FOREIGN), lease_ms));
}

void scenario_foreign_waits(struct sim *s)
{
    (void)foreign_start(s, scenario_job(s), FOREIGN_PLAIN, true);
}

void scenario_foreign_releases(struct sim *s, bool publish)
{
    (void)redis_foreign_release(&s->redis, scenario_job(s), SPAN(FOREIGN), publish);
    for (size_t i = 0; i < SIM_FOREIGNS_MAX; i++) {
        foreign_release(s, &s->foreign[i]);
    }
}

bool scenario_foreign_holds(struct sim *s)
{
    return redis_field(scenario_job(s), SPAN(FOREIGN)) != NULL;
}

bool scenario_unlocks(struct sim *s, const size_t *conns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(sim_heard(s, conns[i]), "token") == 0) {
            sim_say(s, conns[i], "UNLOCK job TOKEN %" PRIu64, sim_token(s, conns[i]));
            return true;
        }
    }
    return false;
}
