/* The start of a test program of the engine: one engine on a workbench for each
 * test, and the plainest requests and results. */
#ifndef LATCHD_TESTS_ENGINE_CASES_H
#define LATCHD_TESTS_ENGINE_CASES_H

#include "support/engine.h"
#include "support/runner.h"

#define FOREVER ((struct lock_terms){ 0 })
#define UUID SPAN("01234567-89ab-cdef-0123-456789abcdef")

static MAYBE_UNUSED const struct op_result BUSY = { .status = OP_BUSY,
                                                    .ttl_ms = 30000 };
static MAYBE_UNUSED const struct op_result FREED = { .status = OP_OK,
                                                     .release.freed = true };

static struct engine_fixture e;

static MAYBE_UNUSED void start_engine(void)
{
    fixture_init(&e);
}

static MAYBE_UNUSED void stop_engine(void)
{
    fixture_fini(&e);
}

#endif
