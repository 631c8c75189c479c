#include "lockscript/lock_classify.h"

/* The runs that tell operations from each other: all keys in one state, and nothing is
 * lost. */
struct base_runs {
    const struct script_run *of[LOCK_KEY_STATES];
};

bool lock_operand_eq(const struct lock_operand *a, const struct lock_operand *b)
{
    return a->source == b->source && a->index == b->index && a->number == b->number &&
           span_eq(a->text, b->text);
}

bool lock_end_plan_eq(const struct lock_end_plan *a, const struct lock_end_plan *b)
{
    return a->end == b->end && a->unit == b->unit &&
           lock_operand_eq(&a->time, &b->time);
}

unsigned lock_base_keys(const struct lua_ast *ast)
{
    return ast->loops_over_keys ? 1 : ast->keys_index;
}

/* Whether a run may be of a variant: no condition that it asked for is otherwise. */
static bool is_of_variant(const struct script_run *run, unsigned variant)
{
    for (unsigned i = 0; i < LOCK_CONDITIONS_MAX; i++) {
        if (run->conditions[i] >= 0 &&
            (unsigned)run->conditions[i] != (variant >> i & 1)) {
            return false;
        }
    }
    return true;
}

static bool is_in_state(const struct script_key *key, enum script_found found,
                        bool endless)
{
    bool is_endless = key->left[LOCK_UNIT_MS] == LUA_TTL_ENDLESS ||
                      key->left[LOCK_UNIT_S] == LUA_TTL_ENDLESS;
    bool is_zero = key->left[LOCK_UNIT_MS] == LUA_TTL_ZERO ||
                   key->left[LOCK_UNIT_S] == LUA_TTL_ZERO;

    return key->used && key->found == found && is_endless == endless && !is_zero;
}

/* Finds the run in which the first key is `found`, and so are all others that it used
 * but the second, which is `second`. */
static const struct script_run *find_run(const struct script_analysis *a,
                                         unsigned variant, unsigned key_count,
                                         enum script_found found,
                                         enum script_found second, bool endless)
{
    for (unsigned i = 0; i < a->run_count; i++) {
        const struct script_run *run = &a->runs[i];
        bool fits = run->lost_key < 0 && run->key_count == key_count &&
                    is_of_variant(run, variant) &&
                    is_in_state(&run->keys[0], found, endless);

        for (unsigned k = 1; fits && k < key_count; k++) {
            fits = !run->keys[k].used ||
                   is_in_state(&run->keys[k], k == 1 ? second : found, endless);
        }
        if (fits) {
            return run;
        }
    }
    return NULL;
}

static bool find_base_runs(struct script_analysis *a, unsigned variant,
                           unsigned key_count, struct base_runs *ret)
{
    static const enum script_found FOUND[LOCK_KEY_STATES] = {
        [LOCK_KEY_FREE] = SCRIPT_FREE,
        [LOCK_KEY_MINE] = SCRIPT_MINE,
        [LOCK_KEY_MINE_ENDLESS] = SCRIPT_MINE,
        [LOCK_KEY_OTHERS] = SCRIPT_OTHERS,
        [LOCK_KEY_NOT_A_STRING] = SCRIPT_NOT_A_STRING,
    };

    for (int s = 0; s < LOCK_KEY_STATES; s++) {
        ret->of[s] = find_run(a, variant, key_count, FOUND[s], FOUND[s],
                              s == LOCK_KEY_MINE_ENDLESS);
        if (ret->of[s] == NULL && s == LOCK_KEY_MINE_ENDLESS) {
            ret->of[s] = ret->of[LOCK_KEY_MINE];
        }
        if (ret->of[s] == NULL) {
            (void)script_refuse(a, 0, "a path of the script looks at no key");
            return false;
        }
    }
    return true;
}

static enum script_after after_of(const struct base_runs *base, enum lock_call_state s)
{
    return base->of[s]->keys[0].after;
}

static bool is_set_after(enum script_after after)
{
    return after == SCRIPT_SET || after == SCRIPT_EXTENDED;
}

/* What is asked, by what a key that is there is answered with. */
static enum lock_call_kind kind_of_query(const struct lock_plan *plan)
{
    const struct lock_reply *r = &plan->replies[LOCK_KEY_MINE];

    if (lock_reply_has(r, LOCK_REPLY_VALUE)) {
        return LOCK_CALL_GET_VALUE;
    }
    return lock_reply_has(r, LOCK_REPLY_TTL_MS) || lock_reply_has(r, LOCK_REPLY_TTL_S)
               ? LOCK_CALL_GET_TTL
               : LOCK_CALL_EXISTS;
}

