/* denials: what was refused to whom, newest first, as ACL LOG tells it. The same again
 * within a minute is counted, not listed. */
#ifndef LATCHD_ACL_DENIALS_H
#define LATCHD_ACL_DENIALS_H

#include "util/buf.h"
#include "util/span.h"

#include <stddef.h>
#include <stdint.h>

enum {
    DENIALS_MAX = 128,        /* that are kept */
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
void denials_reset(struct denials *d); /* the totals stay */

/* Copies the spans; `count` is not used. */
void denials_add(struct denials *d, const struct denial *denial);
/* How many there are, and each of them, the newest is number 0. */
size_t denials_count(const struct denials *d);
const struct denial *denials_at(const struct denials *d, size_t number);
/* Ever, for INFO. */
uint64_t denials_total(const struct denials *d, enum denial_reason reason);
void denials_reset_totals(struct denials *d);

#endif
