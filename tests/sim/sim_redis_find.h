/* sim_redis_find: which hold, entry or mark an op means. For sim_redis_*.c only. */
#ifndef LATCHD_SIM_REDIS_FIND_H
#define LATCHD_SIM_REDIS_FIND_H

#include "sim/sim_redis.h"

/* What a target turned out to be. */
struct found {
    struct redis_hash_field *field; /* NULL: not there */
    struct redis_entry *entry; /* of a named owner; NULL: the whole hold is meant */
    uint64_t token;
};

/* The field of an anonymous hold. */
struct rtext find_token_field(uint64_t token);
bool find_is_anonymous(struct span field);
/* Of an anonymous hold, and chosen before its token was: on a quorum, or a reader's. */
bool find_is_chosen(const struct rtext *field);
struct redis_entry *find_newest_entry(struct redis_name *n, struct span owner);
/* The fence key is about that ID or owner. */
bool find_fence_names(const struct redis_name *n, struct span field);
/* May `instance` act on that anonymous or ID hold of its own accord? `unknown`: if
 * nothing tells who keeps it. */
bool find_keeps(struct redis_name *n, const struct rtext *field, const char *instance,
                bool unknown);
/* The hold that this claim has already. */
struct redis_hash_field *find_claim(struct redis_name *n, const struct claim *cl);
struct found find_target(struct redis_name *n, const struct target *t, bool force);
/* The ended mark of a target that is not there, or NULL. */
struct redis_mark *find_mark(struct redis_name *n, const struct target *t);

#endif
