/* show: how things look to a person: names, times, and what latchctl has to say. */
#ifndef LATCHD_LATCHCTL_SHOW_H
#define LATCHD_LATCHCTL_SHOW_H

#include "util/buf.h"
#include "util/span.h"

#include <stdint.h>

enum { HOST_NAME_COLUMNS = 64 };

/* Bytes of whoever they are, never raw to a terminal: printable ASCII as it is, all
 * else as \xNN, in quotes if that or spaces make it hard to read. At most `max`
 * columns, then an ellipsis; 0: all. */
void show_bytes(struct buf *out, struct span bytes, size_t max);

/* 1.2 s, 3 min 20 s, 2 h 5 min, 3 d 4 h. */
void show_ms(struct buf *out, uint64_t ms);

/* How this process calls itself at latchd: latchctl/<pid>@<host>. */
void show_self(char *out, size_t room);

/* One line on standard error, with `latchctl: ` before it. */
void print_message(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same when --verbose was given. */
void say_verbose(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void say_set_verbose(void);

#endif
