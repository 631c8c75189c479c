#include "util/log.h"

#include "util/clock.h"
#include "util/hash.h"
#include "util/json.h"
#include "util/text.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE_MAX = 2048, LEVEL_COUNT = LOG_ERROR + 1 };

static enum log_level current_level = LOG_NOTICE;
static enum log_format current_format = LOG_TEXT;
static bool to_journal;               /* standard error goes to journald */
static unsigned written[LEVEL_COUNT]; /* lines with a log_about in this second */
static unsigned unwritten; /* lines that could not be written since the last success */

static const char *const LEVEL_NAMES[LEVEL_COUNT] = { "debug", "info", "notice",
                                                      "warning", "error" };
/* syslog's numbers, as sd-daemon(3) has them. */
static const char *const PRIORITIES[LEVEL_COUNT] = { "<7>", "<6>", "<5>", "<4>",
                                                     "<3>" };

/* The variable is inherited even by processes whose standard error is another file, so
 * the file is compared. */
void log_detect_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    const char *colon = stream == NULL ? NULL : strchr(stream, ':');
    struct stat st;
    uint64_t device;
    uint64_t inode;

    to_journal =
        colon != NULL && fstat(STDERR_FILENO, &st) == 0 &&
        parse_u64(span_of(stream, (size_t)(colon - stream)), UINT64_MAX, &device) &&
        parse_u64(span_str(colon + 1), UINT64_MAX, &inode) && device == st.st_dev &&
        inode == st.st_ino;
}

const char *log_priority(enum log_level level)
{
    return to_journal ? PRIORITIES[level] : "";
}

void log_setup(enum log_level level, enum log_format format)
{
    current_level = level;
    current_format = format;
}

void log_set_level(enum log_level level)
{
    current_level = level;
}

bool log_enabled(enum log_level level)
{
    return level >= current_level;
}

static void write_timestamp(char *out, size_t room)
{
    uint64_t now = clock_wall_us();
    time_t seconds = (time_t)(now / 1000000);
    struct tm tm;
    char date[32];

    (void)gmtime_r(&seconds, &tm);
    (void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(out, room, "%s.%03uZ", date, (unsigned)(now / 1000 % 1000));
}

/* --- fields of a line ------------------------------------------------- */

/* The fields, in the order in which they are written. */
static const struct {
    const char *key;
    size_t offset;
    bool number;
} FIELDS[] = {
    { "client", offsetof(struct log_about, client), true },
    { "address", offsetof(struct log_about, address), false },
    { "client_name", offsetof(struct log_about, client_name), false },
    { "library", offsetof(struct log_about, library), false },
    { "user", offsetof(struct log_about, user), false },
    { "name", offsetof(struct log_about, name), false },
    { "owner", offsetof(struct log_about, owner), false },
    { "token", offsetof(struct log_about, token), true },
};
enum { FIELD_COUNT = sizeof(FIELDS) / sizeof(FIELDS[0]) };

/* Reads one field, a number or a text. False: it is empty. */
static bool field_of(const struct log_about *about, size_t i, uint64_t *ret_number,
                     struct span *ret_text)
{
    const void *field = (const char *)about + FIELDS[i].offset;

    if (FIELDS[i].number) {
        *ret_number = *(const uint64_t *)field;
        return *ret_number != 0;
    }
    *ret_text = *(const struct span *)field;
    return ret_text->len != 0;
}

static void add_json_fields(struct json *j, const struct log_about *about)
{
    uint64_t number = 0;
    struct span text = SPAN_NONE;

    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (field_of(about, i, &number, &text)) {
            if (FIELDS[i].number) {
                json_uint(j, FIELDS[i].key, number);
            } else {
                json_bytes(j, FIELDS[i].key, text);
            }
        }
    }
}

static bool is_word(struct span text)
{
    for (size_t i = 0; i < text.len; i++) {
        char ch = text.ptr[i];

        if (ch <= ' ' || ch > '~' || ch == '"' || ch == '\\' || ch == '=') {
            return false;
        }
    }
    return true;
}

static void add_text_fields(struct buf *line, const struct log_about *about)
{
    uint64_t number = 0;
    struct span text = SPAN_NONE;

    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (!field_of(about, i, &number, &text)) {
            continue;
        }
        buf_printf(line, " %s=", FIELDS[i].key);
        if (FIELDS[i].number) {
            buf_add_int(line, (int64_t)number);
        } else if (is_word(text)) {
            buf_add_span(line, text);
        } else {
            repr_add(line, text);
        }
    }
}

