#include "util/log.h"

#include "util/clock.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 2048 };

static enum log_level current_level = LOG_NOTICE;
static enum log_format current_format = LOG_TEXT;

static const char *const LEVEL_NAMES[] = { "debug", "info", "notice", "warning",
                                           "error" };

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

static void stamp(char *out, size_t room)
{
    uint64_t now = clock_wall_us();
    time_t seconds = (time_t)(now / 1000000);
    struct tm tm;
    char date[32];

    (void)gmtime_r(&seconds, &tm);
    (void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(out, room, "%s.%03uZ", date, (unsigned)(now / 1000 % 1000));
}

/* Control bytes would let a name forge a line or drive a terminal. */
static void scrub(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            *text = '?';
        }
    }
}

static size_t json_escape(char *out, size_t room, const char *text)
{
    size_t len = 0;

    for (; *text != '\0' && len + 3 < room; text++) {
        if (*text == '"' || *text == '\\') {
            out[len++] = '\\';
        }
        out[len++] = *text;
    }
    out[len] = '\0';
    return len;
}

void log_write(enum log_level level, const char *module, const char *fmt, ...)
{
    char message[LINE_MAX_BYTES];
    char escaped[2 * LINE_MAX_BYTES];
    char line[2 * LINE_MAX_BYTES + 128];
    char when[48];
    va_list ap;
    int len;

    if (level < current_level) {
        return;
    }
    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    scrub(message);
    stamp(when, sizeof(when));
    if (current_format == LOG_JSON) {
        (void)json_escape(escaped, sizeof(escaped), message);
        len = snprintf(line, sizeof(line),
                       "{\"time\":\"%s\",\"level\":\"%s\",\"module\":\"%s\",\"pid\":%d,"
                       "\"message\":\"%s\"}\n",
                       when, LEVEL_NAMES[level], module, (int)getpid(), escaped);
    } else {
        len = snprintf(line, sizeof(line), "%s %s %s: %s\n", when, LEVEL_NAMES[level],
                       module, message);
    }
    /* One write a line, so that lines of several processes do not mix. A log that
     * cannot be written must not stop a lock service. */
    if (write(STDERR_FILENO, line, (size_t)len) < 0) {
        return;
    }
}
