#include "latchctl/show.h"

#include "latchd/protocol.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static bool verbose;

static bool is_plain(unsigned char c)
{
    return c > ' ' && c < 0x7f && c != '"' && c != '\\';
}

static size_t width_of(unsigned char c)
{
    if (c == '"' || c == '\\') {
        return 2;
    }
    return is_plain(c) || c == ' ' ? 1 : 4;
}

static void show_byte(struct buf *out, unsigned char c)
{
    if (is_plain(c) || c == ' ') {
        buf_add(out, &c, 1);
    } else if (c == '"' || c == '\\') {
        buf_printf(out, "\\%c", c);
    } else {
        buf_printf(out, "\\x%02x", c);
    }
}

void show_bytes(struct buf *out, struct span bytes, size_t max)
{
    bool plain = bytes.len > 0;
    size_t width = 0;
    size_t shown = 0;

    for (size_t i = 0; i < bytes.len; i++) {
        plain = plain && is_plain((unsigned char)bytes.ptr[i]);
        width += width_of((unsigned char)bytes.ptr[i]);
    }
    width += plain ? 0 : 2;
    buf_add_str(out, plain ? "" : "\"");
    shown = plain ? 0 : 2;
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char c = (unsigned char)bytes.ptr[i];

        shown += width_of(c);
        if (max != 0 && width > max && shown + 2 > max) {
            buf_add_str(out, "..");
            break;
        }
        show_byte(out, c);
    }
    buf_add_str(out, plain ? "" : "\"");
}

void show_ms(struct buf *out, uint64_t ms)
{
    uint64_t s = ms / 1000;

    if (ms < 1000) {
        buf_printf(out, "%" PRIu64 " ms", ms);
    } else if (s < 60) {
        buf_printf(out, "%" PRIu64 ".%" PRIu64 " s", s, ms % 1000 / 100);
    } else if (s < 3600) {
        buf_printf(out, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
    } else if (s < 86400) {
        buf_printf(out, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s % 3600 / 60);
    } else {
        buf_printf(out, "%" PRIu64 " d %" PRIu64 " h", s / 86400, s % 86400 / 3600);
    }
}

void show_self(char *out, size_t room)
{
    char host[HOST_NAME_COLUMNS + 1] = "";

    if (gethostname(host, sizeof(host) - 1) != 0) {
        host[0] = '\0';
    }
    for (char *c = host; *c != '\0'; c++) {
        if (!is_plain((unsigned char)*c)) {
            *c = '?';
        }
    }
    (void)snprintf(out, room, "latchctl/%d@%s", (int)getpid(), host);
}

static void say_line(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

/* Text of others, such as names in latchd's errors, is never printed raw. */
static void make_plain(struct buf *line, struct buf *out)
{
    for (size_t i = 0; i < buf_len(line); i++) {
        unsigned char c = (unsigned char)buf_ptr(line)[i];

        if (c >= ' ' && c < 0x7f) {
            buf_add(out, &c, 1);
        } else {
            buf_printf(out, "\\x%02x", c);
        }
    }
}

/* Prints a line in one write, so that lines of several processes do not mix. */
static void say_line(const char *fmt, va_list ap)
{
    struct buf text = { 0 };
    struct buf line = { 0 };

    buf_vprintf(&text, fmt, ap);
    buf_add_str(&line, "latchctl: ");
    make_plain(&text, &line);
    buf_add_str(&line, "\n");
    if (write(STDERR_FILENO, buf_ptr(&line), buf_len(&line)) < 0) {
        /* no error can be reported */
    }
    buf_reset(&line);
    buf_reset(&text);
}

void print_message(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say_line(fmt, ap);
    va_end(ap);
}

void say_verbose(const char *fmt, ...)
{
    va_list ap;

    if (verbose) {
        va_start(ap, fmt);
        say_line(fmt, ap);
        va_end(ap);
    }
}

void say_progress(const char *fmt, ...)
{
    va_list ap;

    if (verbose || isatty(STDERR_FILENO) == 1) {
        va_start(ap, fmt);
        say_line(fmt, ap);
        va_end(ap);
    }
}

void say_set_verbose(void)
{
    verbose = true;
}

void show_time(struct buf *out, uint64_t us)
{
    time_t seconds = (time_t)(us / 1000000);
    char text[64];
    struct tm tm;

    if (localtime_r(&seconds, &tm) != NULL &&
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm) > 0) {
        buf_add_str(out, text);
    }
}

enum { UUID_LEN = 36 };

void show_owner(struct buf *out, struct span owner)
{
    static const char ID[] = "latchd:id:";
    static const char OURS[] = "latchd:";
    static const char REST[] = LATCHD_REST_OWNER_PREFIX;

    if (owner.len == 0) {
        buf_add_str(out, "a client without a name");
    } else if (span_starts(owner, SPAN(ID))) {
        buf_add_str(out, "request ");
        show_bytes(out, span_after(owner, strlen(ID)), 0);
    } else if (span_starts(owner, SPAN(REST))) {
        buf_add_str(out, "the rest after token ");
        show_bytes(out, span_after(owner, strlen(REST)), 0);
    } else if (span_starts(owner, SPAN(OURS))) {
        buf_add_str(out, "a client without a name, ");
        show_bytes(out, owner, 0);
    } else if (owner.len > UUID_LEN + 1 && owner.ptr[UUID_LEN] == ':' &&
               memchr(owner.ptr, '-', owner.len) == owner.ptr + 8) {
        buf_add_str(out, "thread ");
        show_bytes(out, span_after(owner, UUID_LEN + 1), 0);
        buf_add_str(out, " of the Redisson application ");
        show_bytes(out, span_of(owner.ptr, UUID_LEN), 0);
    } else {
        buf_add_str(out, "owner ");
        show_bytes(out, owner, 0);
    }
}
