/* usage: a command's usage line, and the argument tree of COMMAND DOCS made from it.
 *
 *   word        an argument; its name says its type (name: key, ms: integer, ...)
 *   WORD        a literal; words that follow in the same group are its value
 *   [x] (a|b)   optional; a choice. `...` after a group or word: may be repeated
 *
 * Pure: text in, RESP out. */
#ifndef LATCHD_CMD_OBSERVE_USAGE_H
#define LATCHD_CMD_OBSERVE_USAGE_H

#include "util/buf.h"

#include <stdbool.h>

enum { USAGE_NODES_MAX = 48 };

/* Whether a usage line follows the grammar; the tests check every row of the table. */
bool usage_is_valid(const char *usage);

/* Writes the array that COMMAND DOCS calls "arguments". */
void usage_write_docs(struct buf *out, int proto, const char *usage);

#endif
