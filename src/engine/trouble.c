#include "engine/trouble.h"
#include "engine/engine_priv.h"

void trouble_set(struct engine *eng, struct span why)
{
    buf_clear(&eng->trouble);
    if (why.len != 0) {
        buf_add_str(&eng->trouble, "Redis cannot be used: ");
        buf_add_span(&eng->trouble, why);
    }
}

struct span trouble_text(const struct engine *eng)
{
    if (eng->up) {
        return TEXT_NO_ANSWER;
    }
    return buf_len(&eng->trouble) == 0 ? SPAN("Redis cannot be reached")
                                       : buf_span(&eng->trouble);
}
