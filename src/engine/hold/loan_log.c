#include "engine/hold/loan_log.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/hold/loan.h"
#include "util/hash.h"
#include "util/pool.h"
#include "util/table.h"

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

static void forget_logged(struct engine *eng, struct logged_loan *l)
{
    list_del(&l->in_time);
    table_remove(&eng->loan_log, &l->in_log);
    eng->loan_log_count--;
    pool_free(&eng->pool, l);
}

static void forget_old(struct engine *eng)
{
    struct list *first;

    while ((first = list_first(&eng->loan_log_list)) != NULL) {
        struct logged_loan *l = container_of(first, struct logged_loan, in_time);

        if (eng->now < l->at + OP_ENDED_MS && eng->loan_log_count < LOAN_LOG_MAX) {
            break;
        }
        forget_logged(eng, l);
    }
}

/* Whoever stands in the field at the end has a hold like any other, and is none of
 * those. */
static uint64_t end_of_given(const struct loan *loan)
{
    return loan->holder != NULL ? loan->holder->token : loan->next;
}

void loan_log_add(struct engine *eng, const struct loan *loan)
{
    uint64_t end = end_of_given(loan);
    struct span name = lock_name(loan->lock);
    struct logged_loan *l;

    forget_old(eng);
    if (loan->first >= end) {
        return;
    }
    l = pool_alloc(&eng->pool, sizeof(*l) + name.len);
    l->at = eng->now;
    l->first = loan->first;
    l->end = end;
    l->name_len = name.len;
    memcpy(l->name, name.ptr, name.len);
    l->in_log.key = key_of(loan->lock->in_names.key, loan->first);
    table_add(&eng->loan_log, &l->in_log);
    list_append(&eng->loan_log_list, &l->in_time);
    eng->loan_log_count++;
}

static bool is_in_log(const struct engine *eng, struct span name, uint64_t token,
                      uint64_t key)
{
    const struct table_node *n;

    for (n = table_find(&eng->loan_log, key); n != NULL; n = table_next(n)) {
        const struct logged_loan *l = container_of(n, struct logged_loan, in_log);

        if (token >= l->first && token < l->end && eng->now < l->at + OP_ENDED_MS &&
            span_eq(span_of(l->name, l->name_len), name)) {
            return true;
        }
    }
    return false;
}

bool loan_log_has(const struct engine *eng, struct span name, uint64_t token)
{
    const struct lock *lock = lock_find(eng, name);
    const struct loan *loan = lock == NULL ? NULL : lock->activity->loan;
    uint64_t hash = hash_bytes(name.ptr, name.len);

    /* The first token of the token's loan is less than a block before. */
    return (loan != NULL && token >= loan->first && token < end_of_given(loan)) ||
           is_in_log(eng, name, token, key_of(hash, token)) ||
           is_in_log(eng, name, token, key_of(hash, token - OP_BLOCK_MAX));
}

void loan_log_free(struct engine *eng)
{
    struct list *it, *tmp;

    LIST_FOREACH_SAFE(it, tmp, &eng->loan_log_list)
    {
        forget_logged(eng, container_of(it, struct logged_loan, in_time));
    }
    table_fini(&eng->loan_log);
}
