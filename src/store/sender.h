/* sender: puts ops on a command link, where it may several as one script call.
 *
 * Whoever has the link fills the struct, and the sender lives no longer than what that
 * points to. It keeps copies of ops (gather.h) until it is flushed, which is to be
 * before the link is. */
#ifndef LATCHD_STORE_SENDER_H
#define LATCHD_STORE_SENDER_H

#include "store/gather.h"
#include "store/redis_link.h"

struct sender {
    struct redis_link *link;
    const char *instance;
    bool gathers;
    struct gather gather;
};

void sender_submit(struct sender *s, const struct op *op);
void sender_flush(struct sender *s);

#endif
