/* log: lines for the operator, on standard error: text for people and journald, JSON
 * for collectors, one object a line.
 *
 * A line has a time, a level, a module and a message. What it is about (which client,
 * which lock) stands in fields of its own, with the same names in every line. What
 * clients send is data: it cannot forge a line, a field, or drive a terminal. journald
 * is told the level as a priority, in a prefix that it takes off, and has the time from
 * itself: a text for it has none.
 *
 * util, resp and core never log. The level, the format, whether journald reads, and the
 * counts of the limit are the only global state. */
#ifndef LATCHD_UTIL_LOG_H
#define LATCHD_UTIL_LOG_H

#include "util/span.h"

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_NOTICE, LOG_WARNING, LOG_ERROR };
enum log_format { LOG_TEXT, LOG_JSON };

enum {
    /* The most lines with a log_about, per level, between two log_second(): clients
     * could cause any number. */
    LOG_ABOUT_MAX = 100,
    /* A line that comes again and again is written once in this time. */
    LOG_AGAIN_MS = 60000,
    LOG_RECENT_MAX = 8,
};

/* The lines that were written lately. A zeroed struct knows none. */
struct log_recent {
    uint64_t hash[LOG_RECENT_MAX], until_ms[LOG_RECENT_MAX];
};

/* The subject of a line. Fields that are 0 or empty are left out. */
struct log_about {
    uint64_t client;         /* the ID of its connection */
    struct span address;     /* its peer */
    struct span client_name; /* CLIENT SETNAME */
    struct span library;     /* CLIENT SETINFO: name and version */
    struct span user;        /* the user that it logged in as */
    struct span name;        /* the name of a lock */
    struct span owner;       /* the owner of a hold */
    uint64_t token;
};

/* Finds out whether standard error is the file of journald, which JOURNAL_STREAM in
 * the environment identifies. */
void log_detect_journal(void);
/* The prefix of a line of this level for journald ("<4>"); empty without journald. */
const char *log_priority(enum log_level level);

void log_setup(enum log_level level, enum log_format format);
void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);

/* Writes a line. `module` is a word such as "redis" or "net". The format has no
 * newline. */
void log_write(enum log_level level, const char *module, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Writes a line about a client or lock; at most LOG_ABOUT_MAX per second. */
void log_about(enum log_level level, const char *module, const struct log_about *about,
               const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Whether to write a line for this text now: not if it was asked for within
 * LOG_AGAIN_MS and answered yes, as far as *recent remembers. */
bool log_is_news(struct log_recent *recent, const char *text);
/* Called once a second: logs how many lines were suppressed. */
void log_second(void);

#define log_debug(module, ...) log_write(LOG_DEBUG, module, __VA_ARGS__)
#define log_info(module, ...) log_write(LOG_INFO, module, __VA_ARGS__)
#define log_notice(module, ...) log_write(LOG_NOTICE, module, __VA_ARGS__)
#define log_warning(module, ...) log_write(LOG_WARNING, module, __VA_ARGS__)
#define log_error(module, ...) log_write(LOG_ERROR, module, __VA_ARGS__)

#endif
