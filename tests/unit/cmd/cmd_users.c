#include "unit/cmd/cmd_users.h"

#include "support/runner.h"
#include "util/log.h"

#include <stdio.h>

struct conn *user;

void users_setup(void)
{
    fake_setup();
    log_set_level(LOG_ERROR);
    user = fake_open(1);
}

void ann_may(const char *rules)
{
    char line[256];

    (void)snprintf(line, sizeof(line), "ACL SETUSER ann reset on >pw %s", rules);
    ck_assert_str_eq(fake_run(me, line), "+OK\r\n");
    ck_assert_str_eq(fake_run(user, "AUTH ann pw"), "+OK\r\n");
}

void expect(const char *line, const char *reply)
{
    ck_assert_str_eq(fake_run(user, line), reply);
}
