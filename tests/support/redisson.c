#include "support/redisson.h"

#include "support/redisson_priv.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum {
    TEXTS = 32, /* that live at a time */
    PATIENCE_S = 10,
};

#define NEW_REQUEST "00000000000000000000000000000000"

char *redisson_text(void)
{
    static char texts[TEXTS][REDISSON_TEXT];
    static size_t at;

    at = (at + 1) % TEXTS;
    return texts[at];
}

const char *redisson_key(const char *prefix, const char *name)
{
    bool bare = strchr(name, '{') != NULL;
    char *text = redisson_text();

    (void)snprintf(text, REDISSON_TEXT, bare ? "%s:%s" : "%s:{%s}", prefix, name);
    return text;
}

/* The start of hold keys. */
const char *redisson_braced(const char *name)
{
    char *text = redisson_text();

    (void)snprintf(text, REDISSON_TEXT, strchr(name, '{') != NULL ? "%s" : "{%s}",
                   name);
    return text;
}

const char *redisson_hold_key(const char *name, const char *owner, int i)
{
    char *text = redisson_text();

    (void)snprintf(text, REDISSON_TEXT, "%s:%s:rwlock_timeout:%d",
                   redisson_braced(name), owner, i);
    return text;
}

const char *redisson_number(int64_t value)
{
    char *text = redisson_text();

    (void)snprintf(text, REDISSON_TEXT, "%" PRId64, value);
    return text;
}

const char *redisson_latch_key(const char *name, const char *request)
{
    char *text = redisson_text();

    (void)snprintf(text, REDISSON_TEXT, "%s:%s",
                   redisson_key("redisson_unlock_latch", name),
                   request == NULL ? NEW_REQUEST : request);
    return text;
}

const char *redisson_now(const struct redisson *r)
{
    struct timeval tv;

    if (r->host != NULL) {
        return redisson_number(r->host->now_ms);
    }
    (void)gettimeofday(&tv, NULL);
    return redisson_number((int64_t)tv.tv_sec * 1000 + tv.tv_usec / 1000 + r->skew_ms);
}

/* `words`: as many keys as said, then the arguments, NULL. */
static redisReply *eval(const struct redisson *r, const char *script, int keys,
                        const char *const *words)
{
    const char *argv[16] = { "EVAL", script, redisson_number(keys) };
    int argc = 3;
    redisReply *reply;

    for (size_t i = 0; words[i] != NULL; i++) {
        argv[argc++] = words[i];
    }
    reply = redisCommandArgv(redis_side(r->redis), argc, argv, NULL);
    ck_assert_ptr_nonnull(reply);
    ck_assert_msg(reply->type != REDIS_REPLY_ERROR, "%s", reply->str);
    return reply;
}

int64_t redisson_run(const struct redisson *r, const char *script, int keys,
                     const char *const *words)
{
    redisReply *reply;
    int64_t value;

    if (r->host != NULL) {
        return r->host->run(r->host->ctx, script, keys, words);
    }
    reply = eval(r, script, keys, words);
    value = reply->type == REDIS_REPLY_INTEGER ? reply->integer : REDISSON_NIL;
    freeReplyObject(reply);
    return value;
}

static const char UNLATCH[] = "return redis.call('del', KEYS[1])";

/* An unlock: the client removes the latch of a request that it will not send again. */
int64_t redisson_unlatch(const struct redisson *r, const char *name,
                         const char *request, int64_t answer)
{
    if (request == NULL) {
        (void)RUN(r, UNLATCH, 1, redisson_latch_key(name, NULL));
    }
    return answer;
}

/* --- RLock ------------------------------------------------------------------------ */

static const char TAKE[] = "if redis.call('exists', KEYS[1]) == 0 "
                           "or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then "
                           "redis.call('hincrby', KEYS[1], ARGV[2], 1) "
                           "redis.call('pexpire', KEYS[1], ARGV[1]) return false end "
                           "return redis.call('pttl', KEYS[1])";

int64_t redisson_lock(const struct redisson *r, const char *name, int64_t lease_ms)
{
    return RUN(r, TAKE, 1, name, redisson_number(lease_ms), r->owner);
}

