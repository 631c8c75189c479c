#include "engine/renew_queue.h"
#include "engine/engine_priv.h"

void renew_queues_init(struct engine *eng)
{
    size_t count = LOCK_CLASSES * (size_t)eng->group_count;

    list_init(&eng->renew_queues.ready);
    list_init(&eng->renew_queues.sent);
    eng->renew_queues.all = xcalloc(count, sizeof(*eng->renew_queues.all));
    for (size_t i = 0; i < count; i++) {
        struct renew_queue *queue = &eng->renew_queues.all[i];

        list_init(&queue->holds);
        list_init(&queue->in_ready);
        queue->group = (uint32_t)(i / LOCK_CLASSES);
        queue->lock_class = i % LOCK_CLASSES;
    }
}

void renew_queues_fini(struct engine *eng)
{
    free(eng->renew_queues.all);
}

/* How many scripts may be in flight for it. */
static size_t max_in_flight(const struct engine *eng, const struct renew_queue *queue)
{
    const struct list *first = list_first(&queue->holds);
    const struct hold *h =
        first == NULL ? NULL : container_of(first, struct hold, in_queue);

    if (eng->group_of != NULL) {
        return 1;
    }
    return h != NULL && eng->now > h->due && eng->now - h->due > RENEW_LATE_MS
               ? RENEW_LATE_IN_FLIGHT_MAX
               : RENEW_IN_FLIGHT_MAX;
}

/* Whether more can be sent for it. */
static void update_ready(struct engine *eng, struct renew_queue *queue)
{
    if (list_empty(&queue->in_ready) && !list_empty(&queue->holds) &&
        queue->in_flight < max_in_flight(eng, queue)) {
        list_append(&eng->renew_queues.ready, &queue->in_ready);
    }
}

void renew_queue_add(struct engine *eng, struct hold *h)
{
    struct renew_queue *queue =
        &eng->renew_queues
             .all[LOCK_CLASSES * (size_t)h->lock->group + lock_class_of(h->lock_kind)];

    list_append(&queue->holds, &h->in_queue);
    update_ready(eng, queue);
}

/* Counts the op out of those under way, if it was among them. */
static void uncount_sent(struct engine *eng, struct inflight_op *o)
{
    if (!list_empty(&o->in_sent)) {
        list_del(&o->in_sent);
        eng->renew_queues.sent_count--;
        eng->renew_queues.sent_cost -= o->cost;
    }
}

static bool is_beyond(const struct engine *eng, size_t scripts)
{
    return eng->renew_queues.sent_count >= scripts ||
           eng->renew_queues.sent_cost >= scripts * (uint64_t)OP_COST_MAX;
}

/* With what is in flight for all of them; `d`: who would be next. */
static bool is_full(struct engine *eng, const struct renew_queue *queue)
{
    struct inflight_op *o;

    if (eng->group_of == NULL) {
        return is_beyond(eng, max_in_flight(eng, queue));
    }
    /* A server that does not answer must not hold up the groups of the others. */
    while (LIST_FIRST(o, &eng->renew_queues.sent, in_sent)) {
        if (o->sent + RENEW_STUCK_MS > eng->now) {
            break;
        }
        uncount_sent(eng, o);
    }
    return is_beyond(eng, RENEW_GROUPS_MAX);
}

struct renew_queue *renew_queue_next(struct engine *eng)
{
    struct list *first = list_first(&eng->renew_queues.ready);
    struct renew_queue *queue;

    if (first == NULL) {
        return NULL;
    }
    queue = container_of(first, struct renew_queue, in_ready);
    if (is_full(eng, queue)) {
        return NULL;
    }
    list_del(first);
    return queue;
}

void renew_queue_on_sent(struct engine *eng, struct renew_queue *queue,
                         struct inflight_op *o)
{
    o->renew.queue = queue;
    queue->in_flight++;
    list_append(&eng->renew_queues.sent, &o->in_sent);
    eng->renew_queues.sent_count++;
    eng->renew_queues.sent_cost += o->cost;
    update_ready(eng, queue);
}

void renew_queue_on_done(struct engine *eng, struct renew_queue *queue,
                         struct inflight_op *o)
{
    if (o != NULL) {
        uncount_sent(eng, o);
        queue->in_flight--;
    }
    update_ready(eng, queue);
}

bool renew_queues_are_empty(const struct engine *eng)
{
    return list_empty(&eng->renew_queues.ready);
}
