/* lock_call_text: a lock_call in one line, for tests:
 *
 *   extend =v in 5000 | free 0, mine 1, endless 1, others 0, not-a-string !type
 *
 * "=v": it compares with the value v; "~3 v": with its first 3 bytes. "each": each key
 * for itself. A reply: 7, nil, +OK, 'text', -error, !type, keys, done, value, ttl-ms,
 * ttl-s, [value ttl-ms]. */
#ifndef LATCHD_TESTS_LOCK_CALL_TEXT_H
#define LATCHD_TESTS_LOCK_CALL_TEXT_H

#include "lockscript/lock_script.h"
#include "util/buf.h"

void lock_call_text(const struct lock_call *call, struct buf *out);

#endif
