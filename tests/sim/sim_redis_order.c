/* The fair queue's order, by how long members wait, once Redis has lost some of it.
 * What is known of a member of latchd's is kept as that of a Redisson's is. */
#include "sim/sim_redis_queue.h"

#include "util/alloc.h"

#include <stdlib.h>

static struct redis_wait *since_of(struct redis_name *n, struct span member)
{
    return queue_is_ours(member) ? queue_wait(n, member) : NULL;
}

static bool is_back(struct redis_name *n, struct span member)
{
    const struct redis_wait *w = since_of(n, member);

    return w != NULL && w->apart != 0;
}

void queue_tell_since(struct redis_name *n, const struct op *op, uint64_t now_ms)
{
    for (size_t i = 0; i < op->queue.count; i++) {
        struct span member = op->queue.members[i];
        bool back = is_back(n, member) ||
                    (i < op->queue.known && queue_at(n, member) == QUEUE_NONE);
        struct redis_wait *w = queue_wait(n, member);

        w = w == NULL ? queue_wait_new(n, member) : w;
        w->wait = op->queue.waited_ms[i] < now_ms
                      ? (int64_t)(now_ms - op->queue.waited_ms[i])
                      : 0;
        w->apart = back;
    }
}

size_t queue_place(struct redis_name *n, size_t from, size_t to, struct span member)
{
    int64_t since = since_of(n, member)->wait;

    while (to > from) {
        const struct redis_wait *w = since_of(n, rtext_span(&n->queue[to - 1]));

        if (w != NULL && w->wait <= since) {
            break;
        }
        to--;
    }
    return to;
}

/* The earliest of `late`, and of those the first. */
static size_t earliest(struct redis_name *n, const struct rtext *late, size_t count)
{
    size_t first = 0;

    for (size_t i = 1; i < count; i++) {
        if (since_of(n, rtext_span(&late[i]))->wait <
            since_of(n, rtext_span(&late[first]))->wait) {
            first = i;
        }
    }
    return first;
}

static void order_run(struct redis_name *n, size_t from, size_t to)
{
    struct rtext *late = xcalloc(to - from + 1, sizeof(*late));
    size_t count = 0, end = from;

    for (size_t i = from; i < to; i++) {
        struct rtext member = n->queue[i];

        if (is_back(n, rtext_span(&member))) {
            late[count++] = member;
        } else {
            n->queue[end++] = member;
        }
    }
    while (count > 0) {
        size_t i = earliest(n, late, count);
        struct span member = rtext_span(&late[i]);
        size_t at = queue_place(n, from, end, member);

        memmove(&n->queue[at + 1], &n->queue[at], (end - at) * sizeof(*n->queue));
        n->queue[at] = late[i];
        end++;
        count--;
        memmove(&late[i], &late[i + 1], (count - i) * sizeof(*late));
    }
    free(late);
}

void queue_order(struct redis_name *n)
{
    struct rtext *was = xcalloc(n->queue_count + 1, sizeof(*was));
    int64_t *scores = xcalloc(n->queue_count + 1, sizeof(*scores));
    size_t from = 0;

    for (size_t i = 0; i < n->queue_count; i++) {
        was[i] = n->queue[i];
        scores[i] = queue_score(n, rtext_span(&was[i]))->score;
    }
    for (size_t i = 0; i <= n->queue_count; i++) {
        if (i == n->queue_count || !queue_is_ours(rtext_span(&n->queue[i]))) {
            order_run(n, from, i);
            from = i + 1;
        }
    }
    for (size_t i = 0; i < n->queue_count; i++) {
        if (!rtext_is(&n->queue[i], rtext_span(&was[i]))) {
            queue_score(n, rtext_span(&n->queue[i]))->score = scores[i];
        }
    }
    free(was);
    free(scores);
}
