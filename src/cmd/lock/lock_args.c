#include "cmd/lock/lock_args.h"

#include "cmd/cmd.h"
#include "cmd/library/value_text.h"
#include "cmd/lock/lock_name.h"
#include "latchd/protocol.h"
#include "util/parse.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    QUOTED_MAX = 32, /* bytes of an argument that an error quotes */
};

const struct lock_syntax SYNTAX_LOCK = {
    "LOCK",
    OPT_KINDS | OPT_WAIT | OPT_LEASE | OPT_OWNER | OPT_ID | OPT_KEEP | OPT_GRACE |
        OPT_LOCAL,
    RULE_NAME | RULE_MAX_WAIT | RULE_TAKES,
};
const struct lock_syntax SYNTAX_UNLOCK = {
    "UNLOCK", OPT_READ | OPT_WRITE | OPT_TOKEN | OPT_OWNER | OPT_ID, RULE_NAME
};
const struct lock_syntax SYNTAX_RENEW = { "RENEW",
                                          OPT_READ | OPT_WRITE | OPT_TOKEN | OPT_OWNER |
                                              OPT_ID | OPT_VALUE | OPT_LEASE,
                                          RULE_NAME };
const struct lock_syntax SYNTAX_CANCEL = { "CANCEL", OPT_OWNER | OPT_ID,
                                           RULE_NAME | RULE_ONE_OF };
const struct lock_syntax SYNTAX_FORCEUNLOCK = { "FORCEUNLOCK",
                                                OPT_TOKEN | OPT_OWNER | OPT_ANY,
                                                RULE_NAME | RULE_ONE_OF };
const struct lock_syntax SYNTAX_LOCKINFO = { "LOCKINFO", 0, RULE_NAME };
const struct lock_syntax SYNTAX_LOCKS = { "LOCKS",
                                          OPT_CURSOR | OPT_MATCH | OPT_COUNT | OPT_TOP,
                                          0 };
const struct lock_syntax SYNTAX_MLOCK = { "MLOCK",
                                          OPT_WAIT | OPT_LEASE | OPT_OWNER | OPT_ID |
                                              OPT_KEEP | OPT_GRACE,
                                          RULE_NAMES | RULE_MAX_WAIT | RULE_TAKES };
const struct lock_syntax SYNTAX_WAITERS = { "WAITERS", OPT_COUNT, RULE_NAME };

struct parse {
    const struct lock_syntax *syntax;
    const struct cmd_limits *limits;
    struct lock_args *args;
    char *reterr;
};

__attribute__((format(printf, 2, 3))) static bool reject_args(struct parse *p,
                                                              const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(p->reterr, ARGS_ERROR_ROOM, fmt, ap);
    va_end(ap);
    return false;
}

/* --- values ----------------------------------------------------------- */

static bool read_ms(struct parse *p, const char *word, struct span text, uint64_t min,
                    uint64_t max, uint64_t *ret)
{
    if (!parse_u64(text, max, ret) || *ret < min) {
        return reject_args(p, "%s must be %" PRIu64 "..%" PRIu64 " milliseconds", word,
                           min, max);
    }
    return true;
}

static bool read_wait(struct parse *p, struct span text)
{
    uint64_t max = p->limits->max_wait_ms;

    return read_ms(p, "WAIT", text, 0, max == 0 ? ARGS_WAIT_MAX_MS : max,
                   &p->args->wait_ms);
}

static bool read_lease(struct parse *p, struct span text)
{
    return read_ms(p, "LEASE", text, LATCHD_LEASE_MIN_MS, p->limits->max_lease_ms,
                   &p->args->lease_ms);
}

static bool read_keep(struct parse *p, struct span text)
{
    return read_ms(p, "KEEP", text, 0, p->limits->max_keep_ms, &p->args->keep_ms);
}

static bool read_grace(struct parse *p, struct span text)
{
    return read_ms(p, "GRACE", text, 0, p->limits->max_lease_ms, &p->args->grace_ms);
}

/* Printable ASCII without space, so that event payloads and logs stay readable. */
static bool is_word(struct span s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] <= ' ' || s.ptr[i] > '~') {
            return false;
        }
    }
    return true;
}

