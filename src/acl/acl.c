#include "acl/acl.h"

#include "util/alloc.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT SPAN("default")

struct acl {
    const struct acl_catalog *catalog;
    struct acl_user *users;
    struct acl_user *standard; /* default */
    uint32_t last_id;
};

/* --- users ------------------------------------------------------------ */

static struct acl_user *add_user(struct acl *a, struct span name,
                                 struct permissions *terms)
{
    struct acl_user *user = xcalloc(1, sizeof(*user));

    user->name = xmemdup0(name.ptr, name.len);
    user->name_len = name.len;
    user->id = ++a->last_id;
    user->refs = 1;
    user->terms = *terms;
    HASH_ADD_KEYPTR(hh, a->users, user->name, user->name_len, user);
    return user;
}

struct acl_user *acl_ref(struct acl_user *user)
{
    user->refs++;
    return user;
}

void acl_unref(struct acl_user *user)
{
    if (user != NULL && --user->refs == 0) {
        permissions_fini(&user->terms);
        free(user->name);
        free(user);
    }
}

static void remove_user(struct acl *a, struct acl_user *user)
{
    HASH_DEL(a->users, user);
    user->gone = true;
    acl_unref(user);
}

struct acl *acl_new(const struct acl_catalog *catalog)
{
    struct acl *a = xcalloc(1, sizeof(*a));
    struct permissions open;

    a->catalog = catalog;
    permissions_init_open(&open);
    a->standard = add_user(a, DEFAULT, &open);
    return a;
}

void acl_free(struct acl *a)
{
    struct acl_user *user, *tmp;

    if (a == NULL) {
        return;
    }
    HASH_ITER(hh, a->users, user, tmp)
    {
        remove_user(a, user);
    }
    free(a);
}

const struct acl_catalog *acl_catalog(const struct acl *a)
{
    return a->catalog;
}

struct acl_user *acl_default(const struct acl *a)
{
    return a->standard;
}

struct acl_user *acl_find(const struct acl *a, struct span name)
{
    struct acl_user *user = NULL;

    if (name.len != 0) {
        HASH_FIND(hh, a->users, name.ptr, name.len, user);
    }
    return user;
}

size_t acl_count(const struct acl *a)
{
    return HASH_COUNT(a->users);
}

static int compare_users(const void *x, const void *y)
{
    const struct acl_user *a = *(struct acl_user *const *)x;
    const struct acl_user *b = *(struct acl_user *const *)y;
    size_t len = a->name_len < b->name_len ? a->name_len : b->name_len;
    int order = memcmp(a->name, b->name, len);

    return order != 0 ? order
                      : (a->name_len > b->name_len) - (a->name_len < b->name_len);
}

void acl_each(const struct acl *a, acl_user_fn *fn, void *ctx)
{
    size_t count = 0;
    struct acl_user **sorted = xcalloc(acl_count(a), sizeof(struct acl_user *));
    struct acl_user *user, *tmp;

    HASH_ITER(hh, a->users, user, tmp)
    {
        sorted[count++] = user;
    }
    qsort(sorted, count, sizeof(*sorted), compare_users);
    for (size_t i = 0; i < count; i++) {
        fn(ctx, sorted[i]);
    }
    free(sorted);
}

/* --- changing users --------------------------------------------------- */

bool acl_name_fits(struct span name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (isspace((unsigned char)name.ptr[i]) ||
            iscntrl((unsigned char)name.ptr[i])) {
            return false;
        }
    }
    return name.len != 0 && name.len <= ACL_NAME_MAX;
}

void acl_put(struct acl *a, struct span name, struct permissions *terms)
{
    struct acl_user *user = acl_find(a, name);

    if (user == NULL) {
        (void)add_user(a, name, terms);
    } else {
        permissions_fini(&user->terms);
        user->terms = *terms;
    }
}

