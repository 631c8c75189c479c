#include "unit/cmd/cmd_fake.h"

#include "cmd/events.h"
#include "support/runner.h"

#define ID16 "0123456789abcdef"

/* --- locks -------------------------------------------------------------------------
 */

/* Of a hold, in LOCKINFO and in LOCKS TOP. */
#define TOP_KEYS "owner kind token client held left renewed local data atleast "
#define HOLD_KEYS "owner kind count token client held left renewed local data atleast "

TEST_GROUP(.setup = fake_setup, .teardown = fake_teardown);

START_TEST(lock_asks_the_engine_and_waits)
{
    ck_assert_str_eq(fake_run(me, "lock job OWNER joe WAIT 0 KEEP 5 ID " ID16), "");
    ck_assert_str_eq(fake.asked, "lock");
    ck_assert(me->awaited);
    ck_assert(span_eq(fake.lock.name, SPAN("job")));
    ck_assert(span_eq(fake.lock.terms.owner, SPAN("joe")));
    ck_assert(span_eq(fake.lock.terms.id, SPAN(ID16)));
    ck_assert_uint_eq(fake.lock.terms.has, OPT_WAIT | OPT_OWNER | OPT_ID | OPT_KEEP);
    ck_assert_uint_eq(fake.lock.from.conn, 1);
    fake_answer(REPLY_TOKEN, 77, 5);
    ck_assert_str_eq(fake_output(me), ":77\r\n");
    ck_assert(!me->suspended && !me->awaited);
}

static const struct {
    const char *local_names;
    const char *line;
    bool local;
} LOCAL_CASES[] = {
    { NULL, "LOCK job", false },
    { NULL, "LOCK job LOCAL", true },
    { "", "LOCK job local WAIT 5", true },
    { "other job*", "LOCK job", true },
    { "other job*", "LOCK job:1 WAIT 0 GRACE 5", true },
    { "j?b other", "LOCK jobs", false },
    { "*", "LOCK job FAIR", false },
    { "*", "LOCK job READ", false },
    { "*", "LOCK job WRITE", false },
    { "*", "LOCK job OWNER joe", false },
    { "*", "LOCK job ID " ID16, false },
    { "*", "LOCK job KEEP 5 ID " ID16, false },
};

START_TEST(names_that_are_set_to_be_local_need_no_word, TEST_ROWS(LOCAL_CASES))
{
    struct cmd_limits limits = { .max_name = 512,
                                 .max_lease_ms = 86400000,
                                 .max_keep_ms = 30000,
                                 .local_names = LOCAL_CASES[_i].local_names };

    cmd_set_limits(fake.cmd, &limits);
    ck_assert_str_eq(fake_run(me, LOCAL_CASES[_i].line), "");
    ck_assert(((fake.lock.terms.has & OPT_LOCAL) != 0) == LOCAL_CASES[_i].local);
}

START_TEST(kinds_go_to_the_engine)
{
    (void)fake_run(me, "LOCK job WAIT 0 FAIR");
    ck_assert_int_eq(fake.lock.terms.lock_kind, KIND_FAIR);
    fake_answer(REPLY_NULL, 0, 0);
    (void)fake_run(me, "UNLOCK job");
    ck_assert_int_eq(fake.hold.lock_kind, KIND_PLAIN);
    fake_answer(REPLY_INT, 0, 0);
    (void)fake_run(me, "UNLOCK job write TOKEN 5");
    ck_assert_int_eq(fake.hold.lock_kind, KIND_WRITE);
    fake_answer(REPLY_INT, 0, 0);
    (void)fake_run(me, "RENEW job OWNER joe READ");
    ck_assert_str_eq(fake.asked, "renew");
    ck_assert_int_eq(fake.hold.lock_kind, KIND_READ);
}

