/* The fair queue by the rules of engine/op.h and docs/redis-schema.md. */
#include "sim/sim_redis_queue.h"
#include "sim/sim_redis_run.h"

enum {
    REDISSON_WAIT_MS = 300000,
    LEAVE_IN_ONE_PASS = 4, /* members; leave.lua looks at the whole list then */
};

static int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* --- scores --------------------------------------------------------------- */

/* Time that has not been added to the score yet. */
static int64_t open_time(const struct run *c, const struct redis_score *s)
{
    return max_i64((int64_t)c->r->now_ms - (int64_t)s->moved_on, 0);
}

static void set_score(struct run *c, struct span member, int64_t score)
{
    queue_set_score(c->n, member, score);
    queue_score(c->n, member)->moved_on = c->r->now_ms;
}

/* From now on, when the lock's lease will be over. */
static int64_t lease_end(const struct run *c)
{
    return (int64_t)c->r->now_ms + max_i64(redis_pttl(c->r, c->n), 0);
}

static int64_t least_score(const struct run *c)
{
    return lease_end(c) + (int64_t)c->op->fair_wait_ms;
}

/* For who is at the head, or where no score tells more. */
static void give_least_score(struct run *c, struct span member)
{
    set_score(c, member, least_score(c));
}

/* The members of the list, one after the other. */
struct walk {
    int64_t level; /* what the score of who has passed is to be */
    bool is_first; /* nobody has, or it has no score */
    bool among_ours, among_redissons;
    int64_t before, after; /* score of who has passed, and what it will be */
};

static void pass(struct walk *w, const struct redis_score *s, int64_t after, bool ours)
{
    w->is_first = s == NULL;
    w->before = s == NULL ? 0 : s->score;
    w->after = after;
    w->among_ours = ours;
    w->among_redissons = !ours;
}

static void pass_redisson(struct walk *w, const struct run *c, struct span member)
{
    const struct redis_score *s = queue_score(c->n, member);
    struct redis_wait *found = queue_wait(c->n, member);
    int64_t wait = REDISSON_WAIT_MS, distance;

    if (s != NULL) {
        distance = max_i64(s->score - w->before, 0);
        if (w->is_first) {
            wait = max_i64(wait, s->score - w->level);
            wait = max_i64(wait, found == NULL ? 0 : found->wait);
        } else if (w->among_redissons || found == NULL || distance != found->apart) {
            wait = distance;
        } else {
            wait = found->wait;
        }
        found = found == NULL ? queue_wait_new(c->n, member) : found;
        found->wait = wait;
        found->apart = w->is_first ? 0 : max_i64(s->score - w->after, 0);
    }
    w->level += wait;
    pass(w, s, s == NULL ? 0 : s->score, false);
}

/* `moved`: its score becomes what it is to be. */
static void pass_ours(struct walk *w, const struct run *c, const struct redis_score *s,
                      bool moved)
{
    w->level += w->among_ours ? 0 : (int64_t)c->op->fair_wait_ms;
    pass(w, s, moved || s == NULL ? w->level : s->score, true);
}

static void join(struct run *c, struct span member)
{
    struct redis_name *n = c->n;
    struct walk w = { .level = lease_end(c), .is_first = true };
    size_t i = n->queue_count;

    while (i > 0 && !queue_is_ours(rtext_span(&n->queue[i - 1]))) {
        i--;
    }
    if (i > 0) {
        struct redis_score *s = queue_score(n, rtext_span(&n->queue[i - 1]));

        w.level = s == NULL ? 0 : s->score + open_time(c, s);
        w.level = max_i64(w.level, least_score(c));
        pass(&w, s, s == NULL ? 0 : s->score, true);
    }
    for (; i < n->queue_count; i++) {
        pass_redisson(&w, c, rtext_span(&n->queue[i]));
    }
    pass_ours(&w, c, NULL, true);
    queue_insert(n, n->queue_count, member);
    set_score(c, member, w.level);
}

static void move_on(struct run *c)
{
    struct redis_name *n = c->n;
    struct walk w = { .level = lease_end(c), .is_first = true };

    for (size_t i = 0; i < n->queue_count; i++) {
        struct span member = rtext_span(&n->queue[i]);
        struct redis_score *s = queue_score(n, member);
        bool own = redis_member_of(member, c->instance);

        if (!queue_is_ours(member)) {
            pass_redisson(&w, c, member);
            continue;
        }
        pass_ours(&w, c, s, own);
        if (own) {
            set_score(c, member, w.level);
        }
    }
}

