#include "cmd/lock/lock_args.h"

#include "cmd/cmd.h"
#include "cmd/library/value_text.h"
#include "latchd/protocol.h"
#include "util/parse.h"

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

/* --- values ----------------------------------------------------------- */

/* The bounds of a time, and the key of the configuration that sets the upper one; NULL:
 * it is always so. */
struct ms_bounds {
    uint64_t min, max;
    const char *key;
};

static bool read_ms(struct lock_parse *p, const char *word, struct span text,
                    struct ms_bounds bounds, uint64_t *ret)
{
    if (!parse_u64(text, bounds.max, ret) || *ret < bounds.min) {
        return lock_parse_reject(
            p, "%s must be %" PRIu64 "..%" PRIu64 " milliseconds%s%s%s", word,
            bounds.min, bounds.max, bounds.key == NULL ? "" : " (",
            bounds.key == NULL ? "" : bounds.key, bounds.key == NULL ? "" : ")");
    }
    return true;
}

static bool read_wait(struct lock_parse *p, struct span text)
{
    uint64_t max = p->limits->max_wait_ms;

    struct ms_bounds bounds = { 0, max, "max-wait" };

    if (max == 0) {
        bounds = (struct ms_bounds){ 0, ARGS_WAIT_MAX_MS, NULL };
    }
    return read_ms(p, "WAIT", text, bounds, &p->args->wait_ms);
}

/* Of what lasts as long as a LEASE may. */
static struct ms_bounds lease_bounds(const struct lock_parse *p, uint64_t min)
{
    return (struct ms_bounds){ min, p->limits->max_lease_ms, "max-lease" };
}

static bool read_lease(struct lock_parse *p, struct span text)
{
    return read_ms(p, "LEASE", text, lease_bounds(p, LATCHD_LEASE_MIN_MS),
                   &p->args->lease_ms);
}

/* A name is never taken for longer than a LEASE can be, without anybody renewing. */
static bool read_atleast(struct lock_parse *p, struct span text)
{
    return read_ms(p, "ATLEAST", text, lease_bounds(p, LATCHD_LEASE_MIN_MS),
                   &p->args->atleast_ms);
}

static bool read_keep(struct lock_parse *p, struct span text)
{
    struct ms_bounds bounds = { 0, p->limits->max_keep_ms, "max-keep" };

    return read_ms(p, "KEEP", text, bounds, &p->args->keep_ms);
}

static bool read_grace(struct lock_parse *p, struct span text)
{
    return read_ms(p, "GRACE", text, lease_bounds(p, 0), &p->args->grace_ms);
}

