#include "latchctl/answer.h"

#include "latchctl/link.h"
#include "latchctl/show.h"
#include "util/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { KEY_ROOM = 64 };

bool answer_send(struct buf *out)
{
    size_t len = buf_len(out); /* of nothing there is no pointer */
    bool sent = (len == 0 || fwrite(buf_ptr(out), 1, len, stdout) == len) &&
                fflush(stdout) == 0 && ferror(stdout) == 0;

    buf_reset(out);
    return sent;
}

static void add_object(struct buf *out, const struct answer_field *fields, size_t count)
{
    struct json j = { .out = out };

    json_open(&j, NULL, '{');
    for (size_t i = 0; i < count; i++) {
        const struct answer_field *f = &fields[i];

        if (f->type == ANSWER_NUMBER) {
            json_uint(&j, f->key, f->number);
        } else if (f->type == ANSWER_BOOL) {
            json_bool(&j, f->key, f->number != 0);
        } else if (f->type == ANSWER_TEXT && f->text.len != 0) {
            json_bytes(&j, f->key, f->text);
        } else {
            json_null(&j, f->key);
        }
    }
    json_close(&j, '}');
}

static void add_words(struct buf *out, const struct answer_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct answer_field *f = &fields[i];

        if (f->json_only || (f->type != ANSWER_NUMBER &&
                             (f->type != ANSWER_TEXT || f->text.len == 0))) {
            continue;
        }
        buf_add_str(out, buf_len(out) == 0 ? "" : " ");
        if (f->type == ANSWER_NUMBER) {
            buf_printf(out, "%" PRIu64, f->number);
        } else {
            show_bytes(out, f->text, 0);
        }
    }
}

bool answer_print(bool json, const struct answer_field *fields, size_t count)
{
    struct buf out = { 0 };

    (json ? add_object : add_words)(&out, fields, count);
    if (buf_len(&out) == 0) {
        return true;
    }
    buf_add_str(&out, "\n");
    return answer_send(&out);
}

/* Keys are written as they are, so one that needs escapes, which latchd has not, is
 * left out: the JSON stays valid whatever has answered. */
static bool copy_key(struct span key, char *ret)
{
    for (size_t i = 0; i < key.len; i++) {
        if (key.ptr[i] < ' ' || key.ptr[i] == '"' || key.ptr[i] == '\\' ||
            key.ptr[i] == 0x7f) {
            return false;
        }
    }
    return snprintf(ret, KEY_ROOM, "%.*s", (int)key.len, key.ptr) < KEY_ROOM;
}

/* RESP2 writes maps as arrays; these keys tell them apart. */
static void add_of_key(struct json *j, const char *key, const redisReply *reply)
{
    static const char *const MAPS[] = { "holds", "losses", "expired" };

    for (size_t i = 0; i < sizeof(MAPS) / sizeof(MAPS[0]); i++) {
        if (strcmp(key, MAPS[i]) == 0 && reply->type == REDIS_REPLY_ARRAY) {
            answer_add_maps(j, key, reply);
            return;
        }
    }
    (strcmp(key, "holder") == 0 ? answer_add_map : answer_add_reply)(j, key, reply);
}

void answer_add_reply(struct json *j, const char *key, const redisReply *reply)
{
    if (reply == NULL || reply->type == REDIS_REPLY_NIL) {
        json_null(j, key);
    } else if (reply->type == REDIS_REPLY_INTEGER) {
        json_uint(j, key, (uint64_t)reply->integer);
    } else if (reply->type == REDIS_REPLY_ARRAY) {
        json_open(j, key, '[');
        for (size_t i = 0; i < reply_count(reply); i++) {
            answer_add_reply(j, NULL, reply_at(reply, i));
        }
        json_close(j, ']');
    } else {
        json_bytes(j, key, reply_text(reply));
    }
}

void answer_add_map(struct json *j, const char *key, const redisReply *reply)
{
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY) {
        json_null(j, key);
        return;
    }
    json_open(j, key, '{');
    for (size_t i = 0; i + 1 < reply_count(reply); i += 2) {
        char word[KEY_ROOM];

        if (copy_key(reply_text(reply_at(reply, i)), word)) {
            add_of_key(j, word, reply_at(reply, i + 1));
        }
    }
    json_close(j, '}');
}

void answer_add_maps(struct json *j, const char *key, const redisReply *reply)
{
    json_open(j, key, '[');
    for (size_t i = 0; i < reply_count(reply); i++) {
        answer_add_map(j, NULL, reply_at(reply, i));
    }
    json_close(j, ']');
}

void answer_add_info(struct json *j, const char *key, struct span info)
{
    json_open(j, key, '{');
    while (info.len > 0) {
        const char *end = memchr(info.ptr, '\n', info.len);
        size_t len = end == NULL ? info.len : (size_t)(end - info.ptr);
        struct span line = span_of(info.ptr, len);
        const char *colon = memchr(line.ptr, ':', line.len);
        char word[KEY_ROOM];
        uint64_t number;

        info = span_after(info, end == NULL ? len : len + 1);
        if (line.len > 0 && line.ptr[line.len - 1] == '\r') {
            line.len--;
        }
        if (line.len == 0 || line.ptr[0] == '#' || colon == NULL ||
            !copy_key(span_of(line.ptr, (size_t)(colon - line.ptr)), word)) {
            continue;
        }
        line = span_after(line, (size_t)(colon - line.ptr) + 1);
        if (parse_u64(line, INT64_MAX, &number)) {
            json_uint(j, word, number);
        } else {
            json_bytes(j, word, line);
        }
    }
    json_close(j, '}');
}
