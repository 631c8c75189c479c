/* PRIORITY: the order in which the waiters of a name stand, and who is asked for. */
#include "unit/engine/engine_cases.h"

#include "latchd/protocol.h"

#include <stdio.h>
#include <stdlib.h>

enum { AGING = ENGINE_AGING_MS };

static char order[8192];

static struct lock_terms with_priority(uint8_t priority)
{
    return (struct lock_terms){ .priority = priority };
}

static void note_conn(void *ctx, const struct waiter_info *info)
{
    size_t len = strlen(order);

    (void)ctx;
    (void)snprintf(order + len, sizeof(order) - len, "%s%d", len == 0 ? "" : " ",
                   (int)info->conn);
}

static const char *in_order(void)
{
    order[0] = '\0';
    engine_waiters(e.engine, SPAN("job"), SIZE_MAX, note_conn, NULL);
    return order;
}

static void held_here(void)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
}

/* The locks that waiters ask Redis for are held, and held ones stay so. */
static void answer_all(void)
{
    for (fixture_collect(&e); e.op_count > 0; fixture_collect(&e)) {
        if (e.ops[0].op.kind == OP_RENEW) {
            fixture_renews(&e, RENEW_OK);
        } else {
            fixture_gives(&e, OP_ACQUIRE, BUSY);
        }
    }
}

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(a_higher_priority_stands_before_and_equals_in_order_of_arrival)
{
    held_here();
    fixture_lock(&e, 2, "job", FOREVER);
    fixture_lock(&e, 3, "job", with_priority(1));
    fixture_lock(&e, 4, "job", with_priority(9));
    fixture_lock(&e, 5, "job", with_priority(1));
    fixture_lock(&e, 6, "job", with_priority(9));
    fixture_lock(&e, 7, "job", FOREVER);
    ck_assert_str_eq(in_order(), "4 6 3 5 2 7");
    fixture_no_op(&e); /* as the holder is known */
    fixture_unlock(&e, 1, "job", BARE);
    fixture_gives(&e, OP_RELEASE,
                  (struct op_result){ .status = OP_OK, .moved = true, .token = 101 });
    (void)fixture_hears(&e, 1, REPLY_INT);
    ck_assert_int_eq(fixture_hears(&e, 4, REPLY_TOKEN).value, 101);
}

START_TEST(each_step_is_worth_as_much_waiting_as_priority_aging)
{
    held_here();
    fixture_lock(&e, 2, "job", FOREVER);
    fixture_pass(&e, 2 * AGING);
    answer_all();
    fixture_lock(&e, 3, "job", with_priority(1));
    fixture_lock(&e, 4, "job", with_priority(2)); /* to the ms as early */
    fixture_lock(&e, 5, "job", with_priority(3));
    ck_assert_str_eq(in_order(), "5 2 4 3");
}

START_TEST(a_new_aging_moves_nobody_who_waits)
{
    struct engine_config config = { .watchdog_ms = 30000,
                                    .redis_timeout_ms = 3000,
                                    .recheck_ms = 5000,
                                    .max_waiters = 10,
                                    .max_holds = 10,
                                    .priority_aging_ms = 1 };

    held_here();
    fixture_lock(&e, 2, "job", FOREVER);
    fixture_lock(&e, 3, "job", with_priority(1));
    fixture_pass(&e, 5);
    engine_configure(e.engine, &config);
    fixture_lock(&e, 4, "job", with_priority(5));
    fixture_lock(&e, 5, "job", with_priority(6));
    ck_assert_str_eq(in_order(), "3 5 2 4");
    config.priority_aging_ms = 0;
    engine_configure(e.engine, &config);
    fixture_lock(&e, 6, "job", with_priority(9));
    ck_assert_str_eq(in_order(), "3 5 2 4 6");
}

START_TEST(an_ID_that_comes_again_has_the_place_that_it_had)
{
    struct lock_terms req = with_priority(3);

    req.id = UUID;
    held_here();
    fixture_lock(&e, 2, "job", req);
    fixture_close(&e, 2);
    fixture_pass(&e, 1000);
    fixture_lock(&e, 3, "job", with_priority(3));
    fixture_lock(&e, 4, "job", req);
    ck_assert_str_eq(in_order(), "4 3");
    req.priority = 4;
    fixture_lock(&e, 5, "job", req);
    ck_assert_str_eq(fixture_hears(&e, 5, REPLY_ERROR).text,
                     "that ID waits with another PRIORITY");
    ck_assert_str_eq(in_order(), "4 3");
}

