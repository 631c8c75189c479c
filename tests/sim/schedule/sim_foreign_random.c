/* Random Redisson clients. */
#include "sim/world/sim_world.h"

#include "sim/world/sim_faults.h"

static enum foreign_kind some_kind(struct sim *s, size_t name)
{
    if (s->profile.rw[name]) {
        return dice_chance(&s->dice, 600) ? FOREIGN_READ : FOREIGN_WRITE;
    }
    if (s->profile.fair && dice_chance(&s->dice, 600)) {
        return FOREIGN_FAIR;
    }
    return dice_chance(&s->dice, 200) ? FOREIGN_SPIN : FOREIGN_PLAIN;
}

/* How long a tryLock() waits: that is also how far its deadlines are apart. */
static void some_patience(struct sim *s, struct sim_foreign *f)
{
    /* A place that a lost write or a death leaves behind lasts as long as this; so does
     * one whose client met other data there, which is an exception to it. */
    const unsigned left_behind = FAULT_LOSS | FAULT_STRING | FAULT_FAILOVER;
    bool brief = f->dies || (s->profile.faults & left_behind) != 0;

    if (!f->waits || dice_chance(&s->dice, 300)) {
        f->wait_ms = dice_between(&s->dice, 1000, 20000);
        return;
    }
    f->wait_ms = brief || dice_chance(&s->dice, 800)
                     ? dice_between(&s->dice, 50, 20000)
                     : dice_between(&s->dice, 20000, 3600000);
    f->end_at = s->now + f->wait_ms;
}

void foreign_act_random(struct sim *s)
{
    size_t name = dice_below(&s->dice, s->profile.names);
    bool waits = dice_chance(&s->dice, 600);
    struct sim_foreign *f;

    if (s->profile.limit[name] != 0) {
        return; /* of semaphores, Redisson has none here */
    }

    if (s->now < s->redis_paused_until) {
        return;
    }
    f = foreign_start(s, s->names[name], some_kind(s, name), waits);
    if (f == NULL) {
        return;
    }
    if (s->foreign_before.len > 0 && dice_chance(&s->dice, 400)) {
        f->owner = s->foreign_before; /* the same thread once more */
        s->foreign_before.len = 0;
    }
    f->watched = dice_chance(&s->dice, 400);
    f->dies = s->profile.foreign_dies && dice_chance(&s->dice, 200);
    f->lease_ms = dice_chance(&s->dice, 500) ? dice_between(&s->dice, 20, 1000)
                                             : dice_between(&s->dice, 1000, 30000);
    if (s->profile.foreign_dies && dice_chance(&s->dice, 200)) {
        f->skew_ms = (int64_t)dice_below(&s->dice, 10001) - 5000;
    }
    some_patience(s, f);
    foreign_act_now(s, f);
}
