/* The master of several replicated servers, as Sentinels name it: one node, which moves
 * when the Sentinels say so (sentinel_watch.h) and is used once it says of itself that
 * it is a master. */
#include "backend/backend.h"
#include "backend/node.h"
#include "backend/redis/redis_link.h"
#include "backend/sentinel/sentinel_watch.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/log.h"

#include <inttypes.h>
#include <stdlib.h>

struct sentinel {
    struct backend_config config;
    struct store_events events;
    struct sentinel_watch *watch;
    struct node *node;
    bool knows;                   /* which one to use */
    struct sentinel_claim named;  /* that one */
    struct sentinel_claim served; /* the one that was up last; no host: none */
    bool failed_over;             /* as far as the node can tell */
    uint64_t lost_ms;             /* the link was lost, or another one was named */
    uint64_t switches;
};

/* --- from the node --------------------------------------------------------------- */

static void on_result(void *ctx, const struct op_result *result)
{
    struct sentinel *s = ctx;

    s->events.on_result(s->events.ctx, result);
}

/* A process that was not seen to end may be used without a Sentinel's word, as if the
 * link had not been lost. Another process at the same address may be a master in its
 * own view only: it was restarted, and its replica may have been promoted meanwhile. */
static const char *why_not(void *ctx, bool same_server)
{
    struct sentinel *s = ctx;

    if (same_server || sentinel_watch_named_since(s->watch, s->lost_ms)) {
        return NULL;
    }
    return "it was restarted, and no Sentinel says that it is still the master";
}

static bool is_another_one(const struct sentinel *s)
{
    return s->served.host[0] != '\0' &&
           (s->served.epoch != s->named.epoch ||
            !sentinel_claim_same_address(&s->served, &s->named));
}

/* Perhaps before a Sentinel says so, or without that any ever does. */
static void on_failed_over(void *ctx, store_concerns_fn *concerns, void *arg)
{
    struct sentinel *s = ctx;

    s->failed_over = true;
}

static void on_up(void *ctx, bool same_server)
{
    struct sentinel *s = ctx;
    bool failed_over = s->failed_over || (!same_server && is_another_one(s));

    s->failed_over = false;
    s->served = s->named;
    sentinel_watch_set_usable(s->watch, true);
    if (failed_over) {
        s->events.on_failed_over(s->events.ctx, NULL, NULL);
    }
    s->events.on_up(s->events.ctx, same_server);
}

static void on_down(void *ctx)
{
    struct sentinel *s = ctx;

    s->lost_ms = clock_boot_ms();
    sentinel_watch_set_usable(s->watch, false);
    s->events.on_down(s->events.ctx);
}

/* --- from the Sentinels ---------------------------------------------------------- */

static void log_master(const struct sentinel *s, enum sentinel_verdict verdict,
                       const struct sentinel_claim *to)
{
    const struct sentinel_claim *from = &s->named;

    if (!s->knows) {
        log_notice("sentinel", "the master \"%s\" is %s:%s (epoch %" PRIu64 ")",
                   s->config.sentinel.master, to->host, to->port, to->epoch);
    } else if (verdict == SENTINEL_CONFIRMED) {
        log_notice("sentinel",
                   "the master \"%s\" is %s:%s again (epoch %" PRIu64 " after %" PRIu64
                   "), which is looked at anew",
                   s->config.sentinel.master, to->host, to->port, to->epoch,
                   from->epoch);
    } else if (verdict == SENTINEL_OVERRULED) {
        log_warning("sentinel",
                    "the master \"%s\" is %s:%s, as most Sentinels insist on epoch "
                    "%" PRIu64 " and %s:%s of epoch %" PRIu64
                    " cannot be used: see why a Sentinel named that one",
                    s->config.sentinel.master, to->host, to->port, to->epoch,
                    from->host, from->port, from->epoch);
    } else {
        log_warning("sentinel",
                    "failover: the master \"%s\" is %s:%s now (epoch %" PRIu64
                    "), nothing is sent to %s:%s (epoch %" PRIu64
                    ") any more; what it had not passed on is lost",
                    s->config.sentinel.master, to->host, to->port, to->epoch,
                    from->host, from->port, from->epoch);
    }
}

/* A newer epoch at the same address is a switch as well: the master was away. */
static void on_master(void *ctx, enum sentinel_verdict verdict,
                      const struct sentinel_claim *master)
{
    struct sentinel *s = ctx;

    log_master(s, verdict, master);
    s->switches += s->knows && verdict != SENTINEL_CONFIRMED;
    s->knows = true;
    s->named = *master;
    s->lost_ms = master->heard_ms;
    node_move(s->node, master->host, master->port);
}

static const struct sentinel_watch_events WATCH_EVENTS = {
    .on_master = on_master,
};

/* --- for the store --------------------------------------------------------------- */

static void *sentinel_make(const struct store_setup *setup)
{
    struct sentinel *s = xcalloc(1, sizeof(*s));
    struct sentinel_watch_setup watch = {
        .io = setup->io,
        .config = &s->config,
        .timeout_ms = setup->options.timeout_ms,
        .seed = setup->seed,
        .events = &WATCH_EVENTS,
        .ctx = s,
    };
    struct node_setup node = {
        .store = setup,
        .url = &s->config.sentinel.redis,
        .seed = setup->seed,
        .events = { .ctx = s,
                    .on_result = on_result,
                    .on_failed_over = on_failed_over,
                    .on_up = on_up,
                    .on_down = on_down },
        .listener = setup->listener,
        .is_replicated = true,
        .batches = true,
        .hears_daemons = true,
        .why_not = why_not,
    };

    backend_config_copy(&s->config, &setup->config);
    s->events = setup->events;
    s->watch = sentinel_watch_new(&watch);
    s->node = node_new(&node);
    return s;
}

