#include "cmd/command_table.h"

#include "cmd/handlers.h"
#include "terms-usage.h"
#include "util/text.h"

#include <endian.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const char *const ACL_CATEGORY_NAMES[ACL_CATEGORY_COUNT] = {
    "@lock", "@keyspace", "@read",     "@write",     "@pubsub",     "@admin",
    "@fast", "@slow",     "@blocking", "@dangerous", "@connection", "@transaction",
};

/* Flags that several rows have in common. */
enum {
    ACL_CONN = ACL_FAST | ACL_CONNECTION,
    ACL_CLIENT = ACL_SLOW | ACL_CONNECTION,
    ACL_OPERATOR = ACL_ADMIN | ACL_SLOW | ACL_DANGEROUS,
    ACL_TRANSACT = ACL_FAST | ACL_TRANSACTION,
    ACL_SCRIPT = ACL_LOCK | ACL_SLOW, /* without it EVALSHA is of little use */
    ACL_LISTEN = ACL_PUBSUB | ACL_SLOW,
    ACL_HOLD = ACL_LOCK | ACL_KEYSPACE | ACL_WRITE | ACL_FAST,
    ACL_LOOK = ACL_LOCK | ACL_KEYSPACE | ACL_READ,
    CMD_LIBRARY = CMD_WRITE | CMD_FAST, /* of lock libraries; the engine answers */
};

const struct command COMMANDS[] = {
#define COMMAND(name, run, arity, keys, flags, acl, group, since, usage, summary,      \
                complexity)                                                            \
    { name, run, arity, keys, flags, acl, group, since, usage, summary, complexity },
#include "cmd/commands.def"
};

const size_t COMMAND_COUNT = sizeof(COMMANDS) / sizeof(COMMANDS[0]);

/* Finds a command in the table, and the names of locks in its arguments. */

/* Appends in lower case to a key of NULs. False: longer than any name. */
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
    return true;
}

/* The first bytes of a name, as a number that sorts as they do. */
static uint64_t read_head(const char *name)
{
    uint64_t head;

    memcpy(&head, name, sizeof(head));
    return be64toh(head);
}

/* Whether a row has the name of a key with the same head. */
static bool has_tail(const struct command *row, const char *key)
{
    enum { HEAD = sizeof(uint64_t) };

    return memcmp(row->name + HEAD, key + HEAD, COMMAND_NAME_MAX - HEAD) == 0;
}

/* Every request is looked up, so the search compares heads, up to the last row that has
 * this one or a smaller one. */
static const struct command *find_command(const char *key)
{
    uint64_t head = read_head(key);
    size_t at = 0;

    for (size_t count = COMMAND_COUNT, half; count > 1; count -= half) {
        half = count / 2;
        at += read_head(COMMANDS[at + half].name) <= head ? half : 0;
    }
    for (; read_head(COMMANDS[at].name) == head; at--) {
        if (has_tail(&COMMANDS[at], key)) {
            return &COMMANDS[at];
        }
        if (at == 0) {
            break;
        }
    }
    return NULL;
}

const struct command *command_find(struct span name)
{
    char key[COMMAND_NAME_MAX] = { 0 };
    size_t len = 0;

    return add_lower(key, &len, name) ? find_command(key) : NULL;
}

const struct command *command_find_sub(const struct command *container, struct span sub)
{
    char key[COMMAND_NAME_MAX] = { 0 };
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

bool command_waits_for_others(const struct command *c)
{
    return c != NULL && (c->flags & CMD_BLOCKING) != 0 && (c->acl & ACL_BLOCKING) != 0;
}

bool command_may_wait(const struct command *c)
{
    return command_is_lock(c) || command_waits_for_others(c);
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