static const char FREE[] = LATCH(
    "KEYS[3]") "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return false end "
               "if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then "
               "redis.call('pexpire', KEYS[1], ARGV[2]) return last(0) end "
               "redis.call('del', KEYS[1]) "
               "if ARGV[3] == '1' then redis.call('publish', KEYS[2], '0') end "
               "return last(1)";

static int64_t free_lock(const struct redisson *r, const char *name,
                         const char *request, bool publish)
{
    int64_t answer = RUN(r, FREE, 3, name, redisson_key("redisson_lock__channel", name),
                         redisson_latch_key(name, request), r->owner,
                         redisson_number(REDISSON_LEASE), publish ? "1" : "0");

    return redisson_unlatch(r, name, request, answer);
}

int64_t redisson_unlock(const struct redisson *r, const char *name, const char *request)
{
    return free_lock(r, name, request, true);
}

int64_t redisson_spin_unlock(const struct redisson *r, const char *name)
{
    return free_lock(r, name, NULL, false);
}

static const char FORCE[] = "if redis.call('del', KEYS[1]) == 0 then return 0 end "
                            "redis.call('publish', KEYS[2], '0') return 1";

int64_t redisson_force_unlock(const struct redisson *r, const char *name)
{
    return RUN(r, FORCE, 2, name, redisson_key("redisson_lock__channel", name));
}

static const char RENEW[] =
    "if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return 0 end "
    "redis.call('pexpire', KEYS[1], ARGV[1]) return 1";

int64_t redisson_renew_lock(const struct redisson *r, const char *name,
                            int64_t lease_ms)
{
    return RUN(r, RENEW, 1, name, redisson_number(lease_ms), r->owner);
}

static const char FENCED[] =
    "if redis.call('exists', KEYS[1]) == 0 "
    "or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then "
    "local token = redis.call('incr', KEYS[2]) "
    "redis.call('hincrby', KEYS[1], ARGV[2], 1) "
    "redis.call('pexpire', KEYS[1], ARGV[1]) return { -1, token } end "
    "return { redis.call('pttl', KEYS[1]), -1 }";

int64_t redisson_fenced_lock(const struct redisson *r, const char *name,
                             int64_t lease_ms, int64_t *ret_token)
{
    const char *words[] = { name, redisson_key("redisson_lock_token", name),
                            redisson_number(lease_ms), r->owner, NULL };
    redisReply *reply = eval(r, FENCED, 2, words);
    int64_t ttl;

    ck_assert_uint_eq(reply->elements, 2);
    ttl = reply->element[0]->integer;
    *ret_token = reply->element[1]->integer;
    freeReplyObject(reply);
    return *ret_token > 0 ? REDISSON_NIL : ttl;
}

/* --- listening -------------------------------------------------------------------- */

redisContext *redisson_listen(const struct redisson *r, const char *channel)
{
    redisContext *c = redisConnectUnix(redis_path(r->redis));
    struct timeval patience = { .tv_sec = PATIENCE_S };
    redisReply *reply;

    ck_assert_int_eq(c->err, 0);
    ck_assert_int_eq(redisSetTimeout(c, patience), REDIS_OK);
    reply = redisCommand(c, "SUBSCRIBE %s", channel);
    ck_assert_ptr_nonnull(reply);
    freeReplyObject(reply);
    return c;
}

void redisson_hear(redisContext *c, const char *payload)
{
    redisReply *reply = NULL;

    ck_assert_int_eq(redisGetReply(c, (void **)&reply), REDIS_OK);
    ck_assert_uint_eq(reply->elements, 3);
    ck_assert_str_eq(reply->element[2]->str, payload);
    freeReplyObject(reply);
}

void redisson_hear_nothing(redisContext *c)
{
    redisReply *reply = NULL;

    /* A subscriber's PING is answered behind whatever was published before. */
    ck_assert_int_eq(redisAppendCommand(c, "PING"), REDIS_OK);
    ck_assert_int_eq(redisGetReply(c, (void **)&reply), REDIS_OK);
    ck_assert_str_eq(reply->element[0]->str, "pong");
    freeReplyObject(reply);
}
