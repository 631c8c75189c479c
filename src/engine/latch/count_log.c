#include "engine/latch/count_log.h"
#include "engine/acquire_spec.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/inflight_op.h"
#include "engine/latch/latch_watch.h"
#include "engine/lock/lock.h"
#include "latchd/protocol.h"
#include "util/pool.h"

#include <stdbool.h>

struct logged_count {
    struct list in_log;
    struct list in_due;
    struct inflight_op *in_flight;
    uint64_t at;
    uint64_t generation;
    size_t name_len, request_len;
    char data[]; /* the name, the request */
};

static struct span logged_name(const struct logged_count *e)
{
    return span_of(e->data, e->name_len);
}

void count_log_init(struct count_log *log)
{
    list_init(&log->list);
    list_init(&log->due);
}

static void forget_count(struct engine *eng, struct logged_count *e)
{
    if (e->in_flight != NULL) {
        e->in_flight->counted = NULL;
    }
    list_del(&e->in_log);
    list_del(&e->in_due);
    eng->count_log.count--;
    pool_free(&eng->pool, e);
}

/* Whether it is being made once more, or is to be. */
static bool is_due(const struct logged_count *e)
{
    return !list_empty(&e->in_due) || e->in_flight != NULL;
}

static void forget_old(struct engine *eng)
{
    const struct count_log *log = &eng->count_log;
    struct list *first;

    while ((first = list_first(&log->list)) != NULL) {
        struct logged_count *e = container_of(first, struct logged_count, in_log);
        bool is_old = eng->now >= e->at + eng->cfg.watchdog_ms;

        if ((!is_old || log->is_paused || is_due(e)) && log->count <= COUNT_LOG_MAX) {
            break;
        }
        forget_count(eng, e);
    }
}

void count_log_pause(struct engine *eng)
{
    forget_old(eng);
    eng->count_log.is_paused = true;
}

void count_log_resume(struct engine *eng)
{
    eng->count_log.is_paused = false;
}

void count_log_add(struct engine *eng, const struct lock *lock, struct span request,
                   uint64_t generation)
{
    struct span name = lock_name(lock);
    struct logged_count *e =
        pool_alloc(&eng->pool, sizeof(*e) + name.len + request.len);
    char *at = e->data;

    (void)span_put2(&at, name, request);
    e->name_len = name.len;
    e->request_len = request.len;
    e->generation = generation;
    e->at = eng->now;
    list_init(&e->in_due);
    list_append(&eng->count_log.list, &e->in_log);
    eng->count_log.count++;
    forget_old(eng);
}

/* --- once more -------------------------------------------------------------------- */

static void make_due(struct engine *eng, struct logged_count *e)
{
    list_del(&e->in_due);
    list_append(&eng->count_log.due, &e->in_due);
}

void count_log_replay(struct engine *eng, bool (*concerns)(void *ctx, unsigned group),
                      void *ctx)
{
    struct list *it;

    forget_old(eng);
    LIST_FOREACH(it, &eng->count_log.list)
    {
        struct logged_count *e = container_of(it, struct logged_count, in_log);

        if (concerns == NULL || concerns(ctx, lock_group(eng, logged_name(e)))) {
            make_due(eng, e);
        }
    }
}

static void send_count(struct engine *eng, struct logged_count *e)
{
    struct op *op;

    list_del(&e->in_due);
    if (e->in_flight != NULL) {
        e->in_flight->counted = NULL; /* that one may have run before */
    }
    e->in_flight =
        inflight_new(eng, INFLIGHT_COUNT_AGAIN, lock_get(eng, logged_name(e)));
    e->in_flight->counted = e;
    op = inflight_op(eng, e->in_flight, OP_LATCH);
    op->lock_class = CLASS_LATCH;
    op->latch = (struct op_latch){
        .verb = LATCH_TO_COUNT,
        .request = op_copy(eng, span_of(e->data + e->name_len, e->request_len)),
        .generation = e->generation,
        .most_counted = LATCHD_COUNTED_MAX,
    };
}

void count_log_send(struct engine *eng)
{
    struct list *first;

    while (eng->up && !heap_armed(&eng->count_log.timer.node) &&
           (first = list_first(&eng->count_log.due)) != NULL) {
        send_count(eng, container_of(first, struct logged_count, in_due));
    }
}

void on_count_again_reply(struct engine *eng, struct inflight_op *w,
                          const struct op_result *r)
{
    struct logged_count *e = w->counted;
    bool has_failed =
        r->status == OP_UNKNOWN || r->status == OP_LATE || r->status == OP_ERROR;

    if (r->status == OP_OK) {
        latch_watch_learn(eng, w->lock, w->op.key, &r->latch);
    }
    if (e != NULL) {
        e->in_flight = NULL;
    }
    if (e != NULL && r->status == OP_OK) {
        e->at = eng->now; /* the next failover may take that back as well */
        list_del(&e->in_log);
        list_append(&eng->count_log.list, &e->in_log);
    } else if (e != NULL && has_failed) {
        make_due(eng, e);
        timer_set(eng, &eng->count_log.timer, TIMER_COUNT_LOG,
                  eng->now + (r->status == OP_ERROR ? ERROR_PAUSE_MS : RETRY_PAUSE_MS));
    }
    inflight_free(eng, w);
}

void count_log_free(struct engine *eng)
{
    struct list *it, *tmp;

    LIST_FOREACH_SAFE(it, tmp, &eng->count_log.list)
    {
        forget_count(eng, container_of(it, struct logged_count, in_log));
    }
    timer_stop(eng, &eng->count_log.timer);
}