/* When that head is stale; not for one of this instance's. */
static int64_t stale_at(const struct run *c, const struct redis_score *s)
{
    struct span member = rtext_span(&s->member);
    int64_t heard = least_score(c) - (int64_t)c->r->now_ms + (int64_t)s->moved_on;

    if (!queue_is_ours(member) || redis_member_of(member, c->instance)) {
        return s->score;
    }
    return heard < s->score ? heard : s->score;
}

/* --- leaving -------------------------------------------------------------- */

static void take_out(struct run *c, size_t at)
{
    struct redis_name *n = c->n;

    c->head_left = c->head_left || at == 0;
    queue_remove(n, at);
    if (n->queue_count == 0) {
        n->score_count = n->wait_count = 0;
    }
}

static bool ours_at(const struct redis_name *n, size_t at)
{
    return at < n->queue_count && queue_is_ours(rtext_span(&n->queue[at]));
}

/* For all from that place of the list on. */
static void add_to_scores(struct redis_name *n, size_t from, int64_t ms)
{
    for (size_t i = from; i < n->queue_count; i++) {
        struct redis_score *s = queue_score(n, rtext_span(&n->queue[i]));

        if (s != NULL) {
            s->score += ms;
        }
    }
}

void fair_leave(struct run *c, struct span member)
{
    struct redis_name *n = c->n;
    struct rtext gone = rtext_of(member); /* `member` may be of the queue itself */
    size_t at;

    queue_del_score(n, member);
    while ((at = queue_at(n, rtext_span(&gone))) != QUEUE_NONE) {
        if (!ours_at(n, at + 1) && (at == 0 || !ours_at(n, at - 1))) {
            add_to_scores(n, at + 1, -(int64_t)c->op->fair_wait_ms);
        }
        take_out(c, at);
    }
}

void fair_purge(struct run *c)
{
    struct redis_name *n = c->n;

    while (n->queue_count > 0) {
        struct rtext head = n->queue[0];
        struct redis_score *s = queue_score(n, rtext_span(&head));

        if (s == NULL) {
            give_least_score(c, rtext_span(&head));
            break;
        }
        if (stale_at(c, s) > (int64_t)c->r->now_ms ||
            redis_member_of(rtext_span(&head), c->instance)) {
            break;
        }
        queue_del_score(n, rtext_span(&head));
        take_out(c, 0);
    }
}

/* --- whose turn ----------------------------------------------------------- */

bool fair_is_our_turn(const struct run *c)
{
    return c->n->queue_count == 0 ||
           redis_member_of(rtext_span(&c->n->queue[0]), c->instance);
}

void fair_tell_head(struct run *c)
{
    if (c->head_left && c->n->field_count == 0) {
        redis_publish_head(c->r, c->n);
    }
}

static void enqueue(struct run *c, struct span member)
{
    if (queue_score(c->n, member) != NULL) {
        return;
    }
    if (queue_at(c->n, member) != QUEUE_NONE) {
        give_least_score(c, member);
    } else {
        join(c, member);
    }
}

/* So many of this instance's were put back at the head. */
static void are_back(struct run *c, size_t count)
{
    if (!ours_at(c->n, count)) {
        add_to_scores(c->n, count, (int64_t)c->op->fair_wait_ms);
    }
}

static void put_back(struct run *c, struct span member)
{
    if (queue_score(c->n, member) != NULL) {
        return;
    }
    if (queue_at(c->n, member) == QUEUE_NONE) {
        queue_insert(c->n, 0, member);
        are_back(c, 1);
    }
    give_least_score(c, member);
}

void fair_begin(struct run *c)
{
    if (c->op->kind == OP_ACQUIRE && run_acquire_op(c)->was_queued) {
        put_back(c, op_claim(c->op)->member);
    }
    fair_purge(c);
}

void fair_refuse(struct run *c)
{
    struct redis_name *n = c->n;

    c->result->status = OP_BUSY;
    c->result->ttl_ms = redis_pttl(c->r, n);
    if (n->field_count == 0 && !fair_is_our_turn(c)) {
        c->result->ttl_ms = stale_at(c, queue_score(n, rtext_span(&n->queue[0]))) -
                            (int64_t)c->r->now_ms;
    }
    if (run_acquire_op(c)->enqueue) {
        enqueue(c, op_claim(c->op)->member);
    }
    c->result->fair = n->queue_count > 0;
    c->head_left = c->head_left || !fair_is_our_turn(c);
    fair_tell_head(c);
}

/* --- OP_QUEUE, OP_LEAVE --------------------------------------------------- */

static bool is_named(const struct op *op, struct span member)
{
    for (size_t i = 0; i < op->queue.count; i++) {
        if (span_eq(op->queue.members[i], member)) {
            return true;
        }
    }
    return false;
}

