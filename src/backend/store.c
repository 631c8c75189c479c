#include "backend/store.h"

#include "backend/backend.h"
#include "util/alloc.h"

#include <stdlib.h>

struct store {
    const struct store_backend *ops;
    void *backend;
    bool closed;
    struct histogram round_trips;
};

static const struct store_backend *const BACKENDS[] = {
    [BACKEND_SINGLE] = &SINGLE_BACKEND,
    [BACKEND_SENTINEL] = &SENTINEL_BACKEND,
    [BACKEND_CLUSTER] = &CLUSTER_BACKEND,
    [BACKEND_QUORUM] = &QUORUM_BACKEND,
};

struct store *store_new(const struct store_setup *setup)
{
    struct store *s = xcalloc(1, sizeof(*s));
    struct store_setup mine = *setup;

    mine.round_trips = &s->round_trips;
    s->ops = BACKENDS[setup->config.topology];
    s->backend = s->ops->make(&mine);
    return s;
}

void store_start(struct store *s)
{
    s->ops->start(s->backend);
}

void store_set_tls(struct store *s, struct tls *tls)
{
    s->ops->set_tls(s->backend, tls);
}

void store_set_login(struct store *s, const struct backend_config *config)
{
    if (!s->closed) {
        s->ops->set_login(s->backend, config);
    }
}

void store_configure(struct store *s, const struct store_options *options)
{
    if (!s->closed) {
        s->ops->configure(s->backend, options);
    }
}

void store_submit(struct store *s, const struct op *op)
{
    if (!s->closed) {
        s->ops->submit(s->backend, op);
    }
}

void store_subscribe(struct store *s, struct span name, enum lock_class lock_class)
{
    if (!s->closed) {
        s->ops->subscribe(s->backend, name, lock_class);
    }
}

void store_unsubscribe(struct store *s, struct span name, enum lock_class lock_class)
{
    if (!s->closed) {
        s->ops->unsubscribe(s->backend, name, lock_class);
    }
}

void store_unlisten(struct store *s, struct span name, struct span member)
{
    if (!s->closed && s->ops->unlisten != NULL) {
        s->ops->unlisten(s->backend, name, member);
    }
}

void store_announce(struct store *s, struct span text)
{
    if (!s->closed && s->ops->announce != NULL) {
        s->ops->announce(s->backend, text);
    }
}

void store_hear(struct store *s, bool is_pattern, struct span name, bool wanted)
{
    if (!s->closed && s->ops->hear != NULL) {
        s->ops->hear(s->backend, is_pattern, name, wanted);
    }
}

bool store_hears(const struct store *s, bool is_pattern, struct span name)
{
    return !s->closed && s->ops->hears != NULL &&
           s->ops->hears(s->backend, is_pattern, name);
}

bool store_publish(struct store *s, struct span channel, struct span text)
{
    return !s->closed && s->ops->publish != NULL &&
           s->ops->publish(s->backend, channel, text);
}

void store_begin_turn(struct store *s)
{
    if (!s->closed) {
        s->ops->begin_turn(s->backend);
    }
}

void store_end_turn(struct store *s)
{
    if (!s->closed) {
        s->ops->end_turn(s->backend);
    }
}

bool store_seek_part(const struct store *s, uint32_t *part)
{
    if (s->closed) {
        return false;
    }
    return s->ops->seek_part == NULL ? *part == 0 : s->ops->seek_part(s->backend, part);
}

void store_info(const struct store *s, struct store_info *ret)
{
    *ret = (struct store_info){
        .topology = s->ops->name,
        .round_trips = &s->round_trips,
    };
    s->ops->info(s->backend, ret);
}

void store_each_node(const struct store *s, store_node_fn *fn, void *ctx)
{
    if (!s->closed) {
        s->ops->each_node(s->backend, fn, ctx);
    }
}

void store_close(struct store *s)
{
    if (s != NULL && !s->closed) {
        s->closed = true;
        s->ops->close(s->backend);
    }
}

void store_free(struct store *s)
{
    if (s != NULL) {
        s->ops->free(s->backend);
        free(s);
    }
}
