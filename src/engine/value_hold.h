/* value_hold: the hold of a lock library that knows its lock by a value: `SET k v NX`.
 *
 * Such a library compares the value when it releases or extends. Its hold has the hash
 * field
 *
 *   latchd:value:<instance>:<n>:<origin>:<value>
 *
 * where `<instance>:<n>` is the request that took it, so that no two holds ever share a
 * field: the same value may be used again and again, by many at once. To the scripts
 * the hold is like one with an ID that no client knows. `<origin>` tells who took it:
 * the caller makes it of the user. Origin and value are words without `:`,
 * `*` and white space; the caller escapes others.
 *
 * A pattern `<origin>:<value>` finds the hold: `*` stands for any origin, and at the
 * end of a value for any rest. Private to engine/, but for the format. */
#ifndef LATCHD_ENGINE_VALUE_HOLD_H
#define LATCHD_ENGINE_VALUE_HOLD_H

#include "latchd/protocol.h"
#include "util/span.h"

#include <stdbool.h>

struct hold;
struct lock;

#define VALUE_FIELD_PREFIX LATCHD_RESERVED_OWNER_PREFIX "value:"

/* Splits the field of a value hold. False: `field` is none. */
bool value_field_split(struct span field, struct span *ret_origin,
                       struct span *ret_value);
/* Whether the pattern fits a value hold with that field. */
bool value_field_fits(struct span field, struct span pattern);
bool hold_is_of_value(const struct hold *hold);
/* The value hold known here that the pattern fits, or NULL. */
struct hold *lock_value_hold(const struct lock *lock, struct span pattern);

#endif
