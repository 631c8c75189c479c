/* map: uthash, configured with a seeded hash, and abort() when memory is exhausted.
 * Include this and never <uthash.h> itself. */
#ifndef LATCHD_UTIL_MAP_H
#define LATCHD_UTIL_MAP_H

#include "util/alloc.h"
#include "util/hash.h"

#include <stdlib.h>

#define uthash_fatal(msg) alloc_failed()
#define HASH_FUNCTION(keyptr, keylen, hashv)                                           \
    do {                                                                               \
        (hashv) = (unsigned)hash_bytes((keyptr), (keylen));                            \
    } while (0)

#include <uthash.h>

#endif