/* LOCK_CALL_KINDS: no operation does that. */
static enum lock_call_kind kind_of_change(const struct base_runs *base,
                                          const struct lock_plan *plan)
{
    enum script_after mine = after_of(base, LOCK_KEY_MINE);
    enum script_after others = after_of(base, LOCK_KEY_OTHERS);

    if (after_of(base, LOCK_KEY_FREE) == SCRIPT_SET) {
        if (others != SCRIPT_UNTOUCHED) {
            return LOCK_CALL_KINDS;
        }
        return is_set_after(mine) ? LOCK_CALL_ACQUIRE_OR_EXTEND : LOCK_CALL_ACQUIRE;
    }
    if (mine == SCRIPT_DELETED) {
        return others == SCRIPT_DELETED ? LOCK_CALL_FORCE_RELEASE : LOCK_CALL_RELEASE;
    }
    if (is_set_after(mine)) {
        return others == SCRIPT_SET ? LOCK_CALL_OVERWRITE : LOCK_CALL_EXTEND;
    }
    return others == SCRIPT_UNTOUCHED ? kind_of_query(plan) : LOCK_CALL_KINDS;
}

/* The run that shows what a kind does when it can be done. */
static const struct script_run *done_run(const struct base_runs *base,
                                         enum lock_call_kind kind)
{
    return base->of[lock_call_takes(kind) ? LOCK_KEY_FREE : LOCK_KEY_MINE];
}

static bool derive_kind(struct script_analysis *a, const struct base_runs *base,
                        struct lock_plan *plan)
{
    const struct script_run *done;

    for (int s = 0; s < LOCK_KEY_STATES; s++) {
        if (!lock_reply_of(a, base->of[s], &plan->replies[s])) {
            return script_refuse(a, base->of[s]->line,
                                 "the reply is none of a lock operation");
        }
    }
    plan->compare = a->compare;
    plan->prefix_len = a->prefix_len;
    plan->value_arg = a->value_arg;
    plan->database = base->of[LOCK_KEY_FREE]->database;
    plan->kind = kind_of_change(base, plan);
    if (plan->kind == LOCK_CALL_KINDS) {
        return script_refuse(a, base->of[LOCK_KEY_OTHERS]->line,
                             "what it does to others' keys is no lock operation");
    }
    if (plan->kind == LOCK_CALL_OVERWRITE) {
        return script_refuse(a, base->of[LOCK_KEY_OTHERS]->line,
                             "it gives another's lock a new value, and a lock "
                             "keeps its value");
    }
    done = done_run(base, plan->kind);
    plan->end = done->keys[0].end;
    if (plan->kind != LOCK_CALL_EXTEND) {
        plan->end.command = LOCK_END_BY_SET;
    }
    if (done->publish_count == 1) {
        plan->channel = done->channel;
        plan->message = done->message;
    }
    plan->endless = plan->kind == LOCK_CALL_EXTEND &&
                            after_of(base, LOCK_KEY_MINE_ENDLESS) == SCRIPT_UNTOUCHED
                        ? LOCK_ENDLESS_REFUSED
                        : LOCK_ENDLESS_GETS_END;
    return true;
}

/* Whether one key is changed though another cannot be. */
static bool acts_on_each(const struct script_analysis *a, unsigned variant,
                         const struct lock_plan *plan)
{
    enum script_found not_ready =
        plan->kind == LOCK_CALL_FORCE_RELEASE ? SCRIPT_FREE : SCRIPT_OTHERS;
    const struct script_run *run =
        find_run(a, variant, 2, SCRIPT_MINE, not_ready, false);

    return run != NULL && run->keys[0].after != SCRIPT_UNTOUCHED;
}

/* Whether a reply of 1 for one key is 2 for two in the same state. */
static bool counts_keys(const struct script_analysis *a, unsigned variant,
                        const struct script_run *one)
{
    const struct script_key *key = &one->keys[0];
    bool endless = is_in_state(key, key->found, true);
    const struct script_run *two =
        find_run(a, variant, 2, key->found, key->found, endless);

    return one->reply.kind == LUA_VALUE_NUMBER && one->reply.number == 1 &&
           two != NULL && two->reply.kind == LUA_VALUE_NUMBER && two->reply.number == 2;
}

/* Which replies are counts: with one key a number says nothing about that. */
static void derive_counts(const struct script_analysis *a, unsigned variant,
                          const struct base_runs *base, struct lock_plan *plan)
{
    bool each = acts_on_each(a, variant, plan);

    plan->scope = each ? LOCK_CALL_EACH_KEY : LOCK_CALL_ALL_OR_NONE;
    for (int s = 0; s < LOCK_KEY_STATES; s++) {
        struct lock_reply *r = &plan->replies[s];

        if (each && r->kind == LOCK_REPLY_INTEGER) {
            *r = (struct lock_reply){ .kind = LOCK_REPLY_DONE_COUNT };
        } else if (a->ast->loops_over_keys && counts_keys(a, variant, base->of[s])) {
            *r = (struct lock_reply){ .kind = LOCK_REPLY_KEY_COUNT };
        }
    }
}

