#include "engine/loan.h"
#include "engine/engine_priv.h"

const struct transitions LOAN_TRANSITIONS = {
    .subject = "loan",
    .states = {
        [LOAN_HELD] = { "HELD", INTO(LOAN_IDLE) | INTO(LOAN_SETTLING) },
        [LOAN_SETTLING] = { "SETTLING", 0 },
        [LOAN_IDLE] = { "IDLE", INTO(LOAN_HELD) | INTO(LOAN_RETURNING) },
        [LOAN_RETURNING] = { "RETURNING", 0 },
    },
};

void loan_set_state(struct loan *loan, enum loan_state state)
{
    transition_check(&LOAN_TRANSITIONS, loan->state, state);
    loan->state = state;
}

/* For how long a name is lent in one piece, however often the loan is renewed. */
static uint64_t most_ms_of(uint64_t window_ms)
{
    uint64_t most_ms = LOAN_WINDOWS_MAX * window_ms;

    return most_ms < LOCAL_WINDOW_MAX_MS ? most_ms : LOCAL_WINDOW_MAX_MS;
}

void loan_begin(struct engine *eng, struct hold *holder, uint64_t token,
                struct asked asked)
{
    struct lock *lock = holder->lock;
    struct loan *loan;

    loan_drop(eng, lock);
    loan = pool_alloc(&eng->pool, sizeof(*loan));
    loan->lock = lock;
    loan->holder = holder;
    loan->first = holder->token;
    loan->next = holder->token + 1;
    loan->token = token;
    loan->asked = asked;
    loan->lends_until = asked.at + eng->cfg.local_window_ms;
    loan->ends_at = asked.at + most_ms_of(eng->cfg.local_window_ms);
    list_init(&loan->in_due);
    list_append(&eng->loans, &loan->in_all);
    lock->loan = loan;
    eng->stats.loans++;
    eng->stats.lent++;
}

void loan_drop(struct engine *eng, struct lock *lock)
{
    struct loan *loan = lock->loan;

    if (loan == NULL) {
        return;
    }
    loan_log_add(eng, loan);
    timer_stop(eng, &loan->timer);
    list_del(&loan->in_all);
    list_del(&loan->in_due);
    if (loan->renewal != NULL) {
        loan->renewal->loans.items[loan->renewal_slot] = NULL;
    }
    lock->loan = NULL;
    eng->stats.lent--;
    pool_free_sized(&eng->pool, loan, sizeof(*loan));
    lock_touch(eng, lock);
}

void loan_doubt(struct lock *lock)
{
    if (lock->loan != NULL) {
        lock->loan->lends_until = 0;
    }
}

void loan_end(struct engine *eng, struct lock *lock)
{
    struct loan *loan = lock->loan;

    if (loan != NULL) {
        loan->lends_until = loan->ends_at = 0;
        lock_touch(eng, lock);
    }
}

void loans_pause(struct engine *eng)
{
    eng->lends_after = eng->now + LOCAL_WINDOW_MAX_MS;
}

/* The tokens of a loan whose holds ended in memory, for a while. */
struct logged_loan {
    struct table_node in_log; /* eng->loan_log, see key_of() */
    struct list in_time;      /* eng->loan_log_list, oldest first */
    uint64_t at;
    uint64_t first, end; /* tokens from `first` on, below `end` */
    size_t name_len;
    char name[];
};

/* By the name, and by about when the first token was made: a name that is lent again
 * and again has many loans here. */
static uint64_t key_of(uint64_t name_hash, uint64_t first)
{
    return name_hash ^ (first / OP_BLOCK_MAX);
}

static void forget_logged(struct engine *eng, struct logged_loan *logged)
{
    list_del(&logged->in_time);
    table_remove(&eng->loan_log, &logged->in_log);
    eng->loan_log_count--;
    pool_free(&eng->pool, logged);
}

static void forget_old(struct engine *eng)
{
    struct logged_loan *logged;

    while (LIST_FIRST(logged, &eng->loan_log_list, in_time)) {
        if (eng->now < logged->at + OP_ENDED_MS && eng->loan_log_count < LOAN_LOG_MAX) {
            break;
        }
        forget_logged(eng, logged);
    }
}

/* The holder at the end of a loan has a hold like any other. Its token is none of
 * those. */
static uint64_t end_of_given(const struct loan *loan)
{
    return loan->holder != NULL ? loan->holder->token : loan->next;
}

void loan_log_add(struct engine *eng, const struct loan *loan)
{
    uint64_t end = end_of_given(loan);
    struct span name = lock_name(loan->lock);
    struct logged_loan *logged;

    forget_old(eng);
    if (loan->first >= end) {
        return;
    }
    logged = pool_alloc(&eng->pool, sizeof(*logged) + name.len);
    logged->at = eng->now;
    logged->first = loan->first;
    logged->end = end;
    logged->name_len = name.len;
    memcpy(logged->name, name.ptr, name.len);
    logged->in_log.key = key_of(loan->lock->in_names.key, loan->first);
    table_add(&eng->loan_log, &logged->in_log);
    list_append(&eng->loan_log_list, &logged->in_time);
    eng->loan_log_count++;
}

