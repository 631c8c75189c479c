/* Why the next owner is told only when Redis has confirmed the move.
 *
 * A daemon could tell it at once, under the lease that it knows of: one round trip
 * less. In each scenario it would have done so, and dies before the move is written.
 * Redis then still has the hold of who released it, without an answer, and who may
 * therefore ask again: any other daemon has to believe Redis. Somebody else holds the
 * lock while the lease lasts that the next owner was told of. */
#include "sim/scenario.h"

#include "support/runner.h"

#include <inttypes.h>

static struct sim *s;
static size_t a, next, b, third;
static uint64_t promised_until;

static void setup(void)
{
    s = scenario_new(2);
    a = sim_connect(s, 0);
    next = sim_connect(s, 0);
    b = sim_connect(s, 1);
    third = sim_connect(s, 1);
}

/* `a` locks, and unlocks by `words`; `next` is who would be told. */
static void dies_before_the_move(const char *lock, const char *unlock)
{
    sim_say(s, a, "%s", lock);
    sim_run(s, 10);
    sim_say(s, next, "LOCK job");
    sim_run(s, 10);
    sim_say(s, a, "%s", unlock);
    promised_until = s->now + (uint64_t)scenario_ttl(s);
    link_lose_scripts(s, &s->daemons[0]);
    sim_kill_daemon(s, 0);
    sim_run(s, 10);
}

static void next_still_believes(void)
{
    ck_assert_uint_gt(promised_until, s->now);
    scenario_end(s);
}

TEST_GROUP(.setup = setup);

START_TEST(released_again_elsewhere_it_is_free_for_a_third)
{
    uint64_t token;

    dies_before_the_move("LOCK job", "UNLOCK job");
    token = sim_token(s, a);
    answered(s, b, "0", "UNLOCK job TOKEN %" PRIu64, token);
    answered(s, third, "token", "LOCK job WAIT 0");
    next_still_believes();
}

START_TEST(renewed_elsewhere_it_is_who_released_it_that_holds)
{
    uint64_t token;

    dies_before_the_move("LOCK job", "UNLOCK job");
    token = sim_token(s, a);
    answered(s, b, "29998", "RENEW job TOKEN %" PRIu64, token); /* ms */
    next_still_believes();
}

START_TEST(entered_again_elsewhere_it_is_its_owner_that_holds)
{
    dies_before_the_move("LOCK job OWNER o", "UNLOCK job OWNER o");
    answered(s, b, "token", "LOCK job OWNER o");
    next_still_believes();
}
