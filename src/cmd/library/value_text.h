/* value_text: the values of lock libraries, and who set them, as words of the engine
 * (engine/value_hold.h). Pure: bytes in, text out. */
#ifndef LATCHD_CMD_LIBRARY_VALUE_TEXT_H
#define LATCHD_CMD_LIBRARY_VALUE_TEXT_H

#include "util/buf.h"

#include <stddef.h>

enum {
    VALUE_MAX = 512, /* bytes of a value, before they are escaped */
    ORIGIN_DIGITS = 16,
};

/* How a pattern begins that fits whoever set the value. */
#define VALUE_ANY_ORIGIN "*:"

/* Appends the value with all bytes escaped that are no printable ASCII, or mean
 * something in a pattern: `%` and two hex digits. At most 3 bytes for each. */
void value_escape(struct buf *out, struct span value);
/* The reverse. An escape that is none stays as it is. */
void value_unescape(struct buf *out, struct span text);

/* Appends a word for a user, the same in every daemon: a hash, as a name has any bytes.
 * The address is no part: what a web server took, its worker may delete. */
void value_add_origin(struct buf *out, struct span user);

#endif