START_TEST(mlock_asks_for_all_names)
{
    ck_assert_str_eq(fake_run(me, "MLOCK 3 c a b LEASE 500 OWNER joe"), "");
    ck_assert_str_eq(fake.asked, "mlock");
    ck_assert(me->awaited);
    ck_assert_uint_eq(fake.mlock.name_count, 3);
    ck_assert(span_eq(fake.first, SPAN("c")));
    ck_assert(span_eq(fake.mlock.terms.owner, SPAN("joe")));
    ck_assert_uint_eq(fake.mlock.terms.has, OPT_OWNER | OPT_LEASE);
    ck_assert_uint_eq(fake.mlock.terms.lease_ms, 500);
}

START_TEST(bad_words_never_reach_the_engine)
{
    ck_assert_str_eq(fake_run(me, "LOCK job FAIR READ"),
                     "-ERR only one of FAIR, READ, WRITE or PERMITS can be given\r\n");
    ck_assert_str_eq(fake.asked, "");
    ck_assert(!me->suspended && !me->awaited);
}

START_TEST(an_answer_to_another_call_is_dropped)
{
    struct effect_reply late;

    (void)fake_run(me, "LOCK job");
    late = (struct effect_reply){ .to = fake.hold.from, .kind = REPLY_NULL };
    fake_answer(REPLY_NULL, 0, 0);
    ck_assert_str_eq(fake_output(me), "$-1\r\n");
    (void)fake_run(me, "LOCK job");
    cmd_reply(fake.cmd, &late);
    ck_assert(me->awaited);
    fake_close(me, false);
    fake_answer(REPLY_TOKEN, 5, 5);
}

START_TEST(engine_errors_have_their_words)
{
    (void)fake_run(me, "UNLOCK job TOKEN 5");
    ck_assert_str_eq(fake.asked, "unlock");
    ck_assert_uint_eq(fake.hold.token, 5);
    fake_answer(REPLY_ERROR, 0, 0);
    ck_assert_str_eq(fake_output(me), "-NOTHELD not held\r\n");
    ck_assert_ptr_nonnull(
        strstr(fake_run(me, "INFO commandstats"), "cmdstat_unlock:calls=1,"));
    ck_assert_ptr_nonnull(strstr(fake_run(me, "INFO commandstats"), "failed_calls=1"));
}

START_TEST(an_unread_grant_is_reported_when_the_connection_ends)
{
    (void)fake_run(me, "LOCK a");
    fake_answer(REPLY_TOKEN, 1, 11);
    (void)fake_run(me, "LOCK b"); /* by then the first token was read */
    fake_answer(REPLY_TOKEN, 2, 12);
    me->input--;
    (void)fake_run(me, "LOCK c"); /* came together with the second */
    fake_answer(REPLY_TOKEN, 3, 13);
    fake_close(me, true);
    ck_assert_uint_eq(fake.undelivered_count, 2);
    ck_assert_uint_eq(fake.undelivered[0], 12);
    ck_assert_uint_eq(fake.undelivered[1], 13);
    ck_assert_uint_eq(fake.closed_conn, 1);
}

START_TEST(a_grant_that_was_read_is_not_in_doubt)
{
    (void)fake_run(me, "LOCK a");
    fake_answer(REPLY_TOKEN, 1, 11);
    me->input++;
    fake_close(me, true);
    ck_assert_uint_eq(fake.undelivered_count, 0);
    ck_assert_uint_eq(fake.closed_conn, 1);
}

START_TEST(a_clean_end_leaves_grants_alone)
{
    (void)fake_run(me, "LOCK a");
    fake_answer(REPLY_TOKEN, 1, 11);
    fake_close(me, false);
    ck_assert_uint_eq(fake.undelivered_count, 0);
}

START_TEST(unblock_asks_the_engine)
{
    ck_assert_str_eq(fake_run(me, "CLIENT UNBLOCK 2 ERROR"), ":1\r\n");
    ck_assert_str_eq(fake.asked, "unblock with error");
    ck_assert_str_eq(fake_run(me, "CLIENT UNBLOCK 2"), ":1\r\n");
    ck_assert_str_eq(fake.asked, "unblock");
    ck_assert_str_eq(fake_run(me, "CLIENT UNBLOCK 3 timeout"), ":0\r\n");
}

