/* patient: asks a latchd that may be restarted, or have to wait for Redis, until there
 * is an answer. */
#ifndef LATCHD_LATCHCTL_PATIENT_H
#define LATCHD_LATCHCTL_PATIENT_H

#include "latchctl/link.h"
#include "latchctl/options.h"

#include <stdint.h>

/* A zeroed one with `options` is valid. */
struct patient {
    struct options *options;
    struct link link;
    bool is_told; /* that latchd cannot be asked */
};

/* Sends the words, which may ask latchd to wait for so long, and returns the answer, to
 * be freed by freeReplyObject(). NULL: there is none, and a pause was made. */
redisReply *patient_ask(struct patient *p, const char *const *words, uint64_t wait_ms);
/* Whether the answer is an error that passes; a pause was made then. */
bool patient_has_to_ask_again(struct patient *p, const redisReply *reply);

#endif
