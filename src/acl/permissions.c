#include "acl/permissions.h"

#include "util/alloc.h"
#include "util/glob.h"

#include <ctype.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <sys/random.h>

/* The number of a command, by its name in any case. */
static int catalog_command(const struct acl_catalog *c, struct span name)
{
    for (size_t i = 0; i < c->command_count; i++) {
        if (span_eq_nocase(name, span_str(c->commands[i].name))) {
            return (int)i;
        }
    }
    return ACL_NOT_THERE;
}

int catalog_category(const struct acl_catalog *c, struct span name)
{
    for (size_t i = 0; i < c->category_count; i++) {
        if (span_eq_nocase(name, span_str(c->categories[i] + 1))) {
            return (int)i;
        }
    }
    return ACL_NOT_THERE;
}

/* Whether `sub` is a subcommand of `container`. */
static bool catalog_is_sub(const struct acl_catalog *c, size_t sub, size_t container)
{
    const char *outer = c->commands[container].name;
    size_t len = strlen(outer);

    return strncmp(c->commands[sub].name, outer, len) == 0 &&
           c->commands[sub].name[len] == '|';
}

static const char DIGITS[] = "0123456789abcdef";

void secret_hash(struct span password, struct secret *ret)
{
    (void)SHA256((const uint8_t *)(password.len == 0 ? "" : password.ptr), password.len,
                 ret->bytes);
}

static bool secret_same(const struct secret *a, const struct secret *b)
{
    return CRYPTO_memcmp(a->bytes, b->bytes, SECRET_BYTES) == 0;
}

static int digit_value(char ch)
{
    return ch >= '0' && ch <= '9'   ? ch - '0'
           : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10
                                    : -1;
}

/* Reads a hash of 64 lower case hexadecimal digits. */
static bool secret_from_hex(struct span hex, struct secret *ret)
{
    struct secret s;

    if (hex.len != SECRET_HEX) {
        return false;
    }
    for (size_t i = 0; i < SECRET_BYTES; i++) {
        int high = digit_value(hex.ptr[2 * i]);
        int low = digit_value(hex.ptr[2 * i + 1]);

        if (high < 0 || low < 0) {
            return false;
        }
        s.bytes[i] = (uint8_t)(16 * high + low);
    }
    *ret = s;
    return true;
}

static void add_digits(const uint8_t *bytes, size_t digits, struct buf *out)
{
    for (size_t i = 0; i < digits; i++) {
        buf_add(out, &DIGITS[i % 2 == 0 ? bytes[i / 2] >> 4 : bytes[i / 2] & 15], 1);
    }
}

void secret_add_hex(const struct secret *s, struct buf *out)
{
    add_digits(s->bytes, SECRET_HEX, out);
}

bool secret_random(size_t bits, struct buf *out)
{
    uint8_t bytes[SECRET_BITS_MAX / 8] = { 0 };
    size_t digits = (bits + 3) / 4;
    size_t want = (digits + 1) / 2;
    size_t have = 0;

    while (have < want) {
        ssize_t n = getrandom(bytes + have, want - have, 0);

        if (n <= 0) {
            return false;
        }
        have += (size_t)n;
    }
    add_digits(bytes, digits, out);
    OPENSSL_cleanse(bytes, sizeof(bytes));
    return true;
}

/* One rule in Redis's ACL syntax, applied to the permissions of a user. */

static const char SYNTAX[] = "Syntax error";
static const char UNKNOWN[] = "Unknown command or category name in ACL";
static const char BAD_HASH[] =
    "The password hash must be exactly 64 characters and contain only lowercase "
    "hexadecimal characters";
static const char NO_PASSWORD[] =
    "The password you are trying to remove from the user does not exist";
static const char AFTER_ALL_NAMES[] =
    "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and "
    "does not have any effect. Try 'resetkeys' to start with an empty list of patterns";
static const char AFTER_ALL_CHANNELS[] =
    "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and "
    "does not have any effect. Try 'resetchannels' to start with an empty list of "
    "channels";
static const char FIRST_ARG[] = "Allowing first-arg of a command is not supported";
static const char SELECTORS[] = "Selectors are not supported";

/* --- passwords -------------------------------------------------------- */

