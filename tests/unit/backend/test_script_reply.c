#include "backend/redis/redis_command.h"
#include "backend/script/script_codec.h"
#include "support/runner.h"

#include <stdio.h>
#include <string.h>

/* Reads `text` as Redis would send it, gives it to script_reply(). */
static enum op_status reply_status(const char *text, enum op_kind kind,
                                   size_t item_count, struct script_result *ret)
{
    redisReader *reader = redisReaderCreate();
    enum op_status status;
    void *reply = NULL;

    ck_assert_int_eq(redisReaderFeed(reader, text, strlen(text)), REDIS_OK);
    ck_assert_int_eq(redisReaderGetReply(reader, &reply), REDIS_OK);
    ck_assert_ptr_nonnull(reply);
    script_reply(reply, kind, item_count, ret);
    status = ret->result.status;
    script_result_fini(ret);
    freeReplyObject(reply);
    redisReaderFree(reader);
    return status;
}

static const struct {
    const char *text;
    enum op_kind kind;
} GARBLED[] = {
    { "$-1\r\n", OP_ACQUIRE },
    { "+OK\r\n", OP_ACQUIRE },
    { "$2\r\nOK\r\n", OP_ACQUIRE },
    { "$5\r\nFREED\r\n", OP_ACQUIRE },
    { "$4\r\nWHAT\r\n", OP_RELEASE },
    { ":0\r\n", OP_ACQUIRE },
    { ":-1\r\n", OP_ACQUIRE },
    { ":9007199254740993\r\n", OP_ACQUIRE },
    { ":7\r\n", OP_RENEW },
    { ":7\r\n", OP_ATTACH },
    { "*0\r\n", OP_ACQUIRE },
    { "*-1\r\n", OP_ACQUIRE },
    { "*1\r\n:1\r\n", OP_ACQUIRE },
    { "*1\r\n$2\r\nOK\r\n", OP_ACQUIRE },
    { "*4\r\n$2\r\nOK\r\n:0\r\n:1\r\n:0\r\n", OP_ACQUIRE },
    { "*4\r\n$2\r\nOK\r\n$1\r\n7\r\n:1\r\n:0\r\n", OP_ACQUIRE },
    { "*1\r\n$4\r\nBUSY\r\n", OP_ACQUIRE },
    { "*2\r\n$5\r\nENDED\r\n:1\r\n", OP_RELEASE },
    { "*1\r\n$5\r\nFREED\r\n", OP_RELEASE },
    { "*2\r\n$5\r\nFREED\r\n:1\r\n", OP_RENEW },
    { "*3\r\n$5\r\nENDED\r\n:1\r\n:-1\r\n", OP_RELEASE },
    { "*6\r\n$2\r\nOK\r\n:0\r\n:0\r\n:1\r\n:0\r\n:0\r\n", OP_RELEASE },
    { "*2\r\n$2\r\nOK\r\n:0\r\n", OP_RENEW },
    { "*3\r\n$2\r\nOK\r\n:0\r\n:6\r\n", OP_RENEW },
    { "*3\r\n$2\r\nOK\r\n:0\r\n*0\r\n", OP_RENEW },
    { "*4\r\n$2\r\nOK\r\n:1\r\n:1\r\n$1\r\nf\r\n", OP_ATTACH },
    { "*2\r\n$2\r\nOK\r\n:-2\r\n", OP_INSPECT },
    { "*1\r\n$2\r\nOK\r\n", OP_QUEUE },
    { "*2\r\n$2\r\nOK\r\n:7\r\n", OP_QUEUE },
    { "*3\r\n$2\r\nOK\r\n:7\r\n$1\r\n1\r\n", OP_QUEUE },
    { "*1\r\n$2\r\nOK\r\n", OP_LEAVE },
    { ":7\r\n", OP_LEAVE },
    { "*5\r\n$2\r\nOK\r\n:-2\r\n$0\r\n\r\n$1\r\nx\r\n*0\r\n", OP_INSPECT },
    { "*5\r\n$2\r\nOK\r\n:-2\r\n$0\r\n\r\n$1\r\np\r\n*1\r\n:1\r\n", OP_INSPECT },
    { "*7\r\n$2\r\nOK\r\n:1\r\n$0\r\n\r\n$1\r\nr\r\n*0\r\n$1\r\nf\r\n$1\r\n1\r\n",
      OP_INSPECT },
    { "*2\r\n$2\r\nOK\r\n:0\r\n", OP_ACQUIRE_BATCH },
    { "*3\r\n$2\r\nOK\r\n:7\r\n*1\r\n$4\r\nBUSY\r\n", OP_ACQUIRE_BATCH },
    { "*4\r\n$2\r\nOK\r\n:1\r\n$0\r\n\r\n$1\r\nf\r\n", OP_INSPECT },
    { "*3\r\n$4\r\nLENT\r\n:7\r\n:7\r\n", OP_ACQUIRE },
    { "*3\r\n$4\r\nLENT\r\n:0\r\n:7\r\n", OP_ACQUIRE },
    { "*2\r\n$4\r\nLENT\r\n:7\r\n", OP_ACQUIRE },
    { "*3\r\n$4\r\nLENT\r\n:1\r\n:100001\r\n", OP_ACQUIRE },
    { "*3\r\n$4\r\nLENT\r\n:7\r\n:9\r\n", OP_ATTACH },
    { "*3\r\n$5\r\nRESTS\r\n:7\r\n:0\r\n", OP_RELEASE },
    { "*2\r\n$5\r\nRESTS\r\n:7\r\n", OP_RELEASE },
    { "*3\r\n$5\r\nRESTS\r\n:7\r\n:9\r\n", OP_ATTACH },
};

