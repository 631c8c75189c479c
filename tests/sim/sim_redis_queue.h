/* sim_redis_queue: the fair queue of a name as data: a list and a zset of scores,
 * which can be out of step. For sim_redis_*.c only. */
#ifndef LATCHD_SIM_REDIS_QUEUE_H
#define LATCHD_SIM_REDIS_QUEUE_H

#include "sim/sim_redis.h"

#define QUEUE_NONE SIZE_MAX

/* Where in the list; QUEUE_NONE: it is not. */
size_t queue_at(const struct redis_name *n, struct span member);
void queue_insert(struct redis_name *n, size_t at, struct span member);
void queue_remove(struct redis_name *n, size_t at);

struct redis_score *queue_score(struct redis_name *n, struct span member);
void queue_set_score(struct redis_name *n, struct span member, int64_t score);
void queue_del_score(struct redis_name *n, struct span member);

/* NULL: nothing was found of it. */
struct redis_wait *queue_wait(struct redis_name *n, struct span member);
struct redis_wait *queue_wait_new(struct redis_name *n, struct span member);
/* Of those who are not in the list nothing is known any more. */
void queue_drop_waits(struct redis_name *n);

/* --- sim_redis_order.c: members of latchd's by how long they wait ---------- */

/* Since when those of a QUEUE wait, and who of them is put back now or was before. */
void queue_tell_since(struct redis_name *n, const struct op *op, uint64_t now_ms);
/* Who was put back changes places with others of latchd's around it. */
void queue_order(struct redis_name *n);
/* Between `from` and `to` behind the last one that is known to wait for longer. */
size_t queue_place(struct redis_name *n, size_t from, size_t to, struct span member);

/* A member of any latchd's. */
bool queue_is_ours(struct span member);

#endif
