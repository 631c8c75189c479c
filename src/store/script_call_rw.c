/* The scripts of read/write locks. */
#include "store/script_call_priv.h"

bool script_call_rw(struct buf *out, const struct op *op, const char *instance,
                    struct op_times times)
{
    (void)out;
    (void)op;
    (void)instance;
    (void)times;
    return false;
}
