/* catalog: the commands and categories that rules can name. cmd/ fills it from its
 * table of commands; it must outlive the users. */
#ifndef LATCHD_ACL_CATALOG_H
#define LATCHD_ACL_CATALOG_H

#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>

enum { ACL_COMMANDS_MAX = 256 }; /* commands of a catalog */

/* A command's number is its index. Sorted by name, in lower case; a subcommand is
 * named `container|sub` and follows its container. */
struct acl_command {
    const char *name;
    unsigned categories; /* bits, see acl_catalog */
    bool open;           /* anybody may run it: AUTH, HELLO, ... */
};

struct acl_catalog {
    const struct acl_command *commands;
    size_t command_count;
    const char *const *categories; /* "@lock", in bit order */
    size_t category_count;
};

enum { ACL_NOT_THERE = -1 };

/* The number of a command, by its name in any case. */
int catalog_command(const struct acl_catalog *c, struct span name);
/* The number of a category's bit, by its name in any case without the `@`. */
int catalog_category(const struct acl_catalog *c, struct span name);
/* Whether `sub` is a subcommand of `container`. */
bool catalog_is_sub(const struct acl_catalog *c, size_t sub, size_t container);

#endif
