/* The engine: which states may follow each other. The simulator and the other tests of
 * the engine go through the allowed ones; here are some that are refused. */
#include "support/runner.h"

#include "engine/release/pending_release.h"

START_TEST(a_release_is_queued_sent_and_sent_again)
{
    const struct transitions *t = &RELEASE_TRANSITIONS;

    ck_assert(transition_is_allowed(t, RELEASE_QUEUED, RELEASE_SENT));
    ck_assert(transition_is_allowed(t, RELEASE_QUEUED, RELEASE_PARALLEL));
    ck_assert(transition_is_allowed(t, RELEASE_SENT, RELEASE_NOT_RUN));
    ck_assert(transition_is_allowed(t, RELEASE_MAYBE_RUN, RELEASE_SENT_AGAIN));
}

START_TEST(a_release_in_flight_is_not_sent_and_one_that_was_sent_is_not_new)
{
    for (enum release_state to = RELEASE_QUEUED; to <= RELEASE_SENT_AGAIN; to++) {
        ck_assert(!transition_is_allowed(&RELEASE_TRANSITIONS, to, RELEASE_QUEUED));
        ck_assert(!transition_is_allowed(&RELEASE_TRANSITIONS, to, to));
    }
    ck_assert(
        !transition_is_allowed(&RELEASE_TRANSITIONS, RELEASE_SENT, RELEASE_SENT_AGAIN));
    ck_assert(
        !transition_is_allowed(&RELEASE_TRANSITIONS, RELEASE_SENT, RELEASE_PARALLEL));
}

START_TEST(a_release_that_may_have_run_never_counts_as_not_run_again)
{
    ck_assert(!transition_is_allowed(&RELEASE_TRANSITIONS, RELEASE_MAYBE_RUN,
                                     RELEASE_NOT_RUN));
    ck_assert(
        !transition_is_allowed(&RELEASE_TRANSITIONS, RELEASE_MAYBE_RUN, RELEASE_SENT));
    ck_assert(!transition_is_allowed(&RELEASE_TRANSITIONS, RELEASE_SENT_AGAIN,
                                     RELEASE_NOT_RUN));
}
