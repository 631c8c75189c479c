#include "engine/wait_queue.h"
#include "engine/engine_priv.h"

static struct waiter *waiter_at(struct list *node)
{
    return container_of(node, struct waiter, in_queue);
}

bool wait_queue_is_full(const struct engine *eng, const struct lock *lock, uint32_t max)
{
    const struct waiter *head = lock_head(lock);
    uint32_t places = lock->places;

    if (head != NULL && head->has_place && last_answer_now(eng, lock) == ANSWER_NONE) {
        places--;
    }
    return places >= max;
}

/* --- places ----------------------------------------------------------------------- */

/* Whether the release that is sent first names the head as who is next. A repetition
 * has to name it, too. */
static bool is_successor(const struct waiter *head)
{
    const struct list *first = list_first(&head->lock->releases);

    return first != NULL &&
           container_of(first, struct pending_release, in_lock)->next == head->spec;
}

/* Whether Redis may have given the head the lock, or may be about to; or the head is a
 * reader that is about to be let in beside others. */
static bool is_being_served(const struct engine *eng, const struct waiter *head)
{
    const struct lock *lock = head->lock;

    return head->in_flight != NULL || head->maybe_granted || is_successor(head) ||
           (lock_must_ask(lock) && head->spec->terms.lock_kind == KIND_READ &&
            lock_is_read_here(eng, lock));
}

/* Where the last waiter of that priority went, or who stands before that place; the
 * queue itself: nobody does. */
static struct list **mark_of(struct engine *eng, struct lock *lock, unsigned priority)
{
    if (lock->marks == NULL) {
        lock->marks = pool_alloc(&eng->pool, sizeof(*lock->marks));
        for (size_t i = 0; i < LATCHD_PRIORITY_MAX; i++) {
            lock->marks->last[i] = &lock->queue;
        }
    }
    return &lock->marks->last[priority - 1];
}

static void move_marks(struct lock *lock, struct list *from, struct list *to)
{
    for (size_t i = 0; lock->marks != NULL && i < LATCHD_PRIORITY_MAX; i++) {
        lock->marks->last[i] = lock->marks->last[i] == from ? to : lock->marks->last[i];
    }
}

/* Returns the last node whose rank is not greater, looked for from `at`, but never one
 * before `first`. Ranks grow with the time, so looking on from where the last waiter of
 * the same priority went passes each waiter once for each priority. */
static struct list *find_place(struct list *queue, struct list *at, struct list *first,
                               int64_t rank)
{
    at = at == queue ? first : at;
    while (at != first && waiter_at(at)->rank > rank) {
        at = at->prev;
    }
    while (at->next != queue && waiter_at(at->next)->rank <= rank) {
        at = at->next;
    }
    return at;
}

/* The waiter that is to stand before a new one; the queue itself: none. */
static struct list *place_of(struct engine *eng, const struct waiter *w)
{
    struct lock *lock = w->lock;
    struct list *queue = &lock->queue;
    struct waiter *head = lock_head(w->lock);

    if (head == NULL || waiter_at(queue->prev)->rank <= w->rank) {
        return queue->prev;
    }
    return find_place(queue, *mark_of(eng, lock, w->spec->terms.priority),
                      is_being_served(eng, head) ? &head->in_queue : queue, w->rank);
}

/* Whether a poller that asked before `w` did may pass it: nothing is under way for `w`
 * that could be its grant, no order of Redis's concerns it, and it does not wait for
 * one answer that only the head gets. */
static bool may_be_passed(const struct waiter *w, int64_t rank)
{
    return w->rank > rank && w->in_flight == NULL && !w->maybe_granted &&
           !waiter_ends_next(w) && w->spec->terms.lock_kind == KIND_PLAIN;
}

/* The same for a poller that has come back: where it would stand if it had stayed. */
static struct list *place_of_poller(struct waiter *w)
{
    struct list *queue = &w->lock->queue;
    struct list *at = queue->prev;

    for (int i = 0; i < POLLER_PASSES_MAX && at != queue; i++) {
        if (!may_be_passed(waiter_at(at), w->rank)) {
            break;
        }
        at = at->prev;
    }
    if (at != queue && waiter_at(at)->rank > w->rank) {
        w->rank = waiter_at(at)->rank;
        /* A head that is being served may stand before its place: it steps back only
         * if who is next has a lower rank. */
        if (at->next != queue && waiter_at(at->next)->rank < w->rank) {
            w->rank = waiter_at(at->next)->rank;
        }
    }
    return at;
}

/* Puts the waiter into eng->waiters, which is in order of arrival. */
static void add_to_all(struct engine *eng, struct waiter *w)
{
    struct list *at = &eng->waiters;

    for (int i = 0; w->polls && i < POLLER_PASSES_MAX && at->prev != &eng->waiters;
         i++) {
        if (container_of(at->prev, struct waiter, in_all)->began <= w->began) {
            break;
        }
        at = at->prev;
    }
    list_insert_before(at, &w->in_all);
}

struct waiter *wait_queue_add(struct engine *eng, struct waiter *w)
{
    struct lock *lock = w->lock;
    struct waiter *head = lock_head(w->lock);
    struct list *behind;

    w->rank = (int64_t)w->began;
    if (lock->fair == NULL) {
        w->rank -= (int64_t)(w->spec->terms.priority * eng->cfg.priority_aging_ms);
    }
    behind = w->polls ? place_of_poller(w) : place_of(eng, w);
    list_insert_before(behind->next, &w->in_queue);
    if (w->spec->terms.priority > 0) {
        *mark_of(eng, lock, w->spec->terms.priority) = &w->in_queue;
    }
    add_to_all(eng, w);
    return head != NULL && waiter_is_head(w) ? head : NULL;
}

void wait_queue_remove(struct waiter *w)
{
    move_marks(w->lock, &w->in_queue, w->in_queue.prev);
    list_del(&w->in_queue);
    list_del(&w->in_all);
}

struct waiter *wait_queue_step_back(struct engine *eng, struct lock *lock)
{
    struct waiter *head = lock_head(lock);
    struct list *next = head == NULL ? NULL : head->in_queue.next;
    struct list *behind;

    if (head == NULL || next == &lock->queue || head->rank <= waiter_at(next)->rank ||
        lock->fair != NULL || is_being_served(eng, head)) {
        return NULL;
    }
    /* before its equals, as it came before them */
    behind = find_place(&lock->queue, next, next, head->rank - 1);
    move_marks(lock, &head->in_queue, &lock->queue);
    list_del(&head->in_queue);
    list_insert_before(behind->next, &head->in_queue);
    lock_ask(eng, lock);
    return head;
}
