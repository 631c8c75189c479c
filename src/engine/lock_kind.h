/* lock_kind: the kinds of locks, and the classes that they fall into. Pure data. */
#ifndef LATCHD_ENGINE_LOCK_KIND_H
#define LATCHD_ENGINE_LOCK_KIND_H

#include <stdbool.h>

/* A hold is PLAIN, READ, WRITE or PERMITS: fair is only a way of waiting, and a latch
 * is waited for and never held. */
enum lock_kind {
    KIND_PLAIN,
    KIND_FAIR,
    KIND_READ,
    KIND_WRITE,
    KIND_PERMITS,
    KIND_LATCH,
};

/* "plain", "fair", ...; effect.c has the names. */
const char *lock_kind_name(enum lock_kind kind);

/* Kinds that share the layout in Redis, the scripts and the channel. Classes exclude
 * each other. */
enum lock_class {
    CLASS_PLAIN,     /* plain and fair locks */
    CLASS_RW,        /* read and write locks */
    CLASS_SEMAPHORE, /* permits */
    CLASS_LATCH,     /* counted down; nobody holds it */
    LOCK_CLASSES,
};

static inline enum lock_class lock_class_of(enum lock_kind kind)
{
    return kind == KIND_READ || kind == KIND_WRITE ? CLASS_RW
           : kind == KIND_PERMITS                  ? CLASS_SEMAPHORE
           : kind == KIND_LATCH                    ? CLASS_LATCH
                                                   : CLASS_PLAIN;
}

/* Whether a request of this kind says which lock class it is about. PLAIN, unless of a
 * LOCK, does not. */
static inline bool lock_kind_tells_class(enum lock_kind kind)
{
    return lock_class_of(kind) != CLASS_PLAIN;
}

/* Whether a name may have many holds of this kind, whose fields are chosen before they
 * are asked for. */
static inline bool lock_kind_is_shared(enum lock_kind kind)
{
    return kind == KIND_READ || kind == KIND_PERMITS;
}

#endif
