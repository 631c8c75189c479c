#include "scenarios/redis_words.h"

#include "support/redisson.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EARS_MAX = 16 };

static struct {
    char name[4 * SCN_NAME_MAX];
    redisContext *c; /* NULL: this place is free */
} ears[EARS_MAX];

static void from_reply(const redisReply *r, struct value *ret)
{
    switch (r->type) {
    case REDIS_REPLY_NIL:
        break;
    case REDIS_REPLY_INTEGER:
        scn_int(ret, r->integer);
        break;
    case REDIS_REPLY_ARRAY:
        ret->type = VALUE_LIST;
        ret->count = r->elements;
        ret->items = calloc(r->elements + 1, sizeof *ret->items);
        for (size_t i = 0; i < r->elements; i++) {
            from_reply(r->element[i], &ret->items[i]);
        }
        break;
    default:
        scn_text(ret, "%s", r->str);
        ret->type = r->type == REDIS_REPLY_ERROR ? VALUE_ERROR : VALUE_TEXT;
        break;
    }
}

void say_to_redis(struct test_redis *redis, const struct scn_words *words,
                  struct value *ret)
{
    const char *argv[SCN_WORDS_MAX];
    redisReply *reply;

    (void)scn_word(words, 0);
    memcpy(argv, words->at, words->count * sizeof argv[0]);
    reply = redisCommandArgv(redis_side(redis), (int)words->count, argv, NULL);
    ck_assert_msg(reply != NULL, "%s", redis_side(redis)->errstr);
    from_reply(reply, ret);
    freeReplyObject(reply);
}

/* --- Redisson, by the scripts that it calls --------------------------------------- */

static int64_t fenced_lock(const struct redisson *r, const char *name, int64_t lease_ms)
{
    int64_t token;

    return redisson_fenced_lock(r, name, lease_ms, &token) == REDISSON_NIL
               ? token
               : REDISSON_NIL;
}

static int64_t spin_unlock(const struct redisson *r, const char *name,
                           const char *request)
{
    (void)request;
    return redisson_spin_unlock(r, name);
}

static int64_t force_unlock(const struct redisson *r, const char *name,
                            const char *request)
{
    (void)request;
    return redisson_force_unlock(r, name);
}

static int64_t count_latch(const struct redisson *r, const char *name,
                           const char *request)
{
    (void)request;
    redisson_latch_count(r, name);
    return REDISSON_NIL;
}

static int64_t latch_left(const struct redisson *r, const char *name,
                          const char *request)
{
    (void)request;
    return redisson_latch_left(r, name);
}

static int64_t delete_latch(const struct redisson *r, const char *name,
                            const char *request)
{
    (void)request;
    return redisson_latch_delete(r, name);
}

static int64_t fair_leave(const struct redisson *r, const char *name, int64_t lease_ms,
                          int64_t wait_ms)
{
    (void)lease_ms;
    redisson_fair_leave(r, name, wait_ms);
    return REDISSON_NIL;
}

static const struct {
    const char *verb;
    /* one of them */
    int64_t (*take)(const struct redisson *r, const char *name, int64_t number);
    int64_t (*queue)(const struct redisson *r, const char *name, int64_t lease_ms,
                     int64_t wait_ms);
    int64_t (*leave)(const struct redisson *r, const char *name, const char *request);
} CALLS[] = {
    { .verb = "lock", .take = redisson_lock },
    { .verb = "renew", .take = redisson_renew_lock },
    { .verb = "fenced-lock", .take = fenced_lock },
    { .verb = "read-lock", .take = redisson_read_lock },
    { .verb = "read-renew", .take = redisson_read_renew },
    { .verb = "write-lock", .take = redisson_write_lock },
    { .verb = "latch-set", .take = redisson_latch_set },
    { .verb = "fair-lock", .queue = redisson_fair_lock },
    { .verb = "fair-try", .queue = redisson_fair_try },
    { .verb = "fair-leave", .queue = fair_leave },
    { .verb = "unlock", .leave = redisson_unlock },
    { .verb = "spin-unlock", .leave = spin_unlock },
    { .verb = "force-unlock", .leave = force_unlock },
    { .verb = "fair-unlock", .leave = redisson_fair_unlock },
    { .verb = "read-unlock", .leave = redisson_read_unlock },
    { .verb = "write-unlock", .leave = redisson_write_unlock },
    { .verb = "latch-count", .leave = count_latch },
    { .verb = "latch-left", .leave = latch_left },
    { .verb = "latch-delete", .leave = delete_latch },
};

void say_as_redisson(struct test_redis *redis, const struct scn_words *all,
                     struct value *ret)
{
    struct scn_words words = *all;
    struct redisson r = { .redis = redis, .owner = scn_word(&words, 0) };
    const char *verb = scn_word(&words, 1), *name = scn_word(&words, 2);
    const char *skew = scn_option(words.at[words.count - 1], "skew");
    size_t i = 0;
    int64_t answer;

    if (skew != NULL) {
        r.skew_ms = strtoll(skew, NULL, 10);
        words.count--;
    }
    while (i < sizeof CALLS / sizeof CALLS[0] && strcmp(CALLS[i].verb, verb) != 0) {
        i++;
    }
    if (i == sizeof CALLS / sizeof CALLS[0]) {
        scn_fail("a Redisson does not %s", verb);
    }
    if (CALLS[i].leave != NULL) {
        answer = CALLS[i].leave(&r, name, words.count > 3 ? words.at[3] : NULL);
    } else {
        int64_t number = scn_number_or(&words, 3, REDISSON_LEASE);

        answer = CALLS[i].take != NULL
                     ? CALLS[i].take(&r, name, number)
                     : CALLS[i].queue(&r, name, number,
                                      scn_number_or(&words, 4, REDISSON_FAIR_WAIT));
    }
    if (answer != REDISSON_NIL) {
        scn_int(ret, answer);
    }
}

/* --- messages --------------------------------------------------------------------- */

static size_t find_ear(const char *name)
{
    for (size_t i = 0; i < EARS_MAX; i++) {
        if (ears[i].c != NULL && strcmp(ears[i].name, name) == 0) {
            return i;
        }
    }
    return EARS_MAX;
}

void listen_at_redis(struct test_redis *redis, const struct scn_words *words)
{
    const struct redisson r = { .redis = redis };
    size_t i = 0;

    if (find_ear(scn_word(words, 0)) != EARS_MAX) {
        scn_fail("%s listens already", words->at[0]);
    }
    while (i < EARS_MAX && ears[i].c != NULL) {
        i++;
    }
    ck_assert_uint_lt(i, EARS_MAX);
    (void)snprintf(ears[i].name, sizeof ears[i].name, "%s", words->at[0]);
    ears[i].c = redisson_listen(&r, words->at[words->count - 1]);
}

void hear_from_redis(const struct scn_words *words)
{
    size_t i = find_ear(scn_word(words, 0));

    if (i == EARS_MAX) {
        scn_fail("%s does not listen", words->at[0]);
    }
    if (words->count == 1) {
        redisson_hear_nothing(ears[i].c);
    } else {
        redisson_hear(ears[i].c, words->at[1]);
    }
}

void stop_all_listening(void)
{
    for (size_t i = 0; i < EARS_MAX; i++) {
        redisFree(ears[i].c);
        ears[i].c = NULL;
    }
}
