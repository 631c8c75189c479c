/* One server: its node's events are the store's. */
#include "backend/backend.h"
#include "backend/node.h"
#include "backend/redis/redis_link.h"

static void *single_make(const struct store_setup *setup)
{
    struct node_setup node = {
        .store = setup,
        .url = &setup->config.urls[0],
        .seed = setup->seed,
        .batches = true,
        .hears_daemons = true,
        .events = setup->events,
        .listener = setup->listener,
    };

    return node_new(&node);
}

static void single_start(void *backend)
{
    node_start(backend);
}

static void single_set_tls(void *backend, struct tls *tls)
{
    node_set_tls(backend, tls);
}

static void single_set_login(void *backend, const struct backend_config *config)
{
    node_set_login(backend, &config->urls[0]);
}

static void single_configure(void *backend, const struct store_options *options)
{
    node_configure(backend, options);
}

static void single_submit(void *backend, const struct op *op)
{
    node_submit(backend, op);
}

static void single_subscribe(void *backend, struct span name,
                             enum lock_class lock_class)
{
    node_subscribe(backend, name, lock_class);
}

static void single_unsubscribe(void *backend, struct span name,
                               enum lock_class lock_class)
{
    node_unsubscribe(backend, name, lock_class);
}

static void single_announce(void *backend, struct span text)
{
    redis_link_announce(node_link(backend), text);
}

static void single_hear(void *backend, bool is_pattern, struct span name, bool wanted)
{
    node_hear(backend, is_pattern, name, wanted);
}

static bool single_hears(const void *backend, bool is_pattern, struct span name)
{
    return node_hears(backend, is_pattern, name);
}

static bool single_publish(void *backend, struct span channel, struct span text)
{
    return node_publish(backend, channel, text);
}

static void single_begin_turn(void *backend)
{
    node_begin_turn(backend);
}

static void single_end_turn(void *backend)
{
    node_end_turn(backend);
}

static void single_info(const void *backend, struct store_info *ret)
{
    node_info(backend, ret);
}

static void single_each_node(const void *backend, store_node_fn *fn, void *ctx)
{
    node_tell(backend, "master", fn, ctx);
}

static void single_close(void *backend)
{
    node_close(backend);
}

static void single_free(void *backend)
{
    node_free(backend);
}

const struct store_backend SINGLE_BACKEND = {
    .name = "single",
    .make = single_make,
    .start = single_start,
    .set_tls = single_set_tls,
    .set_login = single_set_login,
    .configure = single_configure,
    .submit = single_submit,
    .subscribe = single_subscribe,
    .unsubscribe = single_unsubscribe,
    .announce = single_announce,
    .hear = single_hear,
    .hears = single_hears,
    .publish = single_publish,
    .begin_turn = single_begin_turn,
    .end_turn = single_end_turn,
    .info = single_info,
    .each_node = single_each_node,
    .close = single_close,
    .free = single_free,
};