static bool has_same_replies(const struct lock_plan *plan)
{
    for (int s = 1; s < LOCK_KEY_STATES; s++) {
        const struct lock_reply *a = &plan->replies[0], *b = &plan->replies[s];

        if (a->kind != b->kind || a->integer != b->integer ||
            (a->kind == LOCK_REPLY_LIST && !lock_reply_eq(a, b)) ||
            lock_reply_has(b, LOCK_REPLY_VALUE)) {
            return false;
        }
    }
    return true;
}

/* What no run shows to be wrong, and still is no lock operation. */
static bool check_plan(struct script_analysis *a, const struct lock_plan *plan)
{
    bool query = plan->kind >= LOCK_CALL_GET_VALUE;

    if (query && has_same_replies(plan)) {
        return script_refuse(a, 0, "the script neither changes nor tells anything");
    }
    if (plan->scope == LOCK_CALL_EACH_KEY && lock_call_takes(plan->kind)) {
        return script_refuse(a, 0, "some keys are taken, and others are not");
    }
    return true;
}

static bool check_runs(struct script_analysis *a, unsigned variant,
                       const struct lock_plan *plan)
{
    for (unsigned i = 0; i < a->run_count; i++) {
        if (is_of_variant(&a->runs[i], variant) &&
            !lock_check_run(a, plan, &a->runs[i])) {
            return false;
        }
    }
    return true;
}

/* Whether the arguments can make all of a variant's conditions true. */
static bool is_possible(const struct script_analysis *a, unsigned variant)
{
    return variant != 3 || a->conditions[0].arg != a->conditions[1].arg;
}

static bool takes_or_extends(enum lock_call_kind kind)
{
    return lock_call_takes(kind) || kind == LOCK_CALL_EXTEND;
}

/* An argument may choose how long, or whether a free key is taken, too; not between
 * operations that have nothing to do with each other. */
static bool check_choice(struct script_analysis *a, const struct lock_script *s,
                         const struct lock_plan *plan)
{
    const struct lock_plan *first = &s->plans[0];

    return plan->kind == first->kind ||
           (takes_or_extends(plan->kind) && takes_or_extends(first->kind)) ||
           script_error_set(a->error, 0, "ARGV[%u] chooses between %s and %s",
                            a->conditions[0].arg, lock_call_kind_name(first->kind),
                            lock_call_kind_name(plan->kind));
}

/* Counts the keys that commands use; the others are names of channels. */
static bool count_locked(struct script_analysis *a, unsigned *ret)
{
    bool used[SCRIPT_KEYS_MAX] = { false };

    *ret = 0;
    for (unsigned i = 0; i < a->run_count; i++) {
        for (unsigned k = 0; k < a->runs[i].key_count; k++) {
            used[k] = used[k] || a->runs[i].keys[k].used;
        }
    }
    for (unsigned k = 0; k < SCRIPT_KEYS_MAX; k++) {
        if (used[k] && *ret != k) {
            return script_refuse(a, 0, "the first of KEYS is not used as a key");
        }
        *ret += used[k];
    }
    return *ret > 0 || script_refuse(a, 0, "the script looks at no key");
}

bool lock_classify(struct script_analysis *a, struct lock_script *ret)
{
    unsigned locked;

    if (!count_locked(a, &locked)) {
        return false;
    }
    for (unsigned i = 0; i < a->run_count && !a->ast->loops_over_keys; i++) {
        a->runs[i].key_count = locked;
    }
    ret->keys_named = lock_base_keys(a->ast);
    ret->keys_locked = a->ast->loops_over_keys ? 0 : locked;
    ret->condition_count = a->condition_count;
    memcpy(ret->conditions, a->conditions, sizeof(ret->conditions));
    for (unsigned v = 0; v < 1U << a->condition_count; v++) {
        struct lock_plan *plan = &ret->plans[v];
        struct base_runs base;

        plan->kind = LOCK_CALL_KINDS;
        if (!is_possible(a, v)) {
            continue;
        }
        if (!find_base_runs(a, v, ret->keys_locked == 0 ? 1 : locked, &base) ||
            !derive_kind(a, &base, plan)) {
            return false;
        }
        derive_counts(a, v, &base, plan);
        if (!check_plan(a, plan) || !check_runs(a, v, plan) ||
            !check_choice(a, ret, plan)) {
            return false;
        }
    }
    return true;
}
