/* Strings, keys of any type, and what is no key. */
#include "sim/redis/keyspace_priv.h"
#include "util/buf.h"

void key_get(struct key_call *c)
{
    struct key *k;

    if (!call_key(c, KEY_STRING, &k)) {
        return;
    }
    if (k == NULL) {
        reply_nil(c);
    } else {
        reply_bulk(c, key_span(&k->string));
    }
}

void key_strlen(struct key_call *c)
{
    struct key *k;

    if (call_key(c, KEY_STRING, &k)) {
        reply_integer(c, k == NULL ? 0 : (int64_t)key_span(&k->string).len);
    }
}

/* False: an error was replied. */
static bool call_lease(struct key_call *c, size_t arg, int64_t *ret)
{
    if (!call_integer(c, arg, ret)) {
        return false;
    }
    if (*ret > INT64_MAX - (int64_t)c->ks->now_ms) {
        reply_error(c, "ERR invalid expire time");
        return false;
    }
    return true;
}

/* SET key value [PX ms] [NX] */
void key_set(struct key_call *c)
{
    struct key *k = keyspace_find(c->ks, c->argv[1]);
    int64_t ms = 0;
    bool only_new = false;

    for (size_t i = 3; i < c->argc; i++) {
        if (call_word(c, i, "NX")) {
            only_new = true;
        } else if (call_word(c, i, "PX") && i + 1 < c->argc) {
            if (!call_lease(c, ++i, &ms)) {
                return;
            }
            if (ms <= 0) {
                reply_error(c, "ERR invalid expire time in 'set' command");
                return;
            }
        } else {
            reply_error(c, "ERR syntax error");
            return;
        }
    }
    if (only_new && k != NULL) {
        reply_nil(c);
        return;
    }
    if (k == NULL || k->type != KEY_STRING) {
        k = key_make(c->ks, c->argv[1], KEY_STRING);
    }
    key_set_text(&k->string, c->argv[2]);
    key_set_expires(c->ks, k, ms == 0 ? 0 : c->ks->now_ms + (uint64_t)ms);
    reply_ok(c);
}

void key_mget(struct key_call *c)
{
    struct key_reply *out = reply_array(c, c->argc - 1);

    for (size_t i = 1; i < c->argc; i++) {
        const struct key *k = keyspace_find(c->ks, c->argv[i]);

        out[i - 1] = k != NULL && k->type == KEY_STRING
                         ? key_bulk(key_span(&k->string))
                         : (struct key_reply){ .type = KEY_REPLY_NIL };
    }
}

static void add_to(struct key_call *c, int64_t by)
{
    struct key *k;
    int64_t value = 0;

    if (!call_key(c, KEY_STRING, &k)) {
        return;
    }
    if (k != NULL && !key_parse_integer(key_span(&k->string), &value)) {
        reply_error(c, "ERR value is not an integer or out of range");
        return;
    }
    if (__builtin_add_overflow(value, by, &value)) {
        reply_error(c, "ERR increment or decrement would overflow");
        return;
    }
    k = k == NULL ? key_make(c->ks, c->argv[1], KEY_STRING) : k;
    key_set_text(&k->string, key_digits(c->ks, value));
    reply_integer(c, value);
}

void key_incr(struct key_call *c)
{
    add_to(c, 1);
}

void key_incrby(struct key_call *c)
{
    int64_t by;

    if (call_integer(c, 2, &by)) {
        add_to(c, by);
    }
}

void key_decrby(struct key_call *c)
{
    int64_t by;

    if (call_integer(c, 2, &by)) {
        add_to(c, -by);
    }
}

/* --- keys of any type ----------------------------------------------------- */

void key_del(struct key_call *c)
{
    int64_t count = 0;

    for (size_t i = 1; i < c->argc; i++) {
        if (keyspace_find(c->ks, c->argv[i]) != NULL) {
            keyspace_delete(c->ks, c->argv[i]);
            count++;
        }
    }
    reply_integer(c, count);
}

void key_exists(struct key_call *c)
{
    int64_t count = 0;

    for (size_t i = 1; i < c->argc; i++) {
        count += keyspace_find(c->ks, c->argv[i]) != NULL ? 1 : 0;
    }
    reply_integer(c, count);
}

void key_type_of(struct key_call *c)
{
    static const char *const WORDS[] = { [KEY_STRING] = "string",
                                         [KEY_HASH] = "hash",
                                         [KEY_LIST] = "list",
                                         [KEY_ZSET] = "zset" };
    const struct key *k = keyspace_find(c->ks, c->argv[1]);

    reply_ok(c);
    c->reply.text = span_str(k == NULL ? "none" : WORDS[k->type]);
}

void key_pttl(struct key_call *c)
{
    const struct key *k = keyspace_find(c->ks, c->argv[1]);

    reply_integer(c, k == NULL         ? -2
                     : k->expires == 0 ? -1
                                       : (int64_t)(k->expires - c->ks->now_ms));
}

void key_pexpire(struct key_call *c)
{
    struct key *k = keyspace_find(c->ks, c->argv[1]);
    int64_t ms;

    if (!call_lease(c, 2, &ms)) {
        return;
    }
    if (k != NULL && ms <= 0) {
        keyspace_delete(c->ks, c->argv[1]);
    } else if (k != NULL) {
        key_set_expires(c->ks, k, c->ks->now_ms + (uint64_t)ms);
    }
    reply_integer(c, k != NULL ? 1 : 0);
}

/* --- no keys -------------------------------------------------------------- */

void key_time(struct key_call *c)
{
    struct key_reply *out = reply_array(c, 2);
    uint64_t us = c->ks->now_ms % 1000 * 1000 + c->ks->us;
    char *end = c->ks->digits[1] + KEYSPACE_DIGITS;
    char *at = digits_before(end, us);

    out[0] = key_bulk(key_digits(c->ks, (int64_t)(c->ks->now_ms / 1000)));
    out[1] = key_bulk(span_of(at, (size_t)(end - at)));
}

void key_publish(struct key_call *c)
{
    const struct keyspace_hooks *h = &c->ks->hooks;

    if (h->publish != NULL) {
        h->publish(h->ctx, c->argv[1], c->argv[2]);
    }
    reply_integer(
        c, h->count_subscribers == NULL ? 0 : h->count_subscribers(h->ctx, c->argv[1]));
}

/* PUBSUB NUMSUB channel */
void key_pubsub(struct key_call *c)
{
    const struct keyspace_hooks *h = &c->ks->hooks;
    struct key_reply *out;

    if (!call_word(c, 1, "NUMSUB")) {
        reply_error(c, "ERR unknown subcommand");
        return;
    }
    out = reply_array(c, 2);
    out[0] = key_bulk(c->argv[2]);
    out[1] = (struct key_reply){
        .type = KEY_REPLY_INTEGER,
        .integer =
            h->count_subscribers == NULL ? 0 : h->count_subscribers(h->ctx, c->argv[2]),
    };
}

void key_flushall(struct key_call *c)
{
    keyspace_clear(c->ks);
    reply_ok(c);
}