/* The node starts when there is a server. */
static void sentinel_start(void *backend)
{
    struct sentinel *s = backend;

    log_notice("sentinel", "asking %zu Sentinels for the master \"%s\"",
               s->config.url_count, s->config.sentinel.master);
    sentinel_watch_start(s->watch);
}

static void sentinel_set_tls(void *backend, struct tls *tls)
{
    struct sentinel *s = backend;

    backend_config_set_tls(&s->config, tls);
    sentinel_watch_set_tls(s->watch, tls);
    node_set_tls(s->node, tls);
}

static void sentinel_set_login(void *backend, const struct backend_config *config)
{
    struct sentinel *s = backend;

    backend_config_set_login(&s->config, config);
    sentinel_watch_set_login(s->watch, &config->urls[0]);
    node_set_login(s->node, &config->sentinel.redis);
}

static void sentinel_configure(void *backend, const struct store_options *options)
{
    struct sentinel *s = backend;

    sentinel_watch_set_timeout(s->watch, options->timeout_ms);
    node_configure(s->node, options);
}

static void sentinel_submit(void *backend, const struct op *op)
{
    struct sentinel *s = backend;

    node_submit(s->node, op);
}

static void sentinel_subscribe(void *backend, struct span name,
                               enum lock_class lock_class)
{
    struct sentinel *s = backend;

    node_subscribe(s->node, name, lock_class);
}

static void sentinel_unsubscribe(void *backend, struct span name,
                                 enum lock_class lock_class)
{
    struct sentinel *s = backend;

    node_unsubscribe(s->node, name, lock_class);
}

static void sentinel_announce(void *backend, struct span text)
{
    struct sentinel *s = backend;

    redis_link_announce(node_link(s->node), text);
}

static void sentinel_hear(void *backend, bool is_pattern, struct span name, bool wanted)
{
    struct sentinel *s = backend;

    node_hear(s->node, is_pattern, name, wanted);
}

static bool sentinel_hears(const void *backend, bool is_pattern, struct span name)
{
    const struct sentinel *s = backend;

    return node_hears(s->node, is_pattern, name);
}

static bool sentinel_publish(void *backend, struct span channel, struct span text)
{
    struct sentinel *s = backend;

    return node_publish(s->node, channel, text);
}

static void sentinel_begin_turn(void *backend)
{
    struct sentinel *s = backend;

    node_begin_turn(s->node);
}

static void sentinel_end_turn(void *backend)
{
    struct sentinel *s = backend;

    node_end_turn(s->node);
}

static void sentinel_info(const void *backend, struct store_info *ret)
{
    const struct sentinel *s = backend;
    struct sentinel_watch_info watch;

    sentinel_watch_info(s->watch, &watch);
    node_info(s->node, ret);
    if (!s->knows) {
        ret->address[0] = '\0';
    }
    ret->sentinel = (struct store_sentinel_info){
        .master = s->config.sentinel.master,
        .known = watch.known,
        .reachable = watch.reachable,
        .epoch = watch.epoch,
        .switches = s->switches,
    };
}

struct each {
    store_node_fn *fn;
    void *ctx;
};

static void tell_sentinel(void *ctx, const char *address, bool is_reachable)
{
    const struct each *each = ctx;

    each->fn(each->ctx, &(struct store_node_info){ .address = address,
                                                   .role = "sentinel",
                                                   .up = is_reachable });
}

static void sentinel_each_node(const void *backend, store_node_fn *fn, void *ctx)
{
    const struct sentinel *s = backend;
    struct each each = { .fn = fn, .ctx = ctx };

    if (s->knows) {
        node_tell(s->node, "master", fn, ctx);
    }
    sentinel_watch_each(s->watch, tell_sentinel, &each);
}

static void sentinel_close(void *backend)
{
    struct sentinel *s = backend;

    sentinel_watch_close(s->watch);
    node_close(s->node);
}

static void sentinel_free(void *backend)
{
    struct sentinel *s = backend;

    if (s != NULL) {
        sentinel_watch_free(s->watch);
        node_free(s->node);
        backend_config_fini(&s->config);
        free(s);
    }
}

const struct store_backend SENTINEL_BACKEND = {
    .name = "sentinel",
    .make = sentinel_make,
    .start = sentinel_start,
    .set_tls = sentinel_set_tls,
    .set_login = sentinel_set_login,
    .configure = sentinel_configure,
    .submit = sentinel_submit,
    .subscribe = sentinel_subscribe,
    .unsubscribe = sentinel_unsubscribe,
    .announce = sentinel_announce,
    .hear = sentinel_hear,
    .hears = sentinel_hears,
    .publish = sentinel_publish,
    .begin_turn = sentinel_begin_turn,
    .end_turn = sentinel_end_turn,
    .info = sentinel_info,
    .each_node = sentinel_each_node,
    .close = sentinel_close,
    .free = sentinel_free,
};
