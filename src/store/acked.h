/* acked: the two ways of a node's ops while `min-replicas` is more than 0.
 *
 * What vouches (core/vouch.h) goes over a second command link. All of it that is asked
 * while replicas are being waited for leaves together, with one WAIT behind it; what
 * comes back is held until that is answered, and is OP_NOREPLICAS if they are too few.
 * Everything else goes over the node's first link and waits for nobody, but for what
 * was asked of the same name before (name_order.h): that must have run, and the answer
 * must be there, unless it is a renewal, whose answer may come later.
 *
 * The node owns it, and the first link; it hands on all that happens there. Nothing is
 * reported during a call, but from within the links' events. */
#ifndef LATCHD_STORE_ACKED_H
#define LATCHD_STORE_ACKED_H

#include "store/redis_link.h"

struct acked;

/* What became of a call: as redis_link's on_reply says; `acked` false: too few replicas
 * have it. */
typedef void acked_reply_fn(void *ctx, const struct redis_call *call,
                            const redisReply *reply, bool acked);

struct acked_events {
    void (*on_wake)(void *ctx);
    const char *(*why_not)(void *ctx, bool same_server);
    /* The second link is there; it is gone. */
    void (*on_up)(void *ctx);
    void (*on_down)(void *ctx);
    acked_reply_fn *on_reply;
};

struct acked_setup {
    struct redis_link_setup link; /* of the first one: the second one is like it */
    struct redis_link *first;
    const char *instance; /* outlives it */
    const struct acked_events *events;
    void *ctx;
};

struct acked *acked_new(const struct acked_setup *setup);
/* Starts connecting; so does moving. */
void acked_start(struct acked *a);
/* min-replicas 0: nothing more goes over the second link. */
void acked_configure(struct acked *a, const struct store_options *options);
/* Its server is another one. */
void acked_move(struct acked *a);
/* Both links can be used, and lead to one server; if not, drops the other one.
 * `second`: it is the second one that has just come up. */
bool acked_agree(struct acked *a, bool second);
void acked_submit(struct acked *a, const struct op *op);
/* See redis_link_forsake(); of the second link, and of answers that are held. */
void acked_forsake(struct acked *a, redis_group_fn *concerns, void *ctx, bool sent_too);
/* From the first link. */
void acked_on_reply(struct acked *a, const struct redis_call *call,
                    const redisReply *reply);
void acked_end_turn(struct acked *a);
/* Nothing is to be waited for any more, and nobody wants it. */
bool acked_is_over(const struct acked *a);
void acked_info(const struct acked *a, struct store_info *ret);
/* Closes the link; no event comes any more. */
void acked_close(struct acked *a);
/* After it was closed, and not from within an event. NULL is fine. */
void acked_free(struct acked *a);

#endif
