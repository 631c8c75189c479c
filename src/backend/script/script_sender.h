/* script_sender: writes ops to a command link, several as one script call where
 * possible.
 *
 * The link's owner fills the struct, and the sender lives no longer than what that
 * points to. The sender keeps copies of ops (script_batch.h) until it is flushed, which
 * has to happen before the link is flushed. */
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
