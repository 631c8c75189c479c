#include "engine/followed_names.h"
#include "engine/effect.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/hold.h"
#include "engine/loan.h"
#include "engine/lock.h"
#include "latchd/protocol.h"
#include "util/alloc.h"
#include "util/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define CHANGED_WORD "leader"
enum { HEAD_MAX = 64 }; /* of an announcement, before the name */

struct followed_name {
    struct table_node in_followed;
    uint64_t until;
    uint64_t told; /* the token of the hold here that was announced last */
    size_t len;
    char name[];
};

static struct followed_name *followed_of(struct table_node *n)
{
    return container_of(n, struct followed_name, in_followed);
}

static struct followed_name *find_followed(const struct engine *eng, struct span name)
{
    struct table_node *n = table_find(&eng->followed, hash_bytes(name.ptr, name.len));

    while (n != NULL &&
           !span_eq(span_of(followed_of(n)->name, followed_of(n)->len), name)) {
        n = table_next(n);
    }
    return n == NULL ? NULL : followed_of(n);
}

bool followed_name_is(const struct engine *eng, struct span name)
{
    const struct followed_name *f =
        eng->followed.count == 0 ? NULL : find_followed(eng, name);

    return f != NULL && eng->now < f->until;
}

static void free_followed(struct engine *eng, struct followed_name *f)
{
    table_remove(&eng->followed, &f->in_followed);
    free(f);
}

static void free_outdated(struct engine *eng)
{
    struct table_walk walk;
    struct table_node *n;

    TABLE_FOREACH(n, &walk, &eng->followed)
    {
        if (eng->now >= followed_of(n)->until) {
            free_followed(eng, followed_of(n));
        }
    }
}

/* --- telling ---------------------------------------------------------------------- */

void followed_name_announce(struct engine *eng, const char *word, struct span name)
{
    char *text = effects_alloc(&eng->fx, HEAD_MAX + name.len);
    int len = snprintf(text, HEAD_MAX, "%s %s %" PRIu64 " ", word, eng->instance,
                       ++eng->peers.number);

    memcpy(text + len, name.ptr, name.len);
    effects_add(&eng->fx, EFFECT_ANNOUNCE)->announcement =
        span_of(text, (size_t)len + name.len);
}

void followed_name_step(struct engine *eng, struct lock *lock)
{
    uint64_t token = lock_leader_token(lock);
    struct followed_name *f;

    if (eng->followed.count == 0 || !eng->up) {
        return;
    }
    f = find_followed(eng, lock_name(lock));
    if (f == NULL || f->told == token || lock->loan != NULL) {
        return; /* holds from a loan come and go, and the loan stays */
    }
    f->told = token;
    if (eng->now < f->until) {
        followed_name_announce(eng, CHANGED_WORD, lock_name(lock));
    } else {
        free_followed(eng, f);
    }
}

/* --- hearing ---------------------------------------------------------------------- */

static void note_followed(struct engine *eng, struct span name)
{
    struct followed_name *f = find_followed(eng, name);
    struct lock *lock = lock_find(eng, name);

    if (f == NULL && eng->followed.count >= FOLLOWED_MAX) {
        free_outdated(eng);
    }
    if (f == NULL && eng->followed.count < FOLLOWED_MAX) {
        f = xcalloc(1, sizeof(*f) + name.len);
        memcpy(f->name, name.ptr, name.len);
        f->len = name.len;
        f->told = lock == NULL ? 0 : lock_leader_token(lock);
        f->in_followed.key = hash_bytes(name.ptr, name.len);
        table_add(&eng->followed, &f->in_followed);
    }
    if (lock != NULL && lock->loan != NULL) {
        loan_end(eng, lock);
        if (lock->loan->holder != NULL) {
            hold_schedule_renewal(eng, lock->loan->holder);
        }
    }
    if (f != NULL) {
        f->until = eng->now + FOLLOWED_MS;
    }
}

/* Cuts the first word off. */
static struct span cut_word(struct span *text)
{
    const char *space = text->len == 0 ? NULL : memchr(text->ptr, ' ', text->len);
    size_t len = space == NULL ? text->len : (size_t)(space - text->ptr);
    struct span word = span_of(text->ptr, len);

    *text = span_after(*text, len < text->len ? len + 1 : len);
    return word;
}

bool followed_names_on_announcement(struct engine *eng, struct span text,
                                    struct span *ret_changed)
{
    struct span word = cut_word(&text);
    struct span instance = cut_word(&text);
    bool follows = span_eq(word, SPAN(FOLLOWED_WORD));

    *ret_changed = SPAN_NONE;
    if (!follows && !span_eq(word, SPAN(CHANGED_WORD))) {
        return false;
    }
    (void)cut_word(&text); /* the number tells one announcement from the next */
    if (span_eq(instance, span_str(eng->instance)) || text.len == 0 ||
        text.len > LATCHD_NAME_MAX) {
        return true;
    }
    if (follows) {
        note_followed(eng, text);
    } else {
        *ret_changed = text;
    }
    return true;
}

void followed_names_free(struct engine *eng)
{
    struct table_walk walk;
    struct table_node *n;

    TABLE_FOREACH(n, &walk, &eng->followed)
    {
        free_followed(eng, followed_of(n));
    }
    table_fini(&eng->followed);
}
