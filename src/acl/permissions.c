#include "acl/permissions.h"

#include "util/alloc.h"
#include "util/glob.h"

#include <stdlib.h>

void permissions_init(struct permissions *t)
{
    *t = (struct permissions){ 0 };
}

void permissions_init_open(struct permissions *t)
{
    permissions_init(t);
    t->flags = PERM_ON | PERM_NOPASS | PERM_ANYTHING;
    memset(t->allowed, 0xff, sizeof(t->allowed));
}

static void patterns_fini(struct patterns *p)
{
    for (size_t i = 0; i < p->count; i++) {
        free(p->list[i].text);
    }
    free(p->list);
}

void permissions_fini(struct permissions *t)
{
    patterns_fini(&t->names);
    patterns_fini(&t->channels);
    free(t->passwords);
    free(t->rules);
    permissions_init(t);
}

static void *copy_list(const void *list, size_t count, size_t size)
{
    void *copy = NULL;

    if (count != 0) {
        copy = xmalloc(count * size);
        memcpy(copy, list, count * size);
    }
    return copy;
}

static void patterns_copy(struct patterns *to, const struct patterns *from)
{
    to->count = from->count;
    to->list = copy_list(from->list, from->count, sizeof(*from->list));
    for (size_t i = 0; i < to->count; i++) {
        to->list[i].text = xmemdup0(from->list[i].text, from->list[i].len);
    }
}

void permissions_copy(struct permissions *to, const struct permissions *from)
{
    *to = *from;
    to->passwords =
        copy_list(from->passwords, from->password_count, sizeof(*from->passwords));
    to->rules = copy_list(from->rules, from->rule_count, sizeof(*from->rules));
    patterns_copy(&to->names, &from->names);
    patterns_copy(&to->channels, &from->channels);
}

/* --- queries ---------------------------------------------------------- */

bool permissions_password_fits(const struct permissions *t, const struct secret *given)
{
    bool fits = false;

    for (size_t i = 0; i < t->password_count; i++) {
        fits = secret_same(&t->passwords[i], given) || fits;
    }
    return fits || (t->flags & PERM_NOPASS) != 0;
}

static struct span text_of(const struct pattern *p)
{
    return span_of(p->text, p->len);
}

bool permissions_may_name(const struct permissions *t, struct span name,
                          unsigned access)
{
    if ((t->flags & PERM_ALL_NAMES) != 0) {
        return true;
    }
    for (size_t i = 0; i < t->names.count; i++) {
        const struct pattern *p = &t->names.list[i];

        if ((p->access & access) == access && glob_match(text_of(p), name)) {
            return true;
        }
    }
    return false;
}

bool permissions_may_channel(const struct permissions *t, struct span channel)
{
    if ((t->flags & PERM_ALL_CHANNELS) != 0) {
        return true;
    }
    for (size_t i = 0; i < t->channels.count; i++) {
        if (glob_match(text_of(&t->channels.list[i]), channel)) {
            return true;
        }
    }
    return false;
}

bool permissions_may_channels(const struct permissions *t, struct span pattern)
{
    if ((t->flags & PERM_ALL_CHANNELS) != 0) {
        return true;
    }
    for (size_t i = 0; i < t->channels.count; i++) {
        if (span_eq(text_of(&t->channels.list[i]), pattern)) {
            return true;
        }
    }
    return false;
}

/* --- output ----------------------------------------------------------- */

size_t permissions_flag_words(const struct permissions *t, const char *ret[4])
{
    size_t count = 0;

    ret[count++] = (t->flags & PERM_ON) != 0 ? "on" : "off";
    if ((t->flags & PERM_NOPASS) != 0) {
        ret[count++] = "nopass";
    }
    if ((t->flags & PERM_SKIP_SANITIZE) != 0) {
        ret[count++] = "skip-sanitize-payload";
    }
    if ((t->flags & PERM_SANITIZE) != 0) {
        ret[count++] = "sanitize-payload";
    }
    return count;
}

static void add_word(struct buf *out, size_t start, const char *mark,
                     const struct pattern *p)
{
    buf_add_str(out, buf_len(out) == start ? "" : " ");
    buf_add_str(out, mark);
    buf_add(out, p->text, p->len);
}

void permissions_add_names(const struct permissions *t, struct buf *out)
{
    static const char *const MARKS[] = {
        [PERM_READ] = "%R~", [PERM_WRITE] = "%W~", [PERM_BOTH] = "~"
    };
    size_t start = buf_len(out);

    if ((t->flags & PERM_ALL_NAMES) != 0) {
        buf_add_str(out, "~*");
        return;
    }
    for (size_t i = 0; i < t->names.count; i++) {
        add_word(out, start, MARKS[t->names.list[i].access], &t->names.list[i]);
    }
}

void permissions_add_channels(const struct permissions *t, struct buf *out)
{
    size_t start = buf_len(out);

    if ((t->flags & PERM_ALL_CHANNELS) != 0) {
        buf_add_str(out, "&*");
        return;
    }
    for (size_t i = 0; i < t->channels.count; i++) {
        add_word(out, start, "&", &t->channels.list[i]);
    }
}

void permissions_add_commands(const struct permissions *t, const struct acl_catalog *c,
                              struct buf *out)
{
    buf_add_str(out, (t->flags & PERM_ALL_COMMANDS) != 0 ? "+@all" : "-@all");
    for (size_t i = 0; i < t->rule_count; i++) {
        const struct command_rule *r = &t->rules[i];

        buf_add_str(out, r->allow ? " +" : " -");
        buf_add_str(out, r->category ? c->categories[r->number]
                                     : c->commands[r->number].name);
    }
}

void permissions_add_line(const struct permissions *t, const struct acl_catalog *c,
                          struct buf *out)
{
    const char *words[4];
    size_t count = permissions_flag_words(t, words);

    for (size_t i = 0; i < count; i++) {
        buf_add_str(out, i == 0 ? "" : " ");
        buf_add_str(out, words[i]);
    }
    for (size_t i = 0; i < t->password_count; i++) {
        buf_add_str(out, " #");
        secret_add_hex(&t->passwords[i], out);
    }
    if ((t->flags & PERM_ALL_NAMES) != 0 || t->names.count != 0) {
        buf_add_str(out, " ");
        permissions_add_names(t, out);
    }
    buf_add_str(out, (t->flags & PERM_ALL_CHANNELS) != 0 ? " " : " resetchannels");
    if (t->channels.count != 0) {
        buf_add_str(out, " ");
    }
    permissions_add_channels(t, out);
    buf_add_str(out, " ");
    permissions_add_commands(t, c, out);
}
