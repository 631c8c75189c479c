/* subject: the request or hold that a lock command names in its arguments. Names are
 * hashed: two commands whose hashes collide merely wait for each other. */
#ifndef LATCHD_CMD_SUBJECT_H
#define LATCHD_CMD_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

struct lock_args;

struct subject {
    uint32_t id;    /* hash of its ID; 0: no ID */
    uint32_t owner; /* hash of its OWNER; 0: no OWNER */
};

struct subject subject_of(const struct lock_args *args);
/* Whether two commands name the same ID or OWNER. */
bool subject_overlaps(struct subject a, struct subject b);

#endif