START_TEST(lockinfo_tells_kinds_and_the_queue)
{
    const struct hold_view hold = {
        .owner = SPAN("ann"),
        .lock_kind = KIND_WRITE,
        .count = 1,
        .token = 7,
        .here = true,
        .conn = 4,
        .lease = LEASE_FIXED,
        .held_ms = 9,
        .left_ms = 8,
        .local = true,
        .terms = { .data = SPAN("d"), .atleast_ms = 60 },
    };
    const struct span queue[] = { SPAN("bob"), SPAN("uuid:1") };
    const struct lock_info info = { .name = SPAN("a"),
                                    .lock_kind = KIND_FAIR,
                                    .state = INFO_STATE_UNCERTAIN,
                                    .ttl_ms = 5,
                                    .holds = &hold,
                                    .hold_count = 1,
                                    .queue = queue,
                                    .queue_count = 2 };
    struct effect_reply reply = { .kind = REPLY_INFO, .info = &info };

    (void)fake_run(me, "LOCKINFO a");
    reply.to = fake.hold.from;
    buf_clear(&me->out);
    cmd_reply(fake.cmd, &reply);
    expect_keys(fake_output(me), "",
                "name kind state ttl holds waiting queue losses expired ");
    expect_keys(fake_output(me), "holds.0", HOLD_KEYS);
    expect_fields(fake_output(me), "name", "a", "kind", "fair", "state", "uncertain",
                  "ttl", ":5", "holds.0.owner", "ann", "holds.0.kind", "write",
                  "holds.0.count", ":1", "holds.0.token", ":7", "holds.0.client", ":4",
                  "holds.0.held", ":9", "holds.0.left", ":8", "holds.0.renewed",
                  "fixed", "holds.0.local", ":1", "holds.0.data", "d",
                  "holds.0.atleast", ":60", "waiting", ":0", "queue",
                  "[\"bob\" \"uuid:1\"]", "losses", "[]", "expired", "[]", NULL);
}

START_TEST(who_names_the_value_is_told_the_token)
{
    struct effect_reply reply = { .kind = REPLY_INT, .value = 500, .token = 77 };

    (void)fake_run(me, "RENEW job VALUE v LEASE 500");
    ck_assert_str_eq(fake.asked, "renew");
    ck_assert(fake.hold.tells_token);
    ck_assert_uint_eq(fake.hold.lease_ms, 500);
    expect_text(fake_hear(me, fake.hold.from, reply), ":77\r\n");
    (void)fake_run(me, "RENEW job TOKEN 77 LEASE 500");
    ck_assert(!fake.hold.tells_token);
    expect_text(fake_hear(me, fake.hold.from, INT(500)), ":500\r\n");
}

START_TEST(a_token_of_a_lock_library_is_shown_to_operators, 4)
{
    struct hold_view hold = { .owner = _i < 2 ? SPAN("latchd:value:0123:7:aa:v")
                                              : SPAN("ann"),
                              .token = 77 };
    struct lock_info info = { .name = SPAN("job"), .holds = &hold, .hold_count = 1 };
    struct effect_reply reply = { .kind = REPLY_INFO, .info = &info };
    struct conn *joe = fake_open(1);
    struct conn *who = _i % 2 == 0 ? me : joe;

    (void)fake_run(me, "ACL SETUSER joe on >pw ~* +@all -@admin");
    expect_text(fake_run(joe, "AUTH joe pw"), "+OK\r\n");
    (void)fake_run(who, "LOCKINFO job");
    expect_fields(fake_hear(who, fake.hold.from, reply), "holds.0.token",
                  _i == 1 ? "nil" : ":77", NULL);
}

