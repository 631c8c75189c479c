/* sim_redis_rw: readers and writers of one name, and what an op means among them. For
 * sim_redis_*.c only. */
#ifndef LATCHD_SIM_REDIS_RW_H
#define LATCHD_SIM_REDIS_RW_H

#include "sim/sim_redis_run.h"

/* --- sim_redis_rw_find.c -------------------------------------------------- */

bool rw_is_writer(struct span field);
/* The field with `:write`. */
struct rtext rw_writer_field(struct span owner);
/* Without it. */
struct span rw_owner_of(struct span field);
struct redis_hash_field *rw_writer(struct redis_name *n);

struct redis_hold_key *rw_hold_key(struct redis_name *n, struct span field,
                                   int64_t index);
void rw_set_hold_key(struct redis_name *n, struct span field, int64_t index,
                     uint64_t token, uint64_t expires);
void rw_del_hold_key(struct redis_name *n, struct span field, int64_t index);
/* Until when the longest of its hold keys lives; 0: it is dead. */
uint64_t rw_alive_until(struct redis_name *n, const struct redis_hash_field *f);
/* A reader whose lease is over, though its field is there. */
bool rw_is_dead(struct redis_name *n, const struct redis_hash_field *f);
/* The longest of all readers. */
uint64_t rw_longest_reader(struct redis_name *n);
struct redis_reader_key *rw_reader_key(struct redis_name *n, uint64_t token);
void rw_set_reader_key(struct redis_name *n, uint64_t token, struct span field);

/* The latchd:writer key is about that field. */
bool rw_writer_key_names(const struct redis_name *n, struct span field);
/* 0: not known. */
uint64_t rw_token_of(struct redis_name *n, const struct redis_hash_field *f);
/* May `instance` act on that anonymous or ID hold of its own accord? `unknown`: if
 * nothing tells who keeps it. */
bool rw_keeps(struct redis_name *n, const struct redis_hash_field *f,
              const char *instance, bool unknown);

struct redis_hash_field *rw_find_claim(struct redis_name *n, const struct claim *cl);
struct found rw_find_target(struct redis_name *n, const struct target *t, bool force,
                            bool *ret_ambiguous);
struct redis_mark *rw_find_mark(struct redis_name *n, const struct target *t);

/* The field goes, with all that belongs to it. */
void rw_drop_field(struct redis_name *n, struct redis_hash_field *f);
/* What an earlier hold under that field has left. */
void rw_drop_left_overs(struct redis_name *n, struct span field);

/* --- sim_redis_rw.c, sim_redis_rw_keep.c ---------------------------------- */

void run_acquire_rw(struct run *c);
void run_release_rw(struct run *c);
/* That hold gets a lease, and so do the keys that go with it. `exact`: just that. */
void rw_give_lease(struct run *c, struct redis_hash_field *f, uint64_t lease_ms,
                   bool exact);
/* The keys that tell tokens live longer than the lock. */
void rw_raise_helpers(struct run *c, const struct redis_hash_field *f);
/* The latchd:writer key goes; the other: if it is about an owner's or an ID's hold. */
void rw_forget_writer(struct redis_name *n);
void rw_forget_named_writer(struct redis_name *n);
/* Readers whose lease is over go. */
void rw_drop_dead(struct redis_name *n);
bool rw_kept_since(const struct run *c, const struct redis_hash_field *f,
                   const struct redis_entry *e);
enum renew_result rw_renew_one(struct run *c, const struct renew_item *item);
void run_attach_rw(struct run *c);

#endif