__attribute__((format(printf, 3, 4))) static void
write_reason(char *reterr, size_t room, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(reterr, room, fmt, ap);
    va_end(ap);
}

struct acl_user *acl_set(struct acl *a, struct span name, const struct span *rules,
                         size_t count, char *reterr, size_t room)
{
    enum { SHOWN = 128 };
    const struct acl_user *user = acl_find(a, name);
    const char *why = NULL;
    struct permissions terms;

    if (!acl_name_fits(name)) {
        write_reason(reterr, room,
                     name.len > ACL_NAME_MAX || name.len == 0
                         ? "Usernames must have 1..%d bytes"
                         : "Usernames can't contain spaces or null characters",
                     ACL_NAME_MAX);
        return NULL;
    }
    if (user == NULL && acl_count(a) >= ACL_USERS_MAX) {
        write_reason(reterr, room, "There are %d users already", ACL_USERS_MAX);
        return NULL;
    }
    if (user == NULL) {
        permissions_init(&terms);
    } else {
        permissions_copy(&terms, &user->terms);
    }
    for (size_t i = 0; i < count && why == NULL; i++) {
        why = permissions_apply(&terms, a->catalog, rules[i]);
        if (why != NULL) {
            write_reason(reterr, room, "Error in ACL SETUSER modifier '%.*s': %s",
                         (int)(rules[i].len < SHOWN ? rules[i].len : SHOWN),
                         rules[i].ptr, why);
        }
    }
    if (why != NULL) {
        permissions_fini(&terms);
        return NULL;
    }
    acl_put(a, name, &terms);
    return acl_find(a, name);
}

bool acl_delete(struct acl *a, struct span name)
{
    struct acl_user *user = acl_find(a, name);

    if (user == NULL || user == a->standard) {
        return false;
    }
    remove_user(a, user);
    return true;
}

void acl_keep_only(struct acl *a, const struct span *names, size_t count)
{
    struct acl_user *user, *tmp;

    HASH_ITER(hh, a->users, user, tmp)
    {
        user->gone = user != a->standard;
    }
    for (size_t i = 0; i < count; i++) {
        user = acl_find(a, names[i]);
        if (user != NULL) {
            user->gone = false;
        }
    }
    HASH_ITER(hh, a->users, user, tmp)
    {
        if (user->gone) {
            remove_user(a, user);
        }
    }
}

static void set_password(struct permissions *t, const struct acl_catalog *c,
                         struct span password)
{
    struct secret s;
    struct buf rule = { 0 };

    if (password.len == 0) {
        (void)!permissions_apply(t, c, SPAN("nopass"));
        return;
    }
    secret_hash(password, &s);
    buf_add_str(&rule, "#");
    secret_add_hex(&s, &rule);
    (void)!permissions_apply(t, c, SPAN("resetpass"));
    (void)!permissions_apply(t, c, buf_span(&rule));
    buf_reset(&rule);
}

void acl_set_password(struct acl *a, struct span password)
{
    set_password(&a->standard->terms, a->catalog, password);
}

/* --- login ------------------------------------------------------------ */

struct acl_user *acl_login(const struct acl *a, struct span name, struct span password)
{
    struct acl_user *user = acl_find(a, name);
    struct permissions nobody = { .passwords = &(struct secret){ { 0 } },
                                  .password_count = 1 };
    const struct permissions *terms = user == NULL ? &nobody : &user->terms;
    struct secret given;
    bool fits;

    if (password.len > PERM_PASSWORD_MAX) {
        password.len = PERM_PASSWORD_MAX + 1; /* which no password has */
    }
    secret_hash(password, &given);
    fits = permissions_password_fits(terms, &given);
    return fits && user != NULL && (user->terms.flags & PERM_ON) != 0 ? user : NULL;
}

bool acl_is_open(const struct acl *a)
{
    const unsigned open = PERM_ON | PERM_NOPASS;

    return (a->standard->terms.flags & open) == open;
}
