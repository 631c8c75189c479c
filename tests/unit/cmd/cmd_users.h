/* cmd_users: two connections of the fake of cmd_fake.h, for tests of users. */
#ifndef LATCHD_TESTS_CMD_USERS_H
#define LATCHD_TESTS_CMD_USERS_H

#include "unit/cmd/cmd_fake.h"

extern struct conn *user; /* logs in as ann */

#define WRONG "-WRONGPASS invalid username-password pair or user is disabled.\r\n"

/* fake_setup(), and both are open. */
void users_setup(void);
/* Ann may do that, and is logged in. */
void ann_may(const char *rules);
/* The user of ann runs that line, and hears this. */
void expect(const char *line, const char *reply);

#endif
