#include "engine/rest.h"
#include "engine/acquire_spec.h"
#include "engine/engine_state.h"
#include "engine/entry.h"
#include "engine/lock.h"
#include "engine/pending_release.h"
#include "engine/pending_request.h"
#include "engine/restore_mark.h"
#include "latchd/protocol.h"
#include "util/digits.h"
#include "util/parse.h"

enum { REST_FIELD_MAX = DIGITS_MAX + sizeof(LATCHD_REST_OWNER_PREFIX) };

uint64_t hold_atleast_until(const struct hold *h)
{
    const struct entry *e = h->entries; /* no named owner's: it has no other */

    if (hold_is_rest(h)) {
        return h->until;
    }
    return e == NULL || !e->spec->has_atleast ? 0 : h->began + spec_atleast_ms(e->spec);
}

uint64_t hold_atleast_left(const struct engine *eng, const struct hold *h)
{
    uint64_t until = hold_atleast_until(h);

    return until > eng->now ? until - eng->now : 0;
}

uint64_t rest_field_token(struct span field)
{
    const struct span prefix = SPAN(LATCHD_REST_OWNER_PREFIX);
    uint64_t token;

    return span_starts(field, prefix) &&
                   parse_u64(span_after(field, prefix.len), LATCHD_TOKEN_MAX, &token)
               ? token
               : 0;
}

static struct span rest_field(char out[static REST_FIELD_MAX], uint64_t token)
{
    const struct span prefix = SPAN(LATCHD_REST_OWNER_PREFIX);
    char *end = out + REST_FIELD_MAX;
    char *at = digits_before(end, token) - prefix.len;

    memcpy(at, prefix.ptr, prefix.len);
    return span_of(at, (size_t)(end - at));
}

/* The hold of the rest, which lasts until `until`; NULL: somebody has had the name
 * since. */
static struct hold *rest_hold(struct engine *eng, struct lock *lock, uint64_t token,
                              uint64_t until, uint64_t confirmed)
{
    char buf[REST_FIELD_MAX];
    struct span field = rest_field(buf, token);
    struct hold *h = lock_hold_of(lock, field);

    if (h == NULL && lock_hold(lock) != NULL) {
        return NULL;
    }
    if (h == NULL) {
        struct acquire_spec *spec =
            spec_found(eng, KIND_PLAIN, field, SPAN_NONE, SPAN_NONE, 0);

        if (!lock_in_use(lock)) {
            lock_set_class(eng, lock, CLASS_PLAIN);
        }
        spec->lease = LEASE_FIXED;
        h = hold_new(eng, lock, KIND_PLAIN, field, token);
        h->confirmed = confirmed;
        (void)hold_add_entry(eng, h, spec);
        spec_unref(eng, spec);
        h->until = until;
    }
    h->confirmed = confirmed;
    h->until = until < h->until ? until : h->until;
    h->entries->until = h->until;
    return h;
}

void rest_begin(struct engine *eng, struct lock *lock, uint64_t token, uint64_t left_ms,
                struct asked asked)
{
    struct hold *h = rest_hold(eng, lock, token, eng->now + left_ms, asked.at);

    if (h != NULL) {
        h->entries->origin = REST_RELEASED;
        lock_seen(eng, lock, asked.op, (int64_t)left_ms, KIND_PLAIN);
        hold_schedule_renewal(eng, h);
    }
}

/* What a request in flight finds of the hold does not count: the rest takes its place.
 */
static void cut_requests(const struct lock *lock)
{
    struct list *it;

    LIST_FOREACH(it, &lock->renews)
    {
        struct inflight_op *w =
            container_of(it, struct pending_request, in_lock)->in_flight;

        if (w != NULL) {
            w->cut = true;
        }
    }
}

void rest_put_back(struct engine *eng, struct lock *lock, uint64_t token,
                   uint64_t left_ms, bool may_be_lost, enum rest_origin origin)
{
    struct hold *h = rest_hold(eng, lock, token, eng->now + left_ms, eng->now);

    if (h == NULL || h->state == HOLD_RESTORING) {
        return;
    }
    cut_requests(lock);
    h->entries->origin = origin;
    hold_set_uncertain(eng, h);
    entry_set_restore(h->entries, ENTRY_UNSURE);
    hold_set_put_back(eng, h, !may_be_lost);
    hold_set_state(eng, h, HOLD_RESTORING);
    list_del(&h->in_queue);
    restore_again(eng, h);
    hold_schedule_renewal(eng, h);
}

void hold_forget_unanswered(struct engine *eng, struct hold *h, bool over)
{
    const struct entry *e = h->entries;
    bool untold = e != NULL && e->release != NULL && e->release->untold;
    bool may_be_lost = hold_may_be_lost(h);
    struct lock *lock = h->lock;
    uint64_t token = h->token;
    uint64_t left_ms = untold || hold_is_rest(h) ? 0 : hold_atleast_left(eng, h);

    hold_forget(eng, h, over);
    if (left_ms > 0) {
        rest_put_back(eng, lock, token, left_ms, may_be_lost, REST_GIVEN_UP);
    }
}
