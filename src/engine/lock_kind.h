/* lock_kind: the kinds of locks, and the classes that they fall into. Pure data. */
#ifndef LATCHD_ENGINE_LOCK_KIND_H
#define LATCHD_ENGINE_LOCK_KIND_H

/* A hold is PLAIN, READ or WRITE: fair is only a way of waiting. */
enum lock_kind { KIND_PLAIN, KIND_FAIR, KIND_READ, KIND_WRITE };

/* Kinds that share the layout in Redis, the scripts and the channel. Classes exclude
 * each other. */
enum lock_class {
    CLASS_PLAIN, /* plain and fair locks */
    CLASS_RW,    /* read and write locks */
    LOCK_CLASSES,
};

#endif
