/* Whose an owner, token or ID is: one user's are of no use to another. */
#include "core/parts.h"

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

bool user_refused(struct locks *l, const struct lock *lock, const struct hold_req *req)
{
    const struct request *r = request_find(l, req->name, req->id);

    if (req->overrides ||
        !((r != NULL && user_differs(r->user, req->user)) ||
          (req->token != 0 && is_others(lock_hold_with(lock, req->token), req->user)) ||
          (req->owner.len != 0 && lock_owner_is_others(lock, req->owner, req->user)))) {
        return false;
    }
    say_error(l, req->from, LOCK_NOPERM, TEXT_OTHERS);
    return true;
}

/* Since it came somebody may have been granted what it names. */
bool user_refused_duty(struct locks *l, struct lock *lock, struct duty *d)
{
    const struct target *t = &d->target;
    struct call *c = d->call;
    const struct entry *e;

    if (c == NULL || d->force || d->local != NULL || d->tries > 0 || c->overrides) {
        return false;
    }
    e = lock_find_target(lock, t);
    if (!(e != NULL && is_others(e->hold, c->user)) &&
        !(t->kind == TARGET_OWNER && lock_owner_is_others(lock, t->field, c->user))) {
        return false;
    }
    say_error(l, c->ref, LOCK_NOPERM, TEXT_OTHERS);
    call_free(l, c);
    duty_free(l, lock, d);
    return true;
}
