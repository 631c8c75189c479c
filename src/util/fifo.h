/* fifo: a queue of records of one size, in a ring that grows.
 *
 * The caller owns the struct, which owns the ring. A zeroed one is empty and valid.
 * Records move when the ring grows. */
#ifndef LATCHD_UTIL_FIFO_H
#define LATCHD_UTIL_FIFO_H

#include <stdbool.h>
#include <stddef.h>

struct fifo {
    char *ring;
    size_t size;  /* of a record */
    size_t room;  /* a power of two */
    size_t first; /* the oldest record */
    size_t count;
};

void fifo_fini(struct fifo *f);
/* Adds a record of zeros; of the same size each time. */
void *fifo_push(struct fifo *f, size_t size);
/* Copies the oldest record and drops it. False: there is none. */
bool fifo_pop(struct fifo *f, void *ret);

/* The record that is `at` places behind the oldest one. */
static inline void *fifo_at(const struct fifo *f, size_t at)
{
    return f->ring + ((f->first + at) & (f->room - 1)) * f->size;
}

/* The oldest record, or NULL. */
static inline void *fifo_first(const struct fifo *f)
{
    return f->count == 0 ? NULL : fifo_at(f, 0);
}

#endif
