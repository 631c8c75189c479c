#include "cmd/lock_args.h"

#include "cmd/cmd.h"
#include "cmd/library_args.h"
#include "latchd/protocol.h"
#include "util/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    QUOTED_MAX = 32, /* bytes of an argument that an error quotes */
};

/* One call of lock_args_parse. */
struct lock_parse {
    const struct lock_syntax *syntax;
    const struct cmd_limits *limits;
    struct lock_args *args;
    char *reterr; /* ARGS_ERROR_ROOM bytes */
};

/* No brace, or one pair with something between: else the keys beside the lock would not
 * be in its slot. */
static bool lock_name_has_one_tag(struct span name)
{
    const char *open = memchr(name.ptr, '{', name.len);
    const char *close = memchr(name.ptr, '}', name.len);
    const char *end = name.ptr + name.len;

    if (open == NULL || close == NULL) {
        return open == close;
    }
    return close > open + 1 &&
           memchr(open + 1, '{', (size_t)(end - open - 1)) == NULL &&
           memchr(close + 1, '}', (size_t)(end - close - 1)) == NULL;
}

/* Whether a name is `{N}:<owner>:rwlock_timeout:<i>`, the key of a read hold of the
 * lock N: READ locks of N would overwrite it. */
static bool lock_name_is_of_readers(struct span name)
{
    const struct span middle = SPAN(LATCHD_RESERVED_NAME_MIDDLE);
    size_t end = name.len;

    while (end > 0 && name.ptr[end - 1] >= '0' && name.ptr[end - 1] <= '9') {
        end--;
    }
    return end < name.len && end >= middle.len &&
           span_eq(span_of(name.ptr + end - middle.len, middle.len), middle);
}

/* Writes the error. False, so that the caller can return the call. */
static __attribute__((format(printf, 2, 3))) bool
lock_parse_reject(struct lock_parse *p, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(p->reterr, ARGS_ERROR_ROOM, fmt, ap);
    va_end(ap);
    return false;
}

/* --- options ---------------------------------------------------------- */

enum option_type {
    OPTION_FLAG,
    OPTION_MS,
    OPTION_NUMBER,
    OPTION_SMALL,
    OPTION_WORD,
    OPTION_TEXT
};

/* The keys of the configuration that bound an option. */
enum option_limit {
    LIMIT_NONE,
    LIMIT_MAX_WAIT,
    LIMIT_MAX_LEASE,
    LIMIT_MAX_KEEP,
    LIMIT_WATCHDOG,
};

static const struct {
    const char *key;
    size_t at; /* in struct cmd_limits */
} LIMITS[] = {
    [LIMIT_MAX_WAIT] = { "max-wait", offsetof(struct cmd_limits, max_wait_ms) },
    [LIMIT_MAX_LEASE] = { "max-lease", offsetof(struct cmd_limits, max_lease_ms) },
    [LIMIT_MAX_KEEP] = { "max-keep", offsetof(struct cmd_limits, max_keep_ms) },
    [LIMIT_WATCHDOG] = { "watchdog-timeout", offsetof(struct cmd_limits, watchdog_ms) },
};

