#include "latchctl/sample.h"

#include "latchctl/ask.h"
#include "latchctl/show.h"
#include "latchd/protocol.h"
#include "util/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    NAME_MIN = 12,
    WAITERS_WIDTH = 8,
    TIME_WIDTH = 13,
    OWNER_WIDTH = 24,
    CELL_MAX = 128,
    HEAD_LINES = 4,
};

void sample_fini(struct sample *s)
{
    freeReplyObject(s->top);
    *s = (struct sample){ 0 };
}

/* Copies a word for the screen, without control sequences. */
static void read_word(struct span word, char *ret)
{
    struct buf text = { 0 };

    show_bytes(&text, word, SAMPLE_WORD_MAX - 4);
    (void)snprintf(ret, SAMPLE_WORD_MAX, "%.*s", (int)buf_len(&text), buf_ptr(&text));
    buf_reset(&text);
}

void sample_read(struct sample *s, uint64_t now_ms, const redisReply *info,
                 redisReply *top)
{
    static const char *const KEYS[SAMPLE_NUMBERS] = {
        [SAMPLE_NAMES] = "locks",
        [SAMPLE_HOLDS] = "holds",
        [SAMPLE_WAITERS] = "waiters",
        [SAMPLE_AWAITS] = "awaits",
        [SAMPLE_CLIENTS] = "connected_clients",
        [SAMPLE_UPTIME] = "uptime_in_seconds",
        [SAMPLE_ROUND_TRIP_US] = "redis_round_trip_us",
        [SAMPLE_RECONNECTS] = "redis_reconnects",
        [SAMPLE_LOST] = "lost",
        [SAMPLE_GRANTS] = "grants",
        [SAMPLE_LOCAL_GRANTS] = "local_grants",
        [SAMPLE_RELEASES] = "releases",
        [SAMPLE_HANDOVERS] = "handovers",
        [SAMPLE_TIMEOUTS] = "timeouts",
        [SAMPLE_RENEWALS] = "renewals",
    };
    struct span text = reply_text(info);

    sample_fini(s);
    s->at_ms = now_ms;
    for (size_t i = 0; i < SAMPLE_NUMBERS; i++) {
        s->numbers[i] = info_number(text, KEYS[i]);
    }
    read_word(info_get(text, "latchd_version"), s->version);
    read_word(info_get(text, "redis_address"), s->redis);
    s->redis_up = span_eq(info_get(text, "redis_link"), SPAN("up"));
    s->top = top;
}

/* --- header lines ----------------------------------------------------- */

/* Adds a rate per second, or the total without an older sample. */
static void add_rate(struct buf *out, const char *word, const struct sample *s,
                     const struct sample *before, enum sample_number n)
{
    uint64_t ms = s->at_ms - before->at_ms;

    if (before->at_ms == 0 || ms == 0 || s->numbers[n] < before->numbers[n]) {
        buf_printf(out, "%s %" PRIu64 "  ", word, s->numbers[n]);
    } else {
        uint64_t tenths = (s->numbers[n] - before->numbers[n]) * 10000 / ms;

        buf_printf(out, "%s %" PRIu64 ".%" PRIu64 "/s  ", word, tenths / 10,
                   tenths % 10);
    }
}

static void write_head(const struct sample *s, const struct sample *before,
                       struct buf *out)
{
    const uint64_t *n = s->numbers;
    uint64_t was = before->numbers[SAMPLE_LOST];
    /* Less than before: latchd was restarted. */
    uint64_t lost =
        before->at_ms == 0 || n[SAMPLE_LOST] < was ? 0 : n[SAMPLE_LOST] - was;

    buf_printf(out, "latchd %s, up ", s->version);
    show_ms(out, n[SAMPLE_UPTIME] * 1000);
    if (s->redis_up) {
        buf_printf(out, "; Redis answers in %" PRIu64 ".%02" PRIu64 " ms",
                   n[SAMPLE_ROUND_TRIP_US] / 1000, n[SAMPLE_ROUND_TRIP_US] % 1000 / 10);
    } else {
        buf_add_str(out, "; REDIS IS OUT OF REACH");
    }
    buf_printf(out, " (%s)\n", s->redis);
    buf_printf(out,
               "names %" PRIu64 "  held %" PRIu64 "  waiting %" PRIu64
               "  connections %" PRIu64 "  lost %" PRIu64,
               n[SAMPLE_NAMES], n[SAMPLE_HOLDS], n[SAMPLE_WAITERS] + n[SAMPLE_AWAITS],
               n[SAMPLE_CLIENTS], n[SAMPLE_LOST]);
    if (lost != 0) {
        buf_printf(out, " (%" PRIu64 " JUST NOW)", lost);
    }
    buf_add_str(out, "\n");
    add_rate(out, "granted", s, before, SAMPLE_GRANTS);
    if (n[SAMPLE_LOCAL_GRANTS] != 0) {
        add_rate(out, "from memory", s, before, SAMPLE_LOCAL_GRANTS);
    }
    add_rate(out, "handed over", s, before, SAMPLE_HANDOVERS);
    add_rate(out, "released", s, before, SAMPLE_RELEASES);
    add_rate(out, "given up", s, before, SAMPLE_TIMEOUTS);
    buf_add_str(out, "\n");
}

/* --- the table -------------------------------------------------------- */