static bool read_heartbeat(struct lock_parse *p, struct span text)
{
    struct ms_bounds bounds = { LATCHD_HEARTBEAT_MIN_MS, LATCHD_HEARTBEAT_MAX_MS,
                                NULL };

    if (p->limits->watchdog_ms < bounds.max) {
        bounds.max = p->limits->watchdog_ms;
        bounds.key = "watchdog-timeout";
    }
    return read_ms(p, "HEARTBEAT", text, bounds, &p->args->heartbeat_ms);
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

static bool read_owner(struct lock_parse *p, struct span text)
{
    const struct span suffix = SPAN(LATCHD_RESERVED_OWNER_SUFFIX);

    if (text.len < 1 || text.len > LATCHD_OWNER_MAX || !is_word(text)) {
        return lock_parse_reject(p, "OWNER must be 1..%d printable bytes without space",
                                 LATCHD_OWNER_MAX);
    }
    if (span_eq(text, SPAN(LATCHD_RESERVED_OWNER)) ||
        span_starts(text, SPAN(LATCHD_RESERVED_OWNER_PREFIX)) ||
        (text.len >= suffix.len &&
         span_eq(span_of(text.ptr + text.len - suffix.len, suffix.len), suffix))) {
        return lock_parse_reject(p, "OWNER must not be '" LATCHD_RESERVED_OWNER
                                    "', begin with '" LATCHD_RESERVED_OWNER_PREFIX
                                    "' or end in '" LATCHD_RESERVED_OWNER_SUFFIX "'");
    }
    p->args->owner = text;
    return true;
}

static bool read_id_of(struct lock_parse *p, const char *word, struct span text,
                       struct span *ret)
{
    if (text.len < LATCHD_ID_MIN || text.len > LATCHD_ID_MAX || !is_word(text)) {
        return lock_parse_reject(p, "%s must be %d..%d printable bytes without space",
                                 word, LATCHD_ID_MIN, LATCHD_ID_MAX);
    }
    *ret = text;
    return true;
}

static bool read_id(struct lock_parse *p, struct span text)
{
    return read_id_of(p, "ID", text, &p->args->id);
}

static bool read_after(struct lock_parse *p, struct span text)
{
    if (!parse_u64(text, LATCHD_TOKEN_MAX, &p->args->after)) {
        return lock_parse_reject(p, "AFTER must be 0..%" PRIu64,
                                 (uint64_t)LATCHD_TOKEN_MAX);
    }
    return true;
}

static bool read_data(struct lock_parse *p, struct span text)
{
    if (text.len > LATCHD_DATA_MAX) {
        return lock_parse_reject(p, "DATA must be 0..%d bytes", LATCHD_DATA_MAX);
    }
    p->args->data = text;
    return true;
}

static bool read_to(struct lock_parse *p, struct span text)
{
    return read_id_of(p, "TO", text, &p->args->to);
}

static bool read_token(struct lock_parse *p, struct span text)
{
    if (!parse_u64(text, LATCHD_TOKEN_MAX, &p->args->token) || p->args->token == 0) {
        return lock_parse_reject(p, "TOKEN must be 1..%" PRIu64,
                                 (uint64_t)LATCHD_TOKEN_MAX);
    }
    return true;
}

static bool read_permits(struct lock_parse *p, struct span text)
{
    uint64_t permits;

    if (!parse_u64(text, LATCHD_PERMITS_MAX, &permits) || permits == 0) {
        return lock_parse_reject(p, "PERMITS must be 1..%d", LATCHD_PERMITS_MAX);
    }
    p->args->permits = (uint32_t)permits;
    return true;
}

static bool read_limit(struct lock_parse *p, struct span text)
{
    uint64_t limit;

    if (!parse_u64(text, LATCHD_LIMIT_MAX, &limit) || limit == 0) {
        return lock_parse_reject(p, "OF must be 1..%d", LATCHD_LIMIT_MAX);
    }
    p->args->limit = (uint32_t)limit;
    return true;
}

static bool read_queue(struct lock_parse *p, struct span text)
{
    uint64_t max;

    if (!parse_u64(text, LATCHD_QUEUE_MAX, &max)) {
        return lock_parse_reject(p, "QUEUE must be 0..%d", LATCHD_QUEUE_MAX);
    }
    p->args->queue_max = (uint32_t)max;
    return true;
}

static bool read_priority(struct lock_parse *p, struct span text)
{
    uint64_t priority;

    if (!parse_u64(text, LATCHD_PRIORITY_MAX, &priority)) {
        return lock_parse_reject(p, "PRIORITY must be 0..%d", LATCHD_PRIORITY_MAX);
    }
    p->args->priority = (uint8_t)priority;
    return true;
}

static bool read_value(struct lock_parse *p, struct span text)
{
    if (text.len > VALUE_MAX) {
        return lock_parse_reject(p, "VALUE must be 0..%d bytes", VALUE_MAX);
    }
    p->args->value = text;
    return true;
}

static bool read_cursor(struct lock_parse *p, struct span text)
{
    if (!parse_u64(text, UINT64_MAX, &p->args->cursor)) {
        return lock_parse_reject(p, "CURSOR must be 0 or what the last LOCKS returned");
    }
    return true;
}

static bool read_match(struct lock_parse *p, struct span text)
{
    if (text.len > ARGS_PATTERN_MAX) {
        return lock_parse_reject(p, "MATCH must be at most %d bytes", ARGS_PATTERN_MAX);
    }
    p->args->match = text;
    return true;
}

static bool read_count(struct lock_parse *p, struct span text)
{
    if (!parse_u64(text, ARGS_COUNT_MAX, &p->args->count) || p->args->count == 0) {
        return lock_parse_reject(p, "COUNT must be 1..%d", ARGS_COUNT_MAX);
    }
    return true;
}

static bool read_top(struct lock_parse *p, struct span text)
{
    if (!parse_u64(text, ARGS_TOP_MAX, &p->args->count) || p->args->count == 0) {
        return lock_parse_reject(p, "TOP must be 1..%d", ARGS_TOP_MAX);
    }
    return true;
}

/* --- options ---------------------------------------------------------- */

#define WORD(text) .word = { (text), sizeof(text) - 1 }

static const struct {
    struct span word;
    unsigned bit;
    bool (*read)(struct lock_parse *p,
                 struct span text); /* NULL: a word without value */
} OPTIONS[] = {
    { WORD("FAIR"), OPT_FAIR, NULL },
    { WORD("READ"), OPT_READ, NULL },
    { WORD("WRITE"), OPT_WRITE, NULL },
    { WORD("WAIT"), OPT_WAIT, read_wait },
    { WORD("LEASE"), OPT_LEASE, read_lease },
    { WORD("TOKEN"), OPT_TOKEN, read_token },
    { WORD("OWNER"), OPT_OWNER, read_owner },
    { WORD("ID"), OPT_ID, read_id },
    { WORD("KEEP"), OPT_KEEP, read_keep },
    { WORD("GRACE"), OPT_GRACE, read_grace },
    { WORD("ANY"), OPT_ANY, NULL },
    { WORD("CURSOR"), OPT_CURSOR, read_cursor },
    { WORD("MATCH"), OPT_MATCH, read_match },
    { WORD("COUNT"), OPT_COUNT, read_count },
    { WORD("TOP"), OPT_TOP, read_top },
    { WORD("REDIS"), OPT_REDIS, NULL },
    { WORD("VALUE"), OPT_VALUE, read_value },
    { WORD("LOCAL"), OPT_LOCAL, NULL },
    { WORD("PERMITS"), OPT_PERMITS, read_permits },
    { WORD("OF"), OPT_OF, read_limit },
    { WORD("HEARTBEAT"), OPT_HEARTBEAT, read_heartbeat },
    { WORD("TO"), OPT_TO, read_to },
    { WORD("DATA"), OPT_DATA, read_data },
    { WORD("AFTER"), OPT_AFTER, read_after },
    { WORD("QUEUE"), OPT_QUEUE, read_queue },
    { WORD("PRIORITY"), OPT_PRIORITY, read_priority },
    { WORD("ATLEAST"), OPT_ATLEAST, read_atleast },
};

enum { OPTION_COUNT = sizeof(OPTIONS) / sizeof(OPTIONS[0]) };

/* Writes "A, B or C" of the options in `bits`. */
static void lock_options_list(unsigned bits, char *out, size_t room)
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < OPTION_COUNT && len < room; i++) {
        if ((OPTIONS[i].bit & bits) != 0) {
            const char *join = len == 0 ? "" : (bits & (bits - 1)) != 0 ? ", " : " or ";

            len += (size_t)snprintf(out + len, room - len, "%s%s", join,
                                    OPTIONS[i].word.ptr);
            bits &= ~OPTIONS[i].bit;
        }
    }
}

