/* value: a reply of RESP2 or RESP3 as a tree, for tests.
 *
 * Strict: what is not to the letter of the protocol is reported, not guessed. */
#ifndef LATCHD_TESTS_VALUE_H
#define LATCHD_TESTS_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum value_type {
    VALUE_NIL,
    VALUE_INT,
    VALUE_STATUS,
    VALUE_ERROR,
    VALUE_TEXT, /* bulk */
    VALUE_LIST, /* array, set; a map is a list of keys and values in turn */
    VALUE_MAP,
    VALUE_PUSH,
    VALUE_BOOL,
    VALUE_DOUBLE,
};

struct value {
    enum value_type type;
    int64_t integer; /* INT, BOOL */
    char *text;      /* STATUS, ERROR, TEXT, DOUBLE; NUL-terminated as well */
    size_t len;
    struct value *items; /* LIST, MAP, PUSH */
    size_t count;
};

/* Bytes that were used; 0: not complete yet; -1: not RESP. */
long value_parse(const char *data, size_t len, struct value *ret);
/* Frees what it points to. */
void value_fini(struct value *v);

/* As redis-cli would print it, on one line; for messages. */
void value_print(const struct value *v, char *ret, size_t room);

/* The value behind `key` in a map or a flat list; NULL: not there. */
const struct value *value_get(const struct value *map, const char *key);
bool value_is_text(const struct value *v, const char *text);

#endif