/* A row of terms.def. */
static const struct option {
    struct span word;
    enum option_type type;
    size_t at; /* of its value, in struct lock_args */
    uint64_t min, max;
    enum option_limit limit;
    unsigned commands, needs, without;
    const char *why;
} OPTIONS[] = {
#define ROW(word, type, field, min, max, limit, commands, needs, without, why)         \
    { { #word, sizeof(#word) - 1 },                                                    \
      OPTION_##type,                                                                   \
      offsetof(struct lock_args, field),                                               \
      min,                                                                             \
      max,                                                                             \
      LIMIT_##limit,                                                                   \
      commands,                                                                        \
      needs,                                                                           \
      without,                                                                         \
      why },
#define TERM(word, type, field, min, max, limit, commands, needs, without, why, ...)   \
    ROW(word, type, terms.field, min, max, limit, commands, needs, without, why)
#define OPTION(word, type, field, min, max, limit, commands, needs, without, why, ...) \
    ROW(word, type, field, min, max, limit, commands, needs, without, why)
#include "latchd/terms.def"
};

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

static bool read_number(struct lock_parse *p, const struct option *o, struct span text,
                        uint64_t *ret)
{
    const char *unit = o->type == OPTION_MS ? " milliseconds" : "";
    uint64_t max = o->max;
    const char *key = NULL;

    if (o->limit != LIMIT_NONE) {
        uint64_t limit =
            *(const uint64_t *)((const char *)p->limits + LIMITS[o->limit].at);

        /* A max-wait of 0 is none. */
        if (limit < max && (limit != 0 || o->limit != LIMIT_MAX_WAIT)) {
            max = limit;
            key = LIMITS[o->limit].key;
        }
    }
    if (parse_u64(text, max, ret) && *ret >= o->min) {
        return true;
    }
    return lock_parse_reject(p, "%s must be %" PRIu64 "..%" PRIu64 "%s%s%s%s",
                             o->word.ptr, o->min, max, unit, key == NULL ? "" : " (",
                             key == NULL ? "" : key, key == NULL ? "" : ")");
}

static bool read_bytes(struct lock_parse *p, const struct option *o, struct span text,
                       struct span *ret)
{
    bool is_short = text.len >= o->min && text.len <= o->max;

    *ret = text;
    if (is_short && (o->type == OPTION_TEXT || is_word(text))) {
        return true;
    }
    return lock_parse_reject(p, "%s must be %" PRIu64 "..%" PRIu64 " %sbytes%s",
                             o->word.ptr, o->min, o->max,
                             o->type == OPTION_WORD ? "printable " : "",
                             o->type == OPTION_WORD ? " without space" : "");
}

static bool read_value(struct lock_parse *p, const struct option *o, struct span text)
{
    void *at = (char *)p->args + o->at;

    switch (o->type) {
    case OPTION_FLAG:
        break;
    case OPTION_MS:
    case OPTION_NUMBER:
        return read_number(p, o, text, at);
    case OPTION_SMALL: {
        uint64_t number;

        if (!read_number(p, o, text, &number)) {
            return false;
        }
        *(uint32_t *)at = (uint32_t)number;
        break;
    }
    case OPTION_WORD:
    case OPTION_TEXT:
        return read_bytes(p, o, text, at);
    }
    return true;
}

/* Writes "A, B or C" of the options in `bits`. */
static void lock_options_list(unsigned bits, char *out, size_t room)
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < OPTION_COUNT && len < room; i++) {
        if ((bits & 1U << i) != 0) {
            const char *join = len == 0 ? "" : (bits & (bits - 1)) != 0 ? ", " : " or ";

            len += (size_t)snprintf(out + len, room - len, "%s%s", join,
                                    OPTIONS[i].word.ptr);
            bits &= ~(1U << i);
        }
    }
}

unsigned lock_syntax_options(const struct lock_syntax *syntax)
{
    unsigned bits = 0;

    for (size_t i = 0; i < OPTION_COUNT; i++) {
        bits |= (OPTIONS[i].commands & syntax->takes) != 0 ? 1U << i : 0;
    }
    return bits;
}

static bool refuse_word(struct lock_parse *p, struct span word)
{
    char allowed[160];
    int quoted = word.len > QUOTED_MAX ? QUOTED_MAX : (int)word.len;

    if (p->syntax->takes == 0) {
        return lock_parse_reject(p, "%s takes no options, but got '%.*s'",
                                 p->syntax->command, quoted, word.ptr);
    }
    lock_options_list(lock_syntax_options(p->syntax), allowed, sizeof(allowed));
    return lock_parse_reject(p, "unknown option '%.*s' for %s, which takes %s", quoted,
                             word.ptr, p->syntax->command, allowed);
}

/* Reads the option at argv[at], which has *ret_used arguments. False: the error is
 * written. */
static bool lock_option_read(struct lock_parse *p, const struct span *argv, size_t argc,
                             size_t at, size_t *ret_used)
{
    const struct option *o = OPTIONS;
    size_t i = 0;

    while (i < OPTION_COUNT && (!span_eq_nocase(argv[at], OPTIONS[i].word) ||
                                (OPTIONS[i].commands & p->syntax->takes) == 0)) {
        i++;
    }
    if (i == OPTION_COUNT) {
        return refuse_word(p, argv[at]);
    }
    o = &OPTIONS[i];
    if ((p->args->terms.has & 1U << i) != 0) {
        return lock_parse_reject(p, "option %s is given twice", o->word.ptr);
    }
    p->args->terms.has |= 1U << i;
    *ret_used = o->type == OPTION_FLAG ? 1 : 2;
    if (at + *ret_used > argc) {
        return lock_parse_reject(p, "option %s needs a value", o->word.ptr);
    }
    return o->type == OPTION_FLAG || read_value(p, o, argv[at + 1]);
}

const struct lock_syntax SYNTAX_LOCK = { "LOCK", FOR_LOCK,
                                         RULE_NAME | RULE_MAX_WAIT | RULE_TAKES };
