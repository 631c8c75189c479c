#include "cmd/library/watch.h"

#include "cmd/library/value_text.h"

#include "engine/value_hold.h"
#include "util/alloc.h"

#include <stdlib.h>

static void add_key(struct watch *watch, struct span name)
{
    if (watch_find(watch, name) == NULL) {
        struct watched_key *key = &watch->keys[watch->count++];

        *key = (struct watched_key){ .state = WATCH_UNKNOWN };
        buf_add_span(&key->name, name);
    }
}

static size_t count_new(struct watch *watch, const struct span *keys, size_t count)
{
    size_t added = 0;

    for (size_t i = 0; i < count && added <= WATCH_KEYS_MAX; i++) {
        bool twice = watch != NULL && watch_find(watch, keys[i]) != NULL;

        for (size_t j = 0; j < i && !twice; j++) {
            twice = span_eq(keys[i], keys[j]);
        }
        added += !twice;
    }
    return added;
}

bool watch_add(struct watch **watch, const struct span *keys, size_t count)
{
    size_t added = count_new(*watch, keys, count);

    if (added + (*watch == NULL ? 0 : (*watch)->count) > WATCH_KEYS_MAX) {
        return false;
    }
    if (*watch == NULL) {
        *watch = xcalloc(1, sizeof(**watch));
    }
    for (size_t i = 0; i < count; i++) {
        add_key(*watch, keys[i]);
    }
    return true;
}

void watch_free(struct watch *watch)
{
    if (watch == NULL) {
        return;
    }
    for (size_t i = 0; i < watch->count; i++) {
        buf_reset(&watch->keys[i].name);
        buf_reset(&watch->keys[i].holder);
    }
    free(watch);
}

size_t watch_bytes(const struct watch *watch)
{
    size_t bytes = 0;

    if (watch == NULL) {
        return 0;
    }
    for (size_t i = 0; i < watch->count; i++) {
        bytes += watch->keys[i].name.room + watch->keys[i].holder.room;
    }
    return sizeof(*watch) + bytes;
}

struct watched_key *watch_find(struct watch *watch, struct span name)
{
    for (size_t i = 0; i < watch->count; i++) {
        if (span_eq(watched_name(&watch->keys[i]), name)) {
            return &watch->keys[i];
        }
    }
    return NULL;
}

enum plain_set watch_plain_set(struct watch *watch, struct span name, struct span value)
{
    const struct watched_key *key = watch_find(watch, name);
    struct span origin, held = key == NULL ? SPAN_NONE : buf_span(&key->holder);
    struct buf text = { 0 };
    bool same;

    if (key == NULL) {
        return PLAIN_SET_REFUSED;
    }
    if (key->state != WATCH_VALUE_HOLD) {
        return PLAIN_SET_TAKES; /* or finds that the key has changed */
    }
    value_escape(&text, value);
    same = span_cut(&held, ':', &origin) && span_eq(held, buf_span(&text));
    buf_reset(&text);
    if (same) {
        return PLAIN_SET_EXTENDS;
    }
    return span_eq(held, SPAN("1")) && span_eq(value, SPAN("0")) ? PLAIN_SET_RELEASES
                                                                 : PLAIN_SET_REFUSED;
}

/* --- who holds -------------------------------------------------------------- */

/* Who holds, as an answer tells it; appends the holder. */
static enum watch_state read_holder(const struct effect_reply *reply,
                                    struct buf *holder, uint64_t *ret_token)
{
    const struct hold_view *hold;
    struct span origin, value;

    *ret_token = 0;
    if (reply->kind != REPLY_INFO) {
        return reply->kind == REPLY_ERROR && reply->error == LOCK_WRONGTYPE
                   ? WATCH_OTHERS
                   : WATCH_UNKNOWN;
    }
    if (reply->info->state == INFO_STATE_LENT_ELSEWHERE) {
        return WATCH_OTHERS;
    }
    if (reply->info->hold_count == 0) {
        return WATCH_FREE;
    }
    hold = &reply->info->holds[0];
    *ret_token = hold->token;
    if (!value_field_split(hold->owner, &origin, &value)) {
        buf_add_span(holder, hold->owner);
        return WATCH_OTHERS;
    }
    buf_add_span(holder, origin);
    buf_add_str(holder, ":");
    buf_add_span(holder, value);
    return WATCH_VALUE_HOLD;
}

void watched_key_remember(struct watched_key *key, const struct effect_reply *reply)
{
    if (key->state == WATCH_UNKNOWN) {
        key->state = read_holder(reply, &key->holder, &key->token);
    }
}

bool watched_key_is_same(const struct watched_key *key,
                         const struct effect_reply *reply)
{
    struct buf holder = { 0 };
    uint64_t token;
    bool same = read_holder(reply, &holder, &token) == key->state &&
                key->state != WATCH_UNKNOWN && token == key->token &&
                span_eq(buf_span(&holder), buf_span(&key->holder));

    buf_reset(&holder);
    return same;
}
