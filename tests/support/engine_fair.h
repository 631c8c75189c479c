/* fixture_fair: what the tests of fair queues say to the lock engine on its workbench.
 *
 * All is about the name "job". Members are told by their numbers: "1 2 3" are those of
 * the first three LOCKs of a test. */
#ifndef LATCHD_TESTS_ENGINE_FAIR_H
#define LATCHD_TESTS_ENGINE_FAIR_H

#include "support/engine.h"

#define FAIR ((struct lock_terms){ .lock_kind = KIND_FAIR })
#define PLAIN ((struct lock_terms){ .lock_kind = KIND_PLAIN })
#define UUID SPAN("01234567-89ab-cdef-0123-456789abcdef")

#define GRANT(t) ((struct op_result){ .status = OP_OK, .token = (t), .count = 1 })
#define BUSY(ms) ((struct op_result){ .status = OP_BUSY, .ttl_ms = (ms), .fair = true })
#define HELD ((struct op_result){ .status = OP_OK, .ttl_ms = 20000, .fair = true })
#define LEFT ((struct op_result){ .status = OP_OK, .fair = true })
#define MOVED(t)                                                                       \
    ((struct op_result){ .status = OP_OK, .moved = true, .token = (t), .fair = true })
#define NO_MORE ((struct op_result){ .status = OP_OK })
#define UNKNOWN ((struct op_result){ .status = OP_UNKNOWN })
#define LATE ((struct op_result){ .status = OP_LATE })
#define FAILED ((struct op_result){ .status = OP_ERROR, .text = SPAN("ERR no") })

/* The oldest op is an OP_QUEUE for newcomers, of all, or an OP_LEAVE; it gives `r`. */
void fair_joins(struct engine_fixture *e, const char *members, struct op_result r);
void fair_refreshes(struct engine_fixture *e, const char *members, size_t known,
                    struct op_result r);
void fair_leaves(struct engine_fixture *e, const char *members, struct op_result r);

/* Somebody elsewhere holds it; connections 1..count wait for it, all with a place, the
 * first of them asleep. */
void fair_wait(struct engine_fixture *e, uint64_t count);

void fair_subscribed(struct engine_fixture *e);
void fair_message(struct engine_fixture *e);

#endif
