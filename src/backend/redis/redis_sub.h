/* redis_sub: the pub/sub link, and which channels of lock names are wanted.
 *
 * A channel is `redisson_lock__channel:{N}`, or `redisson_rwlock:{N}` of a read/write
 * lock. What is asked in a loop turn leaves as one SUBSCRIBE and one UNSUBSCRIBE for
 * each; after a loss all wanted channels are asked for again, a bounded number at a
 * time. The channels of this instance's members of fair queues are listened to by one
 * pattern, before anything else is asked, and need not be added. In a cluster the
 * sharded channel of each name is listened to as well, where there are such, and a name
 * is subscribed to when both are; those of members, which no pattern sees, have to be
 * added there. Events come from the loop only. */
#ifndef LATCHD_BACKEND_REDIS_REDIS_SUB_H
#define LATCHD_BACKEND_REDIS_REDIS_SUB_H

#include "backend/redis/redis_conn.h"
#include "backend/store.h"
#include "engine/lock_terms.h"
#include "util/span.h"

struct redis_sub;

struct redis_sub_setup {
    struct redis_conn_setup
        conn; /* its name in the log and its events are the link's */
    bool is_clustered;
    bool hears_daemons;   /* reports what other daemons announce */
    const char *instance; /* OP_INSTANCE_LEN digits; copied */
    /* Of a clustered one also STORE_MOVED: a channel's slot is at another node. To be
     * followed by redis_sub_adopt() there, or redis_sub_retry(). */
    struct store_events events;
};

struct redis_sub *redis_sub_new(const struct redis_sub_setup *setup);
void redis_sub_start(struct redis_sub *s);
void redis_sub_set_timeout(struct redis_sub *s, uint64_t timeout_ms);
/* The URL was changed: see redis_link_move(). What is wanted stays wanted. */
void redis_sub_move(struct redis_sub *s);
/* The channel of a lock of that class. */
void redis_sub_want(struct redis_sub *s, struct span name, enum lock_class lock_class,
                    bool wanted);
/* Of a clustered one: the sharded channel of a member of that name's fair queue. Once
 * it is listened to, and after each loss again, that is told as a message. */
void redis_sub_listen(struct redis_sub *s, struct span name, struct span member,
                      bool wanted);
void redis_sub_flush(struct redis_sub *s);
/* Takes over the names of those groups (slots) from another link. */
void redis_sub_adopt(struct redis_sub *s, struct redis_sub *from,
                     bool (*concerns)(void *ctx, uint32_t group), void *ctx);
/* Asks again for what was refused. */
void redis_sub_retry(struct redis_sub *s);
void redis_sub_close(struct redis_sub *s);
/* After the loop has run out. */
void redis_sub_free(struct redis_sub *s);

#endif
