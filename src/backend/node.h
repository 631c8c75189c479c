/* node: one Redis server: a command link and a pub/sub link to it. Turns ops into
 * scripts, replies into results.
 *
 * It reconnects by itself. It reports OP_UNKNOWN for an op that a lost link left open
 * only after the old link has been killed on the server (or its deadline in Redis time
 * has passed), so that no copy of it can run later.
 *
 * A backend owns it, and hears of it by the same events as the daemon does of the
 * store; nothing is reported during a call into it. */
#ifndef LATCHD_BACKEND_NODE_H
#define LATCHD_BACKEND_NODE_H

#include "backend/config/backend_url.h"
#include "backend/store.h"
#include "backend/store_events.h"

struct node;
struct redis_link;

struct node_setup {
    const struct store_setup *store; /* for the call only: loop, instance, options */
    const struct backend_url *url;   /* copied */
    uint64_t seed;                   /* for jitter: another one for each node */
    struct store_events events;
    /* Of one that is among several servers, see redis_link.h. */
    bool is_replicated;
    bool hears_daemons; /* what other daemons announce */
    bool batches; /* what is simple leaves as one call for a turn, see script_batch.h */
    enum publish_way publish; /* not plain: sharded channels are listened to, too */
    uint64_t backoff_max_ms;
    const char *(*why_not)(void *ctx, bool same_server); /* ctx: of the events */
    void (*on_moved)(void *ctx); /* a channel belongs to another node; may be NULL */
};

struct node *node_new(const struct node_setup *setup);
/* Starts connecting. */
void node_start(struct node *n);
/* Another server takes the place of the one that it was. Both links go there at once;
 * on_down and on_unsubscribed_all come during the call, then on_up with what was open
 * being unknown, and all that is wanted is subscribed again. Starts it if it was not
 * started. */
void node_move(struct node *n, const char *host, const char *port);
/* See redis_link_abandon(). */
void node_abandon(struct node *n, bool (*concerns)(void *ctx, uint32_t group),
                  void *ctx, bool sent_too);
/* Takes over what names of those groups are subscribed to at `from`. */
void node_adopt(struct node *n, struct node *from,
                bool (*concerns)(void *ctx, uint32_t group), void *ctx);
/* Its first link, for who wants to know what its server has executed, or announces. */
struct redis_link *node_link(struct node *n);
/* What a cluster refused to subscribe is asked for again. */
void node_resubscribe(struct node *n);
/* For connections from now on, if its URL wants TLS. Takes a reference. */
void node_set_tls(struct node *n, struct tls *tls);
void node_configure(struct node *n, const struct store_options *options);
void node_submit(struct node *n, const struct op *op);
void node_subscribe(struct node *n, struct span name, bool rw);
void node_unsubscribe(struct node *n, struct span name, bool rw);
/* Of a cluster: the sharded channel of that member of this instance, in the fair queue
 * of that name. Messages are told as the name's, and so is that it is listened to. */
void node_listen(struct node *n, struct span name, struct span member);
void node_unlisten(struct node *n, struct span name, struct span member);
/* End of a loop turn: what was submitted leaves in one write. */
void node_end_turn(struct node *n);
/* Adds its counters to *ret; what only one node can tell is written over. */
void node_info(const struct node *n, struct store_info *ret);
/* Calls `fn` with what store_each_node() tells of it. */
void node_tell(const struct node *n, const char *role, store_node_fn *fn, void *ctx);
/* Closes the links; no event comes any more. */
void node_close(struct node *n);
/* After the loop has run out. NULL is fine. */
void node_free(struct node *n);

#endif
