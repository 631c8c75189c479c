/* Read and write locks: H14, and Redisson's defects W1 to W6 that latchd does not have.
 */
#include "sim/scenario.h"

#include "sim/redis/sim_redisson.h"
#include "support/runner.h"

#include <inttypes.h>

#define R1 "11111111-aaaa-bbbb"

static struct sim *new_rw(size_t daemons)
{
    struct sim *s = scenario_new(daemons);

    s->profile.rw[0] = true;
    s->orderly = true;
    return s;
}

static size_t holds(struct sim *s, size_t daemon, const char *words)
{
    size_t c = scenario_says(s, daemon, words);

    heard(s, c, "token");
    return c;
}

static void unlocks(struct sim *s, size_t c)
{
    sim_say(s, c, "UNLOCK job TOKEN %" PRIu64, sim_token(s, c));
    sim_run(s, 10);
}

static struct sim_foreign *redisson(struct sim *s, enum foreign_kind kind,
                                    uint64_t lease_ms)
{
    struct sim_foreign *f = foreign_start(s, scenario_job(s), kind, true);

    f->lease_ms = lease_ms;
    foreign_act_now(s, f);
    sim_run(s, 5);
    return f;
}

START_TEST(readers_share_and_a_writer_waits_for_the_last)
{
    struct sim *s = new_rw(2);
    size_t a = holds(s, 0, "LOCK job READ");
    size_t b = holds(s, 1, "LOCK job READ");
    size_t w = scenario_says(s, 0, "LOCK job WRITE");

    ck_assert_uint_ne(sim_token(s, a), sim_token(s, b));
    unlocks(s, a);
    heard(s, w, "...");
    unlocks(s, b);
    heard(s, w, "token");
    ck_assert_uint_gt(sim_token(s, w), sim_token(s, b));
    scenario_end(s);
}

START_TEST(all_readers_are_woken_when_the_writer_leaves)
{
    struct sim *s = new_rw(2);
    size_t w = holds(s, 0, "LOCK job WRITE");
    size_t r[20];

    for (size_t i = 0; i < 20; i++) {
        scenario_crowd(s, i % 2, &r[i], 1, "LOCK job READ");
    }
    sim_run(s, 10);
    unlocks(s, w);
    sim_run(s, 10);
    for (size_t i = 0; i < 20; i++) {
        heard(s, r[i], "token");
    }
    scenario_end(s);
}

START_TEST(redissons_read_watchdog_does_not_cut_our_lease_H14_W2)
{
    struct sim *s = new_rw(1);
    size_t a = holds(s, 0, "LOCK job READ LEASE 60000");
    struct sim_foreign *f = redisson(s, FOREIGN_READ, 30000);
    struct sim_foreign *w;

    f->watched = true;
    f->end_at = s->now + 12000;
    f->dies = true; /* after it has set the lock's TTL to 30 s */
    foreign_act_now(s, f);
    sim_run(s, 13000);
    w = redisson(s, FOREIGN_WRITE, 1000);
    sim_run(s, 40000); /* 53 s: Redisson's 30 s are over, ours not */
    ck_assert(w->waits);
    ck_assert_uint_eq(s->check.lost, 0);
    heard(s, a, "token");
    sim_run(s, 10000);
    ck_assert(!w->waits);
    scenario_end(s);
}

START_TEST(leaving_a_read_does_not_shorten_the_own_write_W1)
{
    struct sim *s = new_rw(1);
    size_t w = holds(s, 0, "LOCK job WRITE LEASE 60000 OWNER o");
    size_t a = holds(s, 0, "LOCK job READ LEASE 2000 OWNER o");
    size_t b = holds(s, 0, "LOCK job READ LEASE 2000 OWNER o");
    size_t other = scenario_says(s, 0, "LOCK job WRITE");

    sim_say(s, a, "UNLOCK job READ OWNER o");
    sim_run(s, 10);
    ck_assert_int_gt(scenario_ttl(s), 50000);
    sim_run(s, 5000);
    ck_assert_int_gt(scenario_ttl(s), 50000);
    heard(s, other, "...");
    sim_say(s, w, "UNLOCK job WRITE OWNER o");
    sim_run(s, 10);
    heard(s, other, "token");
    (void)b;
    scenario_end(s);
}

START_TEST(a_writer_keeps_its_watchdog_when_its_read_ends_W5_C2)
{
    struct sim *s = new_rw(1);
    size_t w = holds(s, 0, "LOCK job WRITE OWNER o");

    sim_say(s, w, "LOCK job READ OWNER o");
    sim_run(s, 10);
    sim_say(s, w, "UNLOCK job READ OWNER o");
    sim_run(s, 100000);
    ck_assert_int_gt(scenario_ttl(s), 15000);
    ck_assert_uint_eq(s->check.lost, 0);
    scenario_end(s);
}

