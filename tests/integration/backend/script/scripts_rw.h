/* scripts_rw: the words of tests of read/write locks, for use with scripts_peer. All of
 * them are about the lock `n`. */
#ifndef LATCHD_TESTS_SCRIPTS_RW_H
#define LATCHD_TESTS_SCRIPTS_RW_H

#include "scripts_peer.h"

#define RW_CHANNEL "redisson_rwlock:{n}"

/* Claims. `who`: an anonymous reader's field without `latchd:`, an anonymous writer's
 * request; else the field. A writer's field has its `:write` in it. */
struct claim rw_claim(enum lock_kind lock_kind, enum owner_kind kind, const char *who,
                      const char *entry);

struct op rw_acquire(struct claim claim);
/* `lock_kind`: READ, WRITE, PLAIN (not said). */
struct op rw_release(enum target_kind kind, enum lock_kind lock_kind, const char *field,
                     const char *entry);
int64_t rw_ttl(void); /* PTTL of the lock */
/* `ttl` is `want` ms, less what passed during a test. */
void rw_about(int64_t ttl, int64_t want);

/* A connection that listens to the channel of `n`. */
redisContext *rw_listen(void);
/* The next message is that payload; NULL: none has come. */
void rw_hear(redisContext *c, const char *payload);

#endif
