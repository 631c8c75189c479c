#include "engine/lock/permits.h"
#include "engine/lock/last_answer.h"
#include "engine/lock/lock.h"
#include "engine/op_result.h"

void permits_seen(struct engine *eng, struct lock *lock, const struct op_result *r)
{
    if (r->permits.limit != 0) {
        lock_open_sharing(eng, lock)->limit = r->permits.limit;
    }
    if (r->permits.free > 0 || r->permits.limit == 0) {
        lock_ask(eng, lock); /* or to make the counter anew, which is gone */
    } else {
        last_answer_held(eng, lock, r->ttl_ms);
        lock_seen(eng, lock, r->id, r->ttl_ms, KIND_PERMITS);
    }
}
