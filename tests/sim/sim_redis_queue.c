#include "sim/sim_redis_queue.h"

#include "util/alloc.h"

static const char HEAD[] = "latchd:";

bool queue_is_ours(struct span member)
{
    return span_starts(member, span_str(HEAD));
}

bool redis_member_of(struct span member, const char *instance)
{
    size_t head = sizeof(HEAD) - 1;

    return queue_is_ours(member) && member.len > head + OP_INSTANCE_LEN &&
           memcmp(member.ptr + head, instance, OP_INSTANCE_LEN) == 0 &&
           member.ptr[head + OP_INSTANCE_LEN] == ':';
}

size_t queue_at(const struct redis_name *n, struct span member)
{
    for (size_t i = 0; i < n->queue_count; i++) {
        if (rtext_is(&n->queue[i], member)) {
            return i;
        }
    }
    return QUEUE_NONE;
}

void queue_insert(struct redis_name *n, size_t at, struct span member)
{
    MAKE_ROOM(n->queue, n->queue_count, n->queue_room);
    memmove(&n->queue[at + 1], &n->queue[at],
            (n->queue_count - at) * sizeof(n->queue[0]));
    n->queue_count++;
    n->queue[at] = rtext_of(member);
}

void queue_remove(struct redis_name *n, size_t at)
{
    n->queue_count--;
    memmove(&n->queue[at], &n->queue[at + 1],
            (n->queue_count - at) * sizeof(n->queue[0]));
}

struct redis_score *queue_score(struct redis_name *n, struct span member)
{
    for (size_t i = 0; i < n->score_count; i++) {
        if (rtext_is(&n->scores[i].member, member)) {
            return &n->scores[i];
        }
    }
    return NULL;
}

void queue_set_score(struct redis_name *n, struct span member, int64_t score)
{
    struct redis_score *s = queue_score(n, member);

    if (s == NULL) {
        MAKE_ROOM(n->scores, n->score_count, n->score_room);
        s = &n->scores[n->score_count++];
        *s = (struct redis_score){ .member = rtext_of(member) };
    }
    s->score = score;
}

void queue_del_score(struct redis_name *n, struct span member)
{
    struct redis_score *s = queue_score(n, member);

    if (s != NULL) {
        *s = n->scores[--n->score_count];
    }
}

struct redis_wait *queue_wait(struct redis_name *n, struct span member)
{
    for (size_t i = 0; i < n->wait_count; i++) {
        if (rtext_is(&n->waits[i].member, member)) {
            return &n->waits[i];
        }
    }
    return NULL;
}

struct redis_wait *queue_wait_new(struct redis_name *n, struct span member)
{
    MAKE_ROOM(n->waits, n->wait_count, n->wait_room);
    n->waits[n->wait_count] = (struct redis_wait){ .member = rtext_of(member) };
    return &n->waits[n->wait_count++];
}

void queue_drop_waits(struct redis_name *n)
{
    for (size_t i = n->wait_count; i-- > 0;) {
        if (queue_at(n, rtext_span(&n->waits[i].member)) == QUEUE_NONE) {
            n->waits[i] = n->waits[--n->wait_count];
        }
    }
}
