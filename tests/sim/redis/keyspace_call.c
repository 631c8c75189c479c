/* From a command's words to what it does, and to its reply. */
#include "sim/redis/keyspace_priv.h"
#include "util/alloc.h"
#include "util/buf.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { COMMAND_NAME_MAX = 16 };

static const struct {
    char name[COMMAND_NAME_MAX];
    key_command *run;
    size_t words, most; /* with its name; 0: any number */
} COMMANDS[] = {
    { "get", key_get, 2, 2 },
    { "set", key_set, 3, 0 },
    { "mget", key_mget, 2, 0 },
    { "del", key_del, 2, 0 },
    { "unlink", key_del, 2, 0 },
    { "exists", key_exists, 2, 0 },
    { "type", key_type_of, 2, 2 },
    { "pttl", key_pttl, 2, 2 },
    { "pexpire", key_pexpire, 3, 3 },
    { "strlen", key_strlen, 2, 2 },
    { "incr", key_incr, 2, 2 },
    { "incrby", key_incrby, 3, 3 },
    { "time", key_time, 1, 1 },
    { "publish", key_publish, 3, 3 },
    { "pubsub", key_pubsub, 3, 3 },
    { "flushall", key_flushall, 1, 1 },
    { "hset", hash_set, 4, 0 },
    { "hget", hash_get, 3, 3 },
    { "hmget", hash_mget, 3, 0 },
    { "hgetall", hash_getall, 2, 2 },
    { "hkeys", hash_keys, 2, 2 },
    { "hvals", hash_vals, 2, 2 },
    { "hlen", hash_len, 2, 2 },
    { "hexists", hash_exists, 3, 3 },
    { "hdel", hash_del, 3, 0 },
    { "hincrby", hash_incrby, 4, 4 },
    { "hscan", hash_scan, 5, 5 },
    { "lpush", list_lpush, 3, 0 },
    { "rpush", list_rpush, 3, 0 },
    { "lpop", list_lpop, 2, 2 },
    { "lindex", list_index, 3, 3 },
    { "llen", list_len, 2, 2 },
    { "lrange", list_range, 4, 4 },
    { "lrem", list_rem, 4, 4 },
    { "ltrim", list_trim, 4, 4 },
    { "lpos", list_pos, 3, 3 },
    { "zadd", zset_add, 4, 0 },
    { "zrem", zset_rem, 3, 0 },
    { "zscore", zset_score, 3, 3 },
    { "zmscore", zset_mscore, 3, 0 },
    { "zcard", zset_card, 2, 2 },
    { "zrange", zset_range, 4, 4 },
    { "zincrby", zset_incrby, 4, 4 },
    { "decrby", key_decrby, 3, 3 },
    { "zrangebyscore", zset_range_by_score, 4, 0 },
};

enum { COMMAND_COUNT = sizeof(COMMANDS) / sizeof(COMMANDS[0]) };

/* --- replies -------------------------------------------------------------- */

void reply_nil(struct key_call *c)
{
    c->reply = (struct key_reply){ .type = KEY_REPLY_NIL };
}

void reply_integer(struct key_call *c, int64_t value)
{
    c->reply = (struct key_reply){ .type = KEY_REPLY_INTEGER, .integer = value };
}

struct key_reply key_bulk(struct span text)
{
    return (struct key_reply){ .type = KEY_REPLY_BULK, .text = text };
}

void reply_bulk(struct key_call *c, struct span text)
{
    c->reply = key_bulk(text);
}

void reply_ok(struct key_call *c)
{
    c->reply = (struct key_reply){ .type = KEY_REPLY_STATUS, .text = SPAN("OK") };
}

void reply_error(struct key_call *c, const char *text)
{
    c->reply = (struct key_reply){ .type = KEY_REPLY_ERROR, .text = span_str(text) };
}

void reply_score(struct key_call *c, double score)
{
    char *at = c->ks->digits[0];
    int len;

    if (fabs(score) < 1e15 && score == floor(score)) {
        reply_bulk(c, key_digits(c->ks, (int64_t)score));
        return;
    }
    len = snprintf(at, KEYSPACE_DIGITS, "%.17g", score);
    reply_bulk(c, span_of(at, (size_t)len));
}

struct key_reply *reply_array(struct key_call *c, size_t count)
{
    struct keyspace *ks = c->ks;

    if (count > ks->pool_room) {
        ks->pool_room = count + 64;
        ks->pool = xrealloc(ks->pool, ks->pool_room * sizeof(*ks->pool));
    }
    c->reply = (struct key_reply){ .type = KEY_REPLY_ARRAY,
                                   .items = ks->pool,
                                   .count = count };
    return ks->pool;
}

/* --- arguments ------------------------------------------------------------ */

struct span key_digits(struct keyspace *ks, int64_t value)
{
    char *end = ks->digits[0] + KEYSPACE_DIGITS;
    char *at = digits_before(end, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);

    if (value < 0) {
        *--at = '-';
    }
    return span_of(at, (size_t)(end - at));
}

/* As Redis writes it, and no other way: no sign but `-`, no zero in front. */
bool key_parse_integer(struct span text, int64_t *ret)
{
    bool minus = text.len > 0 && text.ptr[0] == '-';
    uint64_t value = 0;
    uint64_t most = (uint64_t)INT64_MAX + (minus ? 1 : 0);

    text = minus ? span_after(text, 1) : text;
    if (text.len == 0 || text.len > 19 || (text.ptr[0] == '0' && text.len > 1) ||
        (text.ptr[0] == '0' && minus)) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return false;
        }
        value = value * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    if (value > most) {
        return false;
    }
    *ret = (int64_t)(minus ? 0 - value : value);
    return true;
}