START_TEST(a_garbled_reply_is_an_error, TEST_ROWS(GARBLED))
{
    struct script_result r;

    ck_assert_msg(reply_status(GARBLED[_i].text, GARBLED[_i].kind, 2, &r) == OP_ERROR,
                  "%s", GARBLED[_i].text);
    ck_assert_uint_gt(r.result.text.len, 0);
}

static const struct {
    const char *text;
    enum op_status status;
} ERRORS[] = {
    { "-ERR x\r\n", OP_ERROR },
    { "-WRONGTYPE Operation against a key\r\n", OP_WRONGTYPE },
    { "-ERR Error running script: @user_script:7: WRONGTYPE Operation against\r\n",
      OP_WRONGTYPE },
    { "-NOPERM this user has no permissions\r\n", OP_ERROR },
    { "-MOVED 7 10.0.0.1:6379\r\n", OP_LATE },
    { "-ASK 7 10.0.0.1:6379\r\n", OP_LATE },
    { "-TRYAGAIN Multiple keys request during rehashing of slot\r\n", OP_LATE },
    { "-CLUSTERDOWN The cluster is down\r\n", OP_LATE },
    { "-ERR Script attempted to access a non local key\r\n", OP_ERROR },
};

START_TEST(a_field_longer_than_any_of_ours_is_an_error)
{
    for (int more = 0; more <= 1; more++) {
        struct script_result r;
        char text[2 * OP_TEXT_MAX];

        (void)snprintf(text, sizeof(text),
                       "*5\r\n$2\r\nOK\r\n:1\r\n:1\r\n$%d\r\n%0*d\r\n$0\r\n\r\n",
                       OP_TEXT_MAX + more, OP_TEXT_MAX + more, 7);
        ck_assert_int_eq(reply_status(text, OP_ATTACH, 0, &r),
                         more == 0 ? OP_OK : OP_ERROR);
    }
}

START_TEST(errors_of_redis_are_told_apart, TEST_ROWS(ERRORS))
{
    struct script_result r;

    ck_assert_int_eq(reply_status(ERRORS[_i].text, OP_ACQUIRE, 0, &r),
                     ERRORS[_i].status);
}

START_TEST(short_replies_are_what_happens_most)
{
    struct script_result r;

    ck_assert_int_eq(reply_status(":1763711554001234\r\n", OP_ACQUIRE, 0, &r), OP_OK);
    ck_assert_uint_eq(r.result.token, UINT64_C(1763711554001234));
    ck_assert_int_eq(r.result.count, 1);
    ck_assert_int_eq(reply_status(":7\r\n", OP_RELEASE, 0, &r), OP_OK);
    ck_assert(r.result.moved && !r.result.release.freed);
    ck_assert_int_eq(reply_status("$5\r\nFREED\r\n", OP_RELEASE, 0, &r), OP_OK);
    ck_assert(r.result.release.freed && !r.result.moved);
    ck_assert_int_eq(reply_status("$4\r\nLATE\r\n", OP_RENEW, 2, &r), OP_LATE);
}

START_TEST(a_release_tells_for_how_long_the_name_rests)
{
    struct script_result r;

    ck_assert_int_eq(
        reply_status("*3\r\n$5\r\nRESTS\r\n:4000\r\n:9\r\n", OP_RELEASE, 0, &r), OP_OK);
    ck_assert_uint_eq(r.result.release.rest_ms, 4000);
    ck_assert_uint_eq(r.result.token, 9);
    ck_assert(!r.result.release.freed && !r.result.moved && r.result.count == 0);
    /* over, or about to be */
    ck_assert_int_eq(
        reply_status("*3\r\n$5\r\nRESTS\r\n:-2\r\n:9\r\n", OP_RELEASE, 0, &r), OP_OK);
    ck_assert_uint_eq(r.result.release.rest_ms, 0);
}

