/* Lists. */
#include "sim/redis/keyspace_priv.h"

static void push(struct key_call *c, bool at_head)
{
    struct key *k;

    if (!call_make_key(c, KEY_LIST, &k)) {
        return;
    }
    for (size_t i = 2; i < c->argc; i++) {
        (void)key_insert(k, at_head ? 0 : k->count, c->argv[i]);
    }
    reply_integer(c, (int64_t)k->count);
}

void list_lpush(struct key_call *c)
{
    push(c, true);
}

void list_rpush(struct key_call *c)
{
    push(c, false);
}

void list_lpop(struct key_call *c)
{
    struct key *k;

    if (!call_key(c, KEY_LIST, &k)) {
        return;
    }
    if (k == NULL) {
        reply_nil(c);
        return;
    }
    key_set_text(&c->ks->popped, key_span(&k->items[0].text));
    key_remove(k, 0);
    key_drop_if_empty(c->ks, k);
    reply_bulk(c, key_span(&c->ks->popped));
}

void list_index(struct key_call *c)
{
    struct key *k;
    int64_t at;

    if (!call_key(c, KEY_LIST, &k)) {
        return;
    }
    if (k == NULL) {
        reply_nil(c);
        return;
    }
    if (!call_integer(c, 2, &at)) {
        return;
    }
    at += at < 0 ? (int64_t)k->count : 0;
    if (at < 0 || at >= (int64_t)k->count) {
        reply_nil(c);
    } else {
        reply_bulk(c, key_span(&k->items[at].text));
    }
}

void list_len(struct key_call *c)
{
    struct key *k;

    if (call_key(c, KEY_LIST, &k)) {
        reply_integer(c, k == NULL ? 0 : (int64_t)k->count);
    }
}

void list_range(struct key_call *c)
{
    struct key *k = keyspace_find(c->ks, c->argv[1]);
    struct key_reply *out;
    size_t from;
    size_t to;

    if (!call_range(c, 2, k == NULL ? 0 : k->count, &from, &to) ||
        !call_key(c, KEY_LIST, &k)) {
        return;
    }
    out = reply_array(c, to - from);
    for (size_t i = from; i < to; i++) {
        out[i - from] = key_bulk(key_span(&k->items[i].text));
    }
}

void list_trim(struct key_call *c)
{
    struct key *k = keyspace_find(c->ks, c->argv[1]);
    size_t from;
    size_t to;

    if (!call_range(c, 2, k == NULL ? 0 : k->count, &from, &to) ||
        !call_key(c, KEY_LIST, &k)) {
        return;
    }
    if (k != NULL) {
        for (size_t i = k->count; i-- > 0;) {
            if (i < from || i >= to) {
                key_remove(k, i);
            }
        }
        key_drop_if_empty(c->ks, k);
    }
    reply_ok(c);
}

/* LREM key count element: `count` of them from the head, -count from the tail, 0 all.
 */
void list_rem(struct key_call *c)
{
    struct key *k;
    int64_t most;
    int64_t count = 0;

    if (!call_integer(c, 2, &most) || !call_key(c, KEY_LIST, &k)) {
        return;
    }
    for (size_t i = 0; k != NULL && i < k->count;) {
        size_t at = most < 0 ? k->count - 1 - i : i;

        if ((most != 0 && count == (most < 0 ? -most : most)) ||
            !span_eq(key_span(&k->items[at].text), c->argv[3])) {
            i++;
        } else {
            key_remove(k, at);
            count++;
        }
    }
    if (k != NULL) {
        key_drop_if_empty(c->ks, k);
    }
    reply_integer(c, count);
}

void list_pos(struct key_call *c)
{
    struct key *k;
    size_t at;

    if (!call_key(c, KEY_LIST, &k)) {
        return;
    }
    at = k == NULL ? KEY_NONE : key_item_at(k, c->argv[2]);
    if (at == KEY_NONE) {
        reply_nil(c);
    } else {
        reply_integer(c, (int64_t)at);
    }
}