/* --- lines ------------------------------------------------------------ */

/* Control bytes would let a name forge a line or drive a terminal. */
static void scrub_controls(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            *text = '?';
        }
    }
}

static void add_json(struct buf *line, const char *when, enum log_level level,
                     const char *module, const char *message,
                     const struct log_about *about)
{
    struct json j = { .out = line };

    json_open(&j, NULL, '{');
    json_text(&j, "time", when);
    json_text(&j, "level", LEVEL_NAMES[level]);
    json_text(&j, "module", module);
    json_uint(&j, "pid", (uint64_t)getpid());
    json_text(&j, "message", message);
    if (about != NULL) {
        add_json_fields(&j, about);
    }
    json_close(&j, '}');
}

static void format_line(struct buf *line, enum log_level level, const char *module,
                        const struct log_about *about, char *message)
{
    char when[48];

    write_timestamp(when, sizeof(when));
    buf_add_str(line, log_priority(level));
    if (current_format == LOG_JSON) {
        add_json(line, when, level, module, message, about);
    } else {
        scrub_controls(message);
        if (!to_journal) {
            buf_printf(line, "%s ", when);
        }
        buf_printf(line, "%s %s: %s", LEVEL_NAMES[level], module, message);
        if (about != NULL) {
            add_text_fields(line, about);
        }
    }
    buf_add(line, "\n", 1);
}

/* One write a line, so that lines of several processes do not mix. A log that cannot be
 * written, or that nobody reads, must not stop a lock service. */
static bool write_line(const struct buf *line)
{
    struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

    return poll(&p, 1, 0) > 0 && (p.revents & POLLOUT) != 0 &&
           write(STDERR_FILENO, buf_ptr(line), buf_len(line)) >= 0;
}

static bool tell_unwritten(void)
{
    struct buf line = { 0 };
    char message[64];
    bool told;

    (void)snprintf(message, sizeof(message), "%u lines could not be written",
                   unwritten);
    format_line(&line, LOG_WARNING, "log", NULL, message);
    told = write_line(&line);
    buf_reset(&line);
    return told;
}

static void write_log_line(enum log_level level, const char *module,
                           const struct log_about *about, const char *fmt, va_list ap)
    __attribute__((format(printf, 4, 0)));

static void write_log_line(enum log_level level, const char *module,
                           const struct log_about *about, const char *fmt, va_list ap)
{
    char message[MESSAGE_MAX];
    struct buf line = { 0 };

    (void)vsnprintf(message, sizeof(message), fmt, ap);
    format_line(&line, level, module, about, message);
    if (unwritten > 0 && tell_unwritten()) {
        unwritten = 0;
    }
    if (unwritten > 0 || !write_line(&line)) {
        unwritten++;
    }
    buf_reset(&line);
}

void log_write(enum log_level level, const char *module, const char *fmt, ...)
{
    va_list ap;

    if (level < current_level) {
        return;
    }
    va_start(ap, fmt);
    write_log_line(level, module, NULL, fmt, ap);
    va_end(ap);
}

void log_about(enum log_level level, const char *module, const struct log_about *about,
               const char *fmt, ...)
{
    va_list ap;

    if (level < current_level || ++written[level] > LOG_ABOUT_MAX) {
        return;
    }
    va_start(ap, fmt);
    write_log_line(level, module, about, fmt, ap);
    va_end(ap);
}

bool log_is_news(struct log_recent *recent, const char *text)
{
    uint64_t hash = hash_bytes(text, strlen(text)), now = clock_boot_ms();
    int oldest = 0;

    for (int i = 0; i < LOG_RECENT_MAX; i++) {
        if (recent->hash[i] == hash && now < recent->until_ms[i]) {
            return false;
        }
        if (recent->until_ms[i] < recent->until_ms[oldest]) {
            oldest = i;
        }
    }
    recent->hash[oldest] = hash;
    recent->until_ms[oldest] = now + LOG_AGAIN_MS;
    return true;
}

void log_second(void)
{
    for (int i = 0; i < LEVEL_COUNT; i++) {
        if (written[i] > LOG_ABOUT_MAX) {
            log_write((enum log_level)i, "log",
                      "%u more lines about clients and locks are left out: too many in "
                      "a second",
                      written[i] - LOG_ABOUT_MAX);
        }
        written[i] = 0;
    }
}