static bool is_in_log(const struct engine *eng, struct span name, uint64_t token,
                      uint64_t key)
{
    const struct table_node *n;

    for (n = table_find(&eng->loan_log, key); n != NULL; n = table_next(n)) {
        const struct logged_loan *logged = container_of(n, struct logged_loan, in_log);

        if (token >= logged->first && token < logged->end &&
            eng->now < logged->at + OP_ENDED_MS &&
            span_eq(span_of(logged->name, logged->name_len), name)) {
            return true;
        }
    }
    return false;
}

bool loan_log_has(const struct engine *eng, struct span name, uint64_t token)
{
    const struct lock *lock = lock_find(eng, name);
    const struct loan *loan = lock == NULL ? NULL : lock->loan;
    uint64_t hash = hash_bytes(name.ptr, name.len);

    /* The first token of the token's loan is less than a block before. */
    return (loan != NULL && token >= loan->first && token < end_of_given(loan)) ||
           is_in_log(eng, name, token, key_of(hash, token)) ||
           is_in_log(eng, name, token, key_of(hash, token - OP_BLOCK_MAX));
}

void loan_log_free(struct engine *eng)
{
    struct logged_loan *loan;

    LIST_EACH_SAFE(loan, &eng->loan_log_list, in_time) {
        forget_logged(eng, loan);
    }
    table_fini(&eng->loan_log);
}

struct recent_ask {
    uint64_t hash; /* of the name */
    uint64_t at;   /* when the name was last asked for, or granted by Redis */
    /* idle loans are returned soon up to then, as others use the name */
    uint64_t others_until;
    uint64_t apart_ms; /* the last two LOCKs */
};

static struct recent_ask *find_slot(const struct engine *eng, const struct lock *lock)
{
    return &eng->recent_asks[lock->in_names.key % RECENT_ASKS_MAX];
}

/* The record of the name, or NULL. */
static struct recent_ask *find_ask(const struct engine *eng, const struct lock *lock)
{
    struct recent_ask *ask = eng->recent_asks == NULL ? NULL : find_slot(eng, lock);

    return ask != NULL && ask->hash == lock->in_names.key ? ask : NULL;
}

bool recent_asks_note(struct engine *eng, const struct lock *lock)
{
    struct recent_ask *ask = find_ask(eng, lock);

    if (eng->recent_asks == NULL) {
        eng->recent_asks = xcalloc(RECENT_ASKS_MAX, sizeof(*eng->recent_asks));
    }
    if (ask == NULL) {
        ask = find_slot(eng, lock);
        *ask = (struct recent_ask){ .hash = lock->in_names.key, .at = eng->now };
        return false;
    }
    ask->apart_ms = eng->now - ask->at;
    ask->at = eng->now;
    return ask->apart_ms <= eng->cfg.local_window_ms;
}

void recent_asks_granted(struct engine *eng, const struct lock *lock)
{
    struct recent_ask *ask = find_ask(eng, lock);

    if (ask != NULL) {
        ask->at = eng->now;
    }
}

void recent_asks_others(struct engine *eng, const struct lock *lock)
{
    struct recent_ask *ask = find_ask(eng, lock);

    if (ask != NULL) {
        ask->others_until = eng->now + LOAN_OTHERS_MS;
    }
}

bool recent_asks_have_others(const struct engine *eng, const struct lock *lock)
{
    const struct recent_ask *ask = find_ask(eng, lock);

    return ask != NULL && eng->now < ask->others_until;
}

uint64_t recent_asks_return_at(const struct engine *eng, const struct loan *loan)
{
    const struct recent_ask *ask = find_ask(eng, loan->lock);
    uint64_t idle_ms = LOAN_IDLE_MIN_MS;

    if (ask != NULL && eng->now >= ask->others_until &&
        LOAN_IDLE_GAPS * ask->apart_ms > idle_ms) {
        idle_ms = LOAN_IDLE_GAPS * ask->apart_ms;
    }
    return loan->lends_until < eng->now + idle_ms ? loan->lends_until
                                                  : eng->now + idle_ms;
}

/* --- renewal ---------------------------------------------------------------------- */

enum {
    BATCH_MAX = OP_COST_MAX / OP_COST_HOLD,
    GATHER_MS = 1, /* for how long a loan waits for others */
};

/* Whether what Redis said to that op is to be relied on. */
static bool answer_is_sure(const struct engine *eng, const struct loan *loan,
                           uint64_t op_id)
{
    return loan->lends_until != 0 && eng->now >= eng->lends_after &&
           !answer_predates_store(eng, loan->lock, op_id);
}