static size_t find_password(const struct permissions *t, const struct secret *s)
{
    size_t i = 0;

    while (i < t->password_count && !secret_same(&t->passwords[i], s)) {
        i++;
    }
    return i;
}

static const char *add_password(struct permissions *t, const struct secret *s)
{
    if (find_password(t, s) == t->password_count) {
        if (t->password_count == PERM_PASSWORDS_MAX) {
            return "The user has too many passwords already";
        }
        t->passwords =
            xrealloc(t->passwords, (t->password_count + 1) * sizeof(*t->passwords));
        t->passwords[t->password_count++] = *s;
    }
    t->flags &= ~(unsigned)PERM_NOPASS;
    return NULL;
}

static const char *remove_password(struct permissions *t, const struct secret *s)
{
    size_t at = find_password(t, s);

    if (at == t->password_count) {
        return NO_PASSWORD;
    }
    t->password_count--;
    memmove(&t->passwords[at], &t->passwords[at + 1],
            (t->password_count - at) * sizeof(*t->passwords));
    return NULL;
}

static void clear_passwords(struct permissions *t)
{
    free(t->passwords);
    t->passwords = NULL;
    t->password_count = 0;
    t->flags &= ~(unsigned)PERM_NOPASS;
}

/* `>pw <pw #hash !hash` */
static const char *apply_password(struct permissions *t, struct span rule)
{
    struct span text = span_after(rule, 1);
    char mark = rule.ptr[0];
    struct secret s;

    if (mark == '>' || mark == '<') {
        if (text.len > PERM_PASSWORD_MAX) {
            return "The password is too long";
        }
        secret_hash(text, &s);
    } else if (!secret_from_hex(text, &s)) {
        return BAD_HASH;
    }
    return mark == '>' || mark == '#' ? add_password(t, &s) : remove_password(t, &s);
}

bool permissions_rule_is_secret(struct span rule)
{
    return rule.len != 0 && rule.ptr[0] != '\0' && strchr("><#!", rule.ptr[0]) != NULL;
}

/* --- names and channels ----------------------------------------------- */

static void clear_patterns(struct patterns *p)
{
    for (size_t i = 0; i < p->count; i++) {
        free(p->list[i].text);
    }
    free(p->list);
    *p = (struct patterns){ 0 };
}

static const char *add_pattern(struct patterns *p, struct span text, unsigned access)
{
    for (size_t i = 0; i < text.len; i++) {
        if (isspace((unsigned char)text.ptr[i]) || text.ptr[i] == '\0') {
            return SYNTAX; /* the pattern could not be written into a file */
        }
    }
    if (text.len > PERM_PATTERN_MAX) {
        return "The pattern is too long";
    }
    for (size_t i = 0; i < p->count; i++) {
        if (span_eq(span_of(p->list[i].text, p->list[i].len), text)) {
            p->list[i].access |= access;
            return NULL;
        }
    }
    if (p->count == PERM_PATTERNS_MAX) {
        return "The user has too many patterns already";
    }
    p->list = xrealloc(p->list, (p->count + 1) * sizeof(*p->list));
    p->list[p->count++] =
        (struct pattern){ access, text.len, xmemdup0(text.ptr, text.len) };
    return NULL;
}

static void all_names(struct permissions *t)
{
    clear_patterns(&t->names);
    t->flags |= PERM_ALL_NAMES;
}

static const char *add_name(struct permissions *t, struct span text, unsigned access)
{
    const char *why = add_pattern(&t->names, text, access);

    /* %R~* with %W~* is written as ~*, so it has to mean the same. */
    for (size_t i = 0; why == NULL && i < t->names.count; i++) {
        const struct pattern *p = &t->names.list[i];

        if (p->access == PERM_BOTH && span_eq(span_of(p->text, p->len), SPAN("*"))) {
            all_names(t);
        }
    }
    return why;
}

