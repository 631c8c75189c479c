/* denials: the entries of ACL LOG, newest first: what was refused to which client. A
 * repetition within a minute is counted in its entry. */
#ifndef LATCHD_ACL_DENIALS_H
#define LATCHD_ACL_DENIALS_H

#include "util/buf.h"
#include "util/span.h"

#include <stddef.h>
#include <stdint.h>

enum {
    DENIALS_MAX = 128,        /* entries */
    DENIALS_OBJECT_MAX = 528, /* bytes of a name or channel */
    DENIALS_GROUP_MS = 60000,
};

enum denial_reason {
    DENIAL_COMMAND,
    DENIAL_NAME,
    DENIAL_CHANNEL,
    DENIAL_LOGIN,
    DENIAL_REASONS,
};

struct denial {
    enum denial_reason reason;
    const char *context; /* "toplevel", "multi": not copied */
    struct span object;
    struct span user;
    struct span client; /* a line that describes the connection */
    uint64_t at_ms;
    uint64_t count;
};

struct denials;

struct denials *denials_new(void);
void denials_free(struct denials *d);
void denials_reset(struct denials *d); /* keeps the totals */

/* Adds an entry, or counts a repetition. Copies the spans; denial->count is ignored. */
void denials_add(struct denials *d, const struct denial *denial);
/* The number of entries, and entry `at`; 0 is the newest. */
size_t denials_count(const struct denials *d);
const struct denial *denials_at(const struct denials *d, size_t number);
/* Denials since the start, for INFO. */
uint64_t denials_total(const struct denials *d, enum denial_reason reason);
void denials_reset_totals(struct denials *d);

#endif
