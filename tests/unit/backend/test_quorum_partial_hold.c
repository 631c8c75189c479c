/* A grant of a bare majority gets to the others, soon, and never once it is over. */
#include "support/runner.h"
#include "unit/backend/quorum_fake.h"

enum { SOON = 2, LONG = 8000 };

static void look_says(unsigned node, enum renew_result r)
{
    bt_ck_asked(node, OP_RENEW);
    bt_answer(node, (struct op_result){
                        .status = OP_OK, .renew.items = &r, .renew.count = 1 });
}

/* Granted by the first two, refused by the last. */
static void grant_barely(void)
{
    bt_begin(3);
    bt_acquire();
    bt_obey(0);
    bt_obey(1);
    ck_assert_int_eq(bt.result.status, OP_OK);
    bt_busy(2, 300);
}

static void ck_nobody_is_asked(void)
{
    ck_assert(!bt_is_asked(0) && !bt_is_asked(1) && !bt_is_asked(2));
}

START_TEST(who_refused_is_told_soon)
{
    const struct op *op;

    grant_barely();
    ck_nobody_is_asked();
    bt_pass(SOON);
    look_says(2, RENEW_GONE);
    look_says(0, RENEW_OK);
    ck_assert(!bt_is_asked(2)); /* not before all have said what they have */
    look_says(1, RENEW_OK);
    bt_ck_asked(2, OP_RESTORE);
    op = &bt.sent[bt_open_at(2)].op;
    ck_assert_uint_eq(op->restore.token, bt.result.token);
    ck_assert_uint_eq(op->restore.claim.lease_ms, LEASE_MS - SOON);
    bt_answer(2, (struct op_result){ .status = OP_OK });
    bt_pass(SOON);
    for (unsigned i = 0; i < 3; i++) {
        look_says(i, RENEW_OK);
    }
    bt_pass(LONG);
    ck_nobody_is_asked();
    ck_assert_uint_eq(bt.results, 1); /* the engine hears nothing of it */
    bt_end();
}

START_TEST(when_all_have_it_nobody_is_asked_again)
{
    bt_begin(3);
    bt_acquire();
    bt_obey(0);
    bt_obey(1);
    bt_pass(1);
    bt_obey(2);
    bt_pass(LONG);
    ck_nobody_is_asked();
    bt_end();
}

START_TEST(it_is_tried_again_less_and_less_often_and_not_for_ever)
{
    uint64_t last = 0, pause = 0;
    unsigned looks = 0;

    grant_barely();
    while (bt.now < 1000 + LEASE_MS - 1) {
        bt_pass(1);
        if (!bt_is_asked(0)) {
            continue;
        }
        ck_assert_uint_ge(bt.now - last, pause);
        pause = last == 0 ? 0 : bt.now - last;
        last = bt.now;
        looks++;
        look_says(0, RENEW_OK);
        look_says(1, RENEW_OK);
        look_says(2, RENEW_GONE);
        bt_answer(2, (struct op_result){ .status = OP_NOTHELD });
    }
    ck_assert_uint_ge(looks, 8);
    ck_assert_uint_le(looks, 20);
    bt_end();
}

/* 0: by then it is not looked at; 1: it is, and not all have said so; 2: the RESTORE is
 * on its way, and the release comes after it. */
START_TEST(a_release_overtakes_it, 3)
{
    grant_barely();
    if (_i > 0) {
        bt_pass(SOON);
        look_says(0, RENEW_OK);
        look_says(2, RENEW_GONE);
    }
    if (_i > 1) {
        look_says(1, RENEW_OK);
    }
    bt_release(TARGET_FIELD);
    if (_i == 1) {
        look_says(1, RENEW_OK);
    } else if (_i > 1) {
        bt_ck_asked(2, OP_RESTORE);
        bt_answer(2, (struct op_result){ .status = OP_OK });
    }
    for (unsigned i = 0; i < 3; i++) {
        bt_ck_asked(i, OP_RELEASE);
        bt_obey(i);
    }
    bt_pass(LONG);
    ck_nobody_is_asked();
    bt_end();
}

START_TEST(what_is_over_is_not_put_back, 4)
{
    static const enum renew_result WHY[] = { RENEW_ENDED, RENEW_ELSEWHERE, RENEW_GONE,
                                             RENEW_WRONGTYPE };

    grant_barely();
    bt_pass(SOON);
    look_says(0, WHY[_i]);
    look_says(1, WHY[_i]);
    look_says(2, RENEW_GONE);
    bt_pass(LONG);
    ck_nobody_is_asked();
    bt_end();
}

START_TEST(its_lease_is_the_end)
{
    grant_barely();
    coordinator_node_down(bt.ballot, 2);
    bt_pass(SOON);
    look_says(0, RENEW_OK);
    look_says(1, RENEW_OK);
    bt_pass(LEASE_MS);
    coordinator_node_up(bt.ballot, 2, true, OLD);
    bt_pass(LONG);
    ck_nobody_is_asked();
    bt_end();
}

