/* Owners that wait for each other: H27. */
#include "sim/multi/many.h"

START_TEST(the_wait_that_closes_a_cycle_is_refused)
{
    struct sim *s = new_many(1);
    size_t one = holds(s, 0, "LOCK a OWNER one");
    size_t two = holds(s, 0, "LOCK b OWNER two");
    size_t three = holds(s, 0, "LOCK c OWNER three");

    s->calm = true;
    sim_say(s, one, "LOCK b OWNER one");
    sim_run(s, 10);
    sim_say(s, two, "LOCK c OWNER two");
    sim_run(s, 10);
    heard(s, one, "...");
    heard(s, two, "...");
    sim_say(s, three, "LOCK a OWNER three WAIT 5000"); /* ends by itself */
    sim_run(s, 5010);
    heard(s, three, "nil");
    answered(s, three, "-DEADLOCK", "LOCK a OWNER three");
    sim_say(s, three, "UNLOCK c OWNER three");
    sim_run(s, 10);
    heard(s, two, "token");
    scenario_end(s);
}

START_TEST(readers_wait_in_cycles_too)
{
    struct sim *s = new_many(1);
    size_t one = holds(s, 0, "LOCK a READ OWNER one");
    size_t two = holds(s, 0, "LOCK b READ OWNER two");

    answered(s, one, "...", "LOCK b WRITE OWNER one");
    sim_say(s, two, "LOCK a READ OWNER two"); /* beside the other reader */
    sim_run(s, 10);
    heard(s, two, "token");
    sim_say(s, two, "UNLOCK a READ OWNER two");
    sim_run(s, 10);
    answered(s, two, "-DEADLOCK", "LOCK a WRITE OWNER two");
    scenario_end(s);
}
