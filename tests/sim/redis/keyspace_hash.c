/* Hashes. */
#include "sim/redis/keyspace_priv.h"

/* True: the field is new. */
static bool set_field(struct key *k, struct span field, struct span value)
{
    size_t at = key_item_at(k, field);
    struct key_item *item =
        at == KEY_NONE ? key_insert(k, k->count, field) : &k->items[at];

    key_set_text(&item->value, value);
    return at == KEY_NONE;
}

void hash_set(struct key_call *c)
{
    struct key *k;
    int64_t added = 0;

    if (c->argc % 2 != 0) {
        reply_error(c, "ERR wrong number of arguments for 'hset' command");
        return;
    }
    if (!call_make_key(c, KEY_HASH, &k)) {
        return;
    }
    for (size_t i = 2; i < c->argc; i += 2) {
        added += set_field(k, c->argv[i], c->argv[i + 1]) ? 1 : 0;
    }
    reply_integer(c, added);
}

static struct key_reply value_of(const struct key *k, struct span field)
{
    const struct key_text *value = keyspace_field(k, field);

    return value == NULL ? (struct key_reply){ .type = KEY_REPLY_NIL }
                         : key_bulk(key_span(value));
}

void hash_get(struct key_call *c)
{
    struct key *k;

    if (call_key(c, KEY_HASH, &k)) {
        c->reply = value_of(k, c->argv[2]);
    }
}

void hash_mget(struct key_call *c)
{
    struct key *k;
    struct key_reply *out;

    if (!call_key(c, KEY_HASH, &k)) {
        return;
    }
    out = reply_array(c, c->argc - 2);
    for (size_t i = 2; i < c->argc; i++) {
        out[i - 2] = value_of(k, c->argv[i]);
    }
}

/* Fields, values, or both, from out[0] on. */
static size_t put_items(const struct key *k, bool fields, bool values,
                        struct key_reply *out)
{
    size_t count = 0;

    for (size_t i = 0; k != NULL && i < k->count; i++) {
        if (fields) {
            out[count++] = key_bulk(key_span(&k->items[i].text));
        }
        if (values) {
            out[count++] = key_bulk(key_span(&k->items[i].value));
        }
    }
    return count;
}

static void reply_items(struct key_call *c, bool fields, bool values)
{
    struct key *k;

    if (call_key(c, KEY_HASH, &k)) {
        struct key_reply *out = reply_array(c, k == NULL ? 0 : 2 * k->count);

        c->reply.count = put_items(k, fields, values, out);
    }
}

void hash_getall(struct key_call *c)
{
    reply_items(c, true, true);
}

void hash_keys(struct key_call *c)
{
    reply_items(c, true, false);
}

void hash_vals(struct key_call *c)
{
    reply_items(c, false, true);
}

/* HSCAN key cursor COUNT n: of a small hash Redis gives all, whatever n is. */
void hash_scan(struct key_call *c)
{
    struct key_reply *out;
    struct key *k;
    int64_t ignored;

    if (!call_integer(c, 2, &ignored) || !call_word(c, 3, "COUNT") ||
        !call_integer(c, 4, &ignored)) {
        reply_error(c, "ERR syntax error");
        return;
    }
    if (!call_key(c, KEY_HASH, &k)) {
        return;
    }
    out = reply_array(c, 2 + (k == NULL ? 0 : 2 * k->count));
    out[0] = key_bulk(SPAN("0"));
    out[1] = (struct key_reply){ .type = KEY_REPLY_ARRAY, .items = out + 2 };
    out[1].count = put_items(k, true, true, out + 2);
    c->reply.count = 2;
}

void hash_len(struct key_call *c)
{
    struct key *k;

    if (call_key(c, KEY_HASH, &k)) {
        reply_integer(c, k == NULL ? 0 : (int64_t)k->count);
    }
}

void hash_exists(struct key_call *c)
{
    struct key *k;

    if (call_key(c, KEY_HASH, &k)) {
        reply_integer(c, keyspace_field(k, c->argv[2]) != NULL ? 1 : 0);
    }
}

void hash_del(struct key_call *c)
{
    call_remove_items(c, KEY_HASH);
}

void hash_incrby(struct key_call *c)
{
    const struct key_text *was;
    struct key *k;
    int64_t by;
    int64_t value = 0;

    if (!call_integer(c, 3, &by) || !call_key(c, KEY_HASH, &k)) {
        return;
    }
    was = keyspace_field(k, c->argv[2]);
    if (was != NULL && !key_parse_integer(key_span(was), &value)) {
        reply_error(c, "ERR hash value is not an integer");
        return;
    }
    if (__builtin_add_overflow(value, by, &value)) {
        reply_error(c, "ERR increment or decrement would overflow");
        return;
    }
    k = k == NULL ? key_make(c->ks, c->argv[1], KEY_HASH) : k;
    (void)set_field(k, c->argv[2], key_digits(c->ks, value));
    reply_integer(c, value);
}
