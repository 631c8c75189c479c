/* redis: a private redis-server on a unix socket, and a look into it.
 *
 * It keeps nothing on disk unless told to, dies with the test, and lives in the test
 * program's scratch directory. Nothing here returns an error: what goes wrong fails the
 * test. Replies are hiredis's, freed by the caller with freeReplyObject(). */
#ifndef LATCHD_TESTS_REDIS_H
#define LATCHD_TESTS_REDIS_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

struct test_redis;

/* Returns when it answers. */
struct test_redis *redis_start(void);
/* With more arguments of the command line ({"--appendonly", "yes", NULL}; NULL: none),
 * and if `tcp` on a port of 127.0.0.1 as well. */
struct test_redis *redis_start_with(bool tcp, const char *const *args);
/* Ends it, removes its directory, frees everything. NULL is fine. */
void redis_stop(struct test_redis *r);

void redis_kill(struct test_redis *r);    /* kill -9 */
void redis_restart(struct test_redis *r); /* after redis_kill(): same address */
void redis_pause(struct test_redis *r);   /* SIGSTOP, and it has stopped */
void redis_resume(struct test_redis *r);

const char *redis_path(const struct test_redis *r); /* of its unix socket */
int redis_port(const struct test_redis *r);         /* 0: none */
int redis_pid(const struct test_redis *r);

/* A blocking connection of the test's own; opened when first needed, and again after a
 * restart. Formats are hiredis's: %s, %b. */
redisContext *redis_side(struct test_redis *r);
redisReply *redis_ask(struct test_redis *r, const char *fmt, ...);
int64_t redis_ask_int(struct test_redis *r, const char *fmt, ...);
/* The reply is that text. NULL: the reply is nil. */
void redis_expect(struct test_redis *r, const char *want, const char *fmt, ...);
/* Calls of one command as INFO commandstats counts them; and its microseconds each. */
int64_t redis_calls(struct test_redis *r, const char *command, double *ret_usec);

#endif
