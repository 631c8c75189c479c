/* lock_options: the options of lock commands, one at a time: their words, their values
 * and the range of each. What goes together is checked in lock_args.c. Private to
 * lock_args. */
#ifndef LATCHD_CMD_LOCK_LOCK_OPTIONS_H
#define LATCHD_CMD_LOCK_LOCK_OPTIONS_H

#include "cmd/lock/lock_args.h"

enum {
    QUOTED_MAX = 32, /* bytes of an argument that an error quotes */
};

/* One call of lock_args_parse. */
struct lock_parse {
    const struct lock_syntax *syntax;
    const struct cmd_limits *limits;
    struct lock_args *args;
    char *reterr; /* ARGS_ERROR_ROOM bytes */
};

/* Writes the error. False, so that the caller can return the call. */
bool lock_parse_reject(struct lock_parse *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes "A, B or C" of the options in `bits`. */
void lock_options_list(unsigned bits, char *out, size_t room);

/* Reads the option at argv[at], which has *ret_used arguments. False: the error is
 * written. */
bool lock_option_read(struct lock_parse *p, const struct span *argv, size_t argc,
                      size_t at, size_t *ret_used) __attribute__((warn_unused_result));

#endif