static bool refuse_word(struct lock_parse *p, struct span word)
{
    char allowed[160];
    int quoted = word.len > QUOTED_MAX ? QUOTED_MAX : (int)word.len;

    if (p->syntax->options == 0) {
        return lock_parse_reject(p, "%s takes no options, but got '%.*s'",
                                 p->syntax->command, quoted, word.ptr);
    }
    lock_options_list(p->syntax->options, allowed, sizeof(allowed));
    return lock_parse_reject(p, "unknown option '%.*s' for %s, which takes %s", quoted,
                             word.ptr, p->syntax->command, allowed);
}

/* Reads the option at argv[at], which has *ret_used arguments. False: the error is
 * written. */
static bool lock_option_read(struct lock_parse *p, const struct span *argv, size_t argc,
                             size_t at, size_t *ret_used)
{
    size_t i = 0;

    while (i < OPTION_COUNT && ((OPTIONS[i].bit & p->syntax->options) == 0 ||
                                !span_eq_nocase(argv[at], OPTIONS[i].word))) {
        i++;
    }
    if (i == OPTION_COUNT) {
        return refuse_word(p, argv[at]);
    }
    if ((p->args->has & OPTIONS[i].bit) != 0) {
        return lock_parse_reject(p, "option %s is given twice", OPTIONS[i].word.ptr);
    }
    p->args->has |= OPTIONS[i].bit;
    *ret_used = 1;
    if (OPTIONS[i].read == NULL) {
        return true;
    }
    if (at + 1 == argc) {
        return lock_parse_reject(p, "option %s needs a value", OPTIONS[i].word.ptr);
    }
    *ret_used = 2;
    return OPTIONS[i].read(p, argv[at + 1]);
}

