#include "sim/scenario.h"

#include "sim/redis/sim_redisson.h"

#include <inttypes.h>
#include <stdio.h>

enum { ALL_LEASES_MS = 200000, OVER_MS = 300000 };

static const char FOREIGN[] = "7d1f6bd4-83a1-4ce0-9b43-0f6a1d7b2a10:42";

struct engine_config scenario_config(void)
{
    return (struct engine_config){
        .quarantine_ms = 30000,
        .watchdog_ms = 30000,
        .redis_timeout_ms = 3000,
        .fair_wait_ms = 30000,
        .fair_window = 1024,
        .recheck_ms = 5000,
        .handover_limit = 64,
        .handover_pause_ms = 2,
        .local_window_ms = 20,
        .priority_aging_ms = 10000,
        .grace_ms = -1,
        .endless_lease_ms = 100000,
        .max_waiters = 100000,
        .max_holds = 100000,
    };
}

struct sim *scenario_with(size_t daemons, const struct engine_config *config)
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

static const char *daemon_of_place(const char *member)
{
    static char daemon[3] = "d?";

    if (strncmp(member, "latchd:", 7) != 0) {
        return "r";
    }
    daemon[1] = member[10]; /* the fourth digit of the instance is its daemon */
    return daemon;
}

const char *scenario_queue(struct sim *s)
{
    static char text[1000];
    struct redis_name *n = scenario_job(s);
    size_t at = 0;

    text[0] = '\0';
    for (size_t i = 0; i < n->queue_count && at < sizeof(text) - 40; i++) {
        const char *m = n->queue[i].s;
        const char *number = strrchr(m, ':') + 1;

        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s:%s",
                               i == 0 ? "" : " ", daemon_of_place(m), number);
    }
    return text;
}

void scenario_served_in_order(struct sim *s, const size_t *conns, size_t count,
                              uint64_t within_ms)
{
    for (size_t i = 0; i < count; i++) {
        for (uint64_t ms = 0; ms < within_ms && sim_heard(s, conns[i])[0] == '.';
             ms++) {
            sim_run(s, 1);
        }
        ck_assert_msg(strcmp(sim_heard(s, conns[i]), "token") == 0,
                      "the %zu. of them hears %s; queue: %s", i, sim_heard(s, conns[i]),
                      scenario_queue(s));
        for (size_t k = i + 1; k < count; k++) {
            ck_assert_msg(sim_heard(s, conns[k])[0] == '.', "the %zu. before the %zu.",
                          k, i);
        }
        ck_assert(scenario_unlocks(s, &conns[i], 1));
    }
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
