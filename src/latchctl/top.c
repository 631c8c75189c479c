/* `latchctl top`: the most wanted names, live. An interval has at most two requests,
 * whose cost does not grow with the number of names. */
#include "latchctl/top.h"

#include "latchctl/answer.h"
#include "latchctl/commands.h"
#include "latchctl/link.h"
#include "latchctl/show.h"
#include "latchd/protocol.h"
#include "util/alloc.h"
#include "util/buf.h"
#include "util/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

/* --- the screen: the whole terminal, taken and given back --------------- */

/* Between screen_enter() and screen_leave() what is typed comes as it is typed, unseen,
 * and the screen is another one, so that the old one is there again afterwards. */
struct screen {
    bool inside;
    struct termios before;
};

enum { COLUMNS_DEFAULT = 80, ROWS_DEFAULT = 24 };

/* A terminal that does not take the text has gone; the next read fails. */
static void write_all(const struct buf *b)
{
    struct span rest = buf_span(b);

    while (rest.len > 0) {
        ssize_t n = write(STDOUT_FILENO, rest.ptr, rest.len);

        if (n <= 0) {
            return;
        }
        rest = span_after(rest, (size_t)n);
    }
}

static void put_text(const char *text)
{
    struct buf b = { 0 };

    buf_add_str(&b, text);
    write_all(&b);
    buf_reset(&b);
}

/* Takes over the terminal. False: standard input or output is none. */
static bool screen_enter(struct screen *s)
{
    struct termios raw;

    if (isatty(STDOUT_FILENO) == 0 || tcgetattr(STDIN_FILENO, &s->before) != 0) {
        return false;
    }
    raw = s->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0; /* Ctrl-Z discards a key that poll() has reported already */
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) != 0) {
        return false;
    }
    put_text("\033[?1049h\033[?25l\033[2J");
    s->inside = true;
    return true;
}

static void screen_leave(struct screen *s)
{
    if (s->inside) {
        put_text("\033[?25h\033[?1049l");
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &s->before);
        s->inside = false;
    }
}

/* The size of the terminal; 80x24 if unknown. */
static void screen_size(size_t *ret_columns, size_t *ret_rows)
{
    struct winsize size = { 0 };

    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    *ret_columns = size.ws_col == 0 ? COLUMNS_DEFAULT : size.ws_col;
    *ret_rows = size.ws_row == 0 ? ROWS_DEFAULT : size.ws_row;
}

/* Shows `text`, lines that end in \n, of which those that fit are shown and cut where
 * the screen ends. The line that begins with \a is shown inverse, without that. */
static void screen_show(const struct buf *text)
{
    struct span rest = buf_span(text);
    struct buf out = { 0 };
    size_t columns;
    size_t rows;

    screen_size(&columns, &rows);
    buf_add_str(&out, "\033[H");
    for (size_t row = 0; row < rows && rest.len > 0; row++) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t len = end == NULL ? rest.len : (size_t)(end - rest.ptr);
        struct span line = span_of(rest.ptr, len);
        bool inverse = line.len > 0 && line.ptr[0] == '\a';

        rest = span_after(rest, end == NULL ? len : len + 1);
        line = inverse ? span_after(line, 1) : line;
        line.len = line.len < columns ? line.len : columns;
        buf_add_str(&out, row == 0 ? "" : "\n");
        buf_add_str(&out, inverse ? "\033[7m" : "");
        buf_add_span(&out, line);
        buf_add_str(&out, inverse ? "\033[0m" : "");
        buf_add_str(&out, line.len < columns ? "\033[K" : "");
    }
    buf_add_str(&out, "\033[J");
    write_all(&out);
    buf_reset(&out);
}

/* --- a sample: what is displayed for one moment -------------------------- */

enum sample_number {
    SAMPLE_NAMES,
    SAMPLE_HOLDS,
    SAMPLE_WAITERS,
    SAMPLE_AWAITS,
    SAMPLE_CLIENTS,
    SAMPLE_UPTIME,
    SAMPLE_ROUND_TRIP_US,
    SAMPLE_RECONNECTS,
    SAMPLE_LOST,
    /* counters since the start, from here on: displayed as rates */
    SAMPLE_GRANTS,
    SAMPLE_LOCAL_GRANTS,
    SAMPLE_RELEASES,
    SAMPLE_HANDOVERS,
    SAMPLE_TIMEOUTS,
    SAMPLE_RENEWALS,
    SAMPLE_NUMBERS,
};