bool call_integer(struct key_call *c, size_t arg, int64_t *ret)
{
    if (key_parse_integer(c->argv[arg], ret)) {
        return true;
    }
    reply_error(c, "ERR value is not an integer or out of range");
    return false;
}

bool call_score(struct key_call *c, size_t arg, double *ret)
{
    struct span word = c->argv[arg];
    char text[64];
    char *end;
    int64_t whole;

    if (key_parse_integer(word, &whole)) {
        *ret = (double)whole;
        return true;
    }
    if (word.len > 0 && word.len < sizeof(text) && word.ptr[0] != ' ') {
        memcpy(text, word.ptr, word.len);
        text[word.len] = '\0';
        *ret = strtod(text, &end);
        if (end == text + word.len && !isnan(*ret)) {
            return true;
        }
    }
    reply_error(c, "ERR value is not a valid float");
    return false;
}

bool call_word(const struct key_call *c, size_t arg, const char *word)
{
    return c->argv[arg].len == strlen(word) &&
           strncasecmp(c->argv[arg].ptr, word, c->argv[arg].len) == 0;
}

bool call_range(struct key_call *c, size_t arg, size_t count, size_t *ret_from,
                size_t *ret_to)
{
    int64_t size = (int64_t)count;
    int64_t from;
    int64_t to;

    if (!call_integer(c, arg, &from) || !call_integer(c, arg + 1, &to)) {
        return false;
    }
    from = from < 0 ? from + size : from;
    to = to < 0 ? to + size : to;
    from = from < 0 ? 0 : from;
    to = to >= size ? size - 1 : to;
    *ret_from = *ret_to = 0;
    if (from <= to) {
        *ret_from = (size_t)from;
        *ret_to = (size_t)to + 1;
    }
    return true;
}

bool call_key(struct key_call *c, enum key_type type, struct key **ret)
{
    *ret = keyspace_find(c->ks, c->argv[1]);
    if (*ret == NULL || (*ret)->type == type) {
        return true;
    }
    reply_error(c, "WRONGTYPE Operation against a key holding the wrong kind of value");
    return false;
}

bool call_make_key(struct key_call *c, enum key_type type, struct key **ret)
{
    if (!call_key(c, type, ret)) {
        return false;
    }
    if (*ret == NULL) {
        *ret = key_make(c->ks, c->argv[1], type);
    }
    return true;
}

void call_remove_items(struct key_call *c, enum key_type type)
{
    struct key *k;
    int64_t count = 0;

    if (!call_key(c, type, &k)) {
        return;
    }
    for (size_t i = 2; k != NULL && i < c->argc; i++) {
        size_t at = key_item_at(k, c->argv[i]);

        if (at != KEY_NONE) {
            key_remove(k, at);
            count++;
        }
    }
    if (k != NULL) {
        key_drop_if_empty(c->ks, k);
    }
    reply_integer(c, count);
}

/* --- dispatch ------------------------------------------------------------- */

enum { SLOTS = 256 }; /* a few times as many as commands */

static size_t slot_of_command(const char *low, size_t len)
{
    return ((size_t)low[0] * 7 + (size_t)low[1] * 31 + (size_t)low[len - 1] * 3 + len) %
           SLOTS;
}

/* Open addressing; 0 is nothing, else the command's index and 1. */
static unsigned char slots[SLOTS];

static void fill_slots(void)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        size_t at = slot_of_command(COMMANDS[i].name, strlen(COMMANDS[i].name));

        while (slots[at] != 0) {
            at = (at + 1) % SLOTS;
        }
        slots[at] = (unsigned char)(i + 1);
    }
}

static size_t find_command(struct span name)
{
    static bool filled;
    char low[COMMAND_NAME_MAX] = { 0 };
    size_t at;

    if (name.len == 0 || name.len >= COMMAND_NAME_MAX) {
        return COMMAND_COUNT;
    }
    if (!filled) {
        fill_slots();
        filled = true;
    }
    for (size_t i = 0; i < name.len; i++) {
        low[i] = (char)(name.ptr[i] | 0x20);
    }
    for (at = slot_of_command(low, name.len); slots[at] != 0; at = (at + 1) % SLOTS) {
        if (memcmp(low, COMMANDS[slots[at] - 1].name, COMMAND_NAME_MAX) == 0) {
            return slots[at] - 1U;
        }
    }
    return COMMAND_COUNT;
}

struct key_reply keyspace_call(struct keyspace *ks, size_t argc,
                               const struct span *argv)
{
    struct key_call c = { .ks = ks, .argc = argc, .argv = argv };
    size_t at = argc == 0 ? COMMAND_COUNT : find_command(argv[0]);

    (void)keyspace_sweep(ks);
    if (at == COMMAND_COUNT) {
        reply_error(&c, "ERR unknown command");
    } else if (argc < COMMANDS[at].words ||
               (COMMANDS[at].most != 0 && argc > COMMANDS[at].most)) {
        reply_error(&c, "ERR wrong number of arguments");
    } else {
        COMMANDS[at].run(&c);
    }
    return c.reply;
}