/* `~pattern %R~pattern %W~pattern %RW~pattern` */
static const char *apply_name(struct permissions *t, struct span rule)
{
    unsigned access = rule.ptr[0] == '~' ? PERM_BOTH : 0;
    size_t at = 1;

    for (; rule.ptr[0] == '%' && at < rule.len && rule.ptr[at] != '~'; at++) {
        unsigned bit = toupper((unsigned char)rule.ptr[at]) == 'R'   ? PERM_READ
                       : toupper((unsigned char)rule.ptr[at]) == 'W' ? PERM_WRITE
                                                                     : 0;

        if (bit == 0 || (access & bit) != 0) {
            return SYNTAX;
        }
        access |= bit;
    }
    if (rule.ptr[0] == '%' && (access == 0 || at++ == rule.len)) {
        return SYNTAX;
    }
    rule = span_after(rule, at);
    if (access == PERM_BOTH && span_eq(rule, SPAN("*"))) {
        all_names(t);
        return NULL;
    }
    return (t->flags & PERM_ALL_NAMES) != 0 ? AFTER_ALL_NAMES
                                            : add_name(t, rule, access);
}

static const char *apply_channel(struct permissions *t, struct span rule)
{
    struct span text = span_after(rule, 1);

    if (span_eq(text, SPAN("*"))) {
        clear_patterns(&t->channels);
        t->flags |= PERM_ALL_CHANNELS;
        return NULL;
    }
    return (t->flags & PERM_ALL_CHANNELS) != 0 ? AFTER_ALL_CHANNELS
                                               : add_pattern(&t->channels, text, 0);
}

/* --- commands --------------------------------------------------------- */

static void reset_commands(struct permissions *t, bool allow)
{
    free(t->rules);
    t->rules = NULL;
    t->rule_count = 0;
    t->flags &= ~(unsigned)PERM_ALL_COMMANDS;
    t->flags |= allow ? PERM_ALL_COMMANDS : 0U;
    memset(t->allowed, allow ? 0xff : 0, sizeof(t->allowed));
}

static void set_allowed(struct permissions *t, size_t command, bool yes)
{
    uint64_t bit = UINT64_C(1) << (command % 64);

    if (yes) {
        t->allowed[command / 64] |= bit;
    } else {
        t->allowed[command / 64] &= ~bit;
    }
}

/* Whether the newer rule leaves nothing of the older one. */
static bool rule_overrides(const struct acl_catalog *c,
                           const struct command_rule *newer,
                           const struct command_rule *older)
{
    if (newer->category || older->category) {
        return newer->category == older->category && newer->number == older->number;
    }
    return newer->number == older->number ||
           catalog_is_sub(c, older->number, newer->number);
}

static const char *add_rule(struct permissions *t, const struct acl_catalog *c,
                            struct command_rule rule)
{
    size_t left = 0;

    for (size_t i = 0; i < t->rule_count; i++) {
        if (!rule_overrides(c, &rule, &t->rules[i])) {
            t->rules[left++] = t->rules[i];
        }
    }
    t->rule_count = left;
    if (left == PERM_COMMAND_RULES_MAX) {
        return "The user has too many rules for commands already";
    }
    t->rules = xrealloc(t->rules, (left + 1) * sizeof(*t->rules));
    t->rules[t->rule_count++] = rule;
    return NULL;
}

static const char *apply_category(struct permissions *t, const struct acl_catalog *c,
                                  struct span name, bool yes)
{
    int number = catalog_category(c, name);
    const char *why;

    if (span_eq_nocase(name, SPAN("all"))) {
        reset_commands(t, yes);
        return NULL;
    }
    if (number == ACL_NOT_THERE) {
        return UNKNOWN;
    }
    why = add_rule(t, c, (struct command_rule){ (uint16_t)number, true, yes });
    for (size_t i = 0; why == NULL && i < c->command_count; i++) {
        if ((c->commands[i].categories >> number & 1U) != 0) {
            set_allowed(t, i, yes);
        }
    }
    return why;
}

/* The error for an unknown command, in Redis's words where it has some. */
static const char *no_command(const struct acl_catalog *c, struct span name, bool yes)
{
    const char *bar = name.len == 0 ? NULL : memchr(name.ptr, '|', name.len);
    size_t len = bar == NULL ? 0 : (size_t)(bar - name.ptr);
    int container = catalog_command(c, span_of(name.ptr, len));

    if (bar == NULL || container == ACL_NOT_THERE || !yes ||
        memchr(bar + 1, '|', name.len - len - 1) != NULL) {
        return UNKNOWN;
    }
    if (len + 1 == name.len) {
        return SYNTAX;
    }
    return (size_t)container + 1 < c->command_count &&
                   catalog_is_sub(c, (size_t)container + 1, (size_t)container)
               ? UNKNOWN
               : FIRST_ARG;
}