const struct lock_syntax SYNTAX_LOCK = {
    "LOCK",
    OPT_KINDS | OPT_WAIT | OPT_LEASE | OPT_OWNER | OPT_ID | OPT_KEEP | OPT_GRACE |
        OPT_HEARTBEAT | OPT_LOCAL | OPT_OF | OPT_DATA | OPT_QUEUE | OPT_PRIORITY |
        OPT_ATLEAST,
    RULE_NAME | RULE_MAX_WAIT | RULE_TAKES,
};
const struct lock_syntax SYNTAX_UNLOCK = {
    "UNLOCK", OPT_READ | OPT_WRITE | OPT_TOKEN | OPT_OWNER | OPT_ID | OPT_TO, RULE_NAME
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
const struct lock_syntax SYNTAX_LEADER = { "LEADER", OPT_AFTER | OPT_WAIT,
                                           RULE_NAME | RULE_MAX_WAIT };
const struct lock_syntax SYNTAX_LOCKINFO = { "LOCKINFO", 0, RULE_NAME };
const struct lock_syntax SYNTAX_LOCKS = {
    "LOCKS", OPT_CURSOR | OPT_MATCH | OPT_COUNT | OPT_TOP | OPT_REDIS, 0
};
const struct lock_syntax SYNTAX_MLOCK = { "MLOCK",
                                          OPT_WAIT | OPT_LEASE | OPT_OWNER | OPT_ID |
                                              OPT_KEEP | OPT_GRACE | OPT_HEARTBEAT |
                                              OPT_PRIORITY,
                                          RULE_NAMES | RULE_MAX_WAIT | RULE_TAKES };
const struct lock_syntax SYNTAX_WAITERS = { "WAITERS", OPT_COUNT, RULE_NAME };

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
    unsigned kinds = p->args->has & OPT_KINDS;
    char words[64];

    if ((kinds & (kinds - 1)) != 0) {
        lock_options_list(p->syntax->options & OPT_KINDS, words, sizeof(words));
        return lock_parse_reject(p, "only one of %s can be given", words);
    }
    p->args->kind = kinds == OPT_FAIR      ? KIND_FAIR
                    : kinds == OPT_READ    ? KIND_READ
                    : kinds == OPT_WRITE   ? KIND_WRITE
                    : kinds == OPT_PERMITS ? KIND_PERMITS
                                           : KIND_PLAIN;
    return true;
}