START_TEST(a_name_of_another_family_is_told_apart_from_other_data)
{
    struct script_result r;

    ck_assert_int_eq(reply_status("$12\r\nWRONGTYPE-RW\r\n", OP_ACQUIRE, 0, &r),
                     OP_WRONGTYPE);
    ck_assert(r.result.is_lock && r.result.lock_class == CLASS_RW);
    ck_assert_int_eq(reply_status("$15\r\nWRONGTYPE-PLAIN\r\n", OP_RELEASE, 0, &r),
                     OP_WRONGTYPE);
    ck_assert(r.result.is_lock && r.result.lock_class == CLASS_PLAIN);
    ck_assert_int_eq(reply_status("$9\r\nWRONGTYPE\r\n", OP_ATTACH, 0, &r),
                     OP_WRONGTYPE);
    ck_assert(!r.result.is_lock);
}

START_TEST(other_data_is_told_by_its_end_and_its_value)
{
    struct script_result r;

    ck_assert_int_eq(
        reply_status("*2\r\n$9\r\nWRONGTYPE\r\n:-1\r\n", OP_INSPECT, 0, &r),
        OP_WRONGTYPE);
    ck_assert(r.result.ttl_ms == -1 && !r.result.inspect.is_string);
    ck_assert_int_eq(
        reply_status("*3\r\n$9\r\nWRONGTYPE\r\n:70\r\n$1\r\nv\r\n", OP_INSPECT, 0, &r),
        OP_WRONGTYPE);
    ck_assert(r.result.ttl_ms == 70 && r.result.inspect.is_string);
    ck_assert_uint_eq(r.result.text.len, 1);
    ck_assert_int_eq(
        reply_status("*4\r\n$4\r\nBUSY\r\n:9\r\n:0\r\n:1\r\n", OP_ACQUIRE, 0, &r),
        OP_BUSY);
    ck_assert(r.result.foreign && !r.result.fair && r.result.ttl_ms == 9);
    ck_assert(!r.result.by_latchd);
    ck_assert_int_eq(
        reply_status("*5\r\n$4\r\nBUSY\r\n:9\r\n:0\r\n:0\r\n:1\r\n", OP_ACQUIRE, 0, &r),
        OP_BUSY);
    ck_assert(r.result.by_latchd && !r.result.foreign && !r.result.lent);
    ck_assert_int_eq(
        reply_status("*5\r\n$4\r\nBUSY\r\n:9\r\n:0\r\n:0\r\n:2\r\n", OP_ACQUIRE, 0, &r),
        OP_BUSY);
    ck_assert(r.result.by_latchd && r.result.lent);
}

START_TEST(a_yield_is_a_release_that_tells_who_listens)
{
    struct script_result r;

    ck_assert_int_eq(reply_status("*2\r\n$5\r\nFREED\r\n:3\r\n", OP_RELEASE, 0, &r),
                     OP_OK);
    ck_assert(r.result.release.freed && r.result.release.listeners == 3);
}

START_TEST(some_of_many_names_may_be_lent)
{
    struct script_result r;
    redisReader *reader = redisReaderCreate();
    static const char TEXT[] = "*2\r\n*3\r\n$4\r\nLENT\r\n:7\r\n:9\r\n:9\r\n";
    void *reply = NULL;

    ck_assert_int_eq(redisReaderFeed(reader, TEXT, strlen(TEXT)), REDIS_OK);
    ck_assert_int_eq(redisReaderGetReply(reader, &reply), REDIS_OK);
    script_reply(script_reply_part(reply, 0, 2), OP_ACQUIRE, 0, &r);
    ck_assert(r.result.token == 7 && r.result.loan_token == 9 && r.result.count == 1);
    script_reply(script_reply_part(reply, 1, 2), OP_ACQUIRE, 0, &r);
    ck_assert(r.result.token == 9 && r.result.loan_token == 0);
    freeReplyObject(reply);
    redisReaderFree(reader);
    ck_assert_int_eq(reply_status("*2\r\n$2\r\nOK\r\n*3\r\n$4\r\nLENT\r\n:7\r\n:7\r\n",
                                  OP_ACQUIRE_BATCH, 1, &r),
                     OP_ERROR);
}

