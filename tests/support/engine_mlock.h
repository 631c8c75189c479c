/* fixture_mlock: what the tests of MLOCK say to the lock engine on its workbench. */
#ifndef LATCHD_TESTS_ENGINE_MLOCK_H
#define LATCHD_TESTS_ENGINE_MLOCK_H

#include "support/engine.h"

#define WAIT(ms) ((struct lock_terms){ .has = OPT_WAIT, .wait_ms = (ms) })
#define WITH_ID ((struct lock_terms){ .id = SPAN("aaaaaaaaaaaaaaaa") })

#define GRANTED(n) ((struct op_result){ .status = OP_OK, .token = (n), .count = 1 })
#define DONE ((struct op_result){ .status = OP_OK, .release.freed = true })
/* Every name that was asked for. */
#define ALL ((struct op_result){ .status = OP_OK })

#define TOKENS(...)                                                                    \
    (const uint64_t[]){ __VA_ARGS__ },                                                 \
        sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t)

/* The oldest op attaches that name; Redis confirms it, with that token and field. */
void mlock_confirms(struct engine_fixture *e, const char *name, uint64_t token,
                    const char *field);

#endif