/* Adds a cell of this width; longer text is cut. */
static void add_cell(struct buf *out, const struct buf *text, size_t width, bool right)
{
    int len = (int)(buf_len(text) < width ? buf_len(text) : width);

    if (right) {
        buf_printf(out, "%*.*s ", (int)width, len, len == 0 ? "" : buf_ptr(text));
    } else {
        buf_printf(out, "%-*.*s ", (int)width, len, len == 0 ? "" : buf_ptr(text));
    }
}

static void add_text_cell(struct buf *out, const char *text, size_t width, bool right)
{
    struct buf cell = { 0 };

    buf_add_str(&cell, text);
    add_cell(out, &cell, width, right);
    buf_reset(&cell);
}

static void add_time_cell(struct buf *out, const redisReply *ms)
{
    struct buf cell = { 0 };

    if (reply_has_number(ms)) {
        show_ms(&cell, reply_number(ms));
    }
    add_cell(out, &cell, TIME_WIDTH, true);
    buf_reset(&cell);
}

static void add_bytes_cell(struct buf *out, struct span bytes, size_t width)
{
    struct buf cell = { 0 };

    if (bytes.len > 0) {
        show_bytes(&cell, bytes, width);
    }
    add_cell(out, &cell, width, false);
    buf_reset(&cell);
}

static size_t name_width(size_t columns)
{
    size_t others = WAITERS_WIDTH + 3 * TIME_WIDTH + OWNER_WIDTH + 5;

    /* On a narrow screen the last columns go beyond its edge. */
    return columns > others + NAME_MIN ? columns - others : NAME_MIN + 2;
}

static void write_row(const redisReply *row, size_t columns, struct buf *out)
{
    const redisReply *holder = reply_get(row, "holder");
    uint64_t waiting = reply_number(reply_get(row, "waiting"));
    uint64_t holds = reply_number(reply_get(row, "holds"));
    struct span owner = reply_text(reply_get(holder, "owner"));
    struct span kind = reply_text(reply_get(holder, "kind"));
    char text[CELL_MAX] = "";

    add_bytes_cell(out, reply_text(reply_get(row, "name")), name_width(columns));
    (void)snprintf(text, sizeof(text), "%" PRIu64, waiting);
    add_text_cell(out, text, WAITERS_WIDTH, true);
    if (waiting > 0) {
        add_time_cell(out, reply_get(row, "waited"));
    } else {
        add_text_cell(out, "", TIME_WIDTH, true);
    }
    add_time_cell(out, reply_get(holder, "held"));
    add_time_cell(out, reply_get(holder, "left"));
    if (holds > 1) {
        (void)snprintf(text, sizeof(text), "%" PRIu64 " %s", holds,
                       span_eq(kind, SPAN("permits")) ? "holders of permits"
                                                      : "readers");
        add_text_cell(out, text, OWNER_WIDTH, false);
    } else if (span_starts(owner, SPAN(LATCHD_REST_OWNER_PREFIX))) {
        add_text_cell(out, "nobody: it rests", OWNER_WIDTH, false);
    } else if (reply_number(reply_get(row, "latch")) == 1) {
        add_text_cell(out, "nobody: a latch", OWNER_WIDTH, false);
    } else {
        add_bytes_cell(out, owner, OWNER_WIDTH);
    }
    if (reply_number(reply_get(holder, "local")) == 1) {
        buf_add_str(out, "local");
    }
    buf_add_str(out, "\n");
}

static uint64_t key_of(const redisReply *row, const char *sort)
{
    if (strcmp(sort, "wait") == 0) {
        return reply_number(reply_get(row, "waited"));
    }
    if (strcmp(sort, "held") == 0) {
        return reply_number(reply_get(reply_get(row, "holder"), "held"));
    }
    return reply_number(reply_get(row, "waiting"));
}

static int by_name(struct span a, struct span b)
{
    int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_rows(const void *a, const void *b, void *sort)
{
    const redisReply *x = *(const redisReply *const *)a;
    const redisReply *y = *(const redisReply *const *)b;
    uint64_t left = strcmp(sort, "name") == 0 ? 0 : key_of(x, sort);
    uint64_t right = strcmp(sort, "name") == 0 ? 0 : key_of(y, sort);

    if (left != right) {
        return left < right ? 1 : -1;
    }
    return by_name(reply_text(reply_get(x, "name")), reply_text(reply_get(y, "name")));
}

void sample_write(const struct sample *s, const struct sample *before, const char *sort,
                  size_t columns, size_t rows, struct buf *out)
{
    size_t count = reply_count(s->top);
    size_t shown = rows == 0                   ? count
                   : rows <= HEAD_LINES        ? 0
                   : rows - HEAD_LINES < count ? rows - HEAD_LINES
                                               : count;
    char order[CELL_MAX];

    write_head(s, before, out);
    buf_add_str(out, "\a");
    add_text_cell(out, "NAME", name_width(columns), false);
    add_text_cell(out, "WAITERS", WAITERS_WIDTH, true);
    add_text_cell(out, "WAIT", TIME_WIDTH, true);
    add_text_cell(out, "HELD", TIME_WIDTH, true);
    add_text_cell(out, "LEASE LEFT", TIME_WIDTH, true);
    add_text_cell(out, "HOLDER", OWNER_WIDTH, false);
    buf_add_str(out, "\n");
    (void)snprintf(order, sizeof(order), "%s", sort);
    if (count > 0) {
        qsort_r(s->top->element, count, sizeof(*s->top->element), compare_rows, order);
    }
    for (size_t i = 0; i < shown; i++) {
        write_row(s->top->element[i], columns, out);
    }
}