static void drop_duplicates(struct redis_name *n)
{
    for (size_t i = 0; i < n->queue_count; i++) {
        if (queue_at(n, rtext_span(&n->queue[i])) < i) {
            queue_remove(n, i--);
        }
    }
}

/* Who is left of this instance, and not meant to wait any more. */
static void drop_others_of_ours(struct run *c)
{
    struct redis_name *n = c->n;

    for (size_t i = 0; i < n->queue_count; i++) {
        struct rtext member = n->queue[i];

        if (redis_member_of(rtext_span(&member), c->instance) &&
            !is_named(c->op, rtext_span(&member))) {
            fair_leave(c, rtext_span(&member));
            i--;
        }
    }
}

/* `by_list`: who is there is looked up in the list, else among the scores. */
static bool is_in(const struct run *c, struct span member, bool by_list)
{
    return by_list ? queue_at(c->n, member) != QUEUE_NONE
                   : queue_score(c->n, member) != NULL;
}

static void put_back_all(struct run *c, bool by_list)
{
    const struct op *op = c->op;
    size_t back = 0;

    for (size_t i = 0; i < op->queue.known; i++) {
        if (!is_in(c, op->queue.members[i], by_list)) {
            queue_insert(c->n, back++, op->queue.members[i]);
            give_least_score(c, op->queue.members[i]);
        }
    }
    if (back > 0) {
        are_back(c, back);
    }
}

/* Each to where it stood, as far as that is known. */
static void put_back_in_order(struct run *c)
{
    struct redis_name *n = c->n;
    struct rtext head =
        rtext_of(n->queue_count == 0 ? SPAN_NONE : rtext_span(&n->queue[0]));
    bool headed = false;

    for (size_t i = 0; i < c->op->queue.known; i++) {
        struct span member = c->op->queue.members[i];
        size_t at;

        if (queue_at(n, member) != QUEUE_NONE) {
            continue;
        }
        at = queue_place(n, 0, n->queue_count, member);
        queue_insert(n, at, member);
        set_score(c, member,
                  at == 0 ? least_score(c)
                          : queue_score(n, rtext_span(&n->queue[at - 1]))->score);
        headed = headed || at == 0;
    }
    if (headed && head.len > 0) {
        are_back(c, queue_at(n, rtext_span(&head)));
    }
}

static void put_in(struct run *c, bool by_list)
{
    const struct op *op = c->op;

    if (op->queue.waited_ms != NULL) {
        queue_tell_since(c->n, op, c->times.asked);
        queue_order(c->n);
        put_back_in_order(c);
    } else {
        put_back_all(c, by_list);
    }
    for (size_t i = op->queue.known; i < op->queue.count; i++) {
        if (!is_in(c, op->queue.members[i], by_list)) {
            join(c, op->queue.members[i]);
        }
    }
}

static void score_all(struct run *c)
{
    struct redis_name *n = c->n;

    for (size_t i = 0; i < n->queue_count; i++) {
        if (queue_score(n, rtext_span(&n->queue[i])) == NULL) {
            give_least_score(c, rtext_span(&n->queue[i]));
        }
    }
}

/* Who has a score and no place would wait for ever. */
static void drop_orphans(struct redis_name *n)
{
    for (size_t i = n->score_count; i-- > 0;) {
        if (queue_at(n, rtext_span(&n->scores[i].member)) == QUEUE_NONE) {
            n->scores[i] = n->scores[--n->score_count];
        }
    }
}

void run_queue(struct run *c)
{
    struct redis_name *n = c->n;
    /* A look at all, which costs more the more wait. */
    bool thorough = c->op->queue.whole || n->score_count != n->queue_count;

    if (thorough) {
        drop_duplicates(n);
        if (c->op->queue.whole) {
            drop_others_of_ours(c);
        }
        drop_orphans(n);
    }
    fair_purge(c);
    if (c->op->queue.whole) {
        move_on(c);
        queue_drop_waits(n);
    }
    if (thorough) {
        score_all(c);
    }
    put_in(c, thorough);
    c->result->status = OP_OK;
    c->result->ttl_ms = redis_pttl(c->r, n);
    c->result->fair = n->queue_count > 0;
    c->head_left = c->head_left || !fair_is_our_turn(c);
    fair_tell_head(c);
}

void run_leave(struct run *c)
{
    if (c->op->queue.count >= LEAVE_IN_ONE_PASS) {
        drop_duplicates(c->n);
    }
    for (size_t i = 0; i < c->op->queue.count; i++) {
        fair_leave(c, c->op->queue.members[i]);
    }
    fair_purge(c);
    c->result->status = OP_OK;
    c->result->fair = c->n->queue_count > 0;
    fair_tell_head(c);
}
