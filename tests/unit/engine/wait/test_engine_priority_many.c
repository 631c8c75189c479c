/* PRIORITY: the order in which many waiters of a name stand, against a model of it; the
 * sequences are in scenarios/engine/priority.scn. */
#include "unit/engine/engine_cases.h"

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

    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
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
