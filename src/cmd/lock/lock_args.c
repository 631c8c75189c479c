#include "cmd/lock/lock_args.h"

#include "cmd/cmd.h"
#include "cmd/lock/lock_name.h"
#include "cmd/lock/lock_options.h"
#include "latchd/protocol.h"
#include "util/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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
