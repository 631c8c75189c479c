#include "backend/sentinel/sentinel_watch.h"

#include "backend/sentinel/sentinel_client.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/list.h"
#include "util/log.h"

#include <stdlib.h>

enum {
    CALM_MS = 1000,         /* between two askings */
    EAGER_MS = 250,         /* the same, while the master cannot be used */
    OTHERS_MS = 10000,      /* between two askings for other Sentinels */
    OTHERS_GONE_MS = 60000, /* nobody names it any more, and it is out of reach */
};

struct seat {
    struct sentinel_client *peer; /* NULL: nobody */
    bool is_found;                /* by another one; else the configuration names it */
    uint64_t named_ms;            /* by another one */
};

struct sentinel_watch {
    uv_timer_t timer;
    struct io *io;
    const struct backend_config *config;
    uint64_t timeout_ms;
    uint64_t seed;
    const struct sentinel_watch_events *events;
    void *ctx;
    bool closed;
    bool usable;
    bool is_alone; /* no Sentinel is heard, and that was logged */
    uint64_t others_ms;
    struct seat seats[SENTINELS_MAX];
    struct sentinel_client *retired[2 * SENTINELS_MAX]; /* closed, to be freed */
    size_t retired_count;
    struct sentinel_vote votes;
};

static const struct sentinel_client_events PEER_EVENTS;

/* --- who there is ---------------------------------------------------------------- */

static void seat_sentinel(struct sentinel_watch *w, size_t at,
                          const struct backend_url *url)
{
    struct sentinel_client_setup setup = {
        .io = w->io,
        .url = url,
        .master = w->config->sentinel.master,
        .timeout_ms = w->timeout_ms,
        .seed = w->seed + at * 0x9E3779B97F4A7C15U,
        .events = &PEER_EVENTS,
        .ctx = w,
    };

    w->seats[at] = (struct seat){ .peer = sentinel_client_new(&setup) };
    sentinel_vote_add(&w->votes, at);
}

/* The client's memory is freed in a later turn of the loop. */
static void retire_seat(struct sentinel_watch *w, size_t at)
{
    struct sentinel_client *p = w->seats[at].peer;

    sentinel_client_close(p);
    w->retired[w->retired_count++] = p;
    w->seats[at].peer = NULL;
    sentinel_vote_remove(&w->votes, at);
}

static void free_retired(struct sentinel_watch *w)
{
    while (w->retired_count != 0) {
        sentinel_client_free(w->retired[--w->retired_count]);
    }
}

static size_t seat_of(const struct sentinel_watch *w, const struct sentinel_client *p)
{
    size_t at = 0;

    while (w->seats[at].peer != p) {
        at++;
    }
    return at;
}

/* The number of that Sentinel; SENTINELS_MAX: it is new. */
static size_t seat_of_other(const struct sentinel_watch *w, struct span host,
                            struct span port, struct span id)
{
    size_t at = 0;

    for (; at < SENTINELS_MAX; at++) {
        const struct sentinel_client *p = w->seats[at].peer;

        if (p != NULL && (sentinel_client_is_at(p, host, port) ||
                          span_eq(span_str(sentinel_client_id(p)), id))) {
            break;
        }
    }
    return at;
}

static void on_other(void *ctx, struct span host, struct span port, struct span id)
{
    struct sentinel_watch *w = ctx;
    struct backend_url url;
    size_t at = seat_of_other(w, host, port, id);

    if (id.len != SENTINEL_ID_LEN) {
        return;
    }
    if (at < SENTINELS_MAX) {
        w->seats[at].named_ms = clock_boot_ms();
        return;
    }
    at = 0;
    while (at < SENTINELS_MAX && w->seats[at].peer != NULL) {
        at++;
    }
    if (at == SENTINELS_MAX || w->retired_count >= SENTINELS_MAX) {
        return;
    }
    backend_url_copy(&url, &w->config->urls[0]);
    backend_url_set_server(&url, host, port);
    seat_sentinel(w, at, &url);
    backend_url_fini(&url);
    w->seats[at].is_found = true;
    w->seats[at].named_ms = clock_boot_ms();
    sentinel_client_start(w->seats[at].peer);
}

/* Drops the second address of a Sentinel, which would have two votes otherwise. */
static void on_id(void *ctx, struct sentinel_client *p, const char *id)
{
    struct sentinel_watch *w = ctx;
    size_t mine = seat_of(w, p);

    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        struct sentinel_client *other = w->seats[i].peer;

        if (other != NULL && other != p && strcmp(sentinel_client_id(other), id) == 0) {
            retire_seat(w, w->seats[i].is_found ? i : mine);
            return;
        }
    }
}

static void drop_gone(struct sentinel_watch *w, uint64_t now_ms)
{
    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        const struct seat *s = &w->seats[i];

        if (s->peer != NULL && s->is_found &&
            w->votes.sentinels[i].state != SENTINEL_CLAIMS &&
            now_ms - s->named_ms > OTHERS_GONE_MS) {
            retire_seat(w, i);
        }
    }
}

/* --- what they say --------------------------------------------------------------- */

static void note_alone(struct sentinel_watch *w)
{
    bool is_alone = sentinel_vote_count(&w->votes, true) == 0;

    if (is_alone == w->is_alone || !w->votes.knows) {
        return;
    }
    w->is_alone = is_alone;
    if (is_alone) {
        log_warning("sentinel",
                    "no Sentinel answers for \"%s\": %s:%s goes on being used, but a "
                    "failover would not be noticed; bring the Sentinels back",
                    w->config->sentinel.master, w->votes.master.host,
                    w->votes.master.port);
    } else {
        log_notice("sentinel", "a Sentinel answers again for \"%s\"",
                   w->config->sentinel.master);
    }
}

