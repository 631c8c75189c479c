/* acquire_spec: the terms of an acquire: who is to hold, and how. Shared, with a
 * reference count, by a waiter, its ops in flight, and the entry that the grant
 * becomes. Private to engine/. */
#ifndef LATCHD_ENGINE_ACQUIRE_SPEC_H
#define LATCHD_ENGINE_ACQUIRE_SPEC_H

#include "engine/effect.h"
#include "engine/lock_terms.h"
#include "engine/op.h"
#include "latchd/protocol.h"
#include "util/buf.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;

enum {
    SERIAL_MAX = OP_INSTANCE_LEN + 1 + DIGITS_MAX,
};

/* A LOCK as Redis has it, and its terms. Its texts lie behind each other, and where one
 * begins, the lengths of those before it tell. */
struct acquire_spec {
    unsigned refs;
    enum owner_kind owner_kind : 2;
    enum lease_kind lease : 2;
    bool found : 1; /* found by RENEW: PLAIN may be FAIR */
    bool local : 1; /* may be granted from a loan, see loan.h */
    uint8_t serial_len, trace_len;
    uint16_t field_len, entry_len;
    /* as requested, with the defaults of KEEP and GRACE; without a GRACE it is the rest
     * of the lease. A watchdogged hold follows the configuration. */
    struct lock_terms terms;
    /* its serial (see make_serial(); none if it was found), field, entry, trace:
     * see spec_field() and the like; then the texts of `terms` */
    char texts[];
};

#define ID_FIELD_PREFIX LATCHD_RESERVED_OWNER_PREFIX "id:"
#define ID_ENTRY_PREFIX "id:"
/* Copies both, one behind the other, to *at and moves *at behind them. */
struct span span_put2(char **at, struct span a, struct span b);
enum {
    TOKEN_FIELD_MAX = sizeof(LATCHD_RESERVED_OWNER_PREFIX) + DIGITS_MAX +
                      sizeof(LATCHD_RESERVED_OWNER_SUFFIX),
};
/* The hash field of an anonymous hold, which the script makes from the token; in `out`.
 */
struct span token_field(char out[static TOKEN_FIELD_MAX], uint64_t token, bool writes);
/* Writes `<instance>:<n>`, never made twice, into `out`. */
struct span make_serial(struct engine *eng, char *out, size_t room);
struct acquire_spec *spec_new(struct engine *eng, const struct lock_terms *terms,
                              struct span trace);
/* Without a GRACE the configuration's is the spec's. */
void spec_default_grace(const struct engine *eng, struct acquire_spec *spec);
/* A spec for a hold that RENEW found in Redis, with the terms that are known. `entry`:
 * of a named owner. */
struct acquire_spec *spec_found(struct engine *eng, struct span field,
                                struct span entry, const struct lock_terms *terms);
struct span spec_field(const struct acquire_spec *spec); /* empty: anonymous */
/* of an owner that gave it no ID: the request */
struct span spec_entry(const struct acquire_spec *spec);
struct span spec_id(const struct acquire_spec *spec); /* empty: none */
/* The option TRACE, at most LATCHD_TRACE_MAX bytes; empty: none. */
struct span spec_trace(const struct acquire_spec *spec);
/* The ID that a hash field or an entry tells; empty: none. */
struct span find_request_id(struct span field, struct span entry);
/* The member of a fair queue that it is, in the memory of the effects. */
struct span spec_copy_member(struct engine *eng, const struct acquire_spec *spec);
bool spec_is_member(const struct acquire_spec *spec, struct span member);
struct acquire_spec *spec_ref(struct acquire_spec *spec);
void spec_unref(struct engine *eng, struct acquire_spec *spec);
uint64_t spec_lease(const struct engine *eng, const struct acquire_spec *spec);
/* Until when a lease counts here that an op asked for at `sent`: until 1 % and 50 ms
 * before its end in Redis, as the clocks may not run alike. */
static inline uint64_t lease_valid_until(uint64_t sent, uint64_t lease_ms)
{
    uint64_t margin = lease_ms / 100 + 50;

    return sent + (lease_ms > margin ? lease_ms - margin : 0);
}

enum owner_kind field_kind(struct span field);
/* The owner that a hash field names: a writer's without its `:write`. */
struct span field_owner(struct span field);

#endif
