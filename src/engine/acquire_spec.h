/* acquire_spec: the terms of an acquire: who is to hold, and how. Ref-counted; shared
 * by a waiter, ops in flight and the entry that the grant becomes. Private to engine/.
 */
#ifndef LATCHD_ENGINE_ACQUIRE_SPEC_H
#define LATCHD_ENGINE_ACQUIRE_SPEC_H

#include "engine/op.h"
#include "latchd/protocol.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;
struct lock_req;

/* What a LOCK wants: who is to hold, and on what terms. Shared by its waiter, by works
 * in flight that name it, and by the entry it becomes. There is one for every hold and
 * every wait: its times have the bits that the configuration's bounds need, a year and
 * for KEEP a day. */
struct acquire_spec {
    unsigned refs;
    uint32_t user;
    uint64_t lease_ms : 36; /* as asked; watchdogged ones follow the configuration */
    uint64_t keep_ms : 28;
    int64_t grace_ms : 37; /* -1: the rest of the lease */
    enum lock_kind lock_kind : 4;
    enum owner_kind kind : 4;
    bool found : 1; /* by RENEW: whether it was PLAIN or FAIR is not known */
    bool fixed : 1; /* LEASE was given: no watchdog */
    uint8_t member_len;
    struct spec_text {
        uint16_t at, len;
    } field, entry, id; /* see parts.h */
    char data[];        /* where they stand; the member first */
};

#define ID_FIELD_PREFIX LATCHD_RESERVED_OWNER_PREFIX "id:"
#define ID_ENTRY_PREFIX "id:"
/* Puts both, one behind the other, at *at and moves that on. */
struct span span_put2(char **at, struct span a, struct span b);
enum { SERIAL_MAX = OP_INSTANCE_LEN + 24 };
/* `<instance>:<n>`, never made twice, into `out`. */
struct span make_serial(struct engine *eng, char *out, size_t room);
struct acquire_spec *spec_new(struct engine *eng, const struct lock_req *req);
/* For a hold that was found, not asked for: RENEW. `entry`: of a named owner. */
struct acquire_spec *spec_found(struct engine *eng, enum lock_kind lock_kind,
                                struct span field, struct span entry, struct span id);
struct span spec_field(const struct acquire_spec *w);  /* empty: anonymous */
struct span spec_entry(const struct acquire_spec *w);  /* ANONYMOUS: the request */
struct span spec_id(const struct acquire_spec *w);     /* empty: none */
struct span spec_member(const struct acquire_spec *w); /* its place in a fair queue */
struct acquire_spec *spec_ref(struct acquire_spec *w);
void spec_unref(struct engine *eng, struct acquire_spec *w);
uint64_t spec_lease(const struct engine *eng, const struct acquire_spec *w);
enum owner_kind field_kind(struct span field);

#endif