enum { SAMPLE_WORD_MAX = 64 };

struct sample {
    uint64_t at_ms; /* 0: an empty sample */
    uint64_t numbers[SAMPLE_NUMBERS];
    char version[SAMPLE_WORD_MAX];
    char redis[SAMPLE_WORD_MAX]; /* the address of Redis */
    bool redis_up;
    redisReply *top; /* an array, owned by the sample */
};

enum {
    NAME_MIN = 12,
    WAITERS_WIDTH = 8,
    TIME_WIDTH = 13,
    OWNER_WIDTH = 24,
    CELL_MAX = 128,
    HEAD_LINES = 4,
};

static void sample_fini(struct sample *s)
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

/* Fills a sample from the answers to INFO and LOCKS TOP; takes `top`. */
static void sample_read(struct sample *s, uint64_t now_ms, const redisReply *info,
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

static void sort_rows(const struct sample *s, const char *sort)
{
    char order[CELL_MAX];

    (void)snprintf(order, sizeof(order), "%s", sort);
    if (reply_count(s->top) > 0) {
        qsort_r(s->top->element, reply_count(s->top), sizeof(*s->top->element),
                compare_rows, order);
    }
}

/* Writes a sample as lines of `columns`, at most `rows` of them unless that is 0.
 * `before` is an older sample; if it is empty, there are sums instead of rates. `sort`
 * is as in options. */
static void sample_write(const struct sample *s, const struct sample *before,
                         const char *sort, size_t columns, size_t rows, struct buf *out)
{
    size_t count = reply_count(s->top);
    size_t shown = rows == 0                   ? count
                   : rows <= HEAD_LINES        ? 0
                   : rows - HEAD_LINES < count ? rows - HEAD_LINES
                                               : count;

    write_head(s, before, out);
    buf_add_str(out, "\a");
    add_text_cell(out, "NAME", name_width(columns), false);
    add_text_cell(out, "WAITERS", WAITERS_WIDTH, true);
    add_text_cell(out, "WAIT", TIME_WIDTH, true);
    add_text_cell(out, "HELD", TIME_WIDTH, true);
    add_text_cell(out, "LEASE LEFT", TIME_WIDTH, true);
    add_text_cell(out, "HOLDER", OWNER_WIDTH, false);
    buf_add_str(out, "\n");
    sort_rows(s, sort);
    for (size_t i = 0; i < shown; i++) {
        write_row(s->top->element[i], columns, out);
    }
}

enum {
    COUNT_DEFAULT = 20, /* for --once */
    COUNT_MOST = 100,   /* the most that latchd returns */
    ANSWER_MS = 5000,
    NUMBER_MAX = 24,
    COLUMNS_ONCE = 120,
};

struct top {
    struct options *options;
    struct screen screen;
    struct link link;
    struct sample now;
    struct sample before;
    redisReply *info; /* the first of two answers, until the second arrives */
    bool asked;
    uint64_t asked_at;
    uint64_t ask_at;
    const char *sort;
    int signals;
    sigset_t old_mask;
    bool over;
    int code;
    char trouble[TARGET_ERROR_MAX];
};

static void ask_both(struct link *l, uint64_t count)
{
    char number[NUMBER_MAX];

    (void)snprintf(number, sizeof(number), "%" PRIu64, count);
    link_send(l, (const char *[]){ "INFO", NULL });
    link_send(l, (const char *[]){ "LOCKS", "TOP", number, NULL });
}

static uint64_t count_of(const struct options *o)
{
    return o->count == 0           ? COUNT_DEFAULT
           : o->count < COUNT_MOST ? o->count
                                   : COUNT_MOST;
}

/* --- --once ----------------------------------------------------------- */

/* For --json: all of INFO, and the names. */
static void write_json(const struct sample *s, const redisReply *info, const char *sort,
                       struct buf *out)
{
    struct json j = { .out = out };

    sort_rows(s, sort);
    json_open(&j, NULL, '{');
    answer_add_info(&j, "info", reply_text(info));
    answer_add_maps(&j, "names", s->top);
    json_close(&j, '}');
    buf_add_str(out, "\n");
}

static int show_once(struct options *o)
{
    struct link l = { 0 };
    struct sample sample = { 0 };
    struct sample none = { 0 };
    struct buf out = { 0 };
    char number[NUMBER_MAX];
    redisReply *info = NULL;
    redisReply *top = NULL;
    int code = CTL_EXIT_FAILED;

    (void)snprintf(number, sizeof(number), "%" PRIu64, count_of(o));
    if (ask_open(&l, o)) {
        info = ask_daemon(&l, (const char *[]){ "INFO", NULL });
        top = info == NULL
                  ? NULL
                  : ask_daemon(&l, (const char *[]){ "LOCKS", "TOP", number, NULL });
    }
    if (top != NULL) {
        sample_read(&sample, clock_boot_ms(), info, top);
        if (o->json) {
            write_json(&sample, info, o->sort, &out);
        } else {
            sample_write(&sample, &none, o->sort, COLUMNS_ONCE, 0, &out);
        }
        for (size_t i = 0; i < buf_len(&out); i++) {
            if (buf_ptr(&out)[i] != '\a' && putchar(buf_ptr(&out)[i]) == EOF) {
                break;
            }
        }
        code = fflush(stdout) == 0 ? 0 : CTL_EXIT_FAILED;
    }
    freeReplyObject(info);
    sample_fini(&sample);
    buf_reset(&out);
    link_close(&l);
    return code;
}

/* --- live display ----------------------------------------------------- */

static void draw_screen(struct top *t)
{
    struct buf out = { 0 };
    size_t columns;
    size_t rows;

    screen_size(&columns, &rows);
    if (t->trouble[0] != '\0') {
        buf_printf(&out, "\alatchd at %s: %s; trying again\n",
                   t->options->target.about == NULL ? "?" : t->options->target.about,
                   t->trouble);
        rows -= rows > 1;
    }
    if (t->now.at_ms != 0) {
        sample_write(&t->now, &t->before, t->sort, columns, rows - (rows > 1), &out);
    }
    if (t->now.at_ms != 0 && reply_count(t->now.top) + 6 < rows) {
        buf_printf(&out, "\nq quits; sorted by %s: w waiters, t wait, h held, n name\n",
                   t->sort);
    }
    screen_show(&out);
    buf_reset(&out);
}

static void fail_top(struct top *t, const char *why)
{
    (void)snprintf(t->trouble, sizeof(t->trouble), "%s", why);
    freeReplyObject(t->info);
    t->info = NULL;
    t->asked = false;
    t->ask_at = clock_boot_ms() + t->options->interval_ms;
    draw_screen(t);
}

static void on_answers(struct top *t, redisReply *top)
{
    sample_fini(&t->before);
    t->before = t->now;
    t->now = (struct sample){ 0 };
    sample_read(&t->now, t->asked_at, t->info, top);
    freeReplyObject(t->info);
    t->info = NULL;
    t->asked = false;
    t->trouble[0] = '\0';
    draw_screen(t);
}

static void on_reply(struct top *t, redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR) {
        char why[TARGET_ERROR_MAX];

        (void)snprintf(why, sizeof(why), "%s", reply->str);
        freeReplyObject(reply);
        link_close(&t->link);
        fail_top(t, why);
    } else if (t->info == NULL) {
        t->info = reply;
    } else {
        on_answers(t, reply);
    }
}

