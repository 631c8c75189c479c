/* Which ops may be sent, if those of one name may go two ways. */
#include "backend/replica_ack.h"
#include "support/runner.h"

#include <stdio.h>
#include <string.h>

static struct name_order order;

static void setup(void)
{
    name_order_init(&order);
}

static void teardown(void)
{
    name_order_fini(&order);
}

static void add(uint64_t id, const char *name, int way)
{
    const struct op op = { .kind = OP_ACQUIRE, .id = id, .name = span_str(name) };

    name_order_add(&order, &op, way);
}

/* A RENEW of these names, by the second way. */
static void add_renew(uint64_t id, size_t count, const char *const *names)
{
    struct renew_item items[8] = { 0 };
    const struct op op = {
        .kind = OP_RENEW, .id = id, .renew.items = items, .renew.count = count
    };

    for (size_t i = 0; i < count; i++) {
        items[i].name = span_str(names[i]);
    }
    name_order_add(&order, &op, 1);
}

/* Takes all that may go that way: "1 2 3". */
static const char *ready(int way)
{
    static char text[200];
    struct list *it;
    size_t at = 0;

    text[0] = '\0';
    while ((it = list_first(&order.ready[way])) != NULL) {
        const struct ordered_op *op = container_of(it, struct ordered_op, in_ready);

        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%llu",
                               at == 0 ? "" : " ", (unsigned long long)op->op->id);
        list_del(it);
    }
    return text;
}

static void done(uint64_t id)
{
    name_order_remove(&order, name_order_find(&order, id));
}

TEST_GROUP(.setup = setup, .teardown = teardown);

START_TEST(ops_of_one_way_do_not_wait_for_each_other)
{
    add(1, "a", 0);
    add(2, "a", 0);
    add(3, "b", 0);
    ck_assert_str_eq(ready(0), "1 2 3");
    ck_assert_str_eq(ready(1), "");
}

START_TEST(who_goes_the_other_way_waits_for_all_before_it)
{
    add(1, "a", 0);
    add(2, "a", 0);
    add(3, "a", 1);
    add(4, "a", 0); /* nor may this overtake it */
    add(5, "b", 1);
    ck_assert_str_eq(ready(0), "1 2");
    ck_assert_str_eq(ready(1), "5");
    done(1);
    ck_assert_str_eq(ready(1), "");
    done(2);
    ck_assert_str_eq(ready(1), "3");
    ck_assert_str_eq(ready(0), "");
    done(3);
    ck_assert_str_eq(ready(0), "4");
}

START_TEST(an_op_of_many_names_waits_for_each)
{
    add(1, "a", 0);
    add(2, "c", 0);
    add_renew(3, 3, (const char *const[]){ "a", "b", "c" });
    add(4, "b", 1); /* goes the same way, but not before it */
    ck_assert_str_eq(ready(0), "1 2");
    done(2);
    ck_assert_str_eq(ready(1), "");
    done(1);
    ck_assert_str_eq(ready(1), "3 4");
}

START_TEST(a_name_may_be_there_twice)
{
    add(1, "a", 0);
    add_renew(2, 3, (const char *const[]){ "a", "a", "a" });
    ck_assert_str_eq(ready(0), "1");
    done(1);
    ck_assert_str_eq(ready(1), "2");
}

START_TEST(who_leaves_lets_others_go_before_its_answer)
{
    add_renew(1, 1, (const char *const[]){ "a" });
    add(2, "a", 0);
    ck_assert_str_eq(ready(1), "1");
    name_order_leave(&order, name_order_find(&order, 1));
    ck_assert_str_eq(ready(0), "2");
    done(1);
    done(2);
    ck_assert_uint_eq(order.names.count, 0);
}

START_TEST(who_is_held_is_known_to_those_behind)
{
    add(1, "a", 1);
    add(2, "a", 1);
    add(3, "b", 1);
    name_order_hold(name_order_find(&order, 1));
    ck_assert(name_order_is_behind_held(name_order_find(&order, 2)));
    ck_assert(!name_order_is_behind_held(name_order_find(&order, 3)));
    done(1);
    ck_assert(!name_order_is_behind_held(name_order_find(&order, 2)));
}

START_TEST(one_in_the_middle_may_be_done_first)
{
    add(1, "a", 1);
    add(2, "a", 1);
    add(3, "a", 0);
    done(2);
    ck_assert_str_eq(ready(0), "");
    done(1);
    ck_assert_str_eq(ready(0), "3");
}

START_TEST(a_long_line_is_let_go_at_once)
{
    enum { MANY = 20000 };

    add(1, "a", 0);
    for (uint64_t i = 2; i <= MANY; i++) {
        add(i, "a", 1);
    }
    ck_assert_str_eq(ready(0), "1");
    done(1);
    for (uint64_t i = 2; i <= MANY; i++) {
        struct list *it = list_first(&order.ready[1]);

        ck_assert_ptr_nonnull(it);
        ck_assert_uint_eq(container_of(it, struct ordered_op, in_ready)->op->id, i);
        list_del(it);
    }
}
