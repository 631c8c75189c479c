/* Finds a command in the table, and the names of locks in its arguments. */
#include "cmd/command_table.h"
#include "cmd/handlers.h"
#include "util/parse.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int compare_row(const void *key, const void *row)
{
    const char *name = ((const struct command *)row)->name;
    int first = *(const unsigned char *)key - (unsigned char)name[0];

    return first != 0 ? first : strcmp(key, name); /* mostly the first letter tells */
}

/* Appends in lower case. False: longer than any name. */
static bool add_lower(char *key, size_t *len, struct span text)
{
    if (*len + text.len >= COMMAND_NAME_MAX) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        char ch = text.ptr[i];

        if (ch == '\0') {
            return false;
        }
        key[(*len)++] = (char)(ch >= 'A' && ch <= 'Z' ? ch - 'A' + 'a' : ch);
    }
    key[*len] = '\0';
    return true;
}

static const struct command *find_command(const char *key)
{
    return bsearch(key, COMMANDS, COMMAND_COUNT, sizeof(COMMANDS[0]), compare_row);
}

const struct command *command_find(struct span name)
{
    char key[COMMAND_NAME_MAX];
    size_t len = 0;

    return add_lower(key, &len, name) ? find_command(key) : NULL;
}

const struct command *command_find_sub(const struct command *container, struct span sub)
{
    char key[COMMAND_NAME_MAX];
    size_t len = 0;

    if (!add_lower(key, &len, span_str(container->name)) ||
        !add_lower(key, &len, SPAN("|")) || !add_lower(key, &len, sub)) {
        return NULL;
    }
    return find_command(key);
}

const struct command *command_resolve(const struct span *argv, size_t argc)
{
    const struct command *c = command_find(argv[0]);

    if (c != NULL && (c->flags & CMD_CONTAINER) != 0 && argc > 1) {
        c = command_find_sub(c, argv[1]);
    }
    return c;
}

bool command_is_lock(const struct command *c)
{
    return c != NULL && (c->flags & CMD_NEEDS_REPLY) != 0;
}

bool command_may_wait(const struct command *c)
{
    return command_is_lock(c) ||
           (c != NULL && (c->run == cmd_leader || c->run == cmd_latch_await));
}

bool command_is_sub(const struct command *c)
{
    return strchr(c->name, '|') != NULL;
}

const struct command *command_subs(const struct command *container, size_t *ret_count)
{
    const struct command *end = COMMANDS + COMMAND_COUNT;
    const struct command *c = container + 1;

    if ((container->flags & CMD_CONTAINER) != 0) {
        while (c < end && command_is_sub(c)) {
            c++;
        }
    }
    *ret_count = (size_t)(c - container - 1);
    return container + 1;
}

const char *command_short_name(const struct command *c)
{
    const char *bar = strchr(c->name, '|');

    return bar == NULL ? c->name : bar + 1;
}

bool command_arity_fits(const struct command *c, size_t argc)
{
    return c->arity >= 0 ? argc == (size_t)c->arity : argc >= (size_t)-c->arity;
}

bool command_key_range(const struct command *c, const struct span *argv, size_t argc,
                       size_t *ret_first, size_t *ret_count)
{
    uint64_t count = 1;

    switch (c->keys) {
    case KEYS_NONE:
        count = 0;
        *ret_first = 0;
        break;
    case KEYS_ONE:
        *ret_first = 1;
        break;
    case KEYS_SECOND:
        *ret_first = 2;
        break;
    case KEYS_ALL:
        *ret_first = 1;
        count = argc - 1;
        break;
    case KEYS_COUNTED:
        *ret_first = 2;
        if (!parse_u64(argv[1], argc - 2, &count) || count == 0) {
            return false;
        }
        break;
    case KEYS_SCRIPT:
        *ret_first = 3;
        if (!parse_u64(argv[2], argc - 3, &count)) {
            return false;
        }
        break;
    }
    *ret_count = (size_t)count;
    return true;
}
