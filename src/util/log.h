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
    /* Lines with a log_about, of one level, between two log_second(): clients can make
     * as many as they like. */
    LOG_ABOUT_MAX = 100,
};

/* What is 0 or empty is left out. */
struct log_about {
    uint64_t client;         /* the number of a connection */
    struct span address;     /* its peer */
    struct span client_name; /* CLIENT SETNAME */
    struct span library;     /* CLIENT SETINFO: name and version */
    struct span user;        /* who it logged in as */
    struct span name;        /* of a lock */
    struct span owner;       /* of a hold */
    uint64_t token;
};

/* Looks whether standard error is journald's: JOURNAL_STREAM in the environment says
 * which file is. */
void log_detect_journal(void);
/* What stands before a line of this level for journald ("<4>"); empty for all others.
 */
const char *log_priority(enum log_level level);

void log_setup(enum log_level level, enum log_format format);
void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);

/* `module` is a word such as "redis" or "net". No newline at the end. */
void log_write(enum log_level level, const char *module, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same, about somebody; at most LOG_ABOUT_MAX in a second. */
void log_about(enum log_level level, const char *module, const struct log_about *about,
               const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* A second is over: says how many lines were left out in it. */
void log_second(void);

#define log_debug(module, ...) log_write(LOG_DEBUG, module, __VA_ARGS__)
#define log_info(module, ...) log_write(LOG_INFO, module, __VA_ARGS__)
#define log_notice(module, ...) log_write(LOG_NOTICE, module, __VA_ARGS__)
#define log_warning(module, ...) log_write(LOG_WARNING, module, __VA_ARGS__)
#define log_error(module, ...) log_write(LOG_ERROR, module, __VA_ARGS__)

#endif
