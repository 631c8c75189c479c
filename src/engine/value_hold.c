/* The hash fields of value holds, and which hold a value means. */
#include "engine/value_hold.h"
#include "engine/hold.h"
#include "engine/lock.h"

bool value_field_split(struct span field, struct span *ret_origin,
                       struct span *ret_value)
{
    struct span rest, instance, number;

    if (!span_starts(field, SPAN(VALUE_FIELD_PREFIX))) {
        return false;
    }
    rest = span_after(field, strlen(VALUE_FIELD_PREFIX));
    if (!span_cut(&rest, ':', &instance) || !span_cut(&rest, ':', &number) ||
        !span_cut(&rest, ':', ret_origin)) {
        return false;
    }
    *ret_value = rest;
    return true;
}

bool value_field_fits(struct span field, struct span pattern)
{
    struct span origin, value, wanted_origin;
    struct span wanted = pattern;

    if (!value_field_split(field, &origin, &value) ||
        !span_cut(&wanted, ':', &wanted_origin)) {
        return false;
    }
    if (!span_eq(wanted_origin, SPAN("*")) && !span_eq(wanted_origin, origin)) {
        return false;
    }
    if (wanted.len > 0 && wanted.ptr[wanted.len - 1] == '*') {
        return span_starts(value, span_of(wanted.ptr, wanted.len - 1));
    }
    return span_eq(value, wanted);
}

bool hold_is_of_value(const struct hold *hold)
{
    return span_starts(hold_field(hold), SPAN(VALUE_FIELD_PREFIX));
}

struct hold *lock_value_hold(const struct lock *lock, struct span pattern)
{
    struct hold *h = lock_hold(lock); /* a plain lock has no other */

    return h != NULL && value_field_fits(hold_field(h), pattern) ? h : NULL;
}
