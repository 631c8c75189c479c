#include "support/stand.h"

#include "support/redisson.h"

#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct stand stand;

enum { ARGS_MAX = 12, BEAT_MS = 10, LATE_MS = 50, GAPS_MAX = 256 };

/* When the machine stood still, as far as this process knows. */
static struct {
    sem_t beats;
    _Atomic size_t count;
    struct {
        uint64_t start, end;
    } gaps[GAPS_MAX];
} pulse;

static void *beat(void *arg)
{
    uint64_t before = test_now_ms();

    sem_post(&pulse.beats);
    for (;;) {
        uint64_t now;

        test_sleep_ms(BEAT_MS);
        now = test_now_ms();
        if (now - before > BEAT_MS + LATE_MS && pulse.count < GAPS_MAX) {
            pulse.gaps[pulse.count].start = before + BEAT_MS;
            pulse.gaps[pulse.count].end = now;
            pulse.count++;
        }
        before = now;
    }
    return arg;
}

/* Returns when the thread does nothing but sleep: a child that is forked while another
 * thread allocates, as one does that begins, may wait for ever for the allocator. */
void start_pulse(void)
{
    pthread_t thread;

    ck_assert_int_eq(sem_init(&pulse.beats, 0, 0), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, beat, NULL), 0);
    ck_assert_int_eq(pthread_detach(thread), 0);
    while (sem_wait(&pulse.beats) != 0) {
    }
}

uint64_t stood_still_since(uint64_t start)
{
    uint64_t ms = 0;

    for (size_t i = 0, count = pulse.count; i < count; i++) {
        if (pulse.gaps[i].end > start) {
            ms += pulse.gaps[i].end -
                  (pulse.gaps[i].start > start ? pulse.gaps[i].start : start);
        }
    }
    return ms;
}

/* Passes its arguments on; daemon_start() wants them one by one. */
static struct test_daemon *start_daemon(const char *const *a)
{
    return daemon_start(redis_path(stand.redis), a[0], a[1], a[2], a[3], a[4], a[5],
                        a[6], a[7], a[8], a[9], a[10], a[11], NULL);
}

void stand_up(const char *arg, ...)
{
    const char *args[ARGS_MAX + 1] = { arg };
    va_list ap;

    va_start(ap, arg);
    for (int i = 1; i <= ARGS_MAX && args[i - 1] != NULL; i++) {
        args[i] = va_arg(ap, const char *);
    }
    va_end(ap);
    ck_assert_ptr_null(args[ARGS_MAX]);
    if (stand.redis == NULL) {
        stand.redis = redis_start();
    }
    stand.daemon = start_daemon(args);
    stand.admin = client_open(stand.daemon);
    start_pulse();
}

void stand_down(void)
{
    client_close(stand.admin);
    daemon_stop(stand.daemon);
    redis_stop(stand.redis);
}

struct test_daemon *stand_second(void)
{
    return daemon_start(redis_path(stand.redis), NULL);
}

struct client *open_client(void)
{
    return client_open(stand.daemon);
}

void close_clients(struct client *const *clients, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        client_close(clients[i]);
    }
}

void send_lock(struct client *c, const char *name, const char *words, int64_t place)
{
    client_send(c, "LOCK %s%s%s", name, *words == '\0' ? "" : " ", words);
    await_waiting(stand.admin, name, place);
}

const char *info_text(const char *field)
{
    static char text[256];
    struct value v = ask(stand.admin, "INFO everything");
    char key[64];
    const char *at;

    (void)snprintf(key, sizeof key, "\n%s:", field);
    at = strstr(v.text, key);
    ck_assert_msg(at != NULL, "no %s in %s", field, v.text);
    at += strlen(key);
    (void)snprintf(text, sizeof text, "%.*s", (int)strcspn(at, "\r\n"), at);
    value_fini(&v);
    return text;
}

int64_t info_number(const char *field)
{
    return strtoll(info_text(field), NULL, 10);
}

void await_waiters(int64_t count)
{
    AWAIT(info_number("waiters") == count);
}

void await_queue(const char *name, long long count)
{
    const char *key = redisson_key("redisson_lock_queue", name);

    AWAIT(peek_int("LLEN %s", key) == count);
}

void subscribe(struct client *c, const char *channel)
{
    struct value v = ask(c, "SUBSCRIBE %s", channel);

    ck_assert_uint_eq(v.count, 3);
    ck_assert(value_is_text(&v.items[0], "subscribe"));
    value_fini(&v);
}