static void on_link(struct top *t, short revents)
{
    bool was_open = t->link.state != LINK_CLOSED;
    redisReply *reply;

    (void)link_work(&t->link, revents);
    while ((reply = link_reply(&t->link)) != NULL) {
        on_reply(t, reply);
    }
    if (was_open && t->link.state == LINK_CLOSED &&
        (t->asked || t->trouble[0] == '\0')) {
        fail_top(t, t->link.error);
    }
}

static void on_time(struct top *t, uint64_t now)
{
    size_t columns;
    size_t rows;

    if (t->asked && now >= t->asked_at + ANSWER_MS) {
        link_close(&t->link);
        fail_top(t, "no answer in time");
    }
    if (t->asked || now < t->ask_at) {
        return;
    }
    if (t->link.state == LINK_CLOSED && !link_open(&t->link, &t->options->target)) {
        fail_top(t, t->link.error);
        return;
    }
    screen_size(&columns, &rows);
    ask_both(&t->link, t->options->count != 0 ? count_of(t->options)
                       : rows < COUNT_MOST    ? rows
                                              : COUNT_MOST);
    t->asked = true;
    t->asked_at = now;
    t->ask_at = now + t->options->interval_ms;
    (void)link_work(&t->link, 0);
}

static void on_key(struct top *t, short revents)
{
    char key = 'q'; /* the default if the terminal is gone */
    ssize_t len = read(STDIN_FILENO, &key, 1);

    if (len == 0 && (revents & POLLHUP) == 0) {
        return;
    }
    switch (key) {
    case 'q':
    case 'Q':
        t->over = true;
        return;
    case 'w':
        t->sort = "waiters";
        break;
    case 't':
        t->sort = "wait";
        break;
    case 'h':
        t->sort = "held";
        break;
    case 'n':
        t->sort = "name";
        break;
    default:
        break;
    }
    draw_screen(t);
}

