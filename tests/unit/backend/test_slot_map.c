#include "backend/slot_map.h"

#include "support/runner.h"

#include <stdio.h>
#include <stdlib.h>

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define R "cccccccccccccccccccccccccccccccccccccccc"

/* Redis 5's form, 7.0's and 7.2's. */
#define LINE_A A " 10.0.0.1:7001@17001 master - 0 1 3 connected 0-100\n"
#define LINE_B                                                                         \
    B " 10.0.0.2:7002@17002,host,shard-id=x master - 0 1 4 connected 101-16382 "       \
      "16383\n"
#define LINE_R R " 10.0.0.3:7003@17003,h myself,slave " A " 0 0 3 connected\n"

static struct slot_map was, now;

static void setup(void)
{
    ck_assert(slot_map_parse(SPAN(LINE_A LINE_B LINE_R), "here", &was));
}

static void teardown(void)
{
    slot_map_fini(&was);
    slot_map_fini(&now);
}

static void sees(const char *text)
{
    ck_assert(slot_map_parse(span_str(text), "here", &now));
}

TEST_GROUP(.setup = setup, .teardown = teardown);

START_TEST(each_slot_has_its_owner)
{
    ck_assert_str_eq(slot_map_owner(&was, 0)->host, "10.0.0.1");
    ck_assert_str_eq(slot_map_owner(&was, 100)->port, "7001");
    ck_assert_str_eq(slot_map_owner(&was, 101)->id, B);
    ck_assert_str_eq(slot_map_owner(&was, 16383)->host, "10.0.0.2");
    ck_assert_uint_eq(slot_map_owner(&was, 5)->epoch, 3);
    ck_assert_uint_eq(was.node_count, 3);
    ck_assert(!slot_map_find(&was, R)->is_master);
    ck_assert_str_eq(slot_map_find(&was, R)->master_id, A);
    ck_assert_ptr_null(slot_map_owner(&now, 0));
}

START_TEST(a_node_that_does_not_know_its_address_is_where_it_was_asked)
{
    sees(A " :7001@17001 myself,master - 0 0 1 connected 0 [1->-" B "] [2-<-" B
           "]\r\n" B " ::1:7002@17002 master,fail? - 0 0 2 connected\n");
    ck_assert_str_eq(slot_map_owner(&now, 0)->host, "here");
    ck_assert_str_eq(now.nodes[1].host, "::1");
    ck_assert_str_eq(now.nodes[1].port, "7002");
    ck_assert(now.nodes[1].is_failing);
    /* Slots on their way are nobody's by that. */
    ck_assert_ptr_null(slot_map_owner(&now, 1));
    ck_assert_ptr_null(slot_map_owner(&now, 2));
}

static const char *const NONSENSE[] = {
    "-ERR This instance has cluster support disabled",
    A,
    A " 10.0.0.1 master - 0 1 3 connected 0-100\n",
    "short 10.0.0.1:1@2 master - 0 1 3 connected 0-100\n",
    A " 10.0.0.1:1@2 master - 0 1 3 connected 0-16384\n",
    A " 10.0.0.1:1@2 master - 0 1 3 connected -1\n",
    A " 10.0.0.1:1@2 master - 0 1 x connected 0\n",
    A " 10.0.0.1:123456@2 master - 0 1 1 connected 0\n",
    A " 10.0.0.1:1@2 slave " B " 0 1 3 connected 0-100\n",
};

START_TEST(what_is_no_map_is_refused, TEST_ROWS(NONSENSE))
{
    ck_assert(!slot_map_parse(span_str(NONSENSE[_i]), "here", &now));
    ck_assert_ptr_null(now.nodes);
}

START_TEST(too_many_nodes_are_refused)
{
    size_t len = SLOT_NODES_MAX + 1;
    char *text = malloc(len);

    memset(text, '\n', len);
    ck_assert(!slot_map_parse(span_of(text, len), "here", &now));
    free(text);
}

START_TEST(a_slot_that_went_to_another_master_was_moved)
{
    sees(A " 10.0.0.1:7001@17001 master - 0 1 3 connected 1-100\n" B
           " 10.0.0.2:7002@17002 master - 0 1 5 connected 0 101-16383\n" LINE_R);
    ck_assert(!slot_map_is_older(&now, &was));
    ck_assert_int_eq(slot_map_fate(&was, &now, 0), SLOT_MOVED);
    ck_assert_int_eq(slot_map_fate(&was, &now, 1), SLOT_STAYS);
    /* And who has not heard of it yet is not believed. */
    ck_assert(slot_map_is_older(&was, &now));
}

START_TEST(a_master_without_slots_is_still_a_master)
{
    sees(A " 10.0.0.1:7001@17001 master - 0 1 3 connected\n" B
           " 10.0.0.2:7002@17002 master - 0 1 5 connected 0-16383\n" LINE_R);
    ck_assert_int_eq(slot_map_fate(&was, &now, 0), SLOT_MOVED);
}

START_TEST(a_replica_that_took_over_may_lack_writes)
{
    sees(A " 10.0.0.1:7001@17001 master,fail - 0 1 3 connected\n" LINE_B R
           " 10.0.0.3:7003@17003 myself,master - 0 0 5 connected 0-100\n");
    ck_assert_int_eq(slot_map_fate(&was, &now, 100), SLOT_FAILED_OVER);
    ck_assert_int_eq(slot_map_fate(&was, &now, 101), SLOT_STAYS);
    slot_map_fini(&now);
    /* The old one is back, and does not know yet. */
    sees(A " 10.0.0.1:7001@17001 master - 0 1 3 connected\n" LINE_B R
           " 10.0.0.3:7003@17003 myself,master - 0 0 5 connected 0-100\n");
    ck_assert_int_eq(slot_map_fate(&was, &now, 100), SLOT_FAILED_OVER);
}

START_TEST(what_went_away_from_a_dead_master_may_lack_writes)
{
    sees(A " 10.0.0.1:7001@17001 master,fail - 0 1 3 connected\n" B
           " 10.0.0.2:7002@17002 master - 0 1 5 connected 0-16383\n");
    ck_assert_int_eq(slot_map_fate(&was, &now, 0), SLOT_FAILED_OVER);
    slot_map_fini(&now);
    sees(B " 10.0.0.2:7002@17002 master - 0 1 5 connected 0-16383\n");
    ck_assert_int_eq(slot_map_fate(&was, &now, 0), SLOT_FAILED_OVER);
}

START_TEST(a_slot_that_nobody_has_stays_where_it_was)
{
    sees(LINE_B LINE_R);
    ck_assert_int_eq(slot_map_fate(&was, &now, 0), SLOT_STAYS);
    ck_assert(!slot_map_is_older(&now, &was));
}