/* A job that is to run at most once in a time does not wait for its next time. */
static bool check_atleast(struct lock_parse *p)
{
    unsigned has = p->args->has;
    char words[64];

    if ((has & OPT_NOT_ATLEAST) != 0) {
        lock_options_list(has & OPT_NOT_ATLEAST, words, sizeof(words));
        return lock_parse_reject(p, "ATLEAST does not go with %s", words);
    }
    if ((has & OPT_WAIT) == 0 || p->args->wait_ms != 0) {
        return lock_parse_reject(p, "ATLEAST needs WAIT 0: it tries once");
    }
    return true;
}

static bool check_together(struct lock_parse *p)
{
    unsigned has = p->args->has;
    char words[128];

    if ((p->syntax->rules & RULE_ONE_OF) != 0 && (has == 0 || (has & (has - 1)) != 0)) {
        lock_options_list(p->syntax->options, words, sizeof(words));
        return lock_parse_reject(p, "%s needs exactly one of %s", p->syntax->command,
                                 words);
    }
    if ((has & OPT_TOP) != 0 && has != OPT_TOP) {
        return lock_parse_reject(p, "TOP goes alone");
    }
    if ((has & OPT_VALUE) != 0 && (has & ~(unsigned)OPT_LEASE) != OPT_VALUE) {
        return lock_parse_reject(p, "VALUE goes with LEASE only");
    }
    if ((has & OPT_KEEP) != 0 && (has & OPT_ID) == 0) {
        return lock_parse_reject(p, "KEEP needs ID");
    }
    if ((has & OPT_GRACE) != 0 && (has & OPT_LEASE) != 0) {
        return lock_parse_reject(p, "GRACE and LEASE exclude each other: "
                                    "a fixed lease is not tied to a connection");
    }
    if ((has & OPT_HEARTBEAT) != 0 && (has & OPT_LEASE) != 0) {
        return lock_parse_reject(p, "HEARTBEAT and LEASE exclude each other: "
                                    "a fixed lease is not tied to a connection");
    }
    if ((has & OPT_OF) != 0 && (has & OPT_PERMITS) == 0) {
        return lock_parse_reject(p, "OF needs PERMITS");
    }
    if ((has & OPT_OF) != 0 && p->args->permits > p->args->limit) {
        return lock_parse_reject(p, "PERMITS must be at most OF");
    }
    if ((has & OPT_PERMITS) != 0 && (has & OPT_OWNER) != 0) {
        return lock_parse_reject(p, "PERMITS does not go with OWNER");
    }
    if ((has & OPT_DATA) != 0 && (has & (OPT_READ | OPT_PERMITS)) != 0) {
        lock_options_list(has & (OPT_READ | OPT_PERMITS), words, sizeof(words));
        return lock_parse_reject(p,
                                 "DATA does not go with %s: it needs a lock that "
                                 "one alone holds",
                                 words);
    }
    if ((has & OPT_PRIORITY) != 0 && (has & OPT_FAIR) != 0) {
        return lock_parse_reject(p, "PRIORITY does not go with FAIR: a fair queue is "
                                    "in order of arrival");
    }
    if ((has & OPT_LOCAL) != 0 && (has & OPT_NOT_LOCAL) != 0) {
        lock_options_list(has & OPT_NOT_LOCAL, words, sizeof(words));
        return lock_parse_reject(p, "LOCAL does not go with %s", words);
    }
    if ((has & OPT_ATLEAST) != 0 && !check_atleast(p)) {
        return false;
    }
    if ((p->syntax->rules & RULE_MAX_WAIT) != 0 && p->limits->max_wait_ms != 0 &&
        (has & OPT_WAIT) == 0 &&
        ((p->syntax->options & OPT_AFTER) == 0 || (has & OPT_AFTER) != 0)) {
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
