/* Refuses requests that use another user's owner, token or ID. */
#include "engine/user_check.h"
#include "engine/effect.h"
#include "engine/emit.h"
#include "engine/engine.h"
#include "engine/entry.h"
#include "engine/hold.h"
#include "engine/lock.h"
#include "engine/op.h"
#include "engine/pending_release.h"
#include "engine/pending_request.h"
#include "engine/request.h"
#include "engine/value_hold.h"

bool user_differs(uint32_t a, uint32_t b)
{
    return a != b && a != 0 && b != 0;
}

static bool is_others(const struct hold *h, uint32_t user)
{
    return h != NULL && user_differs(h->user, user);
}

bool lock_owner_is_others(const struct lock *lock, struct span owner, uint32_t user)
{
    return is_others(lock_held_by(lock, owner, KIND_WRITE), user) ||
           is_others(lock_held_by(lock, owner, KIND_READ), user);
}

bool user_refuses(struct engine *eng, const struct lock *lock,
                  const struct request *request, const struct hold_req *req)
{
    if (req->overrides ||
        !((request != NULL && user_differs(request->user, req->user)) ||
          (req->token != 0 && is_others(lock_hold_with(lock, req->token), req->user)) ||
          (req->value.len != 0 &&
           is_others(lock_value_hold(lock, req->value), req->user)) ||
          (req->owner.len != 0 && lock_owner_is_others(lock, req->owner, req->user)))) {
        return false;
    }
    emit_error(eng, req->from, LOCK_NOPERM, TEXT_OTHERS);
    return true;
}

/* While the request waited, the target may have been granted to another user. */
bool user_refuses_release(struct engine *eng, struct lock *lock,
                          struct pending_release *d)
{
    const struct target *target = &d->target;
    struct pending_request *c = d->call;
    const struct entry *e;

    if (c == NULL || release_is_forced(d) || d->local != NULL || release_was_sent(d) ||
        c->overrides) {
        return false;
    }
    e = lock_find_target(lock, target);
    if (!(e != NULL && is_others(e->hold, c->user)) &&
        !(target->kind == TARGET_VALUE &&
          is_others(lock_value_hold(lock, target->field), c->user)) &&
        !(target->kind == TARGET_OWNER &&
          lock_owner_is_others(lock, target->field, c->user))) {
        return false;
    }
    emit_error(eng, c->ref, LOCK_NOPERM, TEXT_OTHERS);
    pending_request_free(eng, c);
    pending_release_free(eng, lock, d);
    return true;
}
