/* keyspace_priv: what the files of keyspace share. */
#ifndef LATCHD_SIM_KEYSPACE_PRIV_H
#define LATCHD_SIM_KEYSPACE_PRIV_H

#include "sim/redis/keyspace.h"

#define KEY_NONE SIZE_MAX

/* One call of a command. */
struct key_call {
    struct keyspace *ks;
    size_t argc;
    const struct span *argv;
    struct key_reply reply;
};

/* --- replies --- */

void reply_nil(struct key_call *c);
void reply_integer(struct key_call *c, int64_t value);
void reply_bulk(struct key_call *c, struct span text);
void reply_ok(struct key_call *c);
/* `text`: a literal. */
void reply_error(struct key_call *c, const char *text);
void reply_score(struct key_call *c, double score);
/* `count` elements, for the caller to fill. */
struct key_reply *reply_array(struct key_call *c, size_t count);
struct key_reply key_bulk(struct span text);

/* --- arguments --- */

/* False: an error was replied. */
bool call_integer(struct key_call *c, size_t arg, int64_t *ret);
bool call_score(struct key_call *c, size_t arg, double *ret);
bool call_word(const struct key_call *c, size_t arg, const char *word);
bool key_parse_integer(struct span text, int64_t *ret);
struct span key_digits(struct keyspace *ks, int64_t value);
/* A range as Redis counts it, from 0, or from -1 at the end. False: it is empty. */
bool call_range(struct key_call *c, size_t arg, size_t count, size_t *ret_from,
                size_t *ret_to);

/* --- keys --- */

/* The key of the first argument. *ret is NULL if it is not there. False: it is of
 * another type, which was replied. */
bool call_key(struct key_call *c, enum key_type type, struct key **ret);
/* The same, and makes it where it is not there. */
bool call_make_key(struct key_call *c, enum key_type type, struct key **ret);
/* HDEL, ZREM: removes the items that the other arguments name, and replies how many. */
void call_remove_items(struct key_call *c, enum key_type type);
struct key *key_make(struct keyspace *ks, struct span name, enum key_type type);
void key_set_text(struct key_text *t, struct span s);
void key_set_expires(struct keyspace *ks, struct key *k, uint64_t expires);

/* --- items --- */

/* KEY_NONE: there is no such one. */
size_t key_item_at(const struct key *k, struct span text);
struct key_item *key_insert(struct key *k, size_t at, struct span text);
void key_remove(struct key *k, size_t at);
/* A key without items is no key. */
void key_drop_if_empty(struct keyspace *ks, struct key *k);

/* --- commands --- */

typedef void key_command(struct key_call *c);
key_command key_get, key_set, key_mget, key_del, key_exists, key_type_of, key_pttl,
    key_pexpire, key_strlen, key_incr, key_incrby, key_decrby, key_time, key_publish,
    key_pubsub, key_flushall;
key_command hash_set, hash_get, hash_mget, hash_getall, hash_keys, hash_vals, hash_len,
    hash_exists, hash_del, hash_incrby, hash_scan;
key_command list_lpush, list_rpush, list_lpop, list_index, list_len, list_range,
    list_rem, list_trim, list_pos;
key_command zset_add, zset_rem, zset_score, zset_mscore, zset_card, zset_range,
    zset_incrby, zset_range_by_score;

#endif
