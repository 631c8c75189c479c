/* Random LOCKs and MLOCKs. */
#include "sim/schedule/sim_random_lock.h"
#include "sim/schedule/sim_schedule.h"

#include "latchd/protocol.h"

#include <inttypes.h>

struct redis_name *random_name(struct sim *s)
{
    return s->names[dice_below(&s->dice, s->profile.names)];
}

static void some_permits(struct sim *s, struct ask *a, uint32_t limit)
{
    a->lock_kind = KIND_PERMITS;
    a->permits =
        dice_chance(&s->dice, 700) ? 1 : 1 + (uint32_t)dice_below(&s->dice, limit);
    a->limit = dice_chance(&s->dice, 900) ? limit : 0;
}

/* A name in one of the kinds of its family, or, where that is tried, of the other. */
static void some_name_and_kind(struct sim *s, struct ask *a)
{
    size_t i = dice_below(&s->dice, s->profile.names);
    bool rw = s->profile.rw[i];
    bool is_lock = s->profile.limit[i] == 0;

    if (s->profile.mixed && dice_chance(&s->dice, 100)) {
        /* A semaphore that lost its counter is a free name to who wants a lock. */
        rw = is_lock ? !rw : rw;
    }
    a->name = s->names[i]->name;
    if (!is_lock && !rw) {
        some_permits(s, a, s->profile.limit[i]);
    } else if (rw) {
        a->lock_kind = dice_chance(&s->dice, 650) ? KIND_READ : KIND_WRITE;
    } else if (s->profile.fair && dice_chance(&s->dice, 500)) {
        a->lock_kind = KIND_FAIR;
    }
}

struct rtext random_owner(struct sim *s)
{
    return rtext_printf("owner-%c", 'a' + (int)dice_below(&s->dice, s->profile.names));
}

/* --- LOCK ---------------------------------------------------------------- */

void random_wait(struct sim *s, struct ask *a)
{
    static const uint64_t MOST[] = { 0, 50, 3000, 60000 };
    static const unsigned WEIGHTS[] = { 20, 25, 35, 8, 12 };
    size_t i = dice_weighted(&s->dice, WEIGHTS, 5);

    if (i < 4) {
        a->has |= OPT_WAIT;
        a->wait_ms = dice_below(&s->dice, MOST[i] + 1);
    }
}

static void some_id(struct sim *s, struct ask *a)
{
    a->id = rtext_printf("request-%08" PRIx64, dice_u64(&s->dice) & 0xffffffff);
    if (dice_chance(&s->dice, 400)) {
        a->has |= OPT_KEEP;
        a->keep_ms = dice_chance(&s->dice, 300) ? 0 : dice_between(&s->dice, 10, 3000);
    }
}

void random_place(struct sim *s, struct ask *a)
{
    if (a->lock_kind != KIND_FAIR && dice_chance(&s->dice, 500)) {
        a->priority = (uint8_t)dice_below(&s->dice, LATCHD_PRIORITY_MAX + 1);
    }
    if (dice_chance(&s->dice, 200)) {
        a->has |= OPT_QUEUE;
        a->queue_max = (uint32_t)dice_below(&s->dice, 4);
    }
}

struct ask random_lock(struct sim *s)
{
    struct ask a = { .kind = ASK_LOCK };

    some_name_and_kind(s, &a);
    random_wait(s, &a);
    if (s->profile.owners && dice_chance(&s->dice, 350) &&
        a.lock_kind != KIND_PERMITS) {
        a.owner = random_owner(s);
    }
    if (s->profile.ids && dice_chance(&s->dice, 450)) {
        some_id(s, &a);
    }
    if (a.lock_kind == KIND_PLAIN && a.owner.len == 0 && a.id.len == 0 &&
        dice_chance(&s->dice, s->profile.local ? 50 : 200)) {
        a.value =
            rtext_printf(ASK_ORIGIN "value-%c", 'a' + (int)dice_below(&s->dice, 2));
        a.polls_for_ms = dice_chance(&s->dice, 500) ? dice_below(&s->dice, 3000) : 0;
    }
    if (a.value.len > 0 && s->profile.leases && dice_chance(&s->dice, 250)) {
        a.has |= OPT_ENDLESS;
    } else if (s->profile.leases && dice_chance(&s->dice, 350)) {
        a.has |= OPT_LEASE;
        a.lease_ms = dice_chance(&s->dice, 500) ? dice_between(&s->dice, 100, 1000)
                                                : dice_between(&s->dice, 1000, 30000);
    } else if (dice_chance(&s->dice, 300)) {
        a.has |= OPT_GRACE;
        a.grace_ms = dice_chance(&s->dice, 500) ? 0 : dice_below(&s->dice, 2000);
    }
    if (s->profile.local && a.lock_kind == KIND_PLAIN && a.owner.len == 0 &&
        a.id.len == 0 && a.value.len == 0) {
        a.has |= OPT_LOCAL;
    }
    if (s->profile.places && a.value.len == 0) {
        random_place(s, &a);
    }
    leaders_adorn(s, &a);
    return a;
}

/* Several names in any order; of one family, or it could not but fail. */
static bool some_names(struct sim *s, struct ask *a)
{
    size_t from = dice_below(&s->dice, s->profile.names);
    size_t step = dice_between(&s->dice, 1, 2);

    for (size_t i = 0; i < s->profile.names; i++) {
        size_t k = (from + i * step) % s->profile.names;
        bool twice = step > 1 && s->profile.names % 2 == 0 && i > 0;

        if (!twice && s->profile.limit[k] == 0 &&
            (!s->profile.rw[k] || s->profile.mixed)) {
            a->names[a->name_count++] = s->names[k]->name;
        }
    }
    if (a->name_count > 2 && dice_chance(&s->dice, 500)) {
        a->name_count = 2;
    }
    a->name = a->names[0];
    return a->name_count > 0;
}

/* A job that is to run at most once in a time. */
static void some_atleast(struct sim *s, struct ask *a)
{
    if (!s->profile.rests || a->lock_kind != KIND_PLAIN || a->owner.len > 0 ||
        a->value.len > 0 || dice_chance(&s->dice, 300)) {
        return;
    }
    a->has = (a->has & ~(unsigned)(OPT_LOCAL | OPT_QUEUE)) | OPT_WAIT;
    a->wait_ms = 0;
    a->priority = 0;
    a->atleast_ms = dice_chance(&s->dice, 500) ? dice_between(&s->dice, 1, 1000)
                                               : dice_between(&s->dice, 1000, 40000);
}

struct ask random_lock_or_mlock(struct sim *s)
{
    struct ask a = random_lock(s);

    if (!s->profile.mlock || dice_chance(&s->dice, 700)) {
        some_atleast(s, &a);
        return a;
    }
    a.kind = ASK_MLOCK;
    a.lock_kind = KIND_PLAIN;
    a.has &= ~(unsigned)OPT_QUEUE;
    a.data.len = 0;
    if (!some_names(s, &a)) {
        return random_lock(s);
    }
    return a;
}
