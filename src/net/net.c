#include "net/net_priv.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/log.h"

#include <stdlib.h>
#include <sys/resource.h>

/* File descriptors that are no clients: listeners, links to Redis, libuv's own, and
 * one to accept a client and tell it why it is refused. */
enum { SPARE_FDS = 32 };

/* Keeps the loop turning while requests are left for the next turn. */
struct waker {
    uv_idle_t idle;
};

static void on_idle(uv_idle_t *idle)
{
}

static void on_waker_closed(uv_handle_t *handle)
{
    free(container_of(handle, struct waker, idle));
}

struct net *net_new(struct io *io, const struct net_limits *limits)
{
    struct net *n = xcalloc(1, sizeof(*n));

    n->io = io;
    n->parser = resp_parser_new();
    n->turn = 1;
    list_init(&n->conns);
    list_init(&n->unauthenticated);
    list_init(&n->ready);
    list_init(&n->backlog);
    list_init(&n->later);
    list_init(&n->dirty);
    list_init(&n->lingering);
    list_init(&n->leaving);
    list_init(&n->dead);
    list_init(&n->listeners);
    n->waker = xcalloc(1, sizeof(*n->waker));
    (void)uv_idle_init(io->loop, &n->waker->idle); /* cannot fail */
    net_set_limits(n, limits);
    return n;
}

void net_set_handler(struct net *n, const struct conn_handler *handler)
{
    n->handler = *handler;
}

static void free_dead(struct net *n)
{
    struct list *node;

    while ((node = list_first(&n->dead)) != NULL) {
        list_del(node);
        conn_free(container_of(node, struct conn, all));
    }
}

void net_free(struct net *n)
{
    if (n == NULL) {
        return;
    }
    net_close(n);
    free_dead(n);
    table_fini(&n->table);
    table_fini(&n->heartbeats);
    tls_unref(n->tls);
    resp_parser_free(n->parser);
    pool_fini(&n->pool);
    free(n);
}

static void recount_conn(void *ctx, struct conn *c)
{
    (void)ctx;
    conn_uncount(c);
    conn_count(c);
}

void net_set_limits(struct net *n, const struct net_limits *limits)
{
    struct rlimit files;

    n->limits = *limits;
    net_foreach(n, recount_conn, NULL);
    n->client_max = limits->max_clients;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY) {
        size_t room = files.rlim_cur > SPARE_FDS ? files.rlim_cur - SPARE_FDS : 1;

        n->client_max = room < n->client_max ? room : n->client_max;
    }
}

void net_set_tls(struct net *n, struct tls *tls)
{
    tls_unref(n->tls);
    n->tls = tls_ref(tls);
}

void net_stats(const struct net *n, struct net_stats *ret)
{
    *ret = n->stats;
}

/* Closes one conn whose peer left. */
static bool leave_one(struct net *n)
{
    struct list *node = list_first(&n->leaving);
    size_t open = n->stats.open;

    if (node == NULL) {
        return false;
    }
    list_del(node);
    conn_leave(container_of(node, struct conn, work));
    return n->stats.open < open;
}

void net_accept(struct net *n, int fd, bool is_unix, bool tls)
{
    struct conn *c = conn_accept(n, fd, is_unix, tls);

    if (c == NULL) {
        return;
    }
    if (n->stats.open >= n->client_max && !leave_one(n) &&
        !net_evict_unauthenticated(n)) {
        n->stats.refused++;
        conn_refuse(c, "max number of clients reached");
        return;
    }
    n->stats.accepted++;
    n->stats.open++;
    n->stats.unauthenticated++;
    list_append(&n->unauthenticated, &c->all);
    table_add(&n->table, &c->slot);
    n->handler.on_event(n->handler.ctx);
    if (n->handler.on_open(n->handler.ctx, c)) {
        c->opened = true;
    } else {
        n->stats.refused++;
        conn_drain(c);
    }
}

/* Turns */

static bool run_all(struct list *ready)
{
    struct list *node;
    bool any = false;

    while ((node = list_first(ready)) != NULL) {
        list_del(node);
        conn_run(container_of(node, struct conn, work));
        any = true;
    }
    return any;
}

