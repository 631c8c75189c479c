#include "acl/catalog.h"

int catalog_command(const struct acl_catalog *c, struct span name)
{
    for (size_t i = 0; i < c->command_count; i++) {
        if (span_eq_nocase(name, span_str(c->commands[i].name))) {
            return (int)i;
        }
    }
    return ACL_NOT_THERE;
}

int catalog_category(const struct acl_catalog *c, struct span name)
{
    for (size_t i = 0; i < c->category_count; i++) {
        if (span_eq_nocase(name, span_str(c->categories[i] + 1))) {
            return (int)i;
        }
    }
    return ACL_NOT_THERE;
}

bool catalog_is_sub(const struct acl_catalog *c, size_t sub, size_t container)
{
    const char *outer = c->commands[container].name;
    size_t len = strlen(outer);

    return strncmp(c->commands[sub].name, outer, len) == 0 &&
           c->commands[sub].name[len] == '|';
}
