/* Sorted sets: items in the order of their scores, and of their bytes among equals. */
#include "sim/redis/keyspace_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool stands_before(const struct key_item *item, double score, struct span member)
{
    size_t len = item->text.len < member.len ? item->text.len : member.len;
    int order;

    if (item->score != score) {
        return item->score < score;
    }
    order = len == 0 ? 0 : memcmp(item->text.ptr, member.ptr, len);
    return order != 0 ? order < 0 : item->text.len < member.len;
}

/* Where the member is now plays no part. */
static void place(struct key *k, double score, struct span member)
{
    size_t at = 0;

    while (at < k->count && stands_before(&k->items[at], score, member)) {
        at++;
    }
    key_insert(k, at, member)->score = score;
}

struct zadd {
    bool only_new, only_there, add;
    size_t first; /* of the scores */
};

/* False: an error was replied. */
static bool parse_add(struct key_call *c, struct zadd *ret)
{
    *ret = (struct zadd){ .first = 2 };
    for (; ret->first < c->argc; ret->first++) {
        if (call_word(c, ret->first, "NX")) {
            ret->only_new = true;
        } else if (call_word(c, ret->first, "XX")) {
            ret->only_there = true;
        } else if (call_word(c, ret->first, "INCR")) {
            ret->add = true;
        } else {
            break;
        }
    }
    if (ret->first == c->argc || (c->argc - ret->first) % 2 != 0) {
        reply_error(c, "ERR syntax error");
        return false;
    }
    if (ret->only_new && ret->only_there) {
        reply_error(c, "ERR XX and NX options at the same time are not compatible");
        return false;
    }
    if (ret->add && c->argc - ret->first > 2) {
        reply_error(c, "ERR INCR option supports a single increment-element pair");
        return false;
    }
    for (size_t i = ret->first; i < c->argc; i += 2) {
        double score;

        if (!call_score(c, i, &score)) {
            return false;
        }
    }
    return true;
}

/* 1: the member is new, 0: it is not, -1: it was left as it is. */
static int add_one(struct key *k, const struct zadd *how, double *score,
                   struct span member)
{
    size_t at = key_item_at(k, member);

    if (at == KEY_NONE ? how->only_there : how->only_new) {
        return -1;
    }
    if (at != KEY_NONE) {
        *score += how->add ? k->items[at].score : 0;
        key_remove(k, at);
    }
    place(k, *score, member);
    return at == KEY_NONE ? 1 : 0;
}

void zset_add(struct key_call *c)
{
    struct zadd how;
    struct key *k;
    double score = 0;
    int64_t added = 0;
    int done = -1;

    if (!parse_add(c, &how) || !call_key(c, KEY_ZSET, &k)) {
        return;
    }
    if (k == NULL && !how.only_there) {
        k = key_make(c->ks, c->argv[1], KEY_ZSET);
    }
    for (size_t i = how.first; k != NULL && i < c->argc; i += 2) {
        (void)call_score(c, i, &score);
        done = add_one(k, &how, &score, c->argv[i + 1]);
        added += done == 1 ? 1 : 0;
    }
    if (!how.add) {
        reply_integer(c, added);
    } else if (done < 0) {
        reply_nil(c);
    } else {
        reply_score(c, score);
    }
}

void zset_incrby(struct key_call *c)
{
    const struct zadd how = { .add = true };
    struct key *k;
    double score;

    if (!call_score(c, 2, &score) || !call_make_key(c, KEY_ZSET, &k)) {
        return;
    }
    (void)add_one(k, &how, &score, c->argv[3]);
    reply_score(c, score);
}

void zset_rem(struct key_call *c)
{
    call_remove_items(c, KEY_ZSET);
}

void zset_score(struct key_call *c)
{
    struct key *k;
    size_t at;

    if (!call_key(c, KEY_ZSET, &k)) {
        return;
    }
    at = k == NULL ? KEY_NONE : key_item_at(k, c->argv[2]);
    if (at == KEY_NONE) {
        reply_nil(c);
    } else {
        reply_score(c, k->items[at].score);
    }
}

void zset_card(struct key_call *c)
{
    struct key *k;

    if (call_key(c, KEY_ZSET, &k)) {
        reply_integer(c, k == NULL ? 0 : (int64_t)k->count);
    }
}

/* An item of a sorted set has no value, and so has room for the text of its score. */
static void keep_score_text(struct key_call *c, struct key_item *item)
{
    reply_score(c, item->score);
    key_set_text(&item->value, c->reply.text);
}

