/* What the test programs of MLOCK share: `job` and three more names. */
#ifndef LATCHD_TESTS_SIM_MANY_H
#define LATCHD_TESTS_SIM_MANY_H

#include "sim/scenario.h"

#include "support/runner.h"

#include <inttypes.h>

#define R1 "11111111-aaaa-bbbb"

static const char *const NAMES[] = { "job", "a", "b", "c" };

static MAYBE_UNUSED struct sim *new_many(size_t daemons)
{
    struct sim *s = scenario_new(daemons);

    for (size_t i = 1; i < 4; i++) {
        s->names[i] = sim_redis_name(sim_redis_now(s), span_str(NAMES[i]));
    }
    s->profile.names = 4;
    return s;
}

static MAYBE_UNUSED struct redis_name *name(struct sim *s, const char *text)
{
    return sim_redis_name(sim_redis_now(s), span_str(text));
}

static MAYBE_UNUSED bool is_free(struct sim *s, const char *text)
{
    return name(s, text)->field_count == 0;
}

static MAYBE_UNUSED size_t holds(struct sim *s, size_t daemon, const char *words)
{
    size_t c = scenario_says(s, daemon, words);

    ck_assert_str_ne(sim_heard(s, c), "...");
    ck_assert_str_ne(sim_heard(s, c), "nil");
    return c;
}

static MAYBE_UNUSED void unlocks(struct sim *s, size_t c, const char *of,
                                 uint64_t token)
{
    sim_say(s, c, "UNLOCK %s TOKEN %" PRIu64, of, token);
    sim_run(s, 10);
    heard(s, c, "0");
}

#endif
