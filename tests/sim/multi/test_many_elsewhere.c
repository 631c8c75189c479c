/* One MLOCK sent through two daemons. */
#include "sim/multi/many.h"

/* Sent again through another daemon, which took over what there was, and gave it back
 * as that connection closed. */
START_TEST(an_mlock_has_all_its_names_although_it_was_sent_elsewhere_too)
{
    struct sim *s = new_many(2);
    size_t holder = holds(s, 0, "LOCK b");
    size_t first = scenario_says(s, 1, "MLOCK 2 a b KEEP 0 ID " R1);
    size_t second = scenario_says(s, 0, "MLOCK 2 a b KEEP 0 ID " R1), other;

    sim_close(s, second);
    sim_run(s, 100);
    ck_assert(is_free(s, "a"));
    other = holds(s, 0, "LOCK a");
    unlocks(s, holder, "b", sim_token(s, holder));
    sim_run(s, 20);
    heard(s, first, "-NOTHELD");
    ck_assert(is_free(s, "b"));
    unlocks(s, other, "a", sim_token(s, other));
    scenario_end(s);
}

/* The owner's other entry is renewed meanwhile, which says nothing of the one that was
 * given back. */
START_TEST(an_mlock_has_all_its_entries_although_its_owner_has_others)
{
    struct sim *s = new_many(2);
    size_t holder = holds(s, 0, "LOCK b");
    size_t owner = holds(s, 1, "LOCK a OWNER o"), second;
    size_t first = scenario_says(s, 1, "MLOCK 2 a b OWNER o KEEP 0 ID " R1);

    second = scenario_says(s, 0, "MLOCK 2 a b OWNER o KEEP 0 ID " R1);
    sim_close(s, second);
    sim_run(s, 100);
    sim_say(s, owner, "RENEW a OWNER o");
    unlocks(s, holder, "b", sim_token(s, holder));
    sim_run(s, 20);
    heard(s, first, "-NOTHELD");
    ck_assert(is_free(s, "b"));
    scenario_end(s);
}

/* The MLOCK is sent again through another daemon, which has yet to ask for `b`. */
START_TEST(an_mlock_one_of_whose_names_is_unlocked_meanwhile_is_over)
{
    struct sim *s = new_many(2);
    size_t first = holds(s, 1, "MLOCK 2 a b ID " R1);
    size_t again = sim_connect(s, 0), third = sim_connect(s, 0);

    heard(s, first, "tokens");
    sim_say(s, third, "UNLOCK b ID " R1);
    sim_say(s, again, "MLOCK 2 a b ID " R1);
    sim_run(s, 10);
    heard(s, third, "0");
    heard(s, again, "-NOTHELD");
    scenario_end(s);
}