/* Its answer may be the grant. If it is not, it goes to where it belongs. */
START_TEST(the_head_that_is_being_asked_for_is_not_passed_before_its_answer)
{
    fixture_lock(&e, 2, "job", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_lock(&e, 3, "job", with_priority(1));
    fixture_lock(&e, 4, "job", with_priority(9));
    fixture_lock(&e, 5, "job", with_priority(5));
    fixture_lock(&e, 6, "job", FOREVER); /* in the same ms */
    ck_assert_str_eq(in_order(), "2 4 5 3 6");
    fixture_answer(&e, &op, BUSY);
    ck_assert_str_eq(in_order(), "4 5 3 2 6");
    fixture_gives(&e, OP_ACQUIRE, (struct op_result){ .status = OP_OK, .token = 7 });
    (void)fixture_hears(&e, 4, REPLY_TOKEN);
}

/* Between a head that is being asked for, and one that passes that head after its
 * answer. */
START_TEST(the_head_steps_back_behind_a_poller_as_well)
{
    struct lock_req poll = { .from = { 4, 1 },
                             .name = SPAN("job"),
                             .terms = { .has = OPT_WAIT | OPT_LEASE,
                                        .lease_ms = 10000,
                                        .wait_ms = 80,
                                        .value = SPAN("me:v") },
                             .polls_since = e.now - 2 * AGING };

    fixture_lock(&e, 2, "job", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_lock(&e, 3, "job", with_priority(1));
    engine_lock(e.engine, &poll);
    fixture_collect(&e);
    ck_assert_str_eq(in_order(), "2 4 3");
    fixture_answer(&e, &op, BUSY);
    ck_assert_str_eq(in_order(), "4 3 2");
}

START_TEST(what_the_head_may_have_been_granted_is_its_own)
{
    fixture_lock(&e, 2, "job", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_lock(&e, 3, "job", with_priority(9));
    fixture_answer(&e, &op, UNKNOWN);
    ck_assert_str_eq(in_order(), "2 3");
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_OK, .token = 7, .attached = true });
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
}

START_TEST(a_hand_over_that_may_have_run_is_repeated_for_the_same_waiter_H40)
{
    held_here();
    fixture_lock(&e, 2, "job", FOREVER);
    fixture_unlock(&e, 1, "job", BARE);
    fixture_take_op(&e, OP_RELEASE, &op);
    fixture_lock(&e, 3, "job", with_priority(9));
    fixture_answer(&e, &op, UNKNOWN);
    fixture_lock(&e, 4, "job", with_priority(9));
    ck_assert_str_eq(in_order(), "2 3 4");
    fixture_gives(&e, OP_RELEASE,
                  (struct op_result){ .status = OP_OK, .moved = true, .token = 101 });
    (void)fixture_hears(&e, 1, REPLY_INT);
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
    ck_assert_str_eq(in_order(), "3 4");
}

/* It was to ask as the head, whether it holds already. */
START_TEST(an_owner_that_is_passed_before_it_asked_asks_for_itself)
{
    engine_on_store_down(e.engine);
    fixture_lock(&e, 2, "job", AS_O);
    fixture_lock(&e, 3, "job", with_priority(9));
    ck_assert_str_eq(in_order(), "3 2");
    engine_on_store_up(e.engine, true);
    fixture_collect(&e);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_str_eq(op.field, "o");
    ck_assert(op.op.acquire.reenter_only);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 50, .count = 2 });
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
}

START_TEST(who_tries_once_and_is_passed_is_answered_with_what_the_head_hears)
{
    engine_on_store_down(e.engine);
    fixture_lock(&e, 2, "job", (struct lock_terms){ .has = OPT_WAIT });
    fixture_lock(&e, 3, "job", with_priority(9));
    engine_on_store_up(e.engine, true);
    fixture_collect(&e);
    fixture_hears_nothing(&e);
    fixture_gives(&e, OP_ACQUIRE, BUSY);
    (void)fixture_hears(&e, 2, REPLY_NULL);
    fixture_no_op(&e);
    ck_assert_str_eq(in_order(), "3");
}

START_TEST(behind_a_fair_queue_it_counts_for_nothing)
{
    held_here();
    fixture_lock(&e, 2, "job", (struct lock_terms){ .lock_kind = KIND_FAIR });
    fixture_lock(&e, 3, "job", with_priority(9));
    fixture_lock(&e, 4, "job", FOREVER);
    ck_assert_str_eq(in_order(), "2 3 4");
}

START_TEST(a_reader_with_a_priority_stands_before_a_writer)
{
    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ .lock_kind = KIND_READ },
                        100);
    fixture_lock(&e, 2, "job", (struct lock_terms){ .lock_kind = KIND_WRITE });
    answer_all();
    fixture_lock(&e, 3, "job", (struct lock_terms){ .lock_kind = KIND_READ });
    fixture_no_op(&e);
    fixture_lock(&e, 4, "job",
                 (struct lock_terms){ .lock_kind = KIND_READ, .priority = 1 });
    ck_assert_str_eq(in_order(), "4 2 3");
    fixture_gives(&e, OP_ACQUIRE, (struct op_result){ .status = OP_OK, .token = 101 });
    (void)fixture_hears(&e, 4, REPLY_TOKEN);
    ck_assert_str_eq(in_order(), "2 3");
    fixture_no_op(&e);
}

