#include "engine/shared_specs.h"
#include "engine/acquire_spec.h"
#include "engine/engine_state.h"
#include "util/pool.h"

#include <stddef.h>

/* Nothing may change a spec that is shared, and no text but the serial may be in it;
 * by the serial of a FAIR entry its place in the queue is found. */
static bool may_be_shared(const struct acquire_spec *w)
{
    return w->kind == OWNER_ANONYMOUS && w->lock_kind == KIND_PLAIN &&
           w->serial_len != 0 && w->field_len == 0 && w->entry_len == 0 &&
           w->data_len == 0 && !w->has_atleast;
}

/* The terms, without the texts and whoever refers to them. */
enum { TERMS_AT = sizeof(unsigned), TERMS_LEN = offsetof(struct acquire_spec, texts) };

_Static_assert(offsetof(struct acquire_spec, user) == TERMS_AT, "refs is the first");

static const char *terms_of(const struct acquire_spec *w)
{
    return (const char *)w + TERMS_AT;
}

/* Puts the i-th first, where it is found sooner. */
static struct acquire_spec *move_to_front(struct acquire_spec **slots, size_t i)
{
    struct acquire_spec *first = slots[i];

    memmove(&slots[1], slots, i * sizeof(*slots));
    slots[0] = first;
    return first;
}

struct acquire_spec *spec_share(struct engine *eng, struct acquire_spec *w,
                                uint64_t *ret_serial)
{
    const size_t len = TERMS_LEN - TERMS_AT;
    struct acquire_spec terms = *w; /* without its texts */
    struct acquire_spec **slots = eng->shared_specs.slots;
    size_t i = 0;

    *ret_serial = 0;
    if (!may_be_shared(w)) {
        return spec_ref(w);
    }
    *ret_serial = serial_number(spec_entry(w));
    terms.serial_len = 0;
    terms.refs = 1;
    while (i < SHARED_SPECS && slots[i] != NULL &&
           memcmp(terms_of(slots[i]), terms_of(&terms), len) != 0) {
        i++;
    }
    if (i == SHARED_SPECS) {
        spec_unref(eng, slots[--i]);
        slots[i] = NULL;
    }
    if (slots[i] == NULL) {
        slots[i] = pool_alloc(&eng->pool, sizeof(terms));
        *slots[i] = terms;
    }
    return spec_ref(move_to_front(slots, i));
}

void shared_specs_fini(struct engine *eng)
{
    for (size_t i = 0; i < SHARED_SPECS; i++) {
        spec_unref(eng, eng->shared_specs.slots[i]);
    }
}