const struct lock_syntax SYNTAX_UNLOCK = { "UNLOCK", FOR_UNLOCK, RULE_NAME };
const struct lock_syntax SYNTAX_RENEW = { "RENEW", FOR_RENEW, RULE_NAME };
const struct lock_syntax SYNTAX_CANCEL = { "CANCEL", FOR_CANCEL,
                                           RULE_NAME | RULE_ONE_OF };
const struct lock_syntax SYNTAX_FORCEUNLOCK = { "FORCEUNLOCK", FOR_FORCEUNLOCK,
                                                RULE_NAME | RULE_ONE_OF };
const struct lock_syntax SYNTAX_LEADER = { "LEADER", FOR_LEADER,
                                           RULE_NAME | RULE_MAX_WAIT };
const struct lock_syntax SYNTAX_LOCKINFO = { "LOCKINFO", 0, RULE_NAME };
const struct lock_syntax SYNTAX_LOCKS = { "LOCKS", FOR_LOCKS, 0 };
const struct lock_syntax SYNTAX_MLOCK = { "MLOCK", FOR_MLOCK,
                                          RULE_NAMES | RULE_MAX_WAIT | RULE_TAKES };
const struct lock_syntax SYNTAX_WAITERS = { "WAITERS", FOR_WAITERS, RULE_NAME };

/* Reads a name; `number` is its place among several, 0 for a single one. */
static bool read_name(struct lock_parse *p, struct span name, size_t number)
{
    char which[32] = "name";

    if (number != 0) {
        (void)snprintf(which, sizeof(which), "name %zu", number);
    }
    if (name.len < 1 || name.len > p->limits->max_name) {
        return lock_parse_reject(p, "%s must be 1..%" PRIu64 " bytes (max-name-length)",
                                 which, p->limits->max_name);
    }
    if (span_starts(name, SPAN(LATCHD_RESERVED_NAME_1)) ||
        span_starts(name, SPAN(LATCHD_RESERVED_NAME_2))) {
        return lock_parse_reject(
            p,
            "%s is reserved: it begins with '" LATCHD_RESERVED_NAME_1
            "' or '" LATCHD_RESERVED_NAME_2 "'",
            which);
    }
    if ((p->syntax->rules & RULE_TAKES) != 0 && lock_name_is_of_readers(name)) {
        return lock_parse_reject(
            p,
            "%s is reserved: with '" LATCHD_RESERVED_NAME_MIDDLE
            "' and a number at its end it is a key of another lock's readers",
            which);
    }
    if (p->limits->one_tag && !lock_name_has_one_tag(name)) {
        return lock_parse_reject(
            p, "%s must have no brace, or one {tag}, in a Redis Cluster", which);
    }
    if (p->limits->one_tag && (p->syntax->rules & RULE_NO_BRACE) != 0 &&
        (memchr(name.ptr, '{', name.len) != NULL ||
         memchr(name.ptr, '}', name.len) != NULL)) {
        return lock_parse_reject(
            p, "%s of a latch must have no brace in a Redis Cluster", which);
    }
    p->args->name = name;
    return true;
}

static bool read_latch_count(struct lock_parse *p, const struct span *argv, size_t argc)
{
    uint64_t count = 0;

    if (argc == 0 || !parse_u64(argv[0], LATCHD_LATCH_MAX, &count) || count == 0) {
        return lock_parse_reject(p, "the count must be 1..%" PRIu64,
                                 (uint64_t)LATCHD_LATCH_MAX);
    }
    p->args->latch_count = (int64_t)count;
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
static bool check_twins(struct lock_parse *p)
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

            return lock_parse_reject(p, "name '%.*s' is given twice", quoted,
                                     sorted[i]->ptr);
        }
    }
    return true;
}