static void lose(const char *name, const char *owner, uint64_t token)
{
    const struct effect_notice notice = { .kind = NOTICE_LOST,
                                          .name = span_str(name),
                                          .owner = span_str(owner),
                                          .token = token,
                                          .cause = LOSS_FORCED,
                                          .forced_by = 9 };

    cmd_notice(fake.cmd, &notice);
}

static const char *hear_lockinfo(struct conn *who, const char *name)
{
    const struct lock_info info = { .name = span_str(name) };
    const struct effect_reply reply = { .kind = REPLY_INFO, .info = &info };

    (void)fake_run(who, "LOCKINFO job");
    return fake_hear(who, fake.hold.from, reply);
}

START_TEST(lockinfo_tells_what_was_lost_of_the_name)
{
    fake.now_ms = 2000;
    lose("job", "ann", 7);
    lose("other", "bob", 8);
    fake.now_ms = 2500;
    ck_assert(has(hear_lockinfo(me, "job"),
                  "$6\r\nlosses\r\n*1\r\n*16\r\n$5\r\nowner\r\n$3\r\nann\r\n"
                  "$5\r\ntoken\r\n:7\r\n$6\r\nclient\r\n$-1\r\n"
                  "$3\r\nago\r\n:500\r\n$5\r\ncause\r\n$6\r\nforced\r\n"
                  "$5\r\ntaker\r\n$0\r\n\r\n$9\r\nforced_by\r\n:9\r\n"
                  "$11\r\nforced_from\r\n$0\r\n\r\n"));
    ck_assert(has(hear_lockinfo(me, "none"), "losses\r\n*0\r\n"));
}

START_TEST(lockinfo_tells_what_expired_apart_from_losses)
{
    const struct effect_notice notice = {
        .kind = NOTICE_EXPIRED, .name = SPAN("job"), .owner = SPAN("ann"), .token = 7
    };

    fake.now_ms = 2000;
    cmd_notice(fake.cmd, &notice);
    fake.now_ms = 2500;
    ck_assert(has(hear_lockinfo(me, "job"),
                  "$6\r\nlosses\r\n*0\r\n$7\r\nexpired\r\n*1\r\n*8\r\n"
                  "$5\r\nowner\r\n$3\r\nann\r\n$5\r\ntoken\r\n:7\r\n"
                  "$6\r\nclient\r\n$-1\r\n$3\r\nago\r\n:500\r\n"));
    ck_assert_uint_eq(losses_known(cmd_losses(fake.cmd)), 0);
}

START_TEST(lockinfo_tells_the_newest_ten_losses)
{
    const char *got;

    for (uint64_t token = 101; token <= 111; token++) {
        lose("job", "ann", token);
    }
    got = hear_lockinfo(me, "job");
    expect_fields(got, "losses.0.owner", "ann", "losses.0.token", ":111",
                  "losses.9.token", ":102", "losses.10", "nothing", NULL);
}

START_TEST(the_token_of_a_library_s_loss_is_shown_to_operators, 2)
{
    struct conn *joe = fake_open(1);

    (void)fake_run(me, "ACL SETUSER joe on >pw ~* +@all -@admin");
    expect_text(fake_run(joe, "AUTH joe pw"), "+OK\r\n");
    lose("job", "latchd:value:0123:7:aa:v", 77);
    expect_fields(hear_lockinfo(_i == 0 ? me : joe, "job"), "losses.0.token",
                  _i == 0 ? ":77" : "nil", NULL);
}

START_TEST(many_tokens_are_an_array_and_one_grant)
{
    const uint64_t tokens[] = { 3, 9007199254740992 };
    struct effect_reply reply = {
        .kind = REPLY_TOKENS, .grant = 8, .tokens = tokens, .token_count = 2
    };

    (void)fake_run(me, "LOCK a");
    reply.to = fake.hold.from;
    buf_clear(&me->out);
    cmd_reply(fake.cmd, &reply);
    ck_assert_str_eq(fake_output(me), "*2\r\n:3\r\n:9007199254740992\r\n");
    fake_close(me, true);
    ck_assert_uint_eq(fake.undelivered_count, 1);
    ck_assert_uint_eq(fake.undelivered[0], 8);
}

