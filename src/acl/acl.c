#include "acl/acl.h"

#include "util/alloc.h"
#include "util/hash.h"
#include "util/list.h"
#include "util/recent.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* Users as text, one per line, in the format of Redis's ACL files. Lines that begin
 * with # are comments. */

#define KEYWORD SPAN("user")

static const char LAST_WORDS[] =
    "WARNING: ACL errors detected, no change to the previously active ACL rules was "
    "performed";

struct loaded {
    struct recent_item item; /* its key is the name, to find duplicates */
    struct permissions terms;
};

struct reading {
    const struct acl_catalog *catalog;
    const char *name; /* of the file */
    size_t line;
    struct recent users;
    size_t mistakes;
    struct buf *reterr;
};

/* --- words of a line -------------------------------------------------- */

static bool acl_name_fits(struct span name);
static void acl_put(struct acl *a, struct span name, struct permissions *terms);
static void acl_keep_only(struct acl *a, const struct span *names, size_t count);

static bool is_blank(char ch)
{
    return ch == ' ' || ch == '\t' || ch == '\r';
}

/* Cuts the first word off the line; empty: none is left. */
static struct span next_word(struct span *line)
{
    size_t start = 0, end;
    struct span word;

    while (start < line->len && is_blank(line->ptr[start])) {
        start++;
    }
    end = start;
    while (end < line->len && !is_blank(line->ptr[end])) {
        end++;
    }
    word = span_of(line->ptr + start, end - start);
    *line = span_after(*line, end);
    return word;
}

static struct span next_line(struct span *text)
{
    const char *end = memchr(text->ptr, '\n', text->len);
    size_t len = end == NULL ? text->len : (size_t)(end - text->ptr);
    struct span line = span_of(text->ptr, len);

    *text = span_after(*text, end == NULL ? len : len + 1);
    return line;
}

/* --- reading ---------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void report_mistake(struct reading *r,
                                                                 const char *fmt, ...)
{
    va_list ap;

    if (r->mistakes++ < ACL_FILE_MISTAKES_MAX) {
        va_start(ap, fmt);
        buf_vprintf(r->reterr, fmt, ap);
        va_end(ap);
        buf_add_str(r->reterr, " ");
    }
}

static void read_rules(struct reading *r, struct permissions *terms, struct span line)
{
    enum { SHOWN = 128 };
    struct span rule;

    while ((rule = next_word(&line)).len != 0) {
        const char *why = permissions_apply(terms, r->catalog, rule);
        /* Errors go into the log, so they must not contain passwords. */
        struct span shown =
            permissions_rule_is_secret(rule) ? span_of(rule.ptr, 1) : rule;

        if (why != NULL) {
            report_mistake(r, "%s:%zu: Error in applying operation '%.*s%s': %s.",
                           r->name, r->line,
                           (int)(shown.len < SHOWN ? shown.len : SHOWN), shown.ptr,
                           shown.len == rule.len ? "" : "(not shown)", why);
        }
    }
}

static void read_user(struct reading *r, struct span name, struct span rules)
{
    struct loaded *user;

    if (recent_find(&r->users, name) != NULL) {
        report_mistake(r, "WARNING: Duplicate user '%.*s' found on line %zu.",
                       (int)name.len, name.ptr, r->line);
    } else if (r->users.count == r->users.max) {
        report_mistake(r, "%s:%zu: more than %d users.", r->name, r->line,
                       ACL_USERS_MAX);
    } else {
        user = recent_note(&r->users, name, 0);
        read_rules(r, &user->terms, rules);
    }
}

static void read_line(struct reading *r, struct span line)
{
    struct span word = next_word(&line);
    struct span name;

    if (word.len == 0 || word.ptr[0] == '#') {
        return;
    }
    name = next_word(&line);
    if (!span_eq(word, KEYWORD) || name.len == 0) {
        report_mistake(
            r, "%s:%zu should start with user keyword followed by the username.",
            r->name, r->line);
    } else if (!acl_name_fits(name)) {
        report_mistake(r,
                       "%s:%zu: a username has 1..%d bytes, no spaces and no control "
                       "characters.",
                       r->name, r->line, ACL_NAME_MAX);
    } else {
        read_user(r, name, line);
    }
}

/* --- loading ---------------------------------------------------------- */

static void take_over(struct acl *a, struct reading *r, struct span password,
                      bool *ret_default)
{
    size_t count = 0;
    struct span *names = xcalloc(r->users.count + 1, sizeof(*names));
    struct permissions open;
    struct loaded *user;

    *ret_default = recent_find(&r->users, SPAN("default")) != NULL;
    if (!*ret_default) {
        permissions_init_open(&open);
        acl_put(a, SPAN("default"), &open);
        acl_set_password(a, password);
    }
    for (user = recent_oldest(&r->users); user != NULL;
         user = recent_newer(&r->users, user)) {
        names[count] = recent_key(user);
        acl_put(a, names[count++], &user->terms);
        permissions_init(&user->terms);
    }
    acl_keep_only(a, names, count);
    free(names);
}

