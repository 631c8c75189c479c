#include "latchctl/ask.h"

#include "latchctl/show.h"
#include "util/parse.h"

enum { ANSWER_MS = 10000 };

bool ask_open(struct link *l, struct options *o)
{
    if (!link_connect(l, &o->target, ANSWER_MS)) {
        print_message("latchd at %s: %s",
                      o->target.about == NULL ? o->target.host : o->target.about,
                      l->error);
        return false;
    }
    return true;
}

static redisReply *send_words(struct link *l, const char *const *words)
{
    redisReply *reply;

    link_send(l, words);
    reply = link_wait(l, ANSWER_MS);
    if (reply == NULL) {
        print_message("%s", l->error);
    }
    return reply;
}

redisReply *ask_quietly(struct link *l, const char *const *words)
{
    redisReply *reply = send_words(l, words);

    if (reply != NULL && reply->type == REDIS_REPLY_ERROR) {
        freeReplyObject(reply);
        return NULL;
    }
    return reply;
}

redisReply *ask_daemon(struct link *l, const char *const *words)
{
    redisReply *reply = send_words(l, words);

    if (reply != NULL && reply->type == REDIS_REPLY_ERROR) {
        print_message("%s", reply->str);
        freeReplyObject(reply);
        return NULL;
    }
    return reply;
}

/* --- reading answers -------------------------------------------------- */

size_t reply_count(const redisReply *reply)
{
    return reply == NULL || reply->type != REDIS_REPLY_ARRAY ? 0 : reply->elements;
}

const redisReply *reply_at(const redisReply *reply, size_t index)
{
    return index < reply_count(reply) ? reply->element[index] : NULL;
}

struct span reply_text(const redisReply *reply)
{
    return reply == NULL || (reply->type != REDIS_REPLY_STRING &&
                             reply->type != REDIS_REPLY_STATUS)
               ? SPAN("")
               : span_of(reply->str, (size_t)reply->len);
}

const redisReply *reply_get(const redisReply *map, const char *key)
{
    for (size_t i = 0; i + 1 < reply_count(map); i += 2) {
        if (span_eq(reply_text(map->element[i]), span_str(key))) {
            return map->element[i + 1];
        }
    }
    return NULL;
}

bool reply_has_number(const redisReply *reply)
{
    return reply != NULL && reply->type == REDIS_REPLY_INTEGER;
}

uint64_t reply_number(const redisReply *reply)
{
    return reply_has_number(reply) && reply->integer > 0 ? (uint64_t)reply->integer : 0;
}

/* Finds the text after `key` and `mark`, up to one of `ends`; `key` is at the start of
 * the text, or after one of `ends`. */
static struct span find_value(struct span text, const char *key, char mark,
                              const char *ends)
{
    size_t len = strlen(key);
    bool start = true;

    for (size_t i = 0; i + len < text.len; i++) {
        if (start && memcmp(text.ptr + i, key, len) == 0 && text.ptr[i + len] == mark) {
            struct span rest = span_after(text, i + len + 1);
            size_t n = 0;

            while (n < rest.len && strchr(ends, rest.ptr[n]) == NULL) {
                n++;
            }
            return span_of(rest.ptr, n);
        }
        start = strchr(ends, text.ptr[i]) != NULL;
    }
    return SPAN("");
}

struct span line_get(struct span line, const char *key)
{
    return find_value(line, key, '=', " \r\n");
}

struct span info_get(struct span info, const char *key)
{
    return find_value(info, key, ':', "\r\n");
}

uint64_t info_number(struct span info, const char *key)
{
    uint64_t number;

    return parse_u64(info_get(info, key), UINT64_MAX, &number) ? number : 0;
}
