/* redis_words: what scenarios say to a real Redis: commands, Redisson's scripts, and
 * what somebody hears who listens there. */
#ifndef LATCHD_TESTS_REDIS_WORDS_H
#define LATCHD_TESTS_REDIS_WORDS_H

#include "support/redis.h"
#include "support/scenario.h"

/* A command and its reply. */
void say_to_redis(struct test_redis *redis, const struct scn_words *words,
                  struct value *ret);

/* `OWNER lock job 30000`: what Redisson's script answers; nil is a lock taken, and of
 * `fenced-lock` one that is not. An unlock may have the id of a request, a fair lock a
 * lease and a wait. `skew=600000` at the end: its clock is ahead. */
void say_as_redisson(struct test_redis *redis, const struct scn_words *words,
                     struct value *ret);

/* `EAR CHANNEL`, or `CHANNEL` for an ear of that name; then `EAR 0`: the next message
 * is this, `EAR`: none has come. */
void listen_at_redis(struct test_redis *redis, const struct scn_words *words);
void hear_from_redis(const struct scn_words *words);
void stop_all_listening(void);

#endif
