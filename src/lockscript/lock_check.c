#include "lockscript/lock_classify.h"

enum lock_call_state lock_state_of(const struct lock_plan *plan,
                                   const struct script_key *key)
{
    bool endless = key->left[LOCK_UNIT_MS] == LUA_TTL_ENDLESS ||
                   key->left[LOCK_UNIT_S] == LUA_TTL_ENDLESS;
    bool mine = key->found == SCRIPT_MINE || (key->found == SCRIPT_SAME_PREFIX &&
                                              plan->compare == LOCK_COMPARE_PREFIX);

    if (key->found == SCRIPT_FREE) {
        return LOCK_KEY_FREE;
    }
    if (key->found == SCRIPT_NOT_A_STRING) {
        return LOCK_KEY_NOT_A_STRING;
    }
    if (!mine && plan->compare != LOCK_COMPARE_NONE) {
        return LOCK_KEY_OTHERS;
    }
    return endless ? LOCK_KEY_MINE_ENDLESS : LOCK_KEY_MINE;
}

/* What an operation makes of a key in which it can be done; SCRIPT_UNTOUCHED: it
 * cannot, or changes nothing. */
static enum script_after outcome_of_key(const struct lock_plan *plan,
                                        const struct script_key *key)
{
    enum lock_call_state state = lock_state_of(plan, key);
    bool mine = state == LOCK_KEY_MINE || state == LOCK_KEY_MINE_ENDLESS;
    bool any = state != LOCK_KEY_FREE && plan->compare == LOCK_COMPARE_NONE;
    enum script_after set = key->found == SCRIPT_MINE ? SCRIPT_EXTENDED : SCRIPT_SET;

    switch (plan->kind) {
    case LOCK_CALL_ACQUIRE:
        return state == LOCK_KEY_FREE ? set : SCRIPT_UNTOUCHED;
    case LOCK_CALL_ACQUIRE_OR_EXTEND:
        return state == LOCK_KEY_FREE || mine ? set : SCRIPT_UNTOUCHED;
    case LOCK_CALL_EXTEND:
        if (state == LOCK_KEY_MINE_ENDLESS && plan->endless == LOCK_ENDLESS_REFUSED) {
            return SCRIPT_UNTOUCHED;
        }
        return mine || any ? SCRIPT_EXTENDED : SCRIPT_UNTOUCHED;
    case LOCK_CALL_OVERWRITE:
        return any ? set : SCRIPT_UNTOUCHED;
    case LOCK_CALL_RELEASE:
        return mine ? SCRIPT_DELETED : SCRIPT_UNTOUCHED;
    case LOCK_CALL_FORCE_RELEASE:
        return any ? SCRIPT_DELETED : SCRIPT_UNTOUCHED;
    default:
        return SCRIPT_UNTOUCHED;
    }
}

/* The state whose reply several keys get, if all are done or none is. */
static enum lock_call_state deciding_state(const struct lock_plan *plan,
                                           const struct script_run *run)
{
    for (unsigned i = 0; i < run->key_count; i++) {
        if (outcome_of_key(plan, &run->keys[i]) == SCRIPT_UNTOUCHED) {
            return lock_state_of(plan, &run->keys[i]);
        }
    }
    return lock_state_of(plan, &run->keys[0]);
}

static struct lock_reply integer_reply(int64_t integer)
{
    return (struct lock_reply){ .kind = LOCK_REPLY_INTEGER, .integer = integer };
}

/* A time to live that a run knows exactly is a number there. */
static void fill_ttl(const struct script_run *run, enum lock_reply_kind *kind,
                     int64_t *integer)
{
    enum lua_ttl_left left =
        run->keys[0].left[*kind == LOCK_REPLY_TTL_S ? LOCK_UNIT_S : LOCK_UNIT_MS];

    if ((*kind == LOCK_REPLY_TTL_S || *kind == LOCK_REPLY_TTL_MS) &&
        (left == LUA_TTL_ZERO || left == LUA_TTL_ENDLESS)) {
        *kind = LOCK_REPLY_INTEGER;
        *integer = left == LUA_TTL_ZERO ? 0 : -1;
    }
}