static bool read_owner(struct parse *p, struct span text)
{
    const struct span suffix = SPAN(LATCHD_RESERVED_OWNER_SUFFIX);

    if (text.len < 1 || text.len > LATCHD_OWNER_MAX || !is_word(text)) {
        return reject_args(p, "OWNER must be 1..%d printable bytes without space",
                           LATCHD_OWNER_MAX);
    }
    if (span_eq(text, SPAN(LATCHD_RESERVED_OWNER)) ||
        span_starts(text, SPAN(LATCHD_RESERVED_OWNER_PREFIX)) ||
        (text.len >= suffix.len &&
         span_eq(span_of(text.ptr + text.len - suffix.len, suffix.len), suffix))) {
        return reject_args(p, "OWNER must not be '" LATCHD_RESERVED_OWNER
                              "', begin with '" LATCHD_RESERVED_OWNER_PREFIX
                              "' or end in '" LATCHD_RESERVED_OWNER_SUFFIX "'");
    }
    p->args->owner = text;
    return true;
}

static bool read_id(struct parse *p, struct span text)
{
    if (text.len < LATCHD_ID_MIN || text.len > LATCHD_ID_MAX || !is_word(text)) {
        return reject_args(p, "ID must be %d..%d printable bytes without space",
                           LATCHD_ID_MIN, LATCHD_ID_MAX);
    }
    p->args->id = text;
    return true;
}

static bool read_token(struct parse *p, struct span text)
{
    if (!parse_u64(text, LATCHD_TOKEN_MAX, &p->args->token) || p->args->token == 0) {
        return reject_args(p, "TOKEN must be 1..%" PRIu64, (uint64_t)LATCHD_TOKEN_MAX);
    }
    return true;
}

static bool read_value(struct parse *p, struct span text)
{
    if (text.len > VALUE_MAX) {
        return reject_args(p, "VALUE must be 0..%d bytes", VALUE_MAX);
    }
    p->args->value = text;
    return true;
}

static bool read_cursor(struct parse *p, struct span text)
{
    if (!parse_u64(text, UINT64_MAX, &p->args->cursor)) {
        return reject_args(p, "CURSOR must be 0 or what the last LOCKS returned");
    }
    return true;
}

static bool read_match(struct parse *p, struct span text)
{
    if (text.len > ARGS_PATTERN_MAX) {
        return reject_args(p, "MATCH must be at most %d bytes", ARGS_PATTERN_MAX);
    }
    p->args->match = text;
    return true;
}

static bool read_count(struct parse *p, struct span text)
{
    if (!parse_u64(text, ARGS_COUNT_MAX, &p->args->count) || p->args->count == 0) {
        return reject_args(p, "COUNT must be 1..%d", ARGS_COUNT_MAX);
    }
    return true;
}

static bool read_top(struct parse *p, struct span text)
{
    if (!parse_u64(text, ARGS_TOP_MAX, &p->args->count) || p->args->count == 0) {
        return reject_args(p, "TOP must be 1..%d", ARGS_TOP_MAX);
    }
    return true;
}

/* --- options ---------------------------------------------------------- */

static const struct {
    const char *word;
    unsigned bit;
    bool (*read)(struct parse *p, struct span text); /* NULL: a word without value */
} OPTIONS[] = {
    { "FAIR", OPT_FAIR, NULL },         { "READ", OPT_READ, NULL },
    { "WRITE", OPT_WRITE, NULL },       { "WAIT", OPT_WAIT, read_wait },
    { "LEASE", OPT_LEASE, read_lease }, { "TOKEN", OPT_TOKEN, read_token },
    { "OWNER", OPT_OWNER, read_owner }, { "ID", OPT_ID, read_id },
    { "KEEP", OPT_KEEP, read_keep },    { "GRACE", OPT_GRACE, read_grace },
    { "ANY", OPT_ANY, NULL },           { "CURSOR", OPT_CURSOR, read_cursor },
    { "MATCH", OPT_MATCH, read_match }, { "COUNT", OPT_COUNT, read_count },
    { "TOP", OPT_TOP, read_top },       { "VALUE", OPT_VALUE, read_value },
    { "LOCAL", OPT_LOCAL, NULL },
};

enum { OPTION_COUNT = sizeof(OPTIONS) / sizeof(OPTIONS[0]) };

