/* acl_catalog: a few commands for the tests of rules. */
#ifndef LATCHD_TESTS_ACL_CATALOG_H
#define LATCHD_TESTS_ACL_CATALOG_H

#include "acl/permissions.h"

enum { CAT_LOCK = 1, CAT_READ = 2, CAT_ADMIN = 4 };

enum { CMD_CLIENT, CMD_CLIENT_ID, CMD_CLIENT_KILL, CMD_FREE, CMD_LOCK, CMD_LOOK };

static const struct acl_command COMMANDS[] = {
    { "client", 0, false },
    { "client|id", CAT_READ, false },
    { "client|kill", CAT_ADMIN, false },
    { "free", CAT_LOCK | CAT_ADMIN, false },
    { "lock", CAT_LOCK, false },
    { "look", CAT_LOCK | CAT_READ, false },
};
static const char *const CATEGORIES[] = { "@lock", "@read", "@admin" };
static const struct acl_catalog CATALOG = { COMMANDS, 6, CATEGORIES, 3 };

#endif
