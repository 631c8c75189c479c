#include "cmd/command_table.h"
#include "unit/cmd/cmd_fake.h"

#include "support/runner.h"

#include <stdio.h>

/* --- outcomes ----------------------------------------------------------------------
 */

struct want {
    const char *name;
    char text[256];
    uint64_t waited;
};

static void describe(void *ctx, const struct cmd_stats *s)
{
    struct want *want = ctx;
    int len;

    if (strcmp(s->name, want->name) != 0) {
        return;
    }
    len = snprintf(want->text, sizeof(want->text), "%d/%d/%d", (int)s->calls,
                   (int)s->rejected, (int)s->failed);
    for (size_t i = 0; i < s->outcome_count; i++) {
        len += snprintf(want->text + len, sizeof(want->text) - (size_t)len, " %s=%d",
                        s->outcomes[i].word, (int)s->outcomes[i].count);
    }
    ck_assert_uint_eq(s->work->count, s->calls);
    want->waited = s->wait == NULL ? UINT64_MAX : s->wait->count;
}

/* "calls/rejected/failed word=count ..." of a row. */
static const char *row(const char *name)
{
    static struct want want;

    want = (struct want){ .name = name };
    cmd_stats_each(fake.cmd, describe, &want);
    return want.text;
}

static uint64_t waited(const char *name)
{
    struct want want = { .name = name };

    cmd_stats_each(fake.cmd, describe, &want);
    return want.waited;
}

TEST_GROUP(.setup = fake_setup, .teardown = fake_teardown);

START_TEST(each_reply_counts_for_its_command)
{
    ck_assert_str_eq(row("ping"), "");
    (void)fake_run(me, "PING");
    (void)fake_run(me, "PING a b c");
    (void)fake_run(me, "GET x");
    (void)fake_run(me, "GET");
    (void)fake_run(me, "SELECT 7");
    ck_assert_str_eq(row("ping"), "2/0/1 ok=1 ERR=1");
    ck_assert_str_eq(row("get"), "1/1/0 null=1 ERR=1");
    ck_assert_str_eq(row("select"), "1/0/1 ERR=1");
    ck_assert_uint_eq(waited("ping"), UINT64_MAX);
}

START_TEST(what_waits_is_counted_when_it_is_answered)
{
    (void)fake_run(me, "LOCK a");
    ck_assert_str_eq(row("lock"), "1/0/0");
    fake_answer(REPLY_TOKEN, 5, 9);
    ck_assert_str_eq(row("lock"), "1/0/0 ok=1");
    (void)fake_run(me, "LOCK a WAIT 5");
    fake_answer(REPLY_NULL, 0, 0);
    (void)fake_run(me, "UNLOCK a TOKEN 5");
    fake_answer(REPLY_ERROR, 0, 0);
    ck_assert_str_eq(row("lock"), "2/0/0 ok=1 null=1");
    ck_assert_str_eq(row("unlock"), "1/0/1 NOTHELD=1");
    ck_assert_uint_eq(waited("lock"), 2);
}

START_TEST(who_leaves_while_waiting_is_counted_as_gone)
{
    struct conn *other = fake_open(1);

    (void)fake_run(other, "LOCK a");
    fake_close(other, false);
    ck_assert_str_eq(row("lock"), "1/0/0 gone=1");
}

START_TEST(what_is_not_run_is_counted_as_rejected)
{
    fake_password("sesame");
    (void)fake_run(fake_open(1), "LOCK a");
    (void)fake_run(&fake.conns[1], "AUTH wrong");
    (void)fake_run(me, "CLIENT NONSENSE");
    ck_assert_str_eq(row("lock"), "0/1/0 NOAUTH=1");
    ck_assert_str_eq(row("auth"), "1/0/1 WRONGPASS=1");
    ck_assert_str_eq(row("client"), "0/1/0 ERR=1");
    (void)fake_run(me, "CONFIG RESETSTAT");
    ck_assert_str_eq(row("lock"), "");
}