/* "A, B or C" of the options in `bits`. */
static void list_words(unsigned bits, char *out, size_t room)
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < OPTION_COUNT && len < room; i++) {
        if ((OPTIONS[i].bit & bits) != 0) {
            const char *join = len == 0 ? "" : (bits & (bits - 1)) != 0 ? ", " : " or ";

            len +=
                (size_t)snprintf(out + len, room - len, "%s%s", join, OPTIONS[i].word);
            bits &= ~OPTIONS[i].bit;
        }
    }
}

static bool refuse_word(struct parse *p, struct span word)
{
    char allowed[128];
    int quoted = word.len > QUOTED_MAX ? QUOTED_MAX : (int)word.len;

    if (p->syntax->options == 0) {
        return reject_args(p, "%s takes no options, but got '%.*s'", p->syntax->command,
                           quoted, word.ptr);
    }
    list_words(p->syntax->options, allowed, sizeof(allowed));
    return reject_args(p, "unknown option '%.*s' for %s, which takes %s", quoted,
                       word.ptr, p->syntax->command, allowed);
}

/* Reads the option at argv[at], which has *ret_used arguments. */
static bool read_option(struct parse *p, const struct span *argv, size_t argc,
                        size_t at, size_t *ret_used)
{
    size_t i = 0;

    while (i < OPTION_COUNT && ((OPTIONS[i].bit & p->syntax->options) == 0 ||
                                !span_eq_nocase(argv[at], span_str(OPTIONS[i].word)))) {
        i++;
    }
    if (i == OPTION_COUNT) {
        return refuse_word(p, argv[at]);
    }
    if ((p->args->has & OPTIONS[i].bit) != 0) {
        return reject_args(p, "option %s is given twice", OPTIONS[i].word);
    }
    p->args->has |= OPTIONS[i].bit;
    *ret_used = 1;
    if (OPTIONS[i].read == NULL) {
        return true;
    }
    if (at + 1 == argc) {
        return reject_args(p, "option %s needs a value", OPTIONS[i].word);
    }
    *ret_used = 2;
    return OPTIONS[i].read(p, argv[at + 1]);
}

/* Reads a name; `number` is its place among several, 0 for a single one. */
static bool read_name(struct parse *p, struct span name, size_t number)
{
    char which[32] = "name";

    if (number != 0) {
        (void)snprintf(which, sizeof(which), "name %zu", number);
    }
    if (name.len < 1 || name.len > p->limits->max_name) {
        return reject_args(p, "%s must be 1..%" PRIu64 " bytes", which,
                           p->limits->max_name);
    }
    if (span_starts(name, SPAN(LATCHD_RESERVED_NAME_1)) ||
        span_starts(name, SPAN(LATCHD_RESERVED_NAME_2))) {
        return reject_args(p,
                           "%s is reserved: it begins with '" LATCHD_RESERVED_NAME_1
                           "' or '" LATCHD_RESERVED_NAME_2 "'",
                           which);
    }
    if ((p->syntax->rules & RULE_TAKES) != 0 && lock_name_is_of_readers(name)) {
        return reject_args(
            p,
            "%s is reserved: with '" LATCHD_RESERVED_NAME_MIDDLE
            "' and a number at its end it is a key of another lock's readers",
            which);
    }
    if (p->limits->one_tag && !lock_name_has_one_tag(name)) {
        return reject_args(p, "%s must have no brace, or one {tag}, in a Redis Cluster",
                           which);
    }
    p->args->name = name;
    return true;
}

static int compare_names(const void *a, const void *b)
{
    struct span x = **(const struct span *const *)a;
    struct span y = **(const struct span *const *)b;

    if (x.len != y.len) {
        return x.len < y.len ? -1 : 1;
    }
    return memcmp(x.ptr, y.ptr, x.len);
}

/* Sorts the names, so that duplicates are neighbours. */
static bool check_twins(struct parse *p)
{
    const struct span *sorted[LATCHD_MLOCK_MAX];
    size_t count = p->args->name_count;

    for (size_t i = 0; i < count; i++) {
        sorted[i] = &p->args->names[i];
    }
    qsort(sorted, count, sizeof(sorted[0]), compare_names);
    for (size_t i = 1; i < count; i++) {
        if (span_eq(*sorted[i - 1], *sorted[i])) {
            int quoted = sorted[i]->len > QUOTED_MAX ? QUOTED_MAX : (int)sorted[i]->len;

            return reject_args(p, "name '%.*s' is given twice", quoted, sorted[i]->ptr);
        }
    }
    return true;
}

