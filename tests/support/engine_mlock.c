#include "support/engine_mlock.h"

void mlock_confirms(struct engine_fixture *e, const char *name, uint64_t token,
                    const char *field)
{
    struct seen_op op;

    fixture_take_op(e, OP_ATTACH, &op);
    ck_assert_str_eq(op.name, name);
    fixture_answer(e, &op,
                   (struct op_result){ .status = OP_OK,
                                       .token = token,
                                       .ttl_ms = 30000,
                                       .attach.field = span_str(field) });
}
