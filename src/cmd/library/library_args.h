/* library_args: the plain commands of lock libraries, as lock_calls: SET, SETNX, GET,
 * EXISTS, TTL, PTTL, DEL, UNLINK, EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT. Pure. */
#ifndef LATCHD_CMD_LIBRARY_LIBRARY_ARGS_H
#define LATCHD_CMD_LIBRARY_LIBRARY_ARGS_H

#include "lockscript/lock_script.h"
#include "util/span.h"

#include <stdbool.h>

enum { LIBRARY_ERROR_ROOM = 256 }; /* bytes of an error text */

/* What a SET without NX and XX does, which a transaction that watches may have. */
enum plain_set {
    PLAIN_SET_REFUSED,
    PLAIN_SET_TAKES,    /* the key was no library's when it was watched */
    PLAIN_SET_EXTENDS,  /* it had the same value */
    PLAIN_SET_RELEASES, /* it had 1, and gets 0: a counter that is back at the start */
};

/* Puts the words of a command, whose number fits, as a lock_call that points into
 * them. False: reterr (LIBRARY_ERROR_ROOM bytes) says what is wrong, or not served. */
bool library_args_parse(const struct span *argv, size_t argc, enum plain_set plain,
                        struct lock_call *ret, char *reterr)
    __attribute__((warn_unused_result));

#endif
