/* The master of several replicated servers, as Sentinels name it: one node, which moves
 * when the Sentinels say so (sentinel_watch.h) and is used once it says of itself that
 * it is a master. */
#include "backend/backend.h"
#include "backend/sentinel_watch.h"
#include "util/clock.h"
#include "util/list.h"
#include "util/log.h"

#include <inttypes.h>

struct sentinel {
    struct store store; /* of one node */
    struct sentinel_watch *watch;
    bool knows;                   /* which one to use */
    struct sentinel_claim named;  /* that one */
    struct sentinel_claim served; /* the one that was up last; no host: none */
    bool failed_over;             /* as far as the node can tell */
    uint64_t lost_ms;             /* the link was lost, or another one was named */
    uint64_t switches;
};

/* --- from the node --------------------------------------------------------------- */

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

static void on_up(struct sentinel *s, const struct store_event *up)
{
    bool failed_over = s->failed_over || (!up->same_server && is_another_one(s));

    s->failed_over = false;
    s->served = s->named;
    sentinel_watch_set_usable(s->watch, true);
    if (failed_over) {
        store_tell(&s->store.setup.events,
                   &(struct store_event){ .kind = STORE_FAILED_OVER });
    }
    store_tell(&s->store.setup.events, up);
}

static void on_node_event(void *ctx, const struct store_event *ev)
{
    struct sentinel *s = ctx;

    switch (ev->kind) {
    case STORE_FAILED_OVER: /* perhaps before a Sentinel says so, or none ever does */
        s->failed_over = true;
        break;
    case STORE_UP:
        on_up(s, ev);
        break;
    case STORE_DOWN:
        s->lost_ms = clock_boot_ms();
        sentinel_watch_set_usable(s->watch, false);
        store_tell(&s->store.setup.events, ev);
        break;
    default:
        store_tell(&s->store.setup.events, ev);
        break;
    }
}

/* --- from the Sentinels ---------------------------------------------------------- */

static void log_master(const struct sentinel *s, enum sentinel_verdict verdict,
                       const struct sentinel_claim *to)
{
    const struct sentinel_claim *from = &s->named;

    if (!s->knows) {
        log_notice("sentinel", "the master \"%s\" is %s:%s (epoch %" PRIu64 ")",
                   s->store.setup.config.sentinel.master, to->host, to->port,
                   to->epoch);
    } else if (verdict == SENTINEL_CONFIRMED) {
        log_notice("sentinel",
                   "the master \"%s\" is %s:%s again (epoch %" PRIu64 " after %" PRIu64
                   "), which is looked at anew",
                   s->store.setup.config.sentinel.master, to->host, to->port, to->epoch,
                   from->epoch);
    } else if (verdict == SENTINEL_OVERRULED) {
        log_warning("sentinel",
                    "the master \"%s\" is %s:%s, as most Sentinels insist on epoch "
                    "%" PRIu64 " and %s:%s of epoch %" PRIu64
                    " cannot be used: see why a Sentinel named that one",
                    s->store.setup.config.sentinel.master, to->host, to->port,
                    to->epoch, from->host, from->port, from->epoch);
    } else {
        log_warning("sentinel",
                    "failover: the master \"%s\" is %s:%s now (epoch %" PRIu64
                    "), nothing is sent to %s:%s (epoch %" PRIu64
                    ") any more; what it had not passed on is lost",
                    s->store.setup.config.sentinel.master, to->host, to->port,
                    to->epoch, from->host, from->port, from->epoch);
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
    node_move(s->store.nodes[0], master->host, master->port);
}

/* --- for the store --------------------------------------------------------------- */

static struct sentinel *sentinel_of(const struct store *store)
{
    return container_of(store, struct sentinel, store);
}

static void sentinel_init(struct store *store)
{
    struct sentinel *s = sentinel_of(store);
    const struct store_setup *setup = &store->setup;
    struct sentinel_watch_setup watch = {
        .io = setup->io,
        .config = &setup->config,
        .timeout_ms = setup->options.timeout_ms,
        .seed = setup->seed,
        .on_master = on_master,
        .ctx = s,
    };
    struct node_setup node = {
        .store = setup,
        .url = &setup->config.sentinel.redis,
        .seed = setup->seed,
        .events = { on_node_event, s },
        .is_replicated = true,
        .watches = true,
        .batches = true,
        .hears_daemons = true,
        .why_not = why_not,
    };

    s->watch = sentinel_watch_new(&watch);
    (void)store_add_node(store, &node);
}

/* The node starts when there is a server. */
static void sentinel_start(struct store *store)
{
    const struct backend_config *config = &store->setup.config;

    log_notice("sentinel", "asking %zu Sentinels for the master \"%s\"",
               config->url_count, config->sentinel.master);
    sentinel_watch_start(sentinel_of(store)->watch);
}

static void sentinel_configure(struct store *store)
{
    sentinel_watch_configure(sentinel_of(store)->watch,
                             store->setup.options.timeout_ms);
}

static void sentinel_info(const struct store *store, struct store_info *ret)
{
    const struct sentinel *s = sentinel_of(store);
    struct sentinel_watch_info watch;

    sentinel_watch_info(s->watch, &watch);
    node_info(store->nodes[0], ret);
    if (!s->knows) {
        ret->address[0] = '\0';
    }
    ret->sentinel = (struct store_sentinel_info){
        .master = store->setup.config.sentinel.master,
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

static void sentinel_each_node(const struct store *store, store_node_fn *fn, void *ctx)
{
    const struct sentinel *s = sentinel_of(store);
    struct each each = { .fn = fn, .ctx = ctx };

    if (s->knows) {
        node_tell(store->nodes[0], "master", fn, ctx);
    }
    sentinel_watch_each(s->watch, tell_sentinel, &each);
}

static void sentinel_close(struct store *store)
{
    sentinel_watch_close(sentinel_of(store)->watch);
}

static void sentinel_free(struct store *store)
{
    sentinel_watch_free(sentinel_of(store)->watch);
}

const struct topology SENTINEL_TOPOLOGY = {
    .name = "sentinel",
    .size = sizeof(struct sentinel),
    .relays = true,
    .init = sentinel_init,
    .start = sentinel_start,
    .configure = sentinel_configure,
    .info = sentinel_info,
    .each_node = sentinel_each_node,
    .close = sentinel_close,
    .free = sentinel_free,
};