static bool read_names(struct parse *p, const struct span *argv, size_t argc,
                       size_t *ret_used)
{
    uint64_t count;

    if (argc == 0 || !parse_u64(argv[0], LATCHD_MLOCK_MAX, &count) || count == 0) {
        return reject_args(p, "count must be 1..%d, the number of names",
                           LATCHD_MLOCK_MAX);
    }
    if (count > argc - 1) {
        return reject_args(
            p, "count says %" PRIu64 " names, but only %zu arguments follow", count,
            argc - 1);
    }
    for (size_t i = 1; i <= count; i++) {
        if (!read_name(p, argv[i], i)) {
            return false;
        }
    }
    p->args->names = argv + 1;
    p->args->name_count = (size_t)count;
    *ret_used = 1 + (size_t)count;
    return check_twins(p);
}

static bool check_kind(struct parse *p)
{
    unsigned kinds = p->args->has & OPT_KINDS;
    char words[64];

    if ((kinds & (kinds - 1)) != 0) {
        list_words(p->syntax->options & OPT_KINDS, words, sizeof(words));
        return reject_args(p, "only one of %s can be given", words);
    }
    p->args->kind = kinds == OPT_FAIR    ? KIND_FAIR
                    : kinds == OPT_READ  ? KIND_READ
                    : kinds == OPT_WRITE ? KIND_WRITE
                                         : KIND_PLAIN;
    return true;
}

static bool check_together(struct parse *p)
{
    unsigned has = p->args->has;
    char words[128];

    if ((p->syntax->rules & RULE_ONE_OF) != 0 && (has == 0 || (has & (has - 1)) != 0)) {
        list_words(p->syntax->options, words, sizeof(words));
        return reject_args(p, "%s needs exactly one of %s", p->syntax->command, words);
    }
    if ((has & OPT_TOP) != 0 && has != OPT_TOP) {
        return reject_args(p, "TOP goes alone");
    }
    if ((has & OPT_VALUE) != 0 && (has & ~(unsigned)OPT_LEASE) != OPT_VALUE) {
        return reject_args(p, "VALUE goes with LEASE only");
    }
    if ((has & OPT_KEEP) != 0 && (has & OPT_ID) == 0) {
        return reject_args(p, "KEEP needs ID");
    }
    if ((has & OPT_GRACE) != 0 && (has & OPT_LEASE) != 0) {
        return reject_args(p, "GRACE and LEASE exclude each other: "
                              "a fixed lease is not tied to a connection");
    }
    if ((has & OPT_LOCAL) != 0 && (has & OPT_NOT_LOCAL) != 0) {
        list_words(has & OPT_NOT_LOCAL, words, sizeof(words));
        return reject_args(p, "LOCAL does not go with %s", words);
    }
    if ((p->syntax->rules & RULE_MAX_WAIT) != 0 && p->limits->max_wait_ms != 0 &&
        (has & OPT_WAIT) == 0) {
        return reject_args(p, "WAIT is needed here: 0..%" PRIu64 " milliseconds",
                           p->limits->max_wait_ms);
    }
    return check_kind(p);
}

bool lock_args_parse(const struct lock_syntax *syntax, const struct cmd_limits *limits,
                     const struct span *argv, size_t argc, struct lock_args *ret,
                     char *reterr)
{
    struct parse p = { syntax, limits, ret, reterr };
    size_t at = 0, used = 0;

    *ret = (struct lock_args){ .count = ARGS_COUNT_DEFAULT };
    if ((syntax->rules & RULE_NAME) != 0) {
        if (argc == 0) {
            return reject_args(&p, "%s needs a name", syntax->command);
        }
        if (!read_name(&p, argv[at++], 0)) {
            return false;
        }
    } else if ((syntax->rules & RULE_NAMES) != 0) {
        if (!read_names(&p, argv, argc, &at)) {
            return false;
        }
    }
    for (; at < argc; at += used) {
        if (!read_option(&p, argv, argc, at, &used)) {
            return false;
        }
    }
    return check_together(&p);
}