static void free_loaded(void *thing)
{
    struct loaded *user = thing;

    permissions_fini(&user->terms);
}

bool acl_load(struct acl *a, const char *name, struct span text, struct span password,
              bool *ret_default, struct buf *reterr)
{
    struct reading r = { .catalog = acl_catalog(a), .name = name, .reterr = reterr };

    recent_init(&r.users, sizeof(struct loaded), ACL_USERS_MAX);
    r.users.on_drop = free_loaded;
    while (text.len != 0) {
        r.line++;
        read_line(&r, next_line(&text));
    }
    if (r.mistakes == 0) {
        take_over(a, &r, password, ret_default);
    } else {
        buf_add_str(reterr, LAST_WORDS);
    }
    recent_fini(&r.users);
    return r.mistakes == 0;
}

/* --- writing ---------------------------------------------------------- */

void acl_describe(const struct acl *a, const struct acl_user *user, struct buf *out)
{
    buf_add_str(out, "user ");
    buf_add(out, user->name, user->name_len);
    buf_add_str(out, " ");
    permissions_add_line(&user->terms, acl_catalog(a), out);
}

struct writing {
    const struct acl *acl;
    struct buf *out;
};

static void write_user(void *ctx, struct acl_user *user)
{
    const struct writing *w = ctx;

    acl_describe(w->acl, user, w->out);
    buf_add_str(w->out, "\n");
}

void acl_save(const struct acl *a, struct buf *out)
{
    struct writing w = { a, out };

    acl_each(a, write_user, &w);
}

#define DEFAULT SPAN("default")

struct acl {
    const struct acl_catalog *catalog;
    struct table users;
    struct acl_user *standard; /* default */
    uint32_t last_id;
};

/* --- users ------------------------------------------------------------ */

static struct acl_user *user_of(struct table_node *n)
{
    return container_of(n, struct acl_user, in_users);
}

static struct acl_user *add_user(struct acl *a, struct span name,
                                 struct permissions *terms)
{
    struct acl_user *user = xcalloc(1, sizeof(*user));

    user->name = xmemdup0(name.ptr, name.len);
    user->name_len = name.len;
    user->id = ++a->last_id;
    user->refs = 1;
    user->terms = *terms;
    user->in_users.key = hash_bytes(name.ptr, name.len);
    table_add(&a->users, &user->in_users);
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
    table_remove(&a->users, &user->in_users);
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
    struct acl_user *user;

    if (a == NULL) {
        return;
    }
    TABLE_EACH(user, &a->users, in_users) {
        remove_user(a, user);
    }
    table_fini(&a->users);
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
    struct table_node *n = table_find(&a->users, hash_bytes(name.ptr, name.len));

    while (n != NULL &&
           !span_eq(span_of(user_of(n)->name, user_of(n)->name_len), name)) {
        n = table_next(n);
    }
    return n == NULL ? NULL : user_of(n);
}

size_t acl_count(const struct acl *a)
{
    return a->users.count;
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
    struct acl *users = (struct acl *)(uintptr_t)a; /* which a walk does not change */
    struct acl_user *user;

    TABLE_EACH(user, &users->users, in_users) {
        sorted[count++] = user;
    }
    qsort(sorted, count, sizeof(*sorted), compare_users);
    for (size_t i = 0; i < count; i++) {
        fn(ctx, sorted[i]);
    }
    free(sorted);
}

/* --- changing users --------------------------------------------------- */

static bool acl_name_fits(struct span name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (isspace((unsigned char)name.ptr[i]) ||
            iscntrl((unsigned char)name.ptr[i])) {
            return false;
        }
    }
    return name.len != 0 && name.len <= ACL_NAME_MAX;
}

/* Creates or replaces a user; takes the content of *terms. */
static void acl_put(struct acl *a, struct span name, struct permissions *terms)
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

/* Deletes all users that are not in the list. */
static void acl_keep_only(struct acl *a, const struct span *names, size_t count)
{
    struct acl_user *user;

    TABLE_EACH(user, &a->users, in_users) {
        user->gone = user != a->standard;
    }
    for (size_t i = 0; i < count; i++) {
        user = acl_find(a, names[i]);
        if (user != NULL) {
            user->gone = false;
        }
    }
    TABLE_EACH(user, &a->users, in_users) {
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
