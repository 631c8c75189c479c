#include "backend/store.h"

#include "backend/backend.h"

#include <stdlib.h>

/* One server: its node's events are the store's. */
static void single_init(struct store *s)
{
    struct node_setup node = {
        .store = &s->setup,
        .url = &s->setup.config.urls[0],
        .seed = s->setup.seed,
        .batches = true,
        .watches = true,
        .hears_daemons = true,
        .events = s->setup.events,
    };

    (void)store_add_node(s, &node);
}

static const struct topology SINGLE_TOPOLOGY = {
    .name = "single",
    .size = sizeof(struct store),
    .relays = true,
    .init = single_init,
};

static const struct topology *const TOPOLOGIES[] = {
    [BACKEND_SINGLE] = &SINGLE_TOPOLOGY,
    [BACKEND_SENTINEL] = &SENTINEL_TOPOLOGY,
    [BACKEND_CLUSTER] = &CLUSTER_TOPOLOGY,
    [BACKEND_QUORUM] = &QUORUM_TOPOLOGY,
};

struct store *store_new(const struct store_setup *setup)
{
    const struct topology *topology = TOPOLOGIES[setup->config.topology];
    struct store *s = xcalloc(1, topology->size);

    s->topology = topology;
    s->setup = *setup;
    s->setup.round_trips = &s->round_trips;
    backend_config_copy(&s->setup.config, &setup->config);
    topology->init(s);
    return s;
}

void store_start(struct store *s)
{
    if (s->topology->start != NULL) {
        s->topology->start(s);
        return;
    }
    for (size_t i = 0; i < s->node_count; i++) {
        node_start(s->nodes[i]);
    }
}

static void apply_setup(struct store *s)
{
    if (s->closed) {
        return;
    }
    for (size_t i = 0; i < s->node_count; i++) {
        node_configure(s->nodes[i]);
    }
    if (s->topology->configure != NULL) {
        s->topology->configure(s);
    }
}

void store_set_tls(struct store *s, struct tls *tls)
{
    backend_config_set_tls(&s->setup.config, tls);
    apply_setup(s);
}

void store_set_login(struct store *s, const struct backend_config *config)
{
    backend_config_set_login(&s->setup.config, config);
    apply_setup(s);
}

void store_configure(struct store *s, const struct store_options *options)
{
    s->setup.options = *options;
    apply_setup(s);
}

void store_submit(struct store *s, const struct op *op)
{
    if (s->closed) {
        return;
    }
    if (s->topology->submit != NULL) {
        s->topology->submit(s, op);
    } else {
        node_submit(s->nodes[0], op);
    }
}

static void set_subscribed(struct store *s, struct span name,
                           enum lock_class lock_class, bool wanted)
{
    if (s->closed) {
        return;
    }
    if (s->topology->subscribe != NULL) {
        s->topology->subscribe(s, name, lock_class, wanted);
    } else {
        node_subscribe(s->nodes[0], name, lock_class, wanted);
    }
}

void store_subscribe(struct store *s, struct span name, enum lock_class lock_class)
{
    set_subscribed(s, name, lock_class, true);
}

void store_unsubscribe(struct store *s, struct span name, enum lock_class lock_class)
{
    set_subscribed(s, name, lock_class, false);
}

void store_unlisten(struct store *s, struct span name, struct span member)
{
    if (!s->closed && s->topology->unlisten != NULL) {
        s->topology->unlisten(s, name, member);
    }
}

void store_watch(struct store *s, struct span name)
{
    if (s->closed) {
        return;
    }
    if (s->topology->watch != NULL) {
        s->topology->watch(s, name);
    } else {
        node_watch(s->nodes[0], name);
    }
}

/* Any node takes it; those of a cluster pass it on to each other. */
void store_announce(struct store *s, struct span text)
{
    for (size_t i = 0; i < s->node_count && !s->closed; i++) {
        if (node_announce(s->nodes[i], text)) {
            return;
        }
    }
}

void store_hear(struct store *s, bool is_pattern, struct span name, bool wanted)
{
    if (!s->closed && s->topology->relays) {
        node_hear(s->nodes[0], is_pattern, name, wanted);
    }
}

bool store_hears(const struct store *s, bool is_pattern, struct span name)
{
    return !s->closed && s->topology->relays &&
           node_hears(s->nodes[0], is_pattern, name);
}

bool store_publish(struct store *s, struct span channel, struct span text)
{
    return !s->closed && s->topology->relays &&
           node_publish(s->nodes[0], channel, text);
}

void store_begin_turn(struct store *s)
{
    for (size_t i = 0; i < s->node_count && !s->closed; i++) {
        node_begin_turn(s->nodes[i]);
    }
    if (!s->closed && s->topology->begin_turn != NULL) {
        s->topology->begin_turn(s);
    }
}

void store_end_turn(struct store *s)
{
    for (size_t i = 0; i < s->node_count && !s->closed; i++) {
        node_end_turn(s->nodes[i]);
    }
    if (!s->closed && s->topology->end_turn != NULL) {
        s->topology->end_turn(s);
    }
}

bool store_seek_part(const struct store *s, uint32_t *part)
{
    if (s->closed) {
        return false;
    }
    return s->topology->seek_part == NULL ? *part == 0
                                          : s->topology->seek_part(s, part);
}

void store_info(const struct store *s, struct store_info *ret)
{
    *ret = (struct store_info){
        .topology = s->topology->name,
        .round_trips = &s->round_trips,
    };
    if (s->topology->info != NULL) {
        s->topology->info(s, ret);
    } else {
        node_info(s->nodes[0], ret);
    }
}

void store_each_node(const struct store *s, store_node_fn *fn, void *ctx)
{
    if (!s->closed && s->topology->each_node != NULL) {
        s->topology->each_node(s, fn, ctx);
        return;
    }
    for (size_t i = 0; i < s->node_count && !s->closed; i++) {
        node_tell(s->nodes[i], "master", fn, ctx);
    }
}

void store_close(struct store *s)
{
    if (s == NULL || s->closed) {
        return;
    }
    s->closed = true;
    for (size_t i = 0; i < s->node_count; i++) {
        node_close(s->nodes[i]);
    }
    if (s->topology->close != NULL) {
        s->topology->close(s);
    }
}

void store_free(struct store *s)
{
    if (s == NULL) {
        return;
    }
    for (size_t i = 0; i < s->node_count; i++) {
        node_free(s->nodes[i]);
    }
    if (s->topology->free != NULL) {
        s->topology->free(s);
    }
    backend_config_fini(&s->setup.config);
    free(s->nodes);
    free(s);
}