static bool may_renew(const struct engine *eng, const struct loan *loan)
{
    return eng->up && !eng->stopping && loan->renewal == NULL &&
           (loan->state == LOAN_HELD || loan->state == LOAN_IDLE) &&
           answer_is_sure(eng, loan, loan->asked.op) && eng->now < loan->lends_until &&
           loan->lends_until < loan->ends_at &&
           !recent_asks_have_others(eng, loan->lock);
}

void loan_renewal_note(struct engine *eng, struct loan *loan)
{
    uint64_t part_ms = eng->cfg.local_window_ms / LOAN_LAST_PART;

    part_ms = part_ms > GATHER_MS ? part_ms : GATHER_MS + 1;
    if (eng->now + part_ms >= loan->lends_until && list_empty(&loan->in_due) &&
        may_renew(eng, loan)) {
        if (list_empty(&eng->due_loans)) {
            timer_set(eng, &eng->due_loans_timer, TIMER_DUE_LOANS,
                      eng->now + GATHER_MS);
            eng->noted_loans = 0;
        }
        list_append(&eng->due_loans, &loan->in_due);
        eng->noted_loans++;
    }
}

/* Takes those off the list that one script can renew: of one group, with one lease. */
static size_t take_due(struct engine *eng, struct loan **loans)
{
    size_t count = 0;
    struct loan *loan;

    while (count < BATCH_MAX && LIST_FIRST(loan, &eng->due_loans, in_due)) {
        if (count > 0 && (loan->lock->group != loans[0]->lock->group ||
                          loan->asked.lease_ms != loans[0]->asked.lease_ms)) {
            break;
        }
        list_del(&loan->in_due);
        if (may_renew(eng, loan)) {
            loans[count++] = loan;
        }
    }
    return count;
}

static void send_renewal(struct engine *eng, struct loan **loans, size_t count)
{
    struct inflight_op *o = inflight_new(eng, INFLIGHT_RENEW_LOANS, NULL);
    struct renew_item *items = effects_alloc(&eng->fx, count * sizeof(*items));
    struct op *op;

    o->lease_ms = loans[0]->asked.lease_ms;
    o->loans.items = xcalloc(count, sizeof(struct loan *));
    o->loans.count = count;
    for (size_t i = 0; i < count; i++) {
        struct loan *loan = loans[i];

        items[i] = (struct renew_item){ .name = op_copy(eng, lock_name(loan->lock)),
                                        .token = loan->token,
                                        .lease_ms = o->lease_ms,
                                        .subscribed = loan->lock->sub != SUB_NONE };
        o->loans.items[i] = loan;
        loan->renewal = o;
        loan->renewal_slot = i;
    }
    op = inflight_op(eng, o, OP_RENEW);
    op->group = loans[0]->lock->group;
    op->lock_class = CLASS_PLAIN;
    op->renew = (struct op_renew){ .items = items, .count = count, .loans = true };
}

void loan_renewals_flush(struct engine *eng)
{
    struct loan *loans[BATCH_MAX];

    if (list_empty(&eng->due_loans) ||
        (heap_armed(&eng->due_loans_timer.node) && eng->noted_loans < BATCH_MAX)) {
        return; /* more may come */
    }
    timer_stop(eng, &eng->due_loans_timer);
    while (!list_empty(&eng->due_loans)) {
        size_t count = take_due(eng, loans);

        if (count > 0) {
            send_renewal(eng, loans, count);
        }
    }
}

static void on_renewed(struct engine *eng, struct loan *loan, struct asked asked)
{
    uint64_t until = asked.at + eng->cfg.local_window_ms;

    if (!answer_is_sure(eng, loan, asked.op)) {
        return;
    }
    eng->stats.loan_renewals++;
    loan->asked = asked;
    loan->lends_until = until < loan->ends_at ? until : loan->ends_at;
    if (loan->state == LOAN_IDLE) {
        timer_set(eng, &loan->timer, TIMER_LOAN, recent_asks_return_at(eng, loan));
    }
}

static void on_renewal_answer(struct engine *eng, struct loan *loan,
                              enum renew_result result, struct asked asked)
{
    if (loan->state == LOAN_SETTLING || loan->state == LOAN_RETURNING) {
        return; /* an op is under way that ends it, and may have run first */
    }
    switch (result) {
    case RENEW_OK:
        on_renewed(eng, loan, asked);
        break;
    case RENEW_WANTED:
        recent_asks_others(eng, loan->lock);
        break;
    default:
        loan_doubt(loan->lock);
        break;
    }
    lock_touch(eng, loan->lock);
}

void on_loan_renewal_reply(struct engine *eng, struct inflight_op *o,
                           const struct op_result *r)
{
    struct asked asked = inflight_asked(o);

    for (size_t i = 0; i < o->loans.count; i++) {
        struct loan *loan = o->loans.items[i];

        if (loan == NULL) {
            continue;
        }
        o->loans.items[i] = NULL;
        loan->renewal = NULL;
        if (r->status == OP_OK && i < r->renew.count) {
            on_renewal_answer(eng, loan, r->renew.items[i], asked);
        } /* else it ends with its window */
    }
    inflight_free(eng, o);
}
