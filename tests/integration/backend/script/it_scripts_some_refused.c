/* Several simple ops in one script call, where Redis refuses something. */
#include "scripts_some.h"

#include "support/runner.h"

#include <stdio.h>

static void become(const char *rights)
{
    redis_expect(peer_redis(), "OK", rights);
    redis_expect(peer_redis(), "OK", "AUTH u p");
}

static void be_default_again(void)
{
    redis_expect(peer_redis(), "OK", "AUTH default x");
}

#define USER "ACL SETUSER u on >p +@all "
#define OTHERS "~a ~*{a}* ~*{c}* ~b "

static const char *const CANNOT_TAKE[] = {
    USER "&* " OTHERS,
    USER "&* " OTHERS "~redisson_lock_queue:{b}",
    USER "&* " OTHERS "~redisson_lock_queue:{b} %%R~latchd:fence:{b}",
};

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

/* Redis looks at the keys of a call before it runs; then each is asked for alone. */
START_TEST(where_a_key_may_not_be_used_nothing_is_taken,
           sizeof CANNOT_TAKE / sizeof *CANNOT_TAKE)
{
    struct op ops[THREE];

    become(CANNOT_TAKE[_i]);
    some_acquires(ops);
    run_some(INSTANCE_A, ops, THREE, some_times());
    ck_assert(some_refused());
    be_default_again();
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 0);
}

static const char *const CANNOT_END[] = {
    USER "&* " OTHERS "~*queue:{b}",
};

START_TEST(a_hold_that_may_not_be_ended_is_no_hindrance_to_the_others,
           sizeof CANNOT_END / sizeof *CANNOT_END)
{
    struct op ops[THREE];

    some_holds(ops);
    become(CANNOT_END[_i]);
    run_some(INSTANCE_A, ops, THREE, some_times());
    some_expect(0, OP_OK);
    some_expect(1, OP_ERROR);
    some_expect(2, OP_OK);
    be_default_again();
    ck_assert(!some_is_there("a"));
    ck_assert(some_is_there("b"));
    ck_assert(!some_is_there("my:{c}:x"));
}

START_TEST(a_hold_whose_release_may_not_be_published_is_ended)
{
    struct op ops[THREE];

    some_holds(ops);
    become(USER "~* resetchannels &*{a}*");
    run_some(INSTANCE_A, ops, THREE, some_times());
    for (size_t i = 0; i < THREE; i++) {
        some_expect(i, OP_OK);
        ck_assert(some_result(i)->release.freed);
        ck_assert(!some_is_there(SOME_NAMES[i]));
    }
    be_default_again();
}

static const char *const WITHOUT[] = {
    USER "~* &* -mget",
    USER "~* &* -psetex",
    USER "~* &* -pexpireat",
    USER "~* &* -mget -psetex -pexpireat",
};

START_TEST(a_user_who_may_do_what_single_calls_need_may_do_this,
           sizeof WITHOUT / sizeof *WITHOUT)
{
    struct op ops[THREE];

    become(WITHOUT[_i]);
    for (int again = 0; again < 2; again++) {
        some_holds(ops);
        for (int i = 0; i < THREE; i++) {
            some_near_pttl(SOME_NAMES[i], LEASE);
        }
        run_some(INSTANCE_A, ops, THREE, some_times());
        for (size_t i = 0; i < THREE; i++) {
            some_expect(i, OP_OK);
            ck_assert(some_result(i)->release.freed);
            ck_assert(!some_is_there(SOME_NAMES[i]));
        }
    }
}

START_TEST(a_user_who_may_not_set_a_ttl_is_told_so_and_no_lock_is_left)
{
    struct op ops[THREE];

    become(USER "~* &* -pexpire -pexpireat");
    some_acquires(ops);
    run_some(INSTANCE_A, ops, THREE, some_times());
    for (size_t i = 0; i < THREE; i++) {
        some_expect(i, OP_ERROR);
        ck_assert(!some_is_there(SOME_NAMES[i]));
    }
}

START_TEST(where_there_is_no_memory_left_nothing_is_taken_and_all_is_released)
{
    struct op ops[THREE];

    redis_expect(peer_redis(), "OK", "CONFIG SET maxmemory 1");
    some_acquires(ops);
    run_some(INSTANCE_A, ops, THREE, some_times());
    for (size_t i = 0; i < THREE; i++) {
        some_expect(i, OP_ERROR);
        ck_assert_ptr_nonnull(strstr(some_result(i)->text.ptr, "OOM"));
    }
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 0);
    redis_expect(peer_redis(), "OK", "CONFIG SET maxmemory 0");
    some_holds(ops);
    redis_expect(peer_redis(), "OK", "CONFIG SET maxmemory 1");
    run_some(INSTANCE_A, ops, THREE, some_times());
    for (size_t i = 0; i < THREE; i++) {
        some_expect(i, OP_OK);
        ck_assert(!some_is_there(SOME_NAMES[i]));
    }
    for (size_t i = 0; i < THREE; i++) {
        ck_assert_int_eq(run_as(INSTANCE_A, &ops[i])->status, OP_ENDED);
    }
}