START_TEST(waiting_readers_are_woken_when_a_writer_goes_on_as_a_reader_W3)
{
    struct sim *s = new_rw(2);
    size_t w = holds(s, 0, "LOCK job WRITE OWNER o");
    size_t r0, r1, again;

    answered(s, w, "token", "LOCK job READ OWNER o");
    r0 = scenario_says(s, 0, "LOCK job READ");
    r1 = scenario_says(s, 1, "LOCK job READ");
    heard(s, r0, "...");
    answered(s, w, "0", "UNLOCK job WRITE OWNER o");
    heard(s, r0, "token");
    heard(s, r1, "token");
    again = scenario_says(s, 0, "LOCK job WRITE WAIT 0");
    heard(s, again, "nil");
    scenario_end(s);
}

START_TEST(our_readers_get_in_after_redissons_downgrade_without_its_lease_W3)
{
    struct sim *s = scenario_new(1);
    struct redis_name *n = scenario_job(s);
    size_t r;

    ck_assert(redis_foreign_write(&s->redis, n, SPAN("u:1"), 60000).taken);
    ck_assert(redis_foreign_read(&s->redis, n, SPAN("u:1"), 60000).taken);
    r = scenario_says(s, 0, "LOCK job READ");
    heard(s, r, "...");
    (void)redis_foreign_unwrite(sim_redis_now(s), n, SPAN("u:1"));
    sim_run(s, 5100); /* nobody said a word: the recheck */
    heard(s, r, "token");
    sim_run(s, 60000);
    scenario_end(s);
}

START_TEST(a_writer_does_not_starve_among_overlapping_readers_W4)
{
    struct sim *s = new_rw(1);
    size_t readers[2];
    size_t w, late;

    readers[0] = holds(s, 0, "LOCK job READ");
    readers[1] = holds(s, 0, "LOCK job READ");
    w = scenario_says(s, 0, "LOCK job WRITE");
    late = scenario_says(s, 0, "LOCK job READ");
    heard(s, late, "...");
    unlocks(s, readers[0]);
    unlocks(s, readers[1]);
    heard(s, w, "token");
    heard(s, late, "...");
    unlocks(s, w);
    heard(s, late, "token");
    scenario_end(s);
}

START_TEST(readers_may_pass_once_the_writer_before_them_gave_up)
{
    struct sim *s = new_rw(1);
    size_t r = holds(s, 0, "LOCK job READ");
    size_t w = scenario_says(s, 0, "LOCK job WRITE WAIT 1000");
    size_t late = scenario_says(s, 0, "LOCK job READ");

    heard(s, late, "...");
    sim_run(s, 1050);
    heard(s, w, "nil");
    heard(s, late, "token");
    (void)r;
    scenario_end(s);
}

START_TEST(a_dead_reader_does_not_keep_a_writer_out_W6)
{
    struct sim *s = scenario_new(2);
    size_t live = holds(s, 0, "LOCK job READ");
    size_t dead = holds(s, 1, "LOCK job READ");
    size_t w = scenario_says(s, 0, "LOCK job WRITE");

    (void)dead;
    sim_kill_daemon(s, 1);
    sim_run(s, 35000); /* its lease is over, its field is still there */
    heard(s, w, "...");
    unlocks(s, live);
    sim_run(s, 10);
    heard(s, w, "token");
    sim_start_daemon(s, 1, &s->daemons[1].config);
    scenario_end(s);
}

START_TEST(a_dead_redisson_reader_does_not_keep_a_writer_out_W6)
{
    struct sim *s = scenario_new(1);
    size_t live = holds(s, 0, "LOCK job READ");
    struct sim_foreign *f = redisson(s, FOREIGN_READ, 3000);
    size_t w = scenario_says(s, 0, "LOCK job WRITE");

    foreign_die(s, f);
    sim_run(s, 5000);
    unlocks(s, live);
    sim_run(s, 10);
    heard(s, w, "token");
    scenario_end(s);
}

START_TEST(our_leaving_reader_does_not_end_redissons_read)
{
    struct sim *s = new_rw(1);
    size_t ours = holds(s, 0, "LOCK job READ");
    struct sim_foreign *f = redisson(s, FOREIGN_READ, 20000);
    size_t w;

    f->end_at = s->now + 15000;
    foreign_act_now(s, f);
    unlocks(s, ours);
    w = scenario_says(s, 0, "LOCK job WRITE");
    sim_run(s, 14000);
    heard(s, w, "...");
    sim_run(s, 2000);
    heard(s, w, "token");
    scenario_end(s);
}

