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
struct claim rw_reader(const char *owner, const char *entry); /* named */
struct claim rw_writer(const char *field, const char *entry); /* named */

struct op rw_acquire(struct claim claim);
/* `lock_kind`: READ, WRITE, PLAIN (not said). */
struct op rw_release(enum target_kind kind, enum lock_kind lock_kind, const char *field,
                     const char *entry);
/* The op that would undo or release exactly the hold of that claim. */
struct op rw_release_of(struct claim claim);

/* As daemon A. The token of a grant that must succeed. */
uint64_t rw_take(struct claim claim);
enum op_status rw_try(struct claim claim);
/* The result of releasing that claim; valid until the next op. */
const struct op_result *rw_leave(struct claim claim);
/* One renewal of the claim's hold. `token`: 0: not known. */
enum renew_result rw_renew(const char *instance, struct claim claim, uint64_t token,
                           bool exact);

/* The hash field that a claim has, for formats. */
const char *rw_field(struct claim claim, uint64_t token);
/* PTTL of the lock, and of a reader's i-th hold key. */
int64_t rw_ttl(void);
int64_t rw_hold_ttl(const char *field, int i);
/* `ttl` is `want` ms, less what passed during a test. */
void rw_about(int64_t ttl, int64_t want);

/* A connection that listens to the channel of `n`. */
redisContext *rw_listen(void);
/* The next message is that payload; NULL: none has come. */
void rw_hear(redisContext *c, const char *payload);

#endif
