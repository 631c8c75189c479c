#include "support/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 16, COUNT_MAX = 10000000 };

static long parse(const char *data, size_t len, struct value *ret, int depth);

static char *copy(const char *data, size_t len)
{
    char *text = malloc(len + 1);

    if (text == NULL) {
        abort();
    }
    memcpy(text, data, len);
    text[len] = '\0';
    return text;
}

static bool number(const char *text, int64_t *ret)
{
    char *end;

    if (*text == '\0' || *text == ' ' || *text == '+') {
        return false;
    }
    *ret = strtoll(text, &end, 10);
    return *end == '\0';
}

static long parse_bulk(const char *data, size_t len, size_t head, int64_t size,
                       struct value *ret)
{
    if (size == -1) {
        ret->type = VALUE_NIL;
        return (long)head;
    }
    if (size < 0) {
        return -1;
    }
    if (len < head + (size_t)size + 2) {
        return 0;
    }
    if (memcmp(data + head + size, "\r\n", 2) != 0) {
        return -1;
    }
    ret->type = VALUE_TEXT;
    ret->text = copy(data + head, (size_t)size);
    ret->len = (size_t)size;
    return (long)head + size + 2;
}

static long parse_items(const char *data, size_t len, size_t head, int64_t count,
                        struct value *ret, int depth)
{
    size_t used = head;

    if (count == -1) {
        ret->type = VALUE_NIL;
        return (long)head;
    }
    if (count < 0 || count > COUNT_MAX || depth >= DEPTH_MAX) {
        return -1;
    }
    ret->items = calloc((size_t)count + 1, sizeof *ret->items);
    if (ret->items == NULL) {
        abort();
    }
    while (ret->count < (size_t)count) {
        long n = parse(data + used, len - used, &ret->items[ret->count], depth + 1);

        if (n <= 0) {
            return n;
        }
        ret->count++;
        used += (size_t)n;
    }
    return (long)used;
}

static long parse_headed(char type, const char *data, size_t len, size_t head,
                         const char *line, struct value *ret, int depth)
{
    int64_t n;

    if (!number(line, &n)) {
        return -1;
    }
    switch (type) {
    case ':':
        ret->type = VALUE_INT;
        ret->integer = n;
        return (long)head;
    case '$':
        return parse_bulk(data, len, head, n, ret);
    case '%':
        ret->type = VALUE_MAP;
        return parse_items(data, len, head, n < 0 ? -2 : n * 2, ret, depth);
    case '>':
        ret->type = VALUE_PUSH;
        return parse_items(data, len, head, n, ret, depth);
    default:
        ret->type = VALUE_LIST;
        return parse_items(data, len, head, n, ret, depth);
    }
}

static long parse_plain(char type, const char *line, size_t len, size_t head,
                        struct value *ret)
{
    switch (type) {
    case '_':
        ret->type = VALUE_NIL;
        return len == 0 ? (long)head : -1;
    case '#':
        ret->type = VALUE_BOOL;
        ret->integer = line[0] == 't';
        return len == 1 ? (long)head : -1;
    case '+':
        ret->type = VALUE_STATUS;
        break;
    case '-':
        ret->type = VALUE_ERROR;
        break;
    case ',':
        ret->type = VALUE_DOUBLE;
        break;
    default:
        return -1;
    }
    ret->text = copy(line, len);
    ret->len = len;
    return (long)head;
}

static long parse(const char *data, size_t len, struct value *ret, int depth)
{
    const char *end = len == 0 ? NULL : memmem(data, len, "\r\n", 2);
    size_t head;
    char *line;
    long used;

    if (end == NULL) {
        return 0;
    }
    head = (size_t)(end - data) + 2;
    line = copy(data + 1, head - 3);
    if (strchr(":$*~%>", data[0]) != NULL) {
        used = parse_headed(data[0], data, len, head, line, ret, depth);
    } else {
        used = parse_plain(data[0], line, head - 3, head, ret);
    }
    free(line);
    if (used <= 0) {
        value_fini(ret);
    }
    return used;
}

long value_parse(const char *data, size_t len, struct value *ret)
{
    memset(ret, 0, sizeof *ret);
    return parse(data, len, ret, 0);
}

void value_fini(struct value *v)
{
    for (size_t i = 0; i < v->count; i++) {
        value_fini(&v->items[i]);
    }
    free(v->items);
    free(v->text);
    memset(v, 0, sizeof *v);
}

static size_t print(const struct value *v, char *ret, size_t room)
{
    size_t at = 0;

    switch (v->type) {
    case VALUE_NIL:
        return (size_t)snprintf(ret, room, "nil");
    case VALUE_INT:
    case VALUE_BOOL:
        return (size_t)snprintf(ret, room, "%" PRId64, v->integer);
    case VALUE_ERROR:
        return (size_t)snprintf(ret, room, "-%s", v->text);
    case VALUE_TEXT:
        return (size_t)snprintf(ret, room, "\"%s\"", v->text);
    case VALUE_STATUS:
    case VALUE_DOUBLE:
        return (size_t)snprintf(ret, room, "%s", v->text);
    default:
        break;
    }
    at += (size_t)snprintf(ret, room, "[");
    for (size_t i = 0; i < v->count && at + 8 < room; i++) {
        at += (size_t)snprintf(ret + at, room - at, i == 0 ? "" : " ");
        at += print(&v->items[i], ret + at, room - at);
    }
    return at + 1 < room ? at + (size_t)snprintf(ret + at, room - at, "]") : room - 1;
}

void value_print(const struct value *v, char *ret, size_t room)
{
    (void)print(v, ret, room);
}

bool value_is_text(const struct value *v, const char *text)
{
    return (v->type == VALUE_TEXT || v->type == VALUE_STATUS) &&
           strlen(text) == v->len && memcmp(v->text, text, v->len) == 0;
}

const struct value *value_get(const struct value *map, const char *key)
{
    for (size_t i = 0; i + 1 < map->count; i += 2) {
        if (value_is_text(&map->items[i], key)) {
            return &map->items[i + 1];
        }
    }
    return NULL;
}