/* Redisson does not tell it: its renewal finds the hash field, which another reader's
 * lease has kept. Any reader that leaves then takes it along, Redisson's as well. */
START_TEST(a_redisson_reader_that_renews_after_its_lease_is_none_any_more)
{
    struct sim *s = new_rw(1);
    size_t ours = holds(s, 0, "LOCK job READ LEASE 5000");
    struct sim_foreign *f = foreign_start(s, scenario_job(s), FOREIGN_READ, true);
    size_t w;

    f->lease_ms = 3000;
    f->watched = true;
    foreign_act_now(s, f);
    sim_run(s, 5);
    f->end_at = s->now + 20000;
    fault_pause(s, 3500); /* it cannot renew in time */
    sim_run(s, 3520);
    ck_assert(f->holds);
    ck_assert_ptr_nonnull(redis_field(scenario_job(s), rtext_span(&f->owner)));
    w = scenario_says(s, 0, "LOCK job WRITE");
    unlocks(s, ours);
    heard(s, w, "token");
    unlocks(s, w);
    scenario_end(s);
}

START_TEST(who_reads_is_refused_to_write_at_once)
{
    struct sim *s = new_rw(2);
    size_t c = holds(s, 0, "LOCK job READ OWNER o");
    size_t d;

    answered(s, c, "-DEADLOCK", "LOCK job WRITE OWNER o");
    d = scenario_says(s, 1, "LOCK job WRITE OWNER o");
    heard(s, d, "-DEADLOCK");
    scenario_end(s);
}

START_TEST(a_name_in_use_by_the_other_family_is_refused_untouched)
{
    struct sim *s = new_rw(2);
    size_t c = holds(s, 0, "LOCK job READ");
    size_t d;

    s->profile.mixed = true;
    for (size_t i = 0; i < 2; i++) {
        d = scenario_says(s, i, "LOCK job WAIT 0");
        heard(s, d, "-WRONGTYPE");
        d = scenario_says(s, i, "LOCK job FAIR");
        heard(s, d, "-WRONGTYPE");
    }
    unlocks(s, c);
    heard(s, c, "0");
    d = holds(s, 1, "LOCK job FAIR");
    c = scenario_says(s, 0, "LOCK job READ");
    heard(s, c, "-WRONGTYPE");
    unlocks(s, d);
    scenario_end(s);
}

START_TEST(a_reader_with_an_id_is_found_again_not_doubled_H7)
{
    struct sim *s = new_rw(1);
    size_t a = sim_connect(s, 0);
    size_t b, c, w;

    s->orderly = false;
    sim_say(s, a, "LOCK job READ WAIT 10000 ID " R1);
    sim_run(s, 1); /* it has run */
    link_break(s, &s->daemons[0], 5, 200, true);
    sim_close(s, a);
    sim_run(s, 300);
    b = holds(s, 0, "LOCK job READ");
    c = holds(s, 0, "LOCK job READ ID " R1);
    ck_assert_uint_eq(scenario_job(s)->field_count, 2);
    unlocks(s, b);
    w = scenario_says(s, 0, "LOCK job WRITE");
    heard(s, w, "...");
    answered(s, c, "0", "UNLOCK job ID " R1);
    heard(s, w, "token");
    scenario_end(s);
}

/* The grant that nobody heard of is over while Redis cannot be reached, and its ID
 * begins anew; the release of another reader comes before that of the grant. */
START_TEST(an_id_that_begins_anew_is_granted_once_its_old_grant_has_ended_H43)
{
    struct sim *s = new_rw(1);
    size_t b = sim_connect(s, 0);
    size_t a;

    s->orderly = false; /* what Redis lost is withheld for a while */
    scenario_mark(s);
    a = holds(s, 0, "LOCK job READ");
    sim_say(s, b, "LOCK job READ WAIT 60000 KEEP 1000 ID " R1);
    sim_run(s, 1);
    sim_close(s, b);
    sim_run(s, 10);
    sim_say(s, a, "UNLOCK job TOKEN %" PRIu64, sim_token(s, a));
    fault_failover(s, 2000);
    sim_run(s, 1200);
    b = sim_connect(s, 0);
    sim_say(s, b, "LOCK job READ WAIT 60000 ID " R1);
    sim_run(s, 40000);
    heard(s, a, "0");
    heard(s, b, "token");
    ck_assert_str_eq(scenario_holder(s), "latchd:id:" R1);
    unlocks(s, b);
    heard(s, b, "0");
    scenario_end(s);
}