static const char *apply_command(struct permissions *t, const struct acl_catalog *c,
                                 struct span name, bool yes)
{
    int number = catalog_command(c, name);
    const char *why;

    if (number == ACL_NOT_THERE) {
        return no_command(c, name, yes);
    }
    why = add_rule(t, c, (struct command_rule){ (uint16_t)number, false, yes });
    if (why != NULL) {
        return why;
    }
    set_allowed(t, (size_t)number, yes);
    for (size_t i = (size_t)number + 1;
         i < c->command_count && catalog_is_sub(c, i, (size_t)number); i++) {
        set_allowed(t, i, yes);
    }
    return NULL;
}

/* --- words ------------------------------------------------------------ */

enum {
    FORGET_PASSWORDS = 1,
    FORGET_NAMES = 2,
    FORGET_CHANNELS = 4,
    FORGET_COMMANDS = 8,
    FORGET_ALL = 16,
};

/* Forgets first, then clears and sets flags. */
static const struct {
    const char *word;
    unsigned forget, clear, set;
} WORDS[] = {
    { "on", 0, 0, PERM_ON },
    { "off", 0, PERM_ON, 0 },
    { "nopass", FORGET_PASSWORDS, 0, PERM_NOPASS },
    { "resetpass", FORGET_PASSWORDS, PERM_NOPASS, 0 },
    { "allkeys", FORGET_NAMES, 0, PERM_ALL_NAMES },
    { "resetkeys", FORGET_NAMES, PERM_ALL_NAMES, 0 },
    { "allchannels", FORGET_CHANNELS, 0, PERM_ALL_CHANNELS },
    { "resetchannels", FORGET_CHANNELS, PERM_ALL_CHANNELS, 0 },
    { "allcommands", FORGET_COMMANDS, 0, PERM_ALL_COMMANDS },
    { "nocommands", FORGET_COMMANDS, PERM_ALL_COMMANDS, 0 },
    { "sanitize-payload", 0, PERM_SKIP_SANITIZE, PERM_SANITIZE },
    { "skip-sanitize-payload", 0, PERM_SANITIZE, PERM_SKIP_SANITIZE },
    { "clearselectors", 0, 0, 0 }, /* latchd has no such rules */
    { "reset", FORGET_ALL, PERM_SKIP_SANITIZE, PERM_SANITIZE },
};

static const char *apply_word(struct permissions *t, struct span rule)
{
    size_t i = 0;

    while (i < sizeof(WORDS) / sizeof(WORDS[0]) &&
           !span_eq_nocase(rule, span_str(WORDS[i].word))) {
        i++;
    }
    if (i == sizeof(WORDS) / sizeof(WORDS[0])) {
        return SYNTAX;
    }
    if ((WORDS[i].forget & FORGET_PASSWORDS) != 0) {
        clear_passwords(t);
    }
    if ((WORDS[i].forget & FORGET_NAMES) != 0) {
        clear_patterns(&t->names);
    }
    if ((WORDS[i].forget & FORGET_CHANNELS) != 0) {
        clear_patterns(&t->channels);
    }
    if ((WORDS[i].forget & FORGET_COMMANDS) != 0) {
        reset_commands(t, WORDS[i].set == PERM_ALL_COMMANDS);
    }
    if (WORDS[i].forget == FORGET_ALL) {
        permissions_fini(t);
    }
    t->flags = (t->flags & ~WORDS[i].clear) | WORDS[i].set;
    return NULL;
}

const char *permissions_apply(struct permissions *t, const struct acl_catalog *c,
                              struct span rule)
{
    bool yes = rule.len != 0 && rule.ptr[0] == '+';

    if (rule.len == 0) {
        return NULL;
    }
    switch (rule.ptr[0]) {
    case '>':
    case '<':
    case '#':
    case '!':
        return apply_password(t, rule);
    case '~':
    case '%':
        return apply_name(t, rule);
    case '&':
        return apply_channel(t, rule);
    case '+':
    case '-':
        return rule.len > 1 && rule.ptr[1] == '@'
                   ? apply_category(t, c, span_after(rule, 2), yes)
                   : apply_command(t, c, span_after(rule, 1), yes);
    case '(':
        return SELECTORS;
    default:
        return apply_word(t, rule);
    }
}

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