START_TEST(a_name_that_is_lent_comes_with_a_block_of_tokens)
{
    struct script_result r;

    ck_assert_int_eq(
        reply_status("*3\r\n$4\r\nLENT\r\n:7\r\n:9\r\n", OP_ACQUIRE, 0, &r), OP_OK);
    ck_assert(r.result.token == 7 && r.result.loan_token == 9 && r.result.count == 1);
    ck_assert_int_eq(
        reply_status("*3\r\n$4\r\nLENT\r\n:1\r\n:100000\r\n", OP_RELEASE, 0, &r),
        OP_OK);
    ck_assert(r.result.moved && r.result.loan_token == OP_BLOCK_MAX);
}

START_TEST(what_only_some_scripts_tell_may_be_missing)
{
    struct script_result r;

    ck_assert_int_eq(reply_status("*2\r\n$4\r\nBUSY\r\n:9\r\n", OP_ACQUIRE, 0, &r),
                     OP_BUSY);
    ck_assert(r.result.ttl_ms == 9 && !r.result.fair);
    ck_assert_int_eq(
        reply_status("*3\r\n$4\r\nBUSY\r\n:9\r\n:1\r\n", OP_ACQUIRE, 0, &r), OP_BUSY);
    ck_assert(r.result.ttl_ms == 9 && r.result.fair);
    ck_assert_int_eq(
        reply_status("*7\r\n$2\r\nOK\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:1\r\n",
                     OP_RELEASE, 0, &r),
        OP_OK);
    ck_assert(r.result.release.shared && !r.result.release.freed && !r.result.fair);
    ck_assert_int_eq(
        reply_status("*6\r\n$2\r\nOK\r\n:7\r\n:9\r\n$1\r\nf\r\n$0\r\n\r\n:1\r\n",
                     OP_ATTACH, 0, &r),
        OP_OK);
    ck_assert_int_eq(r.result.lock_kind, KIND_WRITE);
    ck_assert_int_eq(reply_status("*3\r\n$2\r\nOK\r\n:7\r\n*2\r\n$4\r\nBUSY\r\n:9\r\n",
                                  OP_ACQUIRE_BATCH, 0, &r),
                     OP_OK);
    ck_assert_uint_eq(r.result.batch.count, 2);
}

START_TEST(one_token_of_many_names_is_that_of_each)
{
    redisReply reply = { .type = REDIS_REPLY_INTEGER, .integer = 7 };
    struct script_result r;

    script_reply(&reply, OP_ACQUIRE_BATCH, 3, &r);
    ck_assert_int_eq(r.result.status, OP_OK);
    ck_assert_uint_eq(r.result.batch.count, 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(r.result.batch.results[i].status, OP_OK);
        ck_assert_uint_eq(r.result.batch.results[i].token, 7);
        ck_assert_int_eq(r.result.batch.results[i].count, 1);
    }
    script_result_fini(&r);
    ck_assert_int_eq(reply_status(":0\r\n", OP_ACQUIRE_BATCH, 3, &r), OP_ERROR);
    ck_assert_int_eq(reply_status(":7\r\n", OP_ACQUIRE_BATCH, 0, &r), OP_ERROR);
}

START_TEST(replies_tell_whether_there_is_a_fair_queue)
{
    struct script_result r;

    ck_assert_int_eq(reply_status("*3\r\n$2\r\nOK\r\n:-2\r\n:1\r\n", OP_QUEUE, 0, &r),
                     OP_OK);
    ck_assert(r.result.fair);
    ck_assert_int_eq(r.result.ttl_ms, TTL_ABSENT);
    ck_assert_int_eq(reply_status("*2\r\n$2\r\nOK\r\n:0\r\n", OP_LEAVE, 0, &r), OP_OK);
    ck_assert(!r.result.fair);
    ck_assert_int_eq(
        reply_status("*3\r\n$4\r\nBUSY\r\n:-2\r\n:1\r\n", OP_ACQUIRE, 0, &r), OP_BUSY);
    ck_assert(r.result.fair);
    ck_assert_int_eq(reply_status("*2\r\n$4\r\nBUSY\r\n:5\r\n", OP_ACQUIRE, 0, &r),
                     OP_BUSY);
    ck_assert(!r.result.fair);
}

START_TEST(commands_are_written_word_by_word)
{
    struct buf out = { 0 };

    command_begin(&out, 5);
    command_word(&out, SPAN("SET"));
    command_uint(&out, UINT64_MAX);
    command_uint(&out, 0);
    command_key(&out, SPAN("p:"), SPAN("n"), SPAN(":s"));
    command_key(&out, SPAN("p:"), SPAN("a{b"), SPAN_NONE);
    buf_add(&out, "", 1);
    ck_assert_str_eq(buf_ptr(&out), "*5\r\n$3\r\nSET\r\n$20\r\n18446744073709551615\r\n"
                                    "$1\r\n0\r\n$7\r\np:{n}:s\r\n$5\r\np:a{b\r\n");
    buf_reset(&out);
}