static void decide_master(struct sentinel_watch *w)
{
    enum sentinel_verdict verdict =
        sentinel_vote_decide(&w->votes, clock_boot_ms(), w->usable);

    note_alone(w);
    if (verdict != SENTINEL_STAYS) {
        w->events->on_master(w->ctx, verdict, &w->votes.master);
    }
}

static void ask_all(struct sentinel_watch *w, bool others)
{
    for (size_t i = 0; i < SENTINELS_MAX && !w->closed; i++) {
        if (w->seats[i].peer != NULL) {
            sentinel_client_ask(w->seats[i].peer, others);
        }
    }
}

static void on_claim(void *ctx, struct sentinel_client *p,
                     const struct sentinel_claim *claim)
{
    struct sentinel_watch *w = ctx;
    size_t at = seat_of(w, p);

    if (claim != NULL) {
        sentinel_vote_hear(&w->votes, at, claim);
    } else {
        sentinel_vote_silent(&w->votes, at);
    }
    decide_master(w);
}

static void on_switch(void *ctx, struct sentinel_client *p)
{
    ask_all(ctx, false);
}

static const struct sentinel_client_events PEER_EVENTS = {
    .on_claim = on_claim,
    .on_id = on_id,
    .on_other = on_other,
    .on_switch = on_switch,
};

/* --- time ------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer);

static void arm_timer(struct sentinel_watch *w)
{
    uv_update_time(w->io->loop);
    (void)uv_timer_start(&w->timer, on_timer, w->usable ? CALM_MS : EAGER_MS, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct sentinel_watch *w = container_of(timer, struct sentinel_watch, timer);
    uint64_t now_ms = clock_boot_ms();
    bool others = now_ms - w->others_ms >= OTHERS_MS;

    free_retired(w);
    if (others) {
        w->others_ms = now_ms;
        drop_gone(w, now_ms);
    }
    ask_all(w, others);
    arm_timer(w);
    decide_master(w);
}

/* --- for the backend ------------------------------------------------------------- */

struct sentinel_watch *sentinel_watch_new(const struct sentinel_watch_setup *setup)
{
    struct sentinel_watch *w = xcalloc(1, sizeof(*w));

    w->io = setup->io;
    w->config = setup->config;
    w->timeout_ms = setup->timeout_ms;
    w->seed = setup->seed;
    w->events = setup->events;
    w->ctx = setup->ctx;
    (void)uv_timer_init(w->io->loop, &w->timer);
    for (size_t i = 0; i < w->config->url_count && i < SENTINELS_MAX; i++) {
        seat_sentinel(w, i, &w->config->urls[i]);
    }
    return w;
}

void sentinel_watch_start(struct sentinel_watch *w)
{
    w->others_ms = clock_boot_ms();
    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        if (w->seats[i].peer != NULL) {
            sentinel_client_start(w->seats[i].peer);
        }
    }
    arm_timer(w);
}

void sentinel_watch_configure(struct sentinel_watch *w, uint64_t timeout_ms)
{
    w->timeout_ms = timeout_ms;
    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        if (w->seats[i].peer != NULL) {
            sentinel_client_configure(w->seats[i].peer, &w->config->urls[0],
                                      timeout_ms);
        }
    }
}

void sentinel_watch_set_usable(struct sentinel_watch *w, bool usable)
{
    bool was = w->usable;

    w->usable = usable;
    if (was && !usable && !w->closed) {
        ask_all(w, false);
        arm_timer(w);
    }
}

bool sentinel_watch_named_since(const struct sentinel_watch *w, uint64_t since_ms)
{
    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        const struct sentinel_claim *claim = &w->votes.sentinels[i].claim;

        if (w->seats[i].peer != NULL && claim->heard_ms >= since_ms &&
            claim->epoch >= w->votes.master.epoch &&
            sentinel_claim_same_address(claim, &w->votes.master)) {
            return true;
        }
    }
    return false;
}

void sentinel_watch_info(const struct sentinel_watch *w,
                         struct sentinel_watch_info *ret)
{
    ret->known = sentinel_vote_count(&w->votes, false);
    ret->reachable = sentinel_vote_count(&w->votes, true);
    ret->epoch = w->votes.master.epoch;
}

void sentinel_watch_each(const struct sentinel_watch *w, sentinel_watch_fn *fn,
                         void *ctx)
{
    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        if (w->seats[i].peer != NULL) {
            fn(ctx, sentinel_client_address(w->seats[i].peer),
               w->votes.sentinels[i].state == SENTINEL_CLAIMS);
        }
    }
}

void sentinel_watch_close(struct sentinel_watch *w)
{
    if (w->closed) {
        return;
    }
    w->closed = true;
    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        if (w->seats[i].peer != NULL) {
            sentinel_client_close(w->seats[i].peer);
        }
    }
    uv_close((uv_handle_t *)&w->timer, NULL);
}

void sentinel_watch_free(struct sentinel_watch *w)
{
    if (w == NULL) {
        return;
    }
    free_retired(w);
    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        sentinel_client_free(w->seats[i].peer);
    }
    free(w);
}