void zset_mscore(struct key_call *c)
{
    struct key *k;
    struct key_reply *out;

    if (!call_key(c, KEY_ZSET, &k)) {
        return;
    }
    for (size_t i = 2; k != NULL && i < c->argc; i++) {
        size_t at = key_item_at(k, c->argv[i]);

        if (at != KEY_NONE) {
            keep_score_text(c, &k->items[at]);
        }
    }
    out = reply_array(c, c->argc - 2);
    for (size_t i = 2; i < c->argc; i++) {
        size_t at = k == NULL ? KEY_NONE : key_item_at(k, c->argv[i]);

        out[i - 2] = at == KEY_NONE ? (struct key_reply){ .type = KEY_REPLY_NIL }
                                    : key_bulk(key_span(&k->items[at].value));
    }
}

/* One end of a range of scores. */
struct score_bound {
    double score;
    bool is_out; /* the score itself is */
};

struct score_range {
    struct score_bound from, to;
    bool with_scores;
    int64_t skip, most; /* of LIMIT; most < 0: all */
};

/* False: an error was replied. */
static bool parse_bound(struct key_call *c, size_t arg, struct score_bound *ret)
{
    struct span word = c->argv[arg];
    char text[64] = "";
    char *end = text;

    ret->is_out = word.len > 0 && word.ptr[0] == '(';
    word = span_after(word, ret->is_out ? 1 : 0);
    if (word.len < sizeof(text)) {
        memcpy(text, word.ptr, word.len);
        ret->score = strtod(text, &end);
    }
    if (end != text + word.len || isnan(ret->score)) {
        reply_error(c, "ERR min or max is not a float");
        return false;
    }
    return true;
}

static bool parse_score_range(struct key_call *c, struct score_range *ret)
{
    *ret = (struct score_range){ .most = -1 };
    for (size_t i = 4; i < c->argc; i++) {
        if (call_word(c, i, "WITHSCORES")) {
            ret->with_scores = true;
        } else if (call_word(c, i, "LIMIT") && i + 2 < c->argc) {
            if (!call_integer(c, i + 1, &ret->skip) ||
                !call_integer(c, i + 2, &ret->most)) {
                return false;
            }
            i += 2;
        } else {
            reply_error(c, "ERR syntax error");
            return false;
        }
    }
    return parse_bound(c, 2, &ret->from) && parse_bound(c, 3, &ret->to);
}

static bool is_in_range(const struct score_range *range, double score)
{
    const struct score_bound *from = &range->from, *to = &range->to;

    return (from->is_out ? score > from->score : score >= from->score) &&
           (to->is_out ? score < to->score : score <= to->score);
}

void zset_range_by_score(struct key_call *c)
{
    struct score_range range;
    struct key_reply *out;
    struct key *k;
    size_t first = 0;
    size_t count = 0;
    size_t width;

    if (!parse_score_range(c, &range) || !call_key(c, KEY_ZSET, &k)) {
        return;
    }
    while (k != NULL && first < k->count &&
           !is_in_range(&range, k->items[first].score)) {
        first++;
    }
    first += (size_t)range.skip;
    while (k != NULL && range.skip >= 0 && first + count < k->count &&
           is_in_range(&range, k->items[first + count].score) &&
           (range.most < 0 || count < (size_t)range.most)) {
        count++;
    }
    width = range.with_scores ? 2 : 1;
    for (size_t i = 0; i < count && range.with_scores; i++) {
        keep_score_text(c, &k->items[first + i]);
    }
    out = reply_array(c, count * width);
    for (size_t i = 0; i < count; i++) {
        out[i * width] = key_bulk(key_span(&k->items[first + i].text));
        if (range.with_scores) {
            out[i * width + 1] = key_bulk(key_span(&k->items[first + i].value));
        }
    }
}

void zset_range(struct key_call *c)
{
    struct key *k = keyspace_find(c->ks, c->argv[1]);
    struct key_reply *out;
    size_t from;
    size_t to;

    if (!call_range(c, 2, k == NULL ? 0 : k->count, &from, &to) ||
        !call_key(c, KEY_ZSET, &k)) {
        return;
    }
    out = reply_array(c, to - from);
    for (size_t i = from; i < to; i++) {
        out[i - from] = key_bulk(key_span(&k->items[i].text));
    }
}
