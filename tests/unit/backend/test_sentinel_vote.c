#include "backend/sentinel_watch.h"
#include "support/runner.h"

#include <stdio.h>
#include <stdlib.h>

enum { NOW = 1000000 };

static struct sentinel_vote *belief;
static uint64_t now;

static void setup(void)
{
    belief = calloc(1, sizeof *belief);
    ck_assert_ptr_nonnull(belief);
    now = NOW;
    for (size_t i = 0; i < 3; i++) {
        belief->sentinels[i].state = SENTINEL_ASKED;
    }
}

static void teardown(void)
{
    free(belief);
}

static void hear(size_t who, const char *host, uint64_t epoch)
{
    struct sentinel_claim claim = { .epoch = epoch, .heard_ms = now, .port = "6379" };

    (void)snprintf(claim.host, sizeof claim.host, "%s", host);
    sentinel_vote_hear(belief, who, &claim);
}

static void decides(enum sentinel_verdict verdict, bool usable, const char *host,
                    uint64_t epoch)
{
    ck_assert_int_eq(sentinel_vote_decide(belief, now, usable), verdict);
    ck_assert_str_eq(belief->master.host, host);
    ck_assert_uint_eq(belief->master.epoch, epoch);
}

/* All say that, again and again, for that long. */
static enum sentinel_verdict insist(size_t first, size_t last, const char *host,
                                    uint64_t epoch, uint64_t ms, bool usable)
{
    enum sentinel_verdict verdict = SENTINEL_STAYS;

    for (uint64_t end = now + ms; verdict == SENTINEL_STAYS && now < end; now += 1000) {
        for (size_t i = first; i <= last; i++) {
            hear(i, host, epoch);
        }
        verdict = sentinel_vote_decide(belief, now, usable);
    }
    return verdict;
}

TEST_GROUP(.setup = setup, .teardown = teardown);

START_TEST(nothing_is_believed_before_anybody_said_anything)
{
    decides(SENTINEL_STAYS, false, "", 0);
}

START_TEST(the_first_one_is_heard_when_most_have_spoken)
{
    hear(0, "a", 1);
    decides(SENTINEL_STAYS, false, "", 0);
    hear(1, "a", 1);
    decides(SENTINEL_MOVED, false, "a", 1);
    decides(SENTINEL_STAYS, false, "a", 1);
}

START_TEST(nobody_is_waited_for_who_cannot_be_reached)
{
    hear(0, "a", 1);
    belief->sentinels[1].state = SENTINEL_SILENT;
    decides(SENTINEL_STAYS, false, "", 0);
    belief->sentinels[2].state = SENTINEL_SILENT;
    decides(SENTINEL_MOVED, false, "a", 1);
}

START_TEST(others_are_waited_for_a_moment_only)
{
    hear(0, "a", 1);
    now += SENTINEL_FIRST_MS - 1;
    decides(SENTINEL_STAYS, false, "", 0);
    now++;
    decides(SENTINEL_MOVED, false, "a", 1);
}

START_TEST(at_the_start_the_newest_epoch_counts)
{
    hear(0, "old", 4);
    hear(1, "new", 5);
    decides(SENTINEL_MOVED, false, "new", 5);
}

START_TEST(at_the_start_most_decide_among_equals)
{
    hear(0, "a", 1);
    hear(1, "b", 1);
    hear(2, "b", 1);
    decides(SENTINEL_MOVED, false, "b", 1);
}

START_TEST(one_that_knows_more_is_enough)
{
    (void)insist(0, 2, "a", 1, 1, true);
    hear(2, "b", 2);
    decides(SENTINEL_MOVED, true, "b", 2);
    hear(2, "b", 3);
    decides(SENTINEL_CONFIRMED, true, "b", 3);
}

START_TEST(one_that_is_behind_leads_nowhere)
{
    (void)insist(0, 2, "b", 5, 1, true);
    ck_assert_int_eq(insist(0, 0, "a", 4, 60000, false), SENTINEL_STAYS);
    decides(SENTINEL_STAYS, false, "b", 5);
}

START_TEST(most_lead_back_only_from_what_cannot_be_used)
{
    (void)insist(0, 2, "b", 5, 1, true);
    ck_assert_int_eq(insist(0, 1, "a", 4, 60000, true), SENTINEL_STAYS);
    ck_assert_int_eq(insist(0, 1, "a", 4, SENTINEL_OUTVOTED_MS, false), SENTINEL_STAYS);
    ck_assert_int_eq(insist(0, 1, "a", 4, 1000, false), SENTINEL_OVERRULED);
    ck_assert_str_eq(belief->master.host, "a");
    ck_assert_uint_eq(belief->master.epoch, 4);
}

START_TEST(an_outvoted_claim_counts_again_when_most_make_it)
{
    (void)insist(0, 2, "b", 5, 1, true);
    hear(2, "x", 99);
    decides(SENTINEL_MOVED, true, "x", 99);
    for (int i = 0; i < 11; i++) {
        hear(2, "x", 99);
        (void)insist(0, 1, "b", 5, 1000, false);
    }
    hear(2, "x", 99);
    decides(SENTINEL_STAYS, true, "b", 5);
    hear(1, "x", 99);
    decides(SENTINEL_MOVED, true, "x", 99);
}

START_TEST(a_majority_that_changes_its_mind_begins_anew)
{
    (void)insist(0, 2, "b", 5, 1, true);
    (void)insist(0, 1, "a", 4, SENTINEL_OUTVOTED_MS - 1000, false);
    (void)insist(0, 1, "c", 4, 2000, false);
    ck_assert_int_eq(insist(0, 1, "a", 4, SENTINEL_OUTVOTED_MS, false), SENTINEL_STAYS);
    ck_assert_int_eq(insist(0, 1, "a", 4, 2000, false), SENTINEL_OVERRULED);
}

START_TEST(what_was_said_long_ago_does_not_count)
{
    hear(0, "a", 9);
    now += SENTINEL_FRESH_MS + 1;
    hear(1, "b", 1);
    hear(2, "b", 1);
    decides(SENTINEL_MOVED, false, "b", 1);
}

START_TEST(who_is_gone_does_not_count)
{
    (void)insist(0, 2, "b", 5, 1, true);
    belief->sentinels[1].state = SENTINEL_NOBODY;
    belief->sentinels[2].state = SENTINEL_NOBODY;
    ck_assert_uint_eq(sentinel_vote_count(belief, false), 1);
    ck_assert_uint_eq(sentinel_vote_count(belief, true), 1);
    ck_assert_int_eq(insist(0, 0, "a", 4, SENTINEL_OUTVOTED_MS + 1000, false),
                     SENTINEL_OVERRULED);
}

START_TEST(a_port_makes_another_server)
{
    struct sentinel_claim claim = { .host = "a", .port = "1", .epoch = 2 };

    (void)insist(0, 2, "a", 1, 1, true);
    claim.heard_ms = now;
    sentinel_vote_hear(belief, 0, &claim);
    ck_assert_int_eq(sentinel_vote_decide(belief, now, true), SENTINEL_MOVED);
    ck_assert_str_eq(belief->master.port, "1");
}