START_TEST(readers_that_pass_a_writer_together_are_all_let_in)
{
    const struct lock_terms urgent = { .lock_kind = KIND_READ, .priority = 1 };

    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ .lock_kind = KIND_READ },
                        100);
    fixture_lock(&e, 2, "job", (struct lock_terms){ .lock_kind = KIND_WRITE });
    answer_all();
    for (uint64_t conn = 3; conn < 6; conn++) {
        fixture_lock(&e, conn, "job", urgent);
    }
    for (uint64_t conn = 3; conn < 6; conn++) {
        fixture_gives(&e, OP_ACQUIRE,
                      (struct op_result){ .status = OP_OK, .token = 100 + conn });
        (void)fixture_hears(&e, conn, REPLY_TOKEN);
    }
    fixture_no_op(&e);
    ck_assert_str_eq(in_order(), "2");
}

/* Otherwise it would wait for those readers, and nobody would look for a deadlock. */
START_TEST(a_writer_does_not_pass_a_reader_that_is_about_to_be_let_in)
{
    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ .lock_kind = KIND_READ },
                        100);
    engine_on_store_down(e.engine);
    fixture_lock(&e, 2, "job", (struct lock_terms){ .lock_kind = KIND_READ });
    fixture_lock(&e, 3, "job",
                 (struct lock_terms){ .lock_kind = KIND_WRITE, .priority = 9 });
    ck_assert_str_eq(in_order(), "2 3");
}

START_TEST(an_MLOCK_has_a_priority_in_each_queue_that_it_joins)
{
    held_here();
    fixture_lock(&e, 2, "job", with_priority(1));
    fixture_mlock(&e, 3, "job", with_priority(2));
    ck_assert_str_eq(in_order(), "3 2");
    fixture_mlock(&e, 4, "job", (struct lock_terms){ .id = UUID });
    fixture_mlock(&e, 5, "job", (struct lock_terms){ .id = UUID, .priority = 1 });
    ck_assert_int_eq(fixture_hears(&e, 5, REPLY_ERROR).error, LOCK_ERR);
}

START_TEST(a_loan_goes_to_the_highest_priority)
{
    const struct lock_terms local = { .has = OPT_LOCAL };
    struct lock_terms urgent = with_priority(9);

    urgent.has = OPT_LOCAL;
    fixture_lock(&e, 1, "job", local);
    fixture_gives(&e, OP_ACQUIRE, (struct op_result){ .status = OP_OK, .token = 100 });
    fixture_hears(&e, 1, REPLY_TOKEN);
    fixture_lock(&e, 2, "job", local);
    fixture_lock(&e, 3, "job", local);
    fixture_unlock(&e, 1, "job", BARE);
    fixture_gives(
        &e, OP_RELEASE,
        (struct op_result){
            .status = OP_OK, .moved = true, .token = 101, .loan_token = 1101 });
    (void)fixture_hears(&e, 1, REPLY_INT);
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
    fixture_lock(&e, 4, "job", urgent);
    fixture_unlock(&e, 2, "job", BARE);
    (void)fixture_hears(&e, 2, REPLY_INT);
    ck_assert_int_eq(fixture_hears(&e, 4, REPLY_TOKEN).value, 102);
    fixture_no_op(&e);
}

/* --- many ------------------------------------------------------------------------- */

enum { MANY = 400, STEPS = 4000 };

/* The right result: the waiters as they came. */
struct model {
    int64_t rank;
    bool waits;
};

/* Compares the queue with the model: sorted by rank, and equals by arrival. */
static void check_sorted(const struct model *model, size_t count)
{
    static char sorted[sizeof(order)];
    static bool told[STEPS];
    size_t len = 0;

    memset(told, 0, sizeof(told));
    sorted[0] = '\0';
    for (;;) {
        size_t best = count;

        for (size_t i = 0; i < count; i++) {
            if (model[i].waits && !told[i] &&
                (best == count || model[i].rank < model[best].rank)) {
                best = i;
            }
        }
        if (best == count) {
            break;
        }
        told[best] = true;
        len += (size_t)snprintf(sorted + len, sizeof(sorted) - len, "%s%zu",
                                len == 0 ? "" : " ", 10 + best);
    }
    ck_assert_str_eq(in_order(), sorted);
}

START_TEST(whoever_comes_and_goes_the_order_is_that_of_arrival_less_priority)
{
    static struct model model[STEPS];
    unsigned seed = 5103;
    size_t waiting = 0;

    held_here();
    for (size_t i = 0; i < STEPS; i++) {
        unsigned dice = (unsigned)rand_r(&seed);
        uint8_t priority = (uint8_t)(dice % 3 == 0 ? 0 : dice / 7 % 10);
        size_t leaves = dice / 31 % (i + 1);

        fixture_pass(&e, dice / 3 % 5000);
        fixture_lock(&e, 10 + i, "job", with_priority(priority));
        model[i] = (struct model){ (int64_t)e.now - (int64_t)priority * AGING, true };
        waiting++;
        while (!model[leaves].waits) {
            leaves = (leaves + 1) % (i + 1);
        }
        if (waiting > MANY || dice % 11 == 0) {
            fixture_close(&e, 10 + leaves);
            model[leaves].waits = false;
            waiting--;
        }
        answer_all();
        if (i % 100 == 99) {
            check_sorted(model, i + 1);
        }
    }
}
