/* script_error: the first reason why a script is refused. */
#ifndef LATCHD_LOCKSCRIPT_SCRIPT_ERROR_H
#define LATCHD_LOCKSCRIPT_SCRIPT_ERROR_H

#include "lockscript/lock_script.h"

/* Sets the reason, unless there is one. Bytes that are not printable become '?'.
 * Returns false, for the caller to return. */
bool script_error_set(struct lock_script_error *e, unsigned line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
