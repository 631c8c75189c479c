/* subject: whose request or hold a lock command is about, as far as its words say.
 *
 * Numbers in place of words: commands of one connection that look alike only wait for
 * each other. */
#ifndef LATCHD_CMD_SUBJECT_H
#define LATCHD_CMD_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

struct lock_args;

struct subject {
    uint32_t id;    /* of its ID; 0: it has none */
    uint32_t owner; /* of its OWNER; 0: it has none */
};

struct subject subject_of(const struct lock_args *args);
/* They have an ID or an OWNER in common. */
bool subject_overlaps(struct subject a, struct subject b);

#endif
