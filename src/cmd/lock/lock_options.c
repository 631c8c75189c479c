#include "cmd/lock/lock_options.h"

#include "cmd/cmd.h"
#include "cmd/library/value_text.h"
#include "latchd/protocol.h"
#include "util/parse.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

bool lock_parse_reject(struct lock_parse *p, const char *fmt, ...)
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

void lock_options_list(unsigned bits, char *out, size_t room)
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

bool lock_option_read(struct lock_parse *p, const struct span *argv, size_t argc,
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
