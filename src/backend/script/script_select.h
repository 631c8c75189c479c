/* script_select: how often a word is written, and of what.
 *
 * For every `--@if <condition>` of a script there is one <condition>() here, for every
 * `for each <thing>` one count_<things>() and one select_<thing>(), after which the
 * words are about that one. See script_keys.h. */
#ifndef LATCHD_BACKEND_SCRIPT_SCRIPT_SELECT_H
#define LATCHD_BACKEND_SCRIPT_SCRIPT_SELECT_H

#include "backend/script/script_call_priv.h"

/* Conditions */

static bool is_owned(const struct script_source *from)
{
    return from->claim->kind != OWNER_ANONYMOUS;
}

static bool is_named(const struct script_source *from)
{
    return from->claim->kind == OWNER_NAMED;
}

static bool is_named_or_lent(const struct script_source *from)
{
    return is_named(from) || from->claim->block_us != 0;
}

static bool has_next(const struct script_source *from)
{
    return from->op->release.has_next;
}

/* Things of which there may be several */

/* The names of one op, or of several ops. */
static size_t count_locks(const struct script_source *from)
{
    return from->op->kind == OP_ACQUIRE_BATCH ? from->op->batch.count : from->op_count;
}

static void select_lock(struct script_source *from, size_t i)
{
    from->name = from->op->kind == OP_ACQUIRE_BATCH ? from->op->batch.items[i].name
                                                    : from->op[i].name;
}

/* What is acquired there. */
static size_t count_claims(const struct script_source *from)
{
    return count_locks(from);
}

static void select_claim(struct script_source *from, size_t i)
{
    select_lock(from, i);
    from->claim = from->op->kind == OP_ACQUIRE_BATCH ? &from->op->batch.items[i].claim
                                                     : &from->op[i].acquire.claim;
    from->lease_ms = from->claim->lease_ms;
}

/* The same claims, if the lease of the first is not that of all. */
static size_t count_own_leases(const struct script_source *from)
{
    return from->one_word ? 0 : count_claims(from);
}

static void select_own_lease(struct script_source *from, size_t i)
{
    select_claim(from, i);
}

/* The targets of releases, or the one that all have. */
static size_t count_targets(const struct script_source *from)
{
    return from->one_word ? 1 : from->op_count;
}

static void select_target(struct script_source *from, size_t i)
{
    from->released = &from->op[i].release;
}

static size_t count_short_renewals(const struct script_source *from)
{
    return from->short_count;
}

static void select_short_renewal(struct script_source *from, size_t i)
{
    from->renewed = &from->op->renew.items[i];
    from->name = from->renewed->name;
    from->token = from->renewed->token;
}

/* The renewals that are not short. */
static size_t count_renewals(const struct script_source *from)
{
    return from->op->renew.count - from->short_count;
}

static void select_renewal(struct script_source *from, size_t i)
{
    select_short_renewal(from, from->short_count + i);
    from->field = from->renewed->field;
    from->entry = from->renewed->entry;
    from->loan_token = from->renewed->loan_token;
    from->lease_ms = from->renewed->lease_ms;
}

static size_t count_loans(const struct script_source *from)
{
    return from->op->renew.count;
}

static void select_loan(struct script_source *from, size_t i)
{
    select_short_renewal(from, i);
}

static size_t count_further_entries(const struct script_source *from)
{
    return from->op->restore.entry_count - 1;
}

static void select_further_entry(struct script_source *from, size_t i)
{
    from->entry = from->op->restore.entries[i + 1].entry;
    from->for_ms = from->op->restore.entries[i + 1].for_ms;
}

static size_t count_members(const struct script_source *from)
{
    return from->op->queue.count;
}

static void select_member(struct script_source *from, size_t i)
{
    from->member = from->op->queue.members[i];
}

/* Members of which the op says since when they wait. */
static size_t count_waits(const struct script_source *from)
{
    return from->op->queue.waited_ms == NULL ? 0 : from->op->queue.count;
}

static void select_wait(struct script_source *from, size_t i)
{
    from->for_ms = from->op->queue.waited_ms[i];
}

#endif