void expect_not_before(uint64_t start, uint64_t ms)
{
    uint64_t took = test_now_ms() - start;

    ck_assert_msg(took >= ms, "took %" PRIu64 " ms, wanted %" PRIu64, took, ms);
}

void expect_elapsed(uint64_t start, uint64_t at_least, uint64_t at_most)
{
    uint64_t took = test_now_ms() - start, slack = SLACK_MS + stood_still_since(start);

    ck_assert_msg(took >= at_least && took <= at_most + slack,
                  "took %" PRIu64 " ms, wanted %" PRIu64 " to %" PRIu64 " (and %" PRIu64
                  " slack)",
                  took, at_least, at_most, slack);
}

/* --- looks into Redis ------------------------------------------------------------- */

__attribute__((format(printf, 1, 0))) static redisReply *peek(const char *fmt,
                                                              va_list ap)
{
    char line[1024];
    redisReply *r;

    (void)vsnprintf(line, sizeof line, fmt, ap);
    r = redisCommand(redis_side(stand.redis), line);
    ck_assert_msg(r != NULL, "%s: %s", line, redis_side(stand.redis)->errstr);
    ck_assert_msg(r->type != REDIS_REPLY_ERROR, "%s: %s", line, r->str);
    return r;
}

long long peek_int(const char *fmt, ...)
{
    redisReply *r;
    long long value;
    va_list ap;

    va_start(ap, fmt);
    r = peek(fmt, ap);
    va_end(ap);
    ck_assert_msg(r->type == REDIS_REPLY_INTEGER, "%s: not an integer", fmt);
    value = r->integer;
    freeReplyObject(r);
    return value;
}

char *peek_text(const char *fmt, ...)
{
    redisReply *r;
    char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    r = peek(fmt, ap);
    va_end(ap);
    if (r->type == REDIS_REPLY_STRING || r->type == REDIS_REPLY_STATUS) {
        text = strdup(r->str);
    }
    freeReplyObject(r);
    return text;
}

long long peek_script_calls(void)
{
    static const char *const COUNTERS[] = { "cmdstat_evalsha:calls=",
                                            "cmdstat_eval:calls=" };
    char *info = peek_text("INFO commandstats");
    long long sum = 0;

    for (size_t i = 0; i < 2; i++) {
        const char *at = strstr(info, COUNTERS[i]);

        if (at != NULL) {
            sum += atoll(at + strlen(COUNTERS[i]));
        }
    }
    free(info);
    return sum;
}

static bool is_helper(const char *key)
{
    return strncmp(key, "latchd:", 7) == 0;
}

static redisReply *all_keys(void)
{
    redisReply *r = redisCommand(redis_side(stand.redis), "KEYS *");

    ck_assert_ptr_nonnull(r);
    ck_assert_int_eq(r->type, REDIS_REPLY_ARRAY);
    return r;
}

static size_t count_locks(char *example, size_t room)
{
    redisReply *r = all_keys();
    size_t count = 0;

    for (size_t i = 0; i < r->elements; i++) {
        if (!is_helper(r->element[i]->str)) {
            (void)snprintf(example, room, "%s", r->element[i]->str);
            count++;
        }
    }
    freeReplyObject(r);
    return count;
}

static void no_locks_until(uint64_t deadline)
{
    char example[256] = "";
    size_t count;

    while ((count = count_locks(example, sizeof example)) > 0) {
        ck_assert_msg(test_now_ms() < deadline,
                      "%zu locks are left in Redis, such as %s", count, example);
        test_sleep_ms(5);
    }
}

void expect_no_locks(void)
{
    no_locks_until(0);
}

void await_no_locks(uint64_t own_ms)
{
    no_locks_until(test_now_ms() + own_ms + TEST_PATIENCE_MS);
}

/* The TTL has risen since the last look. */
static bool has_risen(const char *key, long long *last)
{
    long long before = *last;

    *last = peek_int("PTTL %s", key);
    ck_assert_msg(*last > 0, "%s is not renewed: its lease is over", key);
    return *last > before;
}

void await_renewals(const char *key, int count)
{
    long long ttl = INT64_MAX;

    for (; count > 0; count--) {
        AWAIT(has_risen(key, &ttl));
    }
}

void expect_ttl_everywhere(void)
{
    redisReply *r = all_keys();

    for (size_t i = 0; i < r->elements; i++) {
        long long ttl = peek_int("PTTL %s", r->element[i]->str);

        ck_assert_msg(ttl != -1, "%s has no TTL", r->element[i]->str);
    }
    freeReplyObject(r);
}
