/* Users as text, one per line, in the format of Redis's ACL files. Lines that begin
 * with # are comments. */
#include "acl/acl.h"

#include "util/alloc.h"

#include <stdlib.h>

#define KEYWORD SPAN("user")

static const char LAST_WORDS[] =
    "WARNING: ACL errors detected, no change to the previously active ACL rules was "
    "performed";

struct loaded {
    UT_hash_handle hh; /* by name, to find duplicates */
    struct span name;  /* in the text */
    struct permissions terms;
};

struct reading {
    const struct acl_catalog *catalog;
    const char *name; /* of the file */
    size_t line;
    struct loaded *users;
    size_t mistakes;
    struct buf *reterr;
};

/* --- words of a line -------------------------------------------------- */

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
    struct loaded *user = NULL;

    HASH_FIND(hh, r->users, name.ptr, name.len, user);
    if (user != NULL) {
        report_mistake(r, "WARNING: Duplicate user '%.*s' found on line %zu.",
                       (int)name.len, name.ptr, r->line);
    } else if (HASH_COUNT(r->users) == ACL_USERS_MAX) {
        report_mistake(r, "%s:%zu: more than %d users.", r->name, r->line,
                       ACL_USERS_MAX);
    } else {
        user = xcalloc(1, sizeof(*user));
        user->name = name;
        HASH_ADD_KEYPTR(hh, r->users, user->name.ptr, user->name.len, user);
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
    struct span *names = xcalloc(HASH_COUNT(r->users) + 1, sizeof(*names));
    struct loaded *user, *tmp;
    struct permissions open;

    HASH_FIND(hh, r->users, "default", strlen("default"), user);
    *ret_default = user != NULL;
    if (user == NULL) {
        permissions_init_open(&open);
        acl_put(a, SPAN("default"), &open);
        acl_set_password(a, password);
    }
    HASH_ITER(hh, r->users, user, tmp)
    {
        names[count++] = user->name;
        acl_put(a, user->name, &user->terms);
        permissions_init(&user->terms);
    }
    acl_keep_only(a, names, count);
    free(names);
}

static void reading_fini(struct reading *r)
{
    struct loaded *user, *tmp;

    HASH_ITER(hh, r->users, user, tmp)
    {
        HASH_DEL(r->users, user);
        permissions_fini(&user->terms);
        free(user);
    }
}

bool acl_load(struct acl *a, const char *name, struct span text, struct span password,
              bool *ret_default, struct buf *reterr)
{
    struct reading r = { .catalog = acl_catalog(a), .name = name, .reterr = reterr };

    while (text.len != 0) {
        r.line++;
        read_line(&r, next_line(&text));
    }
    if (r.mistakes == 0) {
        take_over(a, &r, password, ret_default);
    } else {
        buf_add_str(reterr, LAST_WORDS);
    }
    reading_fini(&r);
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
