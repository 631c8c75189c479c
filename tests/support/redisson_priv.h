/* redisson_priv: what the files of support/redisson share. */
#ifndef LATCHD_TESTS_REDISSON_PRIV_H
#define LATCHD_TESTS_REDISSON_PRIV_H

#include "support/redisson.h"

enum { REDISSON_TEXT = 1200 };

/* Room for a text of REDISSON_TEXT bytes; one of a few that are used in turn. */
char *redisson_text(void);
const char *redisson_number(int64_t value);
const char *redisson_now(const struct redisson *r);
/* `{name}`, or the name if it has a brace. */
const char *redisson_braced(const char *name);
const char *redisson_latch_key(const char *name, const char *request);
/* The client removes the latch of a request that it will not send again. */
int64_t redisson_unlatch(const struct redisson *r, const char *name,
                         const char *request, int64_t answer);

/* `words`: as many keys as said, then the arguments, NULL. */
int64_t redisson_run(const struct redisson *r, const char *script, int keys,
                     const char *const *words);
#define RUN(r, script, keys, ...)                                                      \
    redisson_run(r, script, keys, (const char *const[]){ __VA_ARGS__, NULL })

/* The start of unlocks: one that ran before answers what it did then; last() leaves
 * that answer. */
#define LATCH(key)                                                                     \
    "local latch = " key " "                                                           \
    "local said = redis.call('get', latch) "                                           \
    "if said then return tonumber(said) end "                                          \
    "local function last(answer) "                                                     \
    "redis.call('set', latch, answer, 'px', 16000) return answer end "

#endif
