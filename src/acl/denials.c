#include "acl/denials.h"

#include "util/alloc.h"

#include <stdbool.h>
#include <stdlib.h>

struct denials {
    struct denial list[DENIALS_MAX]; /* newest first */
    size_t count;
    uint64_t totals[DENIAL_REASONS];
};

struct denials *denials_new(void)
{
    return xcalloc(1, sizeof(struct denials));
}

static void denial_fini(struct denial *d)
{
    free((char *)d->object.ptr);
    free((char *)d->user.ptr);
    free((char *)d->client.ptr);
}

void denials_reset(struct denials *d)
{
    for (size_t i = 0; i < d->count; i++) {
        denial_fini(&d->list[i]);
    }
    d->count = 0;
}

void denials_free(struct denials *d)
{
    if (d != NULL) {
        denials_reset(d);
        free(d);
    }
}

static struct span copy_text(struct span s, size_t max)
{
    size_t len = s.len < max ? s.len : max;

    return span_of(xmemdup0(s.ptr, len), len);
}

static bool is_again(const struct denial *old, const struct denial *now)
{
    size_t shown =
        now->object.len < DENIALS_OBJECT_MAX ? now->object.len : DENIALS_OBJECT_MAX;

    return old->reason == now->reason && strcmp(old->context, now->context) == 0 &&
           now->at_ms - old->at_ms <= DENIALS_GROUP_MS &&
           span_eq(old->object, span_of(now->object.ptr, shown)) &&
           span_eq(old->user, now->user);
}

/* Moves entry `at` to the front. */
static struct denial *to_front(struct denials *d, size_t at)
{
    struct denial found = d->list[at];

    memmove(&d->list[1], &d->list[0], at * sizeof(d->list[0]));
    d->list[0] = found;
    return &d->list[0];
}

void denials_add(struct denials *d, const struct denial *denial)
{
    struct denial *first;
    size_t at = 0;

    d->totals[denial->reason]++;
    while (at < d->count && !is_again(&d->list[at], denial)) {
        at++;
    }
    if (at < d->count) {
        first = to_front(d, at);
        free((char *)first->client.ptr);
        first->client = copy_text(denial->client, SIZE_MAX);
        first->at_ms = denial->at_ms;
        first->count++;
        return;
    }
    if (d->count == DENIALS_MAX) {
        denial_fini(&d->list[--d->count]);
    }
    d->list[d->count] = (struct denial){
        .reason = denial->reason,
        .context = denial->context,
        .object = copy_text(denial->object, DENIALS_OBJECT_MAX),
        .user = copy_text(denial->user, SIZE_MAX),
        .client = copy_text(denial->client, SIZE_MAX),
        .at_ms = denial->at_ms,
        .count = 1,
    };
    (void)to_front(d, d->count++);
}

size_t denials_count(const struct denials *d)
{
    return d->count;
}

const struct denial *denials_at(const struct denials *d, size_t number)
{
    return &d->list[number];
}

uint64_t denials_total(const struct denials *d, enum denial_reason reason)
{
    return d->totals[reason];
}

void denials_reset_totals(struct denials *d)
{
    memset(d->totals, 0, sizeof(d->totals));
}
