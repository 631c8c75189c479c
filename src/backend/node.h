/* node: one Redis server, with a command link and a pub/sub link to it. Turns ops into
 * scripts, and replies into results.
 *
 * A node reconnects by itself. An op that a lost link left open becomes OP_UNKNOWN only
 * after the old link has been killed on the server (or the op's deadline in Redis time
 * has passed), so that no copy of it can run later.
 *
 * The store owns the node. Its events are those that the daemon gets from the store; no
 * event comes during a call into the node. */
#ifndef LATCHD_BACKEND_NODE_H
#define LATCHD_BACKEND_NODE_H

#include "backend/backend_config.h"
#include "backend/store.h"
#include "engine/lock_terms.h"

struct node;
struct redis_link;

struct node_setup {
    /* Both outlive the node: loop, instance, options, and the user, password and TLS.
     */
    const struct store_setup *store;
    const struct backend_url *url;
    const char *host, *port; /* instead of the URL's; or NULL */
    uint64_t seed;           /* for jitter: different for each node */
    struct store_events events;
    /* If the node is one of several servers: see redis_link.h. */
    bool is_replicated;
    bool hears_daemons; /* listens to what other daemons announce */
    bool watches;       /* has Redis tell of changes: see redis_watch.h */
    bool batches;       /* simple ops of a turn leave as one call, see script_codec.h */
    /* if not plain, the node also listens to sharded channels */
    enum publish_way publish;
    uint64_t backoff_max_ms;
    const char *(*why_not)(void *ctx, bool same_server); /* ctx: that of the events */
};

struct node *node_new(const struct node_setup *setup);
/* Starts connecting. */
void node_start(struct node *n);
/* Makes the node one of another server. Both links move there at once: STORE_DOWN and
 * STORE_UNSUBSCRIBED_ALL come during the call, then STORE_UP (ops that were open are
 * unknown), and every wanted channel is subscribed again. Starts the node if it was not
 * started. */
void node_move(struct node *n, const char *host, const char *port);
/* See redis_link_abandon(). */
void node_abandon(struct node *n, bool (*concerns)(void *ctx, uint32_t group),
                  void *ctx, bool sent_too);
/* Takes over the subscriptions of names of those groups from `from`. */
void node_adopt(struct node *n, struct node *from,
                bool (*concerns)(void *ctx, uint32_t group), void *ctx);
/* The node's first link, to ask what its server has executed. */
struct redis_link *node_link(struct node *n);
/* Asks again for subscriptions that a cluster refused. */
void node_resubscribe(struct node *n);
/* The options or the URL of its setup are others now. TLS, user and password are for
 * later connections; the command links that are open log in again. */
void node_configure(struct node *n);
void node_submit(struct node *n, const struct op *op);
void node_subscribe(struct node *n, struct span name, enum lock_class lock_class,
                    bool wanted);
/* In a cluster: listens to the sharded channel of that member of this instance in the
 * fair queue of `name`. Its messages are reported as the name's, and the subscription
 * as one of them. */
void node_listen(struct node *n, struct span name, struct span member, bool wanted);
/* See store_watch(). */
void node_watch(struct node *n, struct span name);
/* See store_announce(). False: the node is not for that, or out of reach. */
bool node_announce(struct node *n, struct span text);
/* Channels of lock libraries: see store_hear(), store_hears() and store_publish(). */
void node_hear(struct node *n, bool is_pattern, struct span name, bool wanted);
bool node_hears(const struct node *n, bool is_pattern, struct span name);
bool node_publish(struct node *n, struct span channel, struct span text);
void node_begin_turn(struct node *n);
/* Ends a loop turn: what was submitted leaves in one write. */
void node_end_turn(struct node *n);
/* Adds the node's counters to *ret, and overwrites what only one node can say. */
void node_info(const struct node *n, struct store_info *ret);
/* Calls `fn` with what store_each_node() reports of the node. */
void node_tell(const struct node *n, const char *role, store_node_fn *fn, void *ctx);
/* Closes the links; no event comes afterwards. */
void node_close(struct node *n);
/* After the loop has run out. NULL is fine. */
void node_free(struct node *n);

#endif
