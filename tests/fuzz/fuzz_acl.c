/* Files of users: whatever they say, all of it is taken over or nothing, and what is
 * written can be read again, and then says the same: all may do what they might. */
#include "fuzz.h"

#include "acl/acl.h"
#include "util/buf.h"

#include <stdio.h>
#include <stdlib.h>

static const struct acl_command COMMANDS[] = {
    { "client", 0, false },   { "client|id", 2, false }, { "client|kill", 4, false },
    { "free", 1 | 4, false }, { "lock", 1, false },      { "look", 1 | 2, false },
};
static const char *const CATEGORIES[] = { "@lock", "@read", "@admin" };
static const struct acl_catalog CATALOG = { COMMANDS, 6, CATEGORIES, 3 };

static void fail(const char *what)
{
    (void)fprintf(stderr, "%s\n", what);
    abort();
}

static bool load(struct acl *a, struct span text)
{
    struct buf reason = { 0 };
    bool has_default;
    bool ok = acl_load(a, "f", text, SPAN_NONE, &has_default, &reason);

    if (ok != (buf_len(&reason) == 0)) {
        fail("a mistake without a reason");
    }
    buf_reset(&reason);
    return ok;
}

/* Everything that can be asked about a user. */
static void ask(void *ctx, struct acl_user *user)
{
    const struct span *text = ctx;
    struct span name = span_of(text->ptr, text->len < 512 ? text->len : 512);

    for (size_t i = 0; i < CATALOG.command_count; i++) {
        (void)permissions_may_run(&user->terms, i);
    }
    (void)permissions_may_name(&user->terms, name, PERM_BOTH);
    (void)permissions_may_channel(&user->terms, name);
    (void)permissions_may_channels(&user->terms, name);
}

struct other {
    const struct acl *acl;
    struct span name; /* of a lock, or a channel */
};

static bool same_patterns(const struct patterns *a, const struct patterns *b)
{
    for (size_t i = 0; i < a->count && a->count == b->count; i++) {
        if (a->list[i].access != b->list[i].access ||
            !span_eq(span_of(a->list[i].text, a->list[i].len),
                     span_of(b->list[i].text, b->list[i].len))) {
            return false;
        }
    }
    return a->count == b->count;
}

/* He may do the same there. */
static void check_same(void *ctx, struct acl_user *user)
{
    const struct other *other = ctx;
    const struct acl_user *same =
        acl_find(other->acl, span_of(user->name, user->name_len));
    const struct permissions *a = &user->terms, *b;

    if (same == NULL) {
        fail("somebody is not there any more");
    }
    b = &same->terms;
    if (a->flags != b->flags || a->password_count != b->password_count ||
        memcmp(a->allowed, b->allowed, sizeof(a->allowed)) != 0 ||
        !same_patterns(&a->names, &b->names) ||
        !same_patterns(&a->channels, &b->channels) ||
        permissions_may_anything(a) != permissions_may_anything(b) ||
        permissions_may_name(a, other->name, PERM_READ) !=
            permissions_may_name(b, other->name, PERM_READ)) {
        fail("somebody may do something else");
    }
}

static void check_loaded(struct acl *a, struct span text)
{
    struct buf once = { 0 }, again = { 0 };
    struct acl *other = acl_new(&CATALOG);

    acl_each(a, ask, &text);
    (void)acl_login(a, SPAN("a"), text);
    acl_save(a, &once);
    if (!load(other, buf_span(&once))) {
        fail("what was written cannot be read");
    }
    if (acl_count(a) != acl_count(other)) {
        fail("there are others");
    }
    acl_each(
        a, check_same,
        &(struct other){ other, span_of(text.ptr, text.len < 64 ? text.len : 64) });
    acl_save(other, &again);
    if (!span_eq(buf_span(&once), buf_span(&again))) {
        fail("what was written is read as something else");
    }
    acl_free(other);
    buf_reset(&once);
    buf_reset(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = span_of((const char *)data, size);
    struct acl *a = acl_new(&CATALOG);

    if (load(a, text)) {
        check_loaded(a, text);
    } else if (acl_count(a) != 1 || !acl_is_open(a)) {
        fail("a file with a mistake changed something");
    }
    acl_free(a);
    return 0;
}