START_TEST(lockinfo_is_a_map_in_resp3)
{
    const struct hold_view hold = {
        .lock_kind = KIND_PLAIN, .owner = SPAN("ann"), .count = 2, .token = 7
    };
    const struct lock_info info = { .name = SPAN("a"),
                                    .state = INFO_STATE_HELD,
                                    .ttl_ms = 500,
                                    .waiting = 3,
                                    .holds = &hold,
                                    .hold_count = 1 };
    struct effect_reply reply = { .kind = REPLY_INFO, .info = &info };

    (void)fake_run(me, "HELLO 3");
    (void)fake_run(me, "LOCKINFO a");
    reply.to = fake.hold.from;
    buf_clear(&me->out);
    cmd_reply(fake.cmd, &reply);
    ck_assert(starts(fake_output(me), "%9\r\n"));
    ck_assert(has(fake_output(me), "holds\r\n*1\r\n%11\r\n"));
    ck_assert(!has(fake_output(me), "$-1\r\n"));
    expect_fields(fake_output(me), "name", "a", "kind", "plain", "state", "held", "ttl",
                  ":500", "holds.0.owner", "ann", "holds.0.kind", "plain",
                  "holds.0.count", ":2", "holds.0.token", ":7", "holds.0.client", "nil",
                  "holds.0.held", "nil", "holds.0.left", "nil", "holds.0.renewed",
                  "nil", "holds.0.local", "nil", "holds.0.data", "", "holds.0.atleast",
                  ":0", "waiting", ":3", "queue", "[]", "losses", "[]", "expired", "[]",
                  NULL);
}

START_TEST(a_pattern_that_is_slow_to_match_is_matched_with_fewer)
{
    char line[400] = "LOCKS COUNT 1000 MATCH *";
    size_t len = strlen(line);

    (void)fake_run(me, "LOCKS COUNT 1000 MATCH *job*");
    ck_assert_uint_eq(fake.scanned, 1000);
    memset(line + len, '?', 249);
    line[len + 249] = '*';
    line[len + 250] = '\0';
    (void)fake_run(me, line);
    ck_assert_uint_eq(fake.scanned, 20);
    (void)fake_run(me, "LOCKS COUNT 7");
    ck_assert_uint_eq(fake.scanned, 7);
}

START_TEST(the_top_is_the_hottest_first_each_once)
{
    (void)fake_run(me, "LOCKS TOP 2");
    expect_keys(fake_output(me), "0", "name waiting waited holds holder latch ");
    expect_keys(fake_output(me), "1.holder", TOP_KEYS);
    expect_fields(fake_output(me), "0.name", "hot", "0.waiting", ":2", "0.waited", ":5",
                  "0.holds", ":0", "0.holder", "nil", "0.latch", ":1", "1.name", "cold",
                  "1.waiting", ":0", "1.waited", ":0", "1.holds", ":1",
                  "1.holder.owner", "ann", "1.holder.kind", "plain", "1.holder.token",
                  ":7", "1.holder.client", ":4", "1.holder.held", ":9", "1.holder.left",
                  ":8", "1.holder.renewed", "fixed", "1.holder.local", ":0",
                  "1.holder.data", "d", "1.holder.atleast", ":60", "1.latch", ":0", "2",
                  "nothing", NULL);
    (void)fake_run(me, "HELLO 3");
    (void)fake_run(me, "LOCKS TOP 1");
    ck_assert(starts(fake_output(me), "*1\r\n%6\r\n"));
    ck_assert(has(fake_output(me), "holder\r\n_\r\n"));
    expect_fields(fake_output(me), "0.name", "hot", "0.holder", "nil", "0.latch", ":1",
                  NULL);
}
