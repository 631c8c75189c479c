/* backend: how the store works in one topology. store.c hands every call on to one of
 * these. After close() only info() and free() are called.
 *
 * What make() returns owns its nodes, gets their events, and reports the store's
 * (setup->events). Every op that a backend is given gets exactly one result. */
#ifndef LATCHD_BACKEND_BACKEND_H
#define LATCHD_BACKEND_BACKEND_H

#include "backend/store.h"
#include "engine/lock_kind.h"

struct store_backend {
    const char *name; /* as in INFO */
    /* *setup is valid during the call only, but its round_trips outlive the backend. */
    void *(*make)(const struct store_setup *setup);
    void (*start)(void *backend);
    void (*set_tls)(void *backend, struct tls *tls);
    void (*set_login)(void *backend, const struct backend_config *config);
    void (*configure)(void *backend, const struct store_options *options);
    void (*submit)(void *backend, const struct op *op);
    bool (*seek_part)(const void *backend, uint32_t *part); /* NULL: it is one server */
    void (*subscribe)(void *backend, struct span name, enum lock_class lock_class);
    void (*unsubscribe)(void *backend, struct span name, enum lock_class lock_class);
    void (*unlisten)(void *backend, struct span name, struct span member); /* or NULL */
    void (*announce)(void *backend, struct span text); /* or NULL: nobody listens */
    /* Or NULL, all three: */
    void (*hear)(void *backend, bool is_pattern, struct span name, bool wanted);
    bool (*hears)(const void *backend, bool is_pattern, struct span name);
    bool (*publish)(void *backend, struct span channel, struct span text);
    void (*begin_turn)(void *backend);
    void (*end_turn)(void *backend);
    /* Adds its counters to *ret. */
    void (*info)(const void *backend, struct store_info *ret);
    void (*each_node)(const void *backend, store_node_fn *fn, void *ctx);
    void (*close)(void *backend);
    void (*free)(void *backend);
};

extern const struct store_backend SINGLE_BACKEND;
extern const struct store_backend SENTINEL_BACKEND;
extern const struct store_backend CLUSTER_BACKEND;
extern const struct store_backend QUORUM_BACKEND;

#endif
