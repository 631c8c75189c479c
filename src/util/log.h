/* log: lines for the operator, on standard error.
 *
 * Each line names its module; where a connection matters the message carries its id.
 * util, resp and core never log. Text for people and journald, JSON for collectors.
 * The level and the format are the only global state. */
#ifndef LATCHD_UTIL_LOG_H
#define LATCHD_UTIL_LOG_H

#include <stdbool.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_NOTICE, LOG_WARNING, LOG_ERROR };
enum log_format { LOG_TEXT, LOG_JSON };

void log_setup(enum log_level level, enum log_format format);
void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);

/* `module` is a word such as "redis" or "conn". No newline at the end. */
void log_write(enum log_level level, const char *module, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#define log_debug(module, ...) log_write(LOG_DEBUG, module, __VA_ARGS__)
#define log_info(module, ...) log_write(LOG_INFO, module, __VA_ARGS__)
#define log_notice(module, ...) log_write(LOG_NOTICE, module, __VA_ARGS__)
#define log_warning(module, ...) log_write(LOG_WARNING, module, __VA_ARGS__)
#define log_error(module, ...) log_write(LOG_ERROR, module, __VA_ARGS__)

#endif
