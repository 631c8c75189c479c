/* The engine: which states may follow each other. The simulator and the other tests of
 * the engine go through the allowed ones; here are some that are refused. */
#include "support/runner.h"

#include "engine/entry.h"
#include "engine/hold.h"
#include "engine/lock.h"
#include "engine/mlock_member.h"
#include "engine/pending_release.h"
#include "engine/waiter.h"

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

START_TEST(the_end_of_a_wait_is_not_taken_back_but_by_a_new_request)
{
    const struct transitions *t = &WAITER_TRANSITIONS;

    ck_assert(transition_is_allowed(t, WAITER_QUEUED, WAITER_EXPIRING));
    ck_assert(
        transition_is_allowed(t, WAITER_AWAITS_HEAD, WAITER_EXPIRING_AWAITS_HEAD));
    ck_assert(transition_is_allowed(t, WAITER_EXPIRING_AWAITS_HEAD, WAITER_QUEUED));
    ck_assert(!transition_is_allowed(t, WAITER_EXPIRING, WAITER_AWAITS_HEAD));
    ck_assert(!transition_is_allowed(t, WAITER_EXPIRING_AWAITS_HEAD, WAITER_EXPIRING));
    ck_assert(
        !transition_is_allowed(t, WAITER_EXPIRING_AWAITS_HEAD, WAITER_AWAITS_HEAD));
}

START_TEST(a_place_that_is_kept_has_no_wait_that_could_expire)
{
    for (enum waiter_state to = WAITER_AWAITS_HEAD; to <= WAITER_RETAINED; to++) {
        ck_assert(!transition_is_allowed(&WAITER_TRANSITIONS, WAITER_RETAINED, to));
    }
    ck_assert(
        transition_is_allowed(&WAITER_TRANSITIONS, WAITER_RETAINED, WAITER_QUEUED));
}

START_TEST(a_waiter_that_was_removed_never_waits_again)
{
    for (enum waiter_state to = WAITER_QUEUED; to <= WAITER_REMOVED; to++) {
        ck_assert(!transition_is_allowed(&WAITER_TRANSITIONS, WAITER_REMOVED, to));
    }
}

START_TEST(an_entry_is_named_by_a_restore_only_if_redis_may_lack_it)
{
    const struct transitions *t = &ENTRY_RESTORE_TRANSITIONS;

    ck_assert(transition_is_allowed(t, ENTRY_KEPT, ENTRY_MUST_RESTORE));
    ck_assert(transition_is_allowed(t, ENTRY_MUST_RESTORE, ENTRY_RESTORING));
    ck_assert(transition_is_allowed(t, ENTRY_RESTORING, ENTRY_MUST_RESTORE));
    ck_assert(!transition_is_allowed(t, ENTRY_KEPT, ENTRY_RESTORING));
}

START_TEST(an_entry_that_ends_comes_back_or_goes)
{
    const struct transitions *t = &ENTRY_TRANSITIONS;

    ck_assert(transition_is_allowed(t, ENTRY_HELD, ENTRY_OVERDUE));
    ck_assert(transition_is_allowed(t, ENTRY_OVERDUE, ENTRY_ENDING));
    ck_assert(transition_is_allowed(t, ENTRY_ENDING, ENTRY_HELD));
    ck_assert(!transition_is_allowed(t, ENTRY_ENDING, ENTRY_OVERDUE));
}

START_TEST(a_hold_is_put_back_from_doubt_and_certain_only_after_that)
{
    const struct transitions *t = &HOLD_TRANSITIONS;

    ck_assert(transition_is_allowed(t, HOLD_HELD, HOLD_UNCERTAIN));
    ck_assert(transition_is_allowed(t, HOLD_UNCERTAIN, HOLD_HELD));
    ck_assert(transition_is_allowed(t, HOLD_UNCERTAIN, HOLD_RESTORING));
    ck_assert(transition_is_allowed(t, HOLD_RESTORING, HOLD_UNCERTAIN));
    ck_assert(!transition_is_allowed(t, HOLD_HELD, HOLD_RESTORING));
    ck_assert(!transition_is_allowed(t, HOLD_RESTORING, HOLD_HELD));
    for (enum hold_state to = HOLD_HELD; to <= HOLD_ENDED; to++) {
        ck_assert(!transition_is_allowed(t, HOLD_ENDED, to));
    }
}

START_TEST(a_channel_is_on_only_after_it_was_asked_for)
{
    const struct transitions *t = &SUB_TRANSITIONS;

    ck_assert(transition_is_allowed(t, SUB_NONE, SUB_ASKED));
    ck_assert(transition_is_allowed(t, SUB_ON, SUB_ASKED));
    ck_assert(!transition_is_allowed(t, SUB_NONE, SUB_ON));
}

START_TEST(a_name_is_sure_to_be_held_only_while_its_channel_is_heard)
{
    const struct transitions *t = &SUB_TRANSITIONS;

    ck_assert(transition_is_allowed(t, SUB_ON, SUB_SURE));
    ck_assert(transition_is_allowed(t, SUB_SURE, SUB_ON));
    ck_assert(!transition_is_allowed(t, SUB_NONE, SUB_SURE));
    ck_assert(!transition_is_allowed(t, SUB_ASKED, SUB_SURE));
}

START_TEST(a_name_has_one_op_in_flight_that_may_change_who_holds)
{
    const struct transitions *t = &LOCK_TRANSITIONS;

    for (enum lock_state from = LOCK_ASKING; from <= LOCK_MUST_RETRY; from++) {
        ck_assert(!transition_is_allowed(t, from, from));
    }
    ck_assert(transition_is_allowed(t, LOCK_ASKING, LOCK_MUST_RETRY));
    ck_assert(!transition_is_allowed(t, LOCK_ASKING, LOCK_MUST_ASK));
    ck_assert(!transition_is_allowed(t, LOCK_MUST_RETRY, LOCK_IDLE));
}

START_TEST(an_mlock_that_was_answered_or_kept_goes_on_only_with_its_id)
{
    const struct transitions *t = &MLOCK_TRANSITIONS;

    ck_assert(transition_is_allowed(t, MLOCK_ANSWERED, MLOCK_ACQUIRING));
    ck_assert(transition_is_allowed(t, MLOCK_RETAINED, MLOCK_ACQUIRING));
    ck_assert(!transition_is_allowed(t, MLOCK_ANSWERED, MLOCK_RETAINED));
    ck_assert(!transition_is_allowed(t, MLOCK_RETAINED, MLOCK_ANSWERED));
}
