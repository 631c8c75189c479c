/* What is known of a hold, and which entry a target or a request means. */
#include "engine/acquire_spec.h"
#include "engine/entry.h"
#include "engine/hold.h"
#include "engine/lock.h"
#include "engine/op_cost.h"
#include "engine/pending_request.h"
#include "engine/rest.h"

bool entry_has_id(const struct entry *e, struct span id)
{
    return span_eq(spec_entry(e->spec), id);
}

struct entry *hold_find_entry(const struct hold *h, struct span id)
{
    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        if (h->kind != OWNER_NAMED || entry_has_id(e, id)) {
            return e;
        }
    }
    return NULL;
}

bool hold_has_one_entry(const struct hold *h)
{
    return h->entries != NULL && h->entries->next == NULL;
}

/* Who enters once more need not repeat it. */
struct span hold_data(const struct hold *h)
{
    struct span data = SPAN_NONE;

    for (const struct entry *e = h->entries; e != NULL && data.len == 0; e = e->next) {
        data = spec_data(e->spec);
    }
    return data;
}

uint32_t hold_permits(const struct hold *h)
{
    return h->entries == NULL ? 0 : h->entries->spec->permits;
}

uint64_t hold_cost(const struct hold *h)
{
    size_t entries = 0;

    /* Of a reader each entry has a key. */
    for (const struct entry *e = h->entries;
         h->lock_kind == KIND_READ && e != NULL && entries < OP_COST_MAX; e = e->next) {
        entries++;
    }
    return op_cost(hold_permits(h), entries, lock_name(h->lock).len + h->field_len);
}

static struct entry *find_target(const struct hold *h, const struct target *t)
{
    bool named = h->kind == OWNER_NAMED;
    bool rests = hold_is_rest(h); /* the hold with that token has ended */
    bool fits = false;

    if ((t->token != 0 && h->token != t->token) ||
        (lock_kind_tells_class(t->lock_kind) && h->lock_kind != t->lock_kind)) {
        return NULL;
    }
    switch (t->kind) {
    case TARGET_FIELD:
        fits = !named && span_eq(hold_field(h), t->field);
        break;
    case TARGET_REQUEST:
        fits = h->kind == OWNER_ANONYMOUS; /* and its entry, below */
        break;
    case TARGET_TOKEN:
        fits = !named && !rests;
        break;
    case TARGET_ID:
        fits = named || span_eq(field_owner(hold_field(h)), field_owner(t->field));
        break;
    case TARGET_ENTRY:
        fits = named && span_eq(field_owner(hold_field(h)), field_owner(t->field));
        break;
    case TARGET_OWNER:
    case TARGET_VALUE:
    case TARGET_ANY:
        break;
    }
    if (fits && t->kind == TARGET_REQUEST) {
        struct entry *e = h->entries;

        return entry_has_id(e, t->entry) ? e : NULL;
    }
    return fits ? hold_find_entry(h, t->entry) : NULL;
}

struct entry *lock_find_target(const struct lock *lock, const struct target *t)
{
    struct span owner = field_owner(t->field);
    struct hold *maybe[2] = { NULL, NULL };
    struct entry *e = NULL;
    struct list *it;

    switch (t->kind) {
    case TARGET_FIELD:
        maybe[0] = lock_hold_of(lock, t->field);
        break;
    case TARGET_TOKEN:
        maybe[0] = lock_hold_with(lock, t->token);
        break;
    case TARGET_REQUEST:
        maybe[0] = lock->lock_class == CLASS_RW ? lock->writer : lock_hold(lock);
        break;
    case TARGET_ENTRY:
        maybe[0] = lock_held_by(lock, owner, KIND_WRITE);
        maybe[1] = lock_held_by(lock, owner, KIND_READ);
        break;
    case TARGET_ID:
        /* An ID of a named owner, who is not said. */
        LIST_FOREACH(it, &lock->holds)
        {
            e = e != NULL ? e : find_target(container_of(it, struct hold, in_lock), t);
        }
        return e;
    case TARGET_OWNER:
    case TARGET_VALUE:
    case TARGET_ANY:
        break;
    }
    for (size_t i = 0; i < 2 && e == NULL; i++) {
        e = maybe[i] == NULL ? NULL : find_target(maybe[i], t);
    }
    return e;
}

bool hold_is_ending(const struct hold *h)
{
    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        if (!entry_is_ending(e)) {
            return false;
        }
    }
    return true;
}

uint64_t hold_wanted_lease(const struct engine *eng, const struct hold *h,
                           bool kept_too)
{
    uint64_t lease_ms = 0;

    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        bool kept = (kept_too && e->retained) || entry_is_attached(e);

        if (entry_is_ending(e) || e->lease == LEASE_FIXED) {
            continue;
        }
        if (e->lease == LEASE_ENDLESS) {
            return eng->cfg.endless_lease_ms;
        }
        lease_ms = kept ? eng->cfg.watchdog_ms : lease_ms;
    }
    return lease_ms;
}

uint64_t hold_lease(const struct engine *eng, const struct hold *h)
{
    uint64_t wanted = hold_wanted_lease(eng, h, true);
    uint64_t until = 0;

    if (hold_is_ending(h)) {
        return 0;
    }
    if (h->exact_ms != 0) {
        return h->exact_ms;
    }
    if (wanted != 0) {
        return wanted;
    }
    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        if (e->lease == LEASE_FIXED && !entry_is_ending(e) && e->until > until) {
            until = e->until;
        }
    }
    return until > eng->now ? until - eng->now : 0;
}

enum lease_kind hold_lease_kind(const struct hold *h)
{
    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        if (e->lease != LEASE_FIXED) {
            return e->lease;
        }
    }
    return LEASE_FIXED;
}

struct entry *pending_request_entry(const struct pending_request *c)
{
    struct entry *e = lock_find_target(c->lock, &c->target);

    return e == NULL || entry_is_ending(e) ? NULL : e;
}

bool pending_request_renews(const struct entry *e)
{
    struct list *it;

    LIST_FOREACH(it, &e->hold->lock->renews)
    {
        if (pending_request_entry(container_of(it, struct pending_request, in_lock)) ==
            e) {
            return true;
        }
    }
    return false;
}