static bool read_names(struct lock_parse *p, const struct span *argv, size_t argc,
                       size_t *ret_used)
{
    uint64_t count;

    if (argc == 0 || !parse_u64(argv[0], LATCHD_MLOCK_MAX, &count) || count == 0) {
        return lock_parse_reject(p, "count must be 1..%d, the number of names",
                                 LATCHD_MLOCK_MAX);
    }
    if (count > argc - 1) {
        return lock_parse_reject(
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

static bool check_kind(struct lock_parse *p)
{
    unsigned kinds = p->args->terms.has & OPT_KINDS;
    char words[64];

    if ((kinds & (kinds - 1)) != 0) {
        lock_options_list(lock_syntax_options(p->syntax) & OPT_KINDS, words,
                          sizeof(words));
        return lock_parse_reject(p, "only one of %s can be given", words);
    }
    p->args->terms.lock_kind = kinds == OPT_FAIR      ? KIND_FAIR
                               : kinds == OPT_READ    ? KIND_READ
                               : kinds == OPT_WRITE   ? KIND_WRITE
                               : kinds == OPT_PERMITS ? KIND_PERMITS
                                                      : KIND_PLAIN;
    return true;
}

/* Whether all other options that were given go with this one, as its row says. */
static bool check_option(struct lock_parse *p, const struct option *o)
{
    unsigned has = p->args->terms.has;
    char words[128];

    if ((o->needs & ~has) != 0) {
        lock_options_list(o->needs & ~has, words, sizeof(words));
        return lock_parse_reject(p, "%s needs %s", o->word.ptr, words);
    }
    if ((o->without & has) != 0) {
        lock_options_list(o->without & has, words, sizeof(words));
        return lock_parse_reject(p, "%s does not go with %s%s%s", o->word.ptr, words,
                                 *o->why == '\0' ? "" : ": ", o->why);
    }
    return true;
}

/* OWNER: some names are fields of Redisson's hashes, or ours. */
static bool check_owner(struct lock_parse *p)
{
    const struct span suffix = SPAN(LATCHD_RESERVED_OWNER_SUFFIX);
    struct span owner = p->args->terms.owner;

    if (span_eq(owner, SPAN(LATCHD_RESERVED_OWNER)) ||
        span_starts(owner, SPAN(LATCHD_RESERVED_OWNER_PREFIX)) ||
        (owner.len >= suffix.len &&
         span_eq(span_of(owner.ptr + owner.len - suffix.len, suffix.len), suffix))) {
        return lock_parse_reject(p, "OWNER must not be '" LATCHD_RESERVED_OWNER
                                    "', begin with '" LATCHD_RESERVED_OWNER_PREFIX
                                    "' or end in '" LATCHD_RESERVED_OWNER_SUFFIX "'");
    }
    return true;
}

static bool check_together(struct lock_parse *p)
{
    const struct lock_terms *terms = &p->args->terms;
    unsigned has = terms->has;
    char words[128];

    if ((p->syntax->rules & RULE_ONE_OF) != 0 && (has == 0 || (has & (has - 1)) != 0)) {
        lock_options_list(lock_syntax_options(p->syntax), words, sizeof(words));
        return lock_parse_reject(p, "%s needs exactly one of %s", p->syntax->command,
                                 words);
    }
    for (unsigned left = has; left != 0; left &= left - 1) {
        if (!check_option(p, &OPTIONS[__builtin_ctz(left)])) {
            return false;
        }
    }
    if (!check_owner(p)) {
        return false;
    }
    if ((has & OPT_OF) != 0 && terms->permits > terms->limit) {
        return lock_parse_reject(p, "PERMITS must be at most OF");
    }
    /* A job that is to run at most once in a time does not wait for its next time. */
    if ((has & OPT_ATLEAST) != 0 && !lock_tries_once(terms)) {
        return lock_parse_reject(p, "ATLEAST needs WAIT 0: it tries once");
    }
    if ((p->syntax->rules & RULE_MAX_WAIT) != 0 && p->limits->max_wait_ms != 0 &&
        (has & OPT_WAIT) == 0 &&
        (p->syntax->takes != FOR_LEADER || (has & OPT_AFTER) != 0)) {
        return lock_parse_reject(
            p, "WAIT is needed here: 0..%" PRIu64 " milliseconds (max-wait)",
            p->limits->max_wait_ms);
    }
    return check_kind(p);
}

bool lock_args_parse(const struct lock_syntax *syntax, const struct cmd_limits *limits,
                     const struct span *argv, size_t argc, struct lock_args *ret,
                     char *reterr)
{
    struct lock_parse p = { syntax, limits, ret, reterr };
    size_t at = 0, used = 0;

    *ret = (struct lock_args){ .count = ARGS_COUNT_DEFAULT };
    if ((syntax->rules & RULE_NAME) != 0) {
        if (argc == 0) {
            return lock_parse_reject(&p, "%s needs a name", syntax->command);
        }
        if (!read_name(&p, argv[at++], 0)) {
            return false;
        }
    } else if ((syntax->rules & RULE_NAMES) != 0) {
        if (!read_names(&p, argv, argc, &at)) {
            return false;
        }
    }
    if ((syntax->rules & RULE_LATCH_COUNT) != 0 &&
        !read_latch_count(&p, argv + at++, argc - 1)) {
        return false;
    }
    for (; at < argc; at += used) {
        if (!lock_option_read(&p, argv, argc, at, &used)) {
            return false;
        }
    }
    return check_together(&p);
}
