#include "unit/cmd/cmd_fake.h"

#include "cmd/stats.h"
#include "support/runner.h"

TEST_GROUP(.setup = fake_setup, .teardown = fake_teardown);

START_TEST(sections_are_those_of_redis_and_ours)
{
    static const char *const NAMES[] = { "Server", "Clients",    "Memory",  "Stats",
                                         "Locks",  "Watchdog",   "Redis",   "Latency",
                                         "CPU",    "Errorstats", "Keyspace" };
    const char *out;

    out = fake_run(me, "INFO");
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
        ck_assert_msg(has(out, NAMES[i]), "%s", NAMES[i]);
    }
    ck_assert(!has(out, "# Commandstats"));
    ck_assert(has(fake_run(me, "INFO all"), "# Commandstats"));
    ck_assert(has(fake_run(me, "INFO everything"), "# Latencystats"));
    ck_assert(!has(fake_run(me, "INFO default"), "# Latencystats"));
    ck_assert_str_eq(fake_run(me, "INFO nonsense"), "$0\r\n\r\n");
    out = fake_run(me, "INFO locks WATCHDOG");
    ck_assert(has(out, "# Locks\r\nlocks:5\r\n") && has(out, "\r\n\r\n# Watchdog\r\n"));
    ck_assert(!has(out, "# Server"));
}

START_TEST(loans_are_told_with_how_they_ended)
{
    ck_assert(has(fake_run(me, "INFO locks"),
                  "\r\nlent:1\r\nloans:6\r\nloans_settled:2\r\n"
                  "loans_returned:3\r\nloan_renewals:4\r\nlocal_grants:70\r\n"));
}

START_TEST(it_is_told_how_often_waiters_stood_back)
{
    ck_assert(has(fake_run(me, "INFO locks"), "\r\nyields:4\r\n"));
}

START_TEST(commands_are_told_by_outcome)
{
    const char *out;

    (void)fake_run(me, "GET x");
    (void)fake_run(me, "LOCK a");
    fake_answer(REPLY_ERROR, 0, 0);
    (void)fake_run(me, "NONSENSE");
    out = fake_run(me, "INFO commandstats errorstats latencystats stats");
    ck_assert(has(out, "rejected_calls=0,failed_calls=1,NOTHELD=1\r\n"));
    ck_assert(has(out, "cmdstat_get:calls=1,usec="));
    ck_assert(has(out, ",failed_calls=0,null=1\r\n"));
    ck_assert(has(out, "errorstat_ERR:count=1\r\nerrorstat_NOTHELD:count=1\r\n"));
    ck_assert(has(out, "latency_percentiles_usec_get:p50="));
    ck_assert(has(out, "latency_wait_percentiles_usec_lock:p50="));
    ck_assert(!has(out, "latency_wait_percentiles_usec_get"));
    ck_assert(has(out, "total_error_replies:2\r\n"));
}

START_TEST(rates_are_of_the_last_second)
{
    cmd_second(fake.cmd, 1000);
    for (int i = 0; i < 10; i++) {
        (void)fake_run(me, "PING");
    }
    cmd_second(fake.cmd, 1500);
    ck_assert(has(fake_run(me, "INFO stats"), "instantaneous_ops_per_sec:20\r\n"));
    (void)fake_run(me, "CONFIG RESETSTAT");
    cmd_second(fake.cmd, 2500);
    ck_assert(has(fake_run(me, "INFO stats"), "instantaneous_ops_per_sec:0\r\n"));
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);

    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

START_TEST(metrics_are_named_as_prometheus_wants_it, STAT_COUNT)
{
    const struct stat_row *row = &STATS[_i];
    bool seconds = row->type == STAT_MS || row->type == STAT_TIMES;

    ck_assert_msg(ends_with(row->help, "."), "%s", row->name);
    ck_assert_msg(row->json[0] == '\0' || strchr(row->json, '.') != NULL, "%s",
                  row->name);
    ck_assert_msg(row->section[0] != '\0' || row->metric[0] != '\0', "%s", row->name);
    if (row->metric[0] == '\0') {
        return;
    }
    ck_assert_msg(ends_with(row->metric, "_total") == (row->type == STAT_COUNTER), "%s",
                  row->metric);
    ck_assert_msg(ends_with(row->metric, "_seconds") == seconds, "%s", row->metric);
    for (int i = 0; i < _i; i++) {
        ck_assert_str_ne(row->metric, STATS[i].metric);
    }
}