START_TEST(who_was_away_is_told_when_it_is_back)
{
    bt_begin(3);
    coordinator_node_down(bt.ballot, 2);
    bt_acquire();
    bt_obey(0);
    bt_obey(1);
    bt_pass(SOON);
    look_says(0, RENEW_OK);
    look_says(1, RENEW_OK);
    bt_pass(LONG);
    ck_nobody_is_asked(); /* as nothing would come of it */
    coordinator_node_up(bt.ballot, 2, false, 0);
    look_says(0, RENEW_OK);
    look_says(1, RENEW_OK);
    look_says(2, RENEW_GONE); /* it abstains, but a majority has it */
    bt_ck_asked(2, OP_RESTORE);
    bt_end();
}

START_TEST(when_one_of_the_majority_is_gone_the_others_are_one_again)
{
    grant_barely();
    coordinator_node_down(bt.ballot, 0);
    bt_pass(SOON);
    look_says(1, RENEW_OK);
    look_says(2, RENEW_GONE);
    bt_ck_asked(2, OP_RESTORE);
    bt_end();
}

START_TEST(renewals_that_are_confirmed_prolong_it, 2)
{
    struct renew_item item = { .name = SPAN("job"),
                               .field = BT_CLAIM.field,
                               .lease_ms = LEASE_MS };
    struct op op = {
        .kind = OP_RENEW, .id = 9, .renew.items = &item, .renew.count = 1
    };

    grant_barely();
    item.token = bt.result.token;
    coordinator_node_down(bt.ballot, 2);
    bt_pass(SOON);
    look_says(0, RENEW_OK);
    look_says(1, RENEW_OK);
    bt_pass(LEASE_MS - 100);
    coordinator_submit(bt.ballot, &op);
    look_says(0, RENEW_OK);
    look_says(1, _i == 0 ? RENEW_OK : RENEW_GONE);
    bt_pass(200);
    coordinator_node_up(bt.ballot, 2, true, OLD);
    ck_assert_int_eq(bt_is_asked(0), _i == 0);
    bt_end();
}

START_TEST(a_lease_that_was_cut_is_not_made_longer)
{
    struct renew_item item = {
        .name = SPAN("job"), .field = BT_CLAIM.field, .lease_ms = 100, .exact = true
    };
    struct op op = {
        .kind = OP_RENEW, .id = 9, .renew.items = &item, .renew.count = 1
    };

    grant_barely();
    item.token = bt.result.token;
    bt_pass(SOON);
    look_says(0, RENEW_OK);
    look_says(1, RENEW_OK);
    coordinator_submit(bt.ballot, &op);
    look_says(2, RENEW_GONE); /* to the look */
    look_says(0, RENEW_OK);
    look_says(1, RENEW_OK);
    look_says(2, RENEW_GONE);
    bt_ck_asked(2, OP_RESTORE);
    ck_assert_uint_eq(bt.sent[bt_open_at(2)].op.restore.claim.lease_ms, 100);
    bt_end();
}

START_TEST(an_undo_takes_the_token_back)
{
    uint64_t token;

    bt_begin(3);
    bt_acquire();
    token = bt.sent[0].op.acquire.propose;
    bt_obey(0);
    bt_busy(1, 100);
    bt_busy(2, 100);
    bt_ck_asked(0, OP_RELEASE);
    ck_assert_uint_eq(bt.sent[bt_open_at(0)].op.release.retract_from, token);
    bt_end();
}

/* It is the same claim that asks, and no token of it was told. */
START_TEST(an_undo_that_was_not_done_takes_all_tokens_back)
{
    uint64_t first;

    bt_begin(3);
    bt_acquire();
    first = bt.sent[0].op.acquire.propose;
    bt_busy(1, 100);
    bt_busy(2, 100);
    bt_acquire();
    bt_obey(0);
    ck_assert_uint_eq(bt.sent[bt_open_at(0)].op.acquire.retract_from, first);
    bt_obey(0);
    bt_busy(1, 100);
    bt_busy(2, 100);
    bt_ck_asked(0, OP_RELEASE);
    ck_assert_uint_eq(bt.sent[bt_open_at(0)].op.release.retract_from, first);
    bt_end();
}

START_TEST(who_has_an_older_token_does_not_change_it)
{
    bt_begin(3);
    bt_acquire();
    bt_answer(0, (struct op_result){ .status = OP_OK, .token = 5, .count = 1 });
    bt_obey(1);
    ck_assert_uint_eq(bt.results, 0);
    bt_obey(2);
    ck_assert_uint_eq(bt.results, 1);
    ck_assert_uint_eq(bt.result.token, bt.sent[1].op.acquire.propose);
    bt_end();
}
