/* The answers of AWAIT and the other commands of a latch, beside its events. */
#include "sim/world/sim_latches.h"
#include "sim/world/sim_world.h"

/* Whether that has happened to the latch since, or was the last that had before. */
static bool was(const struct sim *s, uint64_t since, enum latch_event what)
{
    const struct sim_latches *l = &s->latches;

    for (size_t i = l->log_count; i-- > 0;) {
        if (l->log[i].what == what) {
            return true;
        }
        if (l->log[i].at < since) {
            return false;
        }
    }
    return false;
}

static bool is_as_told(const struct sim *s, const struct sim_conn *c)
{
    const struct sim_latches *l = &s->latches;

    return l->log_count > 0 && l->log[0].at < c->asked_happened;
}

/* Nothing but that has happened to the latch since it was asked, nor was the last
 * before that anything else. */
static bool only_set_and_opened(const struct sim *s, const struct sim_conn *c)
{
    return is_as_told(s, c) && s->latches.restarted_at < c->asked_happened &&
           !was(s, c->asked_happened, LATCH_VANISHED) &&
           !was(s, c->asked_happened, LATCH_OPENED_UNSEEN);
}

/* At some time since it was asked. */
static bool was_mistaken(const struct sim *s, const struct sim_conn *c)
{
    return s->latches.is_mistaken || s->latches.mistaken_until >= c->asked_happened;
}

static void check_null(struct sim *s, const struct sim_conn *c)
{
    if (s->now < c->asked_ms + c->ask.wait_ms || (c->ask.has & OPT_WAIT) == 0) {
        sim_fail(s, "the wait for a latch ends before its time");
    }
    if (!was(s, c->asked_happened, LATCH_WAS_SET)) {
        sim_fail(s, "the wait for a latch ends, and it was never set");
    }
}

void check_latch_answer(struct sim *s, const struct sim_conn *c,
                        const struct effect_reply *r)
{
    bool awaits = c->ask.kind == ASK_LATCH_AWAIT;
    bool opened = was(s, c->asked_happened, LATCH_OPENED) ||
                  was(s, c->asked_happened, LATCH_OPENED_UNSEEN);

    if (awaits && r->kind == REPLY_INT && !opened && !was_mistaken(s, c)) {
        sim_fail(s, "AWAIT says that a latch is open which nobody opened");
    } else if (awaits && r->kind == REPLY_NULL) {
        check_null(s, c);
    } else if (r->kind == REPLY_ERROR && r->error == LOCK_ERR &&
               only_set_and_opened(s, c)) {
        sim_fail(s, "%s is told that a latch is gone which is there",
                 ask_text(&c->ask));
    }
}