/* Ctrl-Z: restores the terminal for the shell, and takes it over again after `fg`. */
static void suspend_top(struct top *t)
{
    screen_leave(&t->screen);
    (void)raise(SIGSTOP);
    t->over = !screen_enter(&t->screen);
    draw_screen(t);
}

static void on_signal(struct top *t)
{
    struct signalfd_siginfo info;

    if (read(t->signals, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
        return;
    }
    if (info.ssi_signo == SIGWINCH) {
        draw_screen(t);
    } else if (info.ssi_signo == SIGTSTP) {
        suspend_top(t);
    } else {
        t->over = true;
        t->code = info.ssi_signo == SIGINT ? 0 : CTL_EXIT_SIGNAL + (int)info.ssi_signo;
    }
}

static bool take_signals(struct top *t)
{
    static const int OURS[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH };
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof(OURS) / sizeof(OURS[0]); i++) {
        (void)sigaddset(&set, OURS[i]);
    }
    if (sigprocmask(SIG_BLOCK, &set, &t->old_mask) == 0) {
        t->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    }
    if (t->signals < 0) {
        print_message("signals: %s", strerror(errno));
    }
    return t->signals >= 0;
}

static void show_live(struct top *t)
{
    while (!t->over) {
        uint64_t now = clock_boot_ms();
        struct pollfd fds[3];
        uint64_t at;

        on_time(t, now);
        at = t->asked ? t->asked_at + ANSWER_MS : t->ask_at;
        fds[0] = (struct pollfd){ .fd = t->signals, .events = POLLIN };
        fds[1] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
        fds[2] = (struct pollfd){ .fd = t->link.state == LINK_CLOSED ? -1 : t->link.fd,
                                  .events = link_events(&t->link) };
        (void)poll(fds, 3, at <= now ? 0 : (int)(at - now));
        if (fds[0].revents != 0) {
            on_signal(t);
        }
        if (!t->over && fds[1].revents != 0) {
            on_key(t, fds[1].revents);
        }
        if (!t->over) {
            on_link(t, fds[2].revents);
        }
    }
}

int ctl_top(struct options *o)
{
    struct top t = { .options = o, .sort = o->sort, .signals = -1 };

    if (o->once || o->json || isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0) {
        return show_once(o);
    }
    /* A wrong address or password is reported before the screen is taken over. */
    if (!ask_open(&t.link, o)) {
        return CTL_EXIT_FAILED;
    }
    if (take_signals(&t) && screen_enter(&t.screen)) {
        show_live(&t);
        screen_leave(&t.screen);
    }
    link_close(&t.link);
    freeReplyObject(t.info);
    sample_fini(&t.now);
    sample_fini(&t.before);
    if (t.signals >= 0) {
        (void)close(t.signals);
    }
    return t.code;
}