/* Puts in what a run knows for what a call will know: counts, and times to live. */
static void fill_reply(const struct script_run *run, unsigned done,
                       struct lock_reply *r)
{
    switch (r->kind) {
    case LOCK_REPLY_KEY_COUNT:
        *r = integer_reply(run->key_count);
        break;
    case LOCK_REPLY_DONE_COUNT:
        *r = integer_reply(done);
        break;
    default:
        fill_ttl(run, &r->kind, &r->integer);
        break;
    }
    for (unsigned i = 0; i < r->item_count; i++) {
        fill_ttl(run, &r->items[i].kind, &r->items[i].integer);
    }
}

/* Each key for itself, up to one of a wrong type. */
static void outcome_of_each(const struct lock_plan *plan, const struct script_run *run,
                            struct lock_outcome *ret)
{
    unsigned done = 0;

    for (unsigned i = 0; i < run->key_count; i++) {
        enum lock_call_state state = lock_state_of(plan, &run->keys[i]);

        if (plan->replies[state].kind == LOCK_REPLY_WRONG_TYPE) {
            ret->reply = plan->replies[state];
            return;
        }
        ret->after[i] = outcome_of_key(plan, &run->keys[i]);
        done += ret->after[i] != SCRIPT_UNTOUCHED;
    }
    ret->reply = integer_reply(done);
}

static struct lock_outcome outcome_of_run(const struct lock_plan *plan,
                                          const struct script_run *run)
{
    struct lock_outcome ret = { .after = { SCRIPT_UNTOUCHED } };
    unsigned done = 0;

    if (plan->scope == LOCK_CALL_EACH_KEY) {
        outcome_of_each(plan, run, &ret);
        return ret;
    }
    for (unsigned i = 0; i < run->key_count; i++) {
        ret.after[i] = outcome_of_key(plan, &run->keys[i]);
        done += ret.after[i] != SCRIPT_UNTOUCHED;
    }
    if (done != run->key_count) {
        memset(ret.after, 0, sizeof(ret.after));
        done = 0;
    }
    ret.reply = plan->replies[deciding_state(plan, run)];
    fill_reply(run, done, &ret.reply);
    return ret;
}

/* The value of a key at the end is that of the call, whoever had it before: what SET
 * does to a key of the same value is what EXTEND does. */
static bool is_same_key(const struct lock_plan *plan, const struct script_key *key,
                        enum script_after after)
{
    if (key->after != after) {
        return false;
    }
    return (after != SCRIPT_SET && after != SCRIPT_EXTENDED) ||
           lock_end_plan_eq(&key->end, &plan->end);
}

/* A run in which a key got lost does what the operation does, but for that key, in one
 * of the states that the key may have had; what is left of that key is nobody's. */
static bool is_same_with_loss(const struct lock_plan *plan,
                              const struct script_run *run)
{
    for (int found = 0; found < SCRIPT_FOUND_STATES; found++) {
        struct script_run other = *run;
        struct lock_outcome outcome;
        bool same = true;

        other.keys[run->lost_key].found = (enum script_found)found;
        outcome = outcome_of_run(plan, &other);
        for (unsigned i = 0; i < run->key_count; i++) {
            same = same && ((int)i == run->lost_key ||
                            is_same_key(plan, &run->keys[i], outcome.after[i]));
        }
        if (same) {
            return true;
        }
    }
    return false;
}

/* A lost key may be set only where the operation would have set it. */
static bool is_loss_harmless(const struct lock_plan *plan, const struct script_run *run)
{
    const struct script_key *lost = &run->keys[run->lost_key];
    bool takes = plan->kind != LOCK_CALL_RELEASE &&
                 plan->kind != LOCK_CALL_FORCE_RELEASE &&
                 plan->kind < LOCK_CALL_GET_VALUE;

    if ((lost->after == SCRIPT_SET || lost->after == SCRIPT_EXTENDED) &&
        (!takes || !lock_end_plan_eq(&lost->end, &plan->end))) {
        return false;
    }
    return is_same_with_loss(plan, run);
}

