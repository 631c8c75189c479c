#include "http/reply_json.h"

#include "util/text.h"

#include <string.h>

enum {
    LEVELS_MAX = 8,
    KEY_ROOM = 32,
    TEXT_MAX = 64 * 1024 * 1024, /* bytes: more is no length of ours */
};

/* The line at the start of *in, without its end. */
static enum reply_read read_line(struct span *in, struct span *ret)
{
    const char *end = in->len == 0 ? NULL : memchr(in->ptr, '\r', in->len);
    size_t len;

    if (end == NULL || (size_t)(end - in->ptr) + 2 > in->len) {
        return REPLY_UNFINISHED;
    }
    len = (size_t)(end - in->ptr);
    if (end[1] != '\n' || len == 0) {
        return REPLY_MALFORMED;
    }
    *ret = span_of(in->ptr, len);
    *in = span_after(*in, len + 2);
    return REPLY_READ;
}

/* Reads the text of a '$' whose length is `len`. */
static enum reply_read read_text(struct span *in, uint64_t len, struct span *ret)
{
    if (in->len < len + 2) {
        return REPLY_UNFINISHED;
    }
    if (memcmp(in->ptr + len, "\r\n", 2) != 0) {
        return REPLY_MALFORMED;
    }
    *ret = span_of(in->ptr, len);
    *in = span_after(*in, len + 2);
    return REPLY_READ;
}

enum reply_read reply_read_value(struct span *in, struct reply_value *ret)
{
    struct span rest = *in, line, head;
    uint64_t number = 0;
    enum reply_read r = read_line(&rest, &line);

    if (r != REPLY_READ) {
        return r;
    }
    *ret = (struct reply_value){ .type = line.ptr[0] };
    head = span_after(line, 1);
    switch (ret->type) {
    case '+':
    case '-':
    case ',':
        ret->text = head;
        break;
    case '_':
        break;
    case '#':
        ret->number = span_eq(head, SPAN("t"));
        break;
    case ':':
        if (!parse_i64(head, &ret->number)) {
            return REPLY_MALFORMED;
        }
        break;
    case '$':
        if (!parse_u64(head, TEXT_MAX, &number)) {
            return REPLY_MALFORMED;
        }
        r = read_text(&rest, number, &ret->text);
        break;
    case '*':
    case '~':
    case '>':
    case '%':
        if (!parse_u64(head, TEXT_MAX, &number)) {
            return REPLY_MALFORMED;
        }
        ret->parts = ret->type == '%' ? 2 * number : number;
        break;
    default:
        return REPLY_MALFORMED;
    }
    if (r == REPLY_READ) {
        *in = rest;
    }
    return r;
}

enum reply_read reply_cut(struct span *in, struct span *ret)
{
    struct span rest = *in;
    struct reply_value v;

    for (size_t left = 1; left > 0; left += v.parts - 1) {
        enum reply_read r = reply_read_value(&rest, &v);

        if (r != REPLY_READ) {
            return r;
        }
    }
    *ret = span_of(in->ptr, in->len - rest.len);
    *in = rest;
    return REPLY_READ;
}

struct span reply_error_word(const struct reply_value *v, struct span *ret_text)
{
    struct span rest = v->text, word;

    if (!span_cut(&rest, ' ', &word)) {
        *ret_text = SPAN_NONE;
        return v->text;
    }
    *ret_text = rest;
    return word;
}

/* A value without parts. */
static void add_value(struct json *j, const char *key, const struct reply_value *v)
{
    switch (v->type) {
    case ':':
        json_uint(j, key, (uint64_t)v->number);
        break;
    case '#':
        json_bool(j, key, v->number != 0);
        break;
    case '_':
        json_null(j, key);
        break;
    default:
        json_bytes(j, key, v->text);
        break;
    }
}

static bool read_key(struct span *in, char key[KEY_ROOM])
{
    struct reply_value v;

    if (reply_read_value(in, &v) != REPLY_READ || (v.type != '$' && v.type != '+') ||
        v.text.len >= KEY_ROOM) {
        return false;
    }
    memcpy(key, v.text.ptr, v.text.len);
    key[v.text.len] = '\0';
    return true;
}

bool reply_add_json(struct json *j, const char *key, struct span reply)
{
    struct {
        bool is_map;
        size_t left; /* parts that are still to come */
    } levels[LEVELS_MAX];
    size_t depth = 0;
    char own_key[KEY_ROOM];
    struct reply_value v;

    do {
        bool in_map = depth > 0 && levels[depth - 1].is_map;

        if (in_map && !read_key(&reply, own_key)) {
            return false;
        }
        if (depth > 0) {
            key = in_map ? own_key : NULL;
            levels[depth - 1].left -= in_map ? 2 : 1;
        }
        if (reply_read_value(&reply, &v) != REPLY_READ) {
            return false;
        }
        if (strchr("*~>%", v.type) == NULL) {
            add_value(j, key, &v);
        } else if (depth == LEVELS_MAX) {
            return false;
        } else {
            json_open(j, key, v.type == '%' ? '{' : '[');
            levels[depth].is_map = v.type == '%';
            levels[depth++].left = v.parts;
        }
        while (depth > 0 && levels[depth - 1].left == 0) {
            json_close(j, levels[--depth].is_map ? '}' : ']');
        }
    } while (depth > 0);
    return true;
}
