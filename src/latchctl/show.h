/* show: formats names and times for people, and prints latchctl's messages. */
#ifndef LATCHD_LATCHCTL_SHOW_H
#define LATCHD_LATCHCTL_SHOW_H

#include "util/buf.h"
#include "util/span.h"

#include <stdint.h>

enum { HOST_NAME_COLUMNS = 64 };

/* Appends untrusted bytes in a form that is safe on a terminal: printable ASCII stays,
 * all else becomes \xNN, with quotes around it if that or spaces make it hard to read.
 * At most `max` columns, then an ellipsis; 0: all. */
void show_bytes(struct buf *out, struct span bytes, size_t max);

/* Appends a duration: 1.2 s, 3 min 20 s, 2 h 5 min, 3 d 4 h. */
/* A time in us since 1970, by the local clock, to a second. */
void show_time(struct buf *out, uint64_t us);
void show_ms(struct buf *out, uint64_t ms);

/* The client name of this process at latchd: latchctl/<pid>@<host>. */
void show_self(char *out, size_t room);

/* Prints a line on standard error, after `latchctl: `. */
void print_message(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same, only with --verbose. */
void say_verbose(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same, also without --verbose if standard error is a terminal: somebody waits. */
void say_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void say_set_verbose(void);

/* Writes who an owner is. Owners are fields of Redis's hash: the form of some shows
 * where they come from. */
void show_owner(struct buf *out, struct span owner);

#endif
