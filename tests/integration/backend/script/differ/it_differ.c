/* The scripts and the model of the simulator mean the same. `SEED` in the environment:
 * just that schedule; `SCHEDULES`: so many of each mix. */
#include "differ.h"

#include "support/redisson.h"
#include "support/runner.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 120, SCHEDULES = 12 };

const char *const DIFFER_NAME[DIFFER_NAMES] = { "n", "my:{t}:x" };

static struct differ differ;

void differ_add(struct differ_lines *lines, int64_t number, const char *fmt, ...)
{
    struct differ_line *l;
    va_list ap;

    ck_assert_uint_lt(lines->count, DIFFER_LINES_MAX);
    l = &lines->line[lines->count++];
    l->number = number;
    va_start(ap, fmt);
    (void)vsnprintf(l->text, sizeof(l->text), fmt, ap);
    va_end(ap);
}

const char *differ_text(struct differ *d, const char *fmt, ...)
{
    char *text;
    va_list ap;

    ck_assert_uint_lt(d->text_count, sizeof(d->texts) / sizeof(d->texts[0]));
    text = d->texts[d->text_count++];
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(d->texts[0]), fmt, ap);
    va_end(ap);
    return text;
}

void differ_say(struct differ *d, const char *fmt, ...)
{
    char *line = d->log[d->step % DIFFER_LOG];
    size_t used = strlen(line);
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(line + used, DIFFER_SAID_MAX - used, fmt, ap);
    va_end(ap);
}

static void print_lines(const char *what, const struct differ_lines *l)
{
    (void)printf("# %s:\n", what);
    for (size_t i = 0; i < l->count; i++) {
        (void)printf("#   %s %" PRId64 "\n", l->line[i].text, l->line[i].number);
    }
}

void differ_fail(struct differ *d, const char *name, const char *fmt, ...)
{
    static struct differ_lines real, model;
    char why[DIFFER_TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    (void)printf("# seed %" PRIu64 " step %" PRIu64 ", %s: %s\n", d->seed, d->step,
                 name, why);
    for (uint64_t i = d->step < DIFFER_LOG ? 0 : d->step - DIFFER_LOG + 1; i <= d->step;
         i++) {
        (void)printf("#  %" PRIu64 " %s\n", i, d->log[i % DIFFER_LOG]);
    }
    differ_dump(d, name, &real, &model);
    print_lines("Redis", &real);
    print_lines("model", &model);
    (void)fflush(stdout);
    ck_abort_msg("seed %" PRIu64 " step %" PRIu64 ", %s: %s", d->seed, d->step, name,
                 why);
}

struct redis_name *differ_name(struct differ *d, const char *name)
{
    d->model.now_ms = redis_time_us() / 1000;
    return sim_redis_name(&d->model, span_str(name));
}

const char *differ_tagged(struct differ *d, const char *name)
{
    return strchr(name, '{') != NULL ? name : differ_text(d, "{%s}", name);
}

static void hear(void *ctx, const struct redis_message *m)
{
    struct differ *d = ctx;
    const char *name = m->name->name.s;
    bool tagged = strchr(name, '{') != NULL;

    differ_add(&d->heard, 0, "%s:%s%s%s%s%.*s %c",
               m->channel == CHANNEL_RW ? "redisson_rwlock" : "redisson_lock__channel",
               tagged ? "" : "{", name, tagged ? "" : "}", m->member.len > 0 ? ":" : "",
               (int)m->member.len, m->member.len > 0 ? m->member.ptr : "", m->payload);
}

static redisContext *listen_to(const char *command)
{
    redisContext *c = redisConnectUnix(redis_path(peer_redis()));
    redisReply *r;

    ck_assert_int_eq(c->err, 0);
    r = redisCommand(c, command);
    ck_assert_ptr_nonnull(r);
    freeReplyObject(r);
    return c;
}

static void begin(struct differ *d, uint64_t seed, struct differ_mix mix)
{
    memset(d, 0, sizeof(*d));
    freeReplyObject(redis_ask(peer_redis(), "FLUSHALL"));
    d->seed = seed;
    d->mix = mix;
    dice_init(&d->dice, seed);
    sim_redis_init(&d->model);
    d->model.hooks.ctx = d;
    d->model.hooks.published = hear;
    d->start_ms = redis_time_us() / 1000;
    d->listener = listen_to("PSUBSCRIBE redisson_*");
    d->channels[0] = listen_to("SUBSCRIBE redisson_lock__channel:{n}");
    d->channels[1] = listen_to("SUBSCRIBE redisson_rwlock:{n}");
    differ_name(d, "n")->foreign_subscribers = 1;
    differ_name(d, "n")->foreign_rw_subscribers = 1;
}

static void end(struct differ *d)
{
    redisFree(d->listener);
    redisFree(d->channels[0]);
    redisFree(d->channels[1]);
    sim_redis_fini(&d->model);
}

static void step(struct differ *d)
{
    const char *name = DIFFER_NAME[dice_below(&d->dice, DIFFER_NAMES)];
    uint64_t dice = dice_below(&d->dice, 1000);

    d->log[d->step % DIFFER_LOG][0] = '\0';
    d->text_count = 0;
    if (dice < d->mix.foreign) {
        differ_foreign(d, name);
    } else if (dice < d->mix.foreign + d->mix.faults) {
        differ_fault(d, name);
    } else {
        differ_op(d, name);
    }
    for (size_t i = 0; i < DIFFER_NAMES; i++) {
        differ_compare(d, DIFFER_NAME[i]);
    }
    differ_compare_messages(d, name);
}

static void play(uint64_t seed, struct differ_mix mix)
{
    begin(&differ, seed, mix);
    for (; differ.step < STEPS; differ.step++) {
        step(&differ);
    }
    end(&differ);
}

static void play_all(uint64_t first, struct differ_mix mix)
{
    const char *only = getenv("SEED");
    const char *batch = getenv("SCHEDULES");
    uint64_t count = batch == NULL ? SCHEDULES : strtoull(batch, NULL, 10);

    if (only != NULL) {
        play(strtoull(only, NULL, 10), mix);
        return;
    }
    for (uint64_t seed = first; seed < first + count; seed++) {
        play(seed, mix);
    }
}

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 60);

START_TEST(plain_locks_mean_the_same)
{
    play_all(100, (struct differ_mix){ .plain = true });
}

START_TEST(plain_locks_beside_redisson_mean_the_same)
{
    play_all(1100, (struct differ_mix){ .plain = true, .foreign = 300, .faults = 100 });
}

START_TEST(fair_locks_mean_the_same)
{
    play_all(2000, (struct differ_mix){ .plain = true, .fair = true });
}

START_TEST(fair_locks_beside_redisson_mean_the_same)
{
    play_all(3000, (struct differ_mix){
                       .plain = true, .fair = true, .foreign = 300, .faults = 100 });
}

START_TEST(read_write_locks_mean_the_same)
{
    play_all(4000, (struct differ_mix){ .rw = true });
}

START_TEST(read_write_locks_beside_redisson_mean_the_same)
{
    play_all(5000, (struct differ_mix){ .rw = true, .foreign = 300, .faults = 100 });
}

START_TEST(names_that_change_their_family_mean_the_same)
{
    play_all(6000, (struct differ_mix){
                       .plain = true, .rw = true, .foreign = 200, .faults = 150 });
}