/* Runs conns that had their share in an earlier turn, as long as this turn has time. */
static bool run_backlog(struct net *n)
{
    struct list *node;
    uint64_t start;
    bool any = false;

    while (n->backlog_us < TURN_BACKLOG_US &&
           (node = list_first(&n->backlog)) != NULL) {
        list_del(node);
        start = clock_boot_us();
        conn_run(container_of(node, struct conn, work));
        n->backlog_us += clock_boot_us() - start;
        any = true;
    }
    return any;
}

static bool run_leaving(struct net *n)
{
    bool any = false;

    while (n->ends < TURN_ENDS && !list_empty(&n->leaving)) {
        n->ends++;
        (void)leave_one(n);
        any = true;
    }
    return any;
}

bool net_run(struct net *n)
{
    bool any = run_all(&n->ready);

    any = run_leaving(n) || any;
    return run_backlog(n) || any;
}

static void check_lingering(struct net *n, uint64_t now_ms)
{
    struct list *node;
    struct list *next;

    n->linger_checked_ms = now_ms;
    LIST_FOREACH_SAFE(node, next, &n->lingering)
    {
        conn_check_linger(container_of(node, struct conn, work), now_ms);
    }
}

void net_end_turn(struct net *n)
{
    struct list *node;

    (void)net_run(n);
    net_show_out(n);
    while ((node = list_first(&n->dirty)) != NULL) {
        conn_flush(container_of(node, struct conn, dirty));
    }
    net_evict(n);
    if (!list_empty(&n->lingering)) {
        uint64_t now_ms = clock_boot_ms();

        if (now_ms >= n->linger_checked_ms + LINGER_CHECK_MS) {
            check_lingering(n, now_ms);
        }
    }
    io_end_turn(n->io);
    n->turn++;
    n->backlog_us = 0;
    list_splice(&n->backlog, &n->later);
    n->ends = 0;
    if (n->waker != NULL && list_empty(&n->backlog) && list_empty(&n->leaving) &&
        !net_has_late(n)) {
        (void)uv_idle_stop(&n->waker->idle);
    } else if (n->waker != NULL) {
        (void)uv_idle_start(&n->waker->idle, on_idle);
    }
    free_dead(n);
}

static bool is_idle(const struct net *n, struct conn *c, uint64_t now_ms)
{
    return c->state == CONN_OPEN && c->flow == FLOW_FREE && n->limits.idle_ms != 0 &&
           now_ms > c->active_ms && now_ms - c->active_ms > n->limits.idle_ms &&
           (n->handler.is_busy == NULL || !n->handler.is_busy(n->handler.ctx, c));
}

void net_tick(struct net *n, uint64_t now_ms)
{
    struct list *node;
    struct list *next;

    check_lingering(n, clock_boot_ms());
    n->ticked_ms = now_ms;
    if (n->limits.idle_ms == 0) {
        return;
    }
    LIST_FOREACH_SAFE(node, next, &n->conns)
    {
        struct conn *c = container_of(node, struct conn, all);

        if (is_idle(n, c, now_ms)) {
            conn_set_end(c, END_IDLE);
            conn_close(c);
        }
    }
}

void net_close(struct net *n)
{
    struct list *node;

    net_stop_listening(n);
    list_splice(&n->conns, &n->unauthenticated);
    while ((node = list_first(&n->conns)) != NULL) {
        conn_close_last_try(container_of(node, struct conn, all));
    }
    if (n->waker != NULL) {
        uv_close((uv_handle_t *)&n->waker->idle, on_waker_closed);
        n->waker = NULL;
    }
}

struct conn *net_find(struct net *n, uint64_t id)
{
    struct table_node *slot = table_find(&n->table, id);

    return slot == NULL ? NULL : container_of(slot, struct conn, slot);
}

static void each_of(const struct list *conns, conn_fn *fn, void *ctx)
{
    struct list *node;
    struct list *next;

    LIST_FOREACH_SAFE(node, next, conns)
    {
        fn(ctx, container_of(node, struct conn, all));
    }
}

void net_foreach(struct net *n, conn_fn *fn, void *ctx)
{
    each_of(&n->conns, fn, ctx);
    each_of(&n->unauthenticated, fn, ctx);
}
