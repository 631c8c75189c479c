/* script_call_priv: what the files of script_call share: the words that several scripts
 * take. A part of script_call, for nobody else. */
#ifndef LATCHD_BACKEND_SCRIPT_SCRIPT_CALL_PRIV_H
#define LATCHD_BACKEND_SCRIPT_SCRIPT_CALL_PRIV_H

#include "backend/redis/redis_command.h"
#include "backend/script/script_call.h"

/* Prefixes of the keys of op.h, for command_key() and script_key_of(). */
extern const char SCRIPT_FENCE[], SCRIPT_ENTRIES[], SCRIPT_KEEPER[], SCRIPT_ENDED[],
    SCRIPT_WRITER[], SCRIPT_READER[], SCRIPT_QUEUE[], SCRIPT_CHANNEL[];

void script_begin(struct buf *out, const struct op *op, struct op_times times,
                  enum lua_id script, size_t keys, size_t args);
/* After the last key, before the first argument. In a cluster this adds the key that
 * never exists: while its slot is on its way to another node neither of them takes a
 * script for whole, so that none runs half here and half there. */
void script_keys_end(struct buf *out, const struct op *op, struct span name);

/* `<prefix>{N}:<what>` */
void script_key_of(struct buf *out, const char *prefix, struct span name,
                   struct span what);

/* How long the helper keys of a hold live, ms. */
uint64_t script_helper_ttl(uint64_t lease_ms);

/* One letter. */
struct span script_kind_letter(enum owner_kind kind);
void script_owner_kind(struct buf *out, enum owner_kind kind);

/* How the scripts name a claim: an anonymous one by its request. */
struct span script_claim_word(const struct claim *c);

/* The keys that only ID and named claims have, two or none: the keeper key (ID) or the
 * entries hash (named), and the tombstone. */
void script_claim_keys(struct buf *out, struct span name, const struct claim *c);

/* Nine words, the first of other acquire scripts: see fair_acquire.lua. */
void script_acquire_args(struct buf *out, const struct op *op, const char *instance,
                         struct op_times times);

/* One word, see part_stamp.lua. */
void script_stamp(struct buf *out, uint64_t seen_token, const char *instance,
                  struct op_times times);

/* Four words: what, field, entry, token. */
void script_target(struct buf *out, const struct target *t);

/* One word of letters, see release.lua. */
void script_release_flags(struct buf *out, const struct op *op);

/* Ops of the fair queue; false: that is not one. */
bool script_call_fair(struct buf *out, const struct op *op, const char *instance,
                      struct op_times times);

/* Ops of read/write locks; false: there is no script of their own for this kind. */
bool script_call_rw(struct buf *out, const struct op *op, const char *instance,
                    struct op_times times);

/* Many names for anonymous requests; false: some are not, or may only enter again. */
bool script_call_in_order(struct buf *out, const struct op *op, const char *instance,
                          struct op_times times);

/* Of all kinds of locks. */
void script_call_renew(struct buf *out, const struct op *op, const char *instance,
                       struct op_times times);
void script_call_restore(struct buf *out, const struct op *op, const char *instance,
                         struct op_times times);

#endif
