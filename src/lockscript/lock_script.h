/* lock_script: reads the Lua of a lock library, and says which lock operation it is.
 *
 * Scripts are read, not run. Redis's Lua can do anything, for ever; lock libraries use
 * a small part of it, and do one of a few things with it (enum lock_call_kind). That
 * part is parsed and evaluated here, without Redis, on every state that its keys may be
 * in. A script is accepted if each of its conditions is one that is understood, and if
 * in all states it leaves the same keys, and replies the same, as one operation.
 * Anything else is refused, with the line and why.
 *
 * A lock_script is plain data: nothing is evaluated when a lock is taken. Conditions
 * that compare an argument with a text choose between variants; binding decides them.
 */
#ifndef LATCHD_LOCKSCRIPT_LOCK_SCRIPT_H
#define LATCHD_LOCKSCRIPT_LOCK_SCRIPT_H

#include "lockscript/lock_call.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lock_script;

enum {
    LOCK_SCRIPT_TEXT_MAX = 4096, /* bytes of a script */
    LOCK_SCRIPT_WHY_ROOM = 160,  /* bytes of a reason, with the NUL */
};

/* Why a script or a call of it was refused. */
struct lock_script_error {
    unsigned line; /* 1 and up; 0: no line, it is about the whole or the arguments */
    char why[LOCK_SCRIPT_WHY_ROOM];
};

/* Reads a script. Returns it, for lock_script_free(); NULL: see *ret_error. Takes less
 * than 1 ms, whatever the text. */
struct lock_script *lock_script_parse(struct span text,
                                      struct lock_script_error *ret_error);
void lock_script_free(struct lock_script *script);

/* Finds the script of a known lock library by the SHA1 of its text, 40 hex digits of
 * either case; NULL: not known. It lives for ever. */
const struct lock_script *lock_script_known(struct span sha1);

/* The operation that a script does for these keys and arguments; *ret points into
 * both. Keys and arguments beyond those that the script uses are ignored, as Redis
 * does. False: one is missing, or cannot be what it is used as (a time that is no
 * integer); *ret_error says which. Redis would look at the key first, and find such an
 * argument only where it uses it. */
bool lock_script_bind(const struct lock_script *script, const struct span *keys,
                      size_t key_count, const struct span *argv, size_t arg_count,
                      struct lock_call *ret, struct lock_script_error *ret_error);

#endif
