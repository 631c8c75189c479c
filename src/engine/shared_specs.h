/* shared_specs: the terms that many holds have in common. Of a granted plain LOCK
 * without OWNER, ID, VALUE, DATA or ATLEAST a spec tells only the lease and the like,
 * and most clients ask for the same: the entries of such LOCKs share one spec, and keep
 * the numbers of their serials themselves. Few specs are remembered; one that is
 * forgotten goes on for the entries that have it. On a quorum nothing is shared.
 * Private to engine/. */
#ifndef LATCHD_ENGINE_SHARED_SPECS_H
#define LATCHD_ENGINE_SHARED_SPECS_H

#include <stdint.h>

struct acquire_spec;
struct engine;

enum { SHARED_SPECS = 16 };

/* The ones used last, the last one first, each with a reference of its own; NULL: none,
 * and no others behind. Zeroed is empty. */
struct shared_specs {
    struct acquire_spec *slots[SHARED_SPECS];
};

/* Returns a new reference to what an entry is to have for that spec: the shared terms,
 * and in *ret_serial the number of the spec's serial; or the spec itself, and 0. */
struct acquire_spec *spec_share(struct engine *eng, struct acquire_spec *w,
                                uint64_t *ret_serial);
void shared_specs_fini(struct engine *eng);

#endif
