/* script_sender: puts ops on a command link, where it may several as one script call.
 *
 * Whoever has the link fills the struct, and the sender lives no longer than what that
 * points to. It keeps copies of ops (script_batch.h) until it is flushed, which is to
 * be before the link is. */
#ifndef LATCHD_BACKEND_SCRIPT_SCRIPT_SENDER_H
#define LATCHD_BACKEND_SCRIPT_SCRIPT_SENDER_H

#include "backend/redis/redis_link.h"
#include "backend/script/script_batch.h"

struct script_sender {
    struct redis_link *link;
    const char *instance;
    bool batches;
    struct script_batch batch;
};

void script_sender_submit(struct script_sender *s, const struct op *op);
void script_sender_flush(struct script_sender *s);

#endif
