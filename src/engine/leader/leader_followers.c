#include "engine/leader/leader_followers.h"
#include "engine/emit.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/hold/pending_request.h"
#include "engine/leader/leader_watch.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "engine/op.h"
#include "engine/session.h"

bool leader_is_older(const struct leader *leader, uint64_t token)
{
    return leader->token != 0 && leader->token + OP_BLOCK_MAX < token;
}

bool followers_wait(const struct leader_watch *w)
{
    struct list *it;

    LIST_FOREACH(it, &w->followers)
    {
        if (container_of(it, struct pending_request, in_waiting)->has_after) {
            return true;
        }
    }
    return false;
}

/* --- answers ---------------------------------------------------------------------- */

static void answer_follower(struct engine *eng, const struct leader_watch *w,
                            struct pending_request *c)
{
    emit_leader(eng, c->ref, &w->leader);
    pending_request_free(eng, c);
}

/* What is known was looked for after the LEADER came, so that no reply is older than
 * what its client may know already. A leader whose successor the client knows is one
 * that Redis has brought back. */
static bool is_known_to(const struct leader_watch *w, const struct pending_request *c)
{
    return w->state == LEADER_KNOWN && w->known_op > c->asked_op &&
           !(c->has_after && leader_is_older(&w->leader, c->after));
}

void followers_answer(struct engine *eng, struct leader_watch *w)
{
    struct list *it, *tmp;

    LIST_FOREACH_SAFE(it, tmp, &w->followers)
    {
        struct pending_request *c =
            container_of(it, struct pending_request, in_waiting);
        bool waits =
            c->has_after && w->leader.token == c->after && eng->now < c->wait_until;

        if (is_known_to(w, c) && !waits) {
            answer_follower(eng, w, c);
        }
    }
}

void followers_refuse(struct engine *eng, struct leader_watch *w, bool all,
                      enum lock_error error, struct span text)
{
    struct list *it, *tmp;

    LIST_FOREACH_SAFE(it, tmp, &w->followers)
    {
        struct pending_request *c =
            container_of(it, struct pending_request, in_waiting);

        if (all || !c->has_after) {
            emit_error(eng, c->ref, error, text);
            pending_request_free(eng, c);
        }
    }
}

/* --- the ends of their waits ------------------------------------------------------ */

/* A WAIT that is over is answered with what is known. If that is nothing, Redis has as
 * long for its answer as anywhere. */
void leader_request_on_timer(struct engine *eng, struct pending_request *c)
{
    struct leader_watch *w = c->lock->activity->leader_watch;

    if (is_known_to(w, c)) {
        answer_follower(eng, w, c);
    } else if (eng->now < c->deadline) {
        timer_set(eng, &c->timer, TIMER_PENDING_REQUEST, c->deadline);
    } else if (tick_is_too_late(eng, c->deadline)) {
        timer_set(eng, &c->timer, TIMER_PENDING_REQUEST, eng->now + 1);
    } else {
        emit_error(eng, c->ref, LOCK_BACKEND, eng->up ? TEXT_NO_ANSWER : TEXT_NO_REDIS);
        pending_request_free(eng, c);
    }
}

bool leader_unblock(struct engine *eng, struct session *s, bool with_error)
{
    struct list *it;

    LIST_FOREACH(it, &s->pending_requests)
    {
        struct pending_request *c =
            container_of(it, struct pending_request, in_session);

        if (c->kind == PENDING_LEADER) {
            c->wait_until = eng->now;
            c->deadline = eng->now + eng->cfg.redis_timeout_ms;
            if (with_error) {
                emit_error(eng, c->ref, LOCK_UNBLOCKED, TEXT_UNBLOCKED);
                pending_request_free(eng, c);
            } else {
                leader_request_on_timer(eng, c);
            }
            return true;
        }
    }
    return false;
}

void leader_end_waits(struct engine *eng)
{
    struct list *it;

    LIST_FOREACH(it, &eng->leader_watches)
    {
        followers_refuse(eng, container_of(it, struct leader_watch, in_all), true,
                         LOCK_GOAWAY, TEXT_GOING);
    }
}