/* One message for a key that was deleted, as the plan has it. */
static bool is_same_publish(const struct lock_plan *plan, const struct script_run *run)
{
    unsigned expected = plan->channel.source != LOCK_OPERAND_NONE &&
                        run->keys[0].after == SCRIPT_DELETED;

    if (run->publish_count != expected) {
        return false;
    }
    return expected == 0 || (lock_operand_eq(&plan->channel, &run->channel) &&
                             lock_operand_eq(&plan->message, &run->message));
}

/* A run, and the operation that it is compared with. */
struct run_check {
    struct script_analysis *a;
    const struct lock_plan *plan;
    struct lock_reply reply; /* the run's */
};

static bool is_same_outcome(const struct run_check *c, const struct script_run *run)
{
    struct lock_outcome expected = outcome_of_run(c->plan, run);

    if (c->a->checks++ == SCRIPT_CHECKS_MAX) {
        return script_refuse(c->a, 0, "the script has too many cases");
    }
    for (unsigned i = 0; i < run->key_count; i++) {
        if (!is_same_key(c->plan, &run->keys[i], expected.after[i])) {
            return false;
        }
    }
    return lock_reply_eq(&expected.reply, &c->reply) && is_same_publish(c->plan, run);
}

/* Whether an endless key makes a difference. */
static bool asks_for_end(const struct lock_plan *plan)
{
    return plan->endless == LOCK_ENDLESS_REFUSED ||
           !lock_reply_eq(&plan->replies[LOCK_KEY_MINE],
                          &plan->replies[LOCK_KEY_MINE_ENDLESS]);
}

static bool is_same_completed(const struct run_check *c, const struct script_run *run,
                              unsigned from);

/* The same with a key that may be endless: the run did not ask. */
static bool is_same_endless(const struct run_check *c, struct script_run *run,
                            unsigned at)
{
    struct script_key *key = &run->keys[at];

    if (!is_same_completed(c, run, at + 1)) {
        return false;
    }
    if (key->found == SCRIPT_FREE || key->left[LOCK_UNIT_MS] != LUA_TTL_UNKNOWN ||
        key->left[LOCK_UNIT_S] != LUA_TTL_UNKNOWN || !asks_for_end(c->plan)) {
        return true;
    }
    key->left[LOCK_UNIT_MS] = key->left[LOCK_UNIT_S] = LUA_TTL_ENDLESS;
    return is_same_completed(c, run, at + 1);
}

/* What a run did not look at, because it ended early or does not care, may be anything:
 * the operation must do the same in each case. Tries all for the keys from `from`. */
static bool is_same_completed(const struct run_check *c, const struct script_run *run,
                              unsigned from)
{
    struct script_run other = *run;

    if (from == run->key_count) {
        return is_same_outcome(c, run);
    }
    if (run->keys[from].used) {
        return is_same_endless(c, &other, from);
    }
    for (int found = 0; found < SCRIPT_FOUND_STATES; found++) {
        other = *run;
        other.keys[from].found = (enum script_found)found;
        if (!is_same_endless(c, &other, from)) {
            return false;
        }
    }
    return true;
}

bool lock_check_run(struct script_analysis *a, const struct lock_plan *plan,
                    const struct script_run *run)
{
    struct run_check c = { .a = a, .plan = plan };
    bool same;

    if (run->lost_key >= 0) {
        same = is_loss_harmless(plan, run);
    } else if (!lock_reply_of(a, run, &c.reply)) {
        return script_refuse(a, run->line, "the reply is none of a lock operation");
    } else {
        same = is_same_completed(&c, run, 0);
    }
    return same || script_error_set(a->error, run->line,
                                    "not the same operation (%s) on every path",
                                    lock_call_kind_name(plan->kind));
}
