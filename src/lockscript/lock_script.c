#include "lockscript/lock_script.h"

#include "lockscript/lock_plan.h"
#include "lockscript/lua_eval.h"
#include "lockscript/lua_parser.h"
#include "util/alloc.h"
#include "util/recent.h"
#include "util/text.h"
#include "util/throttle.h"

#include <stdlib.h>

/* The effect of an operation on the keys of a run, and its reply. */
struct lock_outcome {
    enum script_after after[SCRIPT_KEYS_MAX];
    struct lock_reply reply;
};

struct known_script {
    char sha1[SHA1_HEX_LEN + 1];
    struct lock_script script;
};

/* By their SHA1. tests/clients/lock_scripts.py makes this from the libraries' packages,
 * and checks it against them. */
static const struct known_script KNOWN[] = {
#include "lockscript/known_scripts.inc"
};

/* A release that also makes a list for waiters, which only a Redis can serve: the lock
 * is released, and no list is made. Without it a lock that was taken would stay. */
static const struct known_script BY_HAND[] = {
    { "90da91872223f85eb1376a17e3c4df21ace8c54b", /* python-redis-lock 3.7 to 4.0 */
      { .keys_named = 2,
        .keys_locked = 1,
        .plans[0] = { .kind = LOCK_CALL_RELEASE,
                      .compare = LOCK_COMPARE_VALUE,
                      .value_arg = 1,
                      .replies[LOCK_KEY_FREE] = { LOCK_REPLY_INTEGER, .integer = 1 },
                      .replies[LOCK_KEY_MINE] = { LOCK_REPLY_INTEGER, .integer = 0 },
                      .replies[LOCK_KEY_MINE_ENDLESS] = { LOCK_REPLY_INTEGER,
                                                          .integer = 0 },
                      .replies[LOCK_KEY_OTHERS] = { LOCK_REPLY_INTEGER, .integer = 1 },
                      .replies[LOCK_KEY_NOT_A_STRING] = { LOCK_REPLY_WRONG_TYPE,
                                                          .integer = 0 } } } },
};

static bool lock_reply_of(const struct script_analysis *a, const struct script_run *run,
                          struct lock_reply *ret);
static bool lock_check_run(struct script_analysis *a, const struct lock_plan *plan,
                           const struct script_run *run);

static int compare_sha1(const void *sha1, const void *known)
{
    return memcmp(sha1, ((const struct known_script *)known)->sha1, SHA1_HEX_LEN);
}

const struct lock_script *lock_script_known(struct span sha1)
{
    const struct known_script *found;
    char lower[SHA1_HEX_LEN + 1];

    if (!sha1_hex_copy(sha1, lower)) {
        return NULL;
    }
    found = bsearch(lower, KNOWN, sizeof(KNOWN) / sizeof(KNOWN[0]), sizeof(KNOWN[0]),
                    compare_sha1);
    for (size_t i = 0; i < sizeof(BY_HAND) / sizeof(BY_HAND[0]) && found == NULL; i++) {
        found = compare_sha1(lower, &BY_HAND[i]) == 0 ? &BY_HAND[i] : NULL;
    }
    return found == NULL ? NULL : &found->script;
}

/* The runs that tell operations from each other: all keys in one state, and nothing is
 * lost. */
struct base_runs {
    const struct script_run *of[LOCK_KEY_STATES];
};

bool lock_end_plan_eq(const struct lock_end_plan *a, const struct lock_end_plan *b)
{
    return a->end == b->end && a->unit == b->unit &&
           lock_operand_eq(&a->time, &b->time);
}

/* The number of keys that an operation needs to be told from others: 1, or all that a
 * script names. */
static unsigned lock_base_keys(const struct lua_ast *ast)
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

/* The kind of a query follows from the reply for a key that is there. */
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

/* Refuses a plan that no run shows to be wrong, but is no lock operation. */
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

/* Derives the operations of a script from its runs, for each variant. False: they are
 * none; the error says why. */
static bool lock_classify(struct script_analysis *a, struct lock_script *ret)
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

/* Times beyond this are refused: a double, which Lua's numbers are, is exact up to
 * here, and no clock will show more. */
#define END_MS_MAX (INT64_C(1) << 53)

struct binding {
    const struct lock_script *script;
    const struct lock_plan *plan;
    const struct span *keys;
    size_t key_count;
    const struct span *argv;
    size_t arg_count;
    struct lock_script_error *error;
};

/* An argument that must be there. */
static bool take_arg(const struct binding *b, unsigned index, struct span *ret)
{
    if (index > b->arg_count) {
        (void)script_error_set(b->error, 0, "ARGV[%u] is missing", index);
        return false;
    }
    *ret = b->argv[index - 1];
    return true;
}

static bool bind_number(const struct binding *b, const struct lock_operand *o,
                        int64_t *ret)
{
    struct span text;

    if (o->source == LOCK_OPERAND_NUMBER) {
        *ret = o->number;
        return true;
    }
    if (!take_arg(b, o->index, &text)) {
        return false;
    }
    if (!parse_i64(text, ret) || *ret > END_MS_MAX || *ret < -END_MS_MAX) {
        return script_error_set(b->error, 0, "ARGV[%u] is no integer or out of range",
                                o->index);
    }
    return true;
}

static bool bind_database(const struct binding *b, struct lock_call *ret)
{
    const struct lock_operand *o = &b->plan->database;

    ret->database = 0;
    if (o->source == LOCK_OPERAND_NONE) {
        return true;
    }
    if (!bind_number(b, o, &ret->database)) {
        return false;
    }
    return ret->database >= 0 ||
           script_error_set(b->error, 0, "ARGV[%u] is no number of a database",
                            o->index);
}

static bool bind_word(const struct binding *b, const struct lock_operand *o,
                      struct span *ret)
{
    switch (o->source) {
    case LOCK_OPERAND_KEY:
        *ret = b->keys[o->index - 1];
        return true;
    case LOCK_OPERAND_ARG:
        return take_arg(b, o->index, ret);
    case LOCK_OPERAND_TEXT:
        *ret = o->text;
        return true;
    default:
        *ret = SPAN_NONE;
        return true;
    }
}

static bool bind_end(const struct binding *b, struct lock_call *ret)
{
    const struct lock_end_plan *end = &b->plan->end;
    int64_t scale = end->unit == LOCK_UNIT_S ? 1000 : 1;

    ret->end = end->end;
    ret->end_ms = 0;
    if (end->end == LOCK_END_NONE) {
        return true;
    }
    if (!bind_number(b, &end->time, &ret->end_ms)) {
        return false;
    }
    if (ret->end_ms > END_MS_MAX / scale || ret->end_ms < -END_MS_MAX / scale ||
        (end->command == LOCK_END_BY_SET && ret->end_ms <= 0)) {
        return script_error_set(b->error, 0, "ARGV[%u] is no time that a key can have",
                                end->time.index);
    }
    ret->end_ms *= scale;
    return true;
}

static bool bind_prefix(const struct binding *b, struct lock_call *ret)
{
    int64_t len;

    ret->prefix_len = 0;
    if (ret->compare != LOCK_COMPARE_PREFIX) {
        return true;
    }
    if (!bind_number(b, &b->plan->prefix_len, &len)) {
        return false;
    }
    if (len < 1 || len > LOCK_CALL_VALUE_MAX) {
        return script_error_set(b->error, 0, "a prefix does not have 1 to %d bytes",
                                LOCK_CALL_VALUE_MAX);
    }
    ret->prefix_len = (size_t)len;
    return true;
}

static bool bind_value(const struct binding *b, struct lock_call *ret)
{
    unsigned index = b->plan->value_arg;

    ret->value = SPAN_NONE;
    if (index == 0) {
        return true;
    }
    if (!take_arg(b, index, &ret->value)) {
        return false;
    }
    if (ret->value.len > LOCK_CALL_VALUE_MAX) {
        return script_error_set(b->error, 0, "ARGV[%u] has more than %d bytes", index,
                                LOCK_CALL_VALUE_MAX);
    }
    if (ret->value.len == 0 && ret->compare == LOCK_COMPARE_PREFIX) {
        /* To GETRANGE a key that is not there has the same beginning. */
        return script_error_set(b->error, 0, "ARGV[%u] is empty", index);
    }
    return true;
}

static bool bind_keys(const struct binding *b, struct lock_call *ret)
{
    unsigned locked = b->script->keys_locked;

    if (b->key_count < b->script->keys_named) {
        return script_error_set(b->error, 0, "KEYS[%u] is missing",
                                b->script->keys_named);
    }
    ret->keys = b->keys;
    ret->key_count = locked == 0 ? b->key_count : locked;
    if (ret->key_count > LOCK_CALL_KEYS_MAX) {
        return script_error_set(b->error, 0, "there are more than %d keys",
                                LOCK_CALL_KEYS_MAX);
    }
    return true;
}

/* The plan that the arguments choose. A missing argument equals no text. */
static const struct lock_plan *choose_plan(const struct lock_script *s,
                                           const struct span *argv, size_t arg_count)
{
    unsigned variant = 0;

    for (unsigned i = 0; i < s->condition_count; i++) {
        const struct lock_condition *c = &s->conditions[i];

        if (c->arg <= arg_count && span_eq(argv[c->arg - 1], c->text)) {
            variant |= 1U << i;
        }
    }
    return &s->plans[variant];
}

bool lock_script_bind(const struct lock_script *script, const struct span *keys,
                      size_t key_count, const struct span *argv, size_t arg_count,
                      struct lock_call *ret, struct lock_script_error *ret_error)
{
    struct binding b = { script,   choose_plan(script, argv, arg_count),
                         keys,     key_count,
                         argv,     arg_count,
                         ret_error };

    *ret_error = (struct lock_script_error){ .line = 0 };
    ret->kind = b.plan->kind;
    ret->scope = b.plan->scope;
    ret->compare = b.plan->compare;
    ret->endless = b.plan->endless;
    memcpy(ret->replies, b.plan->replies, sizeof(ret->replies));
    return bind_keys(&b, ret) && bind_value(&b, ret) && bind_prefix(&b, ret) &&
           bind_end(&b, ret) && bind_database(&b, ret) &&
           bind_word(&b, &b.plan->channel, &ret->publish.channel) &&
           bind_word(&b, &b.plan->message, &ret->publish.message);
}

struct lock_reply lock_reply_item_at(const struct lock_reply *list, unsigned index)
{
    const struct lock_reply_item *item = &list->items[index];

    return (struct lock_reply){
        .kind = item->kind,
        .integer = item->integer,
        .text = item->text,
    };
}

bool lock_reply_eq(const struct lock_reply *a, const struct lock_reply *b)
{
    if (a->kind != b->kind || a->integer != b->integer || !span_eq(a->text, b->text) ||
        a->item_count != b->item_count) {
        return false;
    }
    for (unsigned i = 0; i < a->item_count; i++) {
        const struct lock_reply_item *x = &a->items[i], *y = &b->items[i];

        if (x->kind != y->kind || x->integer != y->integer ||
            !span_eq(x->text, y->text)) {
            return false;
        }
    }
    return true;
}

bool lock_reply_has(const struct lock_reply *r, enum lock_reply_kind kind)
{
    for (unsigned i = 0; i < r->item_count; i++) {
        if (r->items[i].kind == kind) {
            return true;
        }
    }
    return r->kind == kind;
}

/* A text of the script as a reply of one line. */
static bool reply_of_line(const struct lua_value *v, struct lock_reply *ret)
{
    bool code;

    ret->text = v->text;
    if (memchr(v->text.ptr, '\r', v->text.len) != NULL ||
        memchr(v->text.ptr, '\n', v->text.len) != NULL) {
        return false;
    }
    if (v->kind == LUA_VALUE_STATUS) {
        ret->kind = LOCK_REPLY_STATUS;
        return true;
    }
    if (v->text.len > 0 && v->text.ptr[0] == '-') {
        ret->text = span_after(v->text, 1);
    }
    code = memchr(ret->text.ptr, ' ', ret->text.len) != NULL;
    ret->kind = code ? LOCK_REPLY_ERROR : LOCK_REPLY_PLAIN_ERROR;
    return true;
}

static bool reply_of_ttl(const struct lua_value *v, struct lock_reply *ret)
{
    ret->kind = LOCK_REPLY_INTEGER;
    if (v->left == LUA_TTL_POSITIVE) {
        ret->kind = v->unit == LOCK_UNIT_S ? LOCK_REPLY_TTL_S : LOCK_REPLY_TTL_MS;
    }
    ret->integer = v->left == LUA_TTL_ENDLESS ? -1 : 0;
    return true;
}

/* ARGV[value_arg] is the value that the key has, if it was set or is mine. One that has
 * the same beginning keeps the value that it had. */
static bool reply_of_arg(const struct script_analysis *a, const struct script_run *run,
                         const struct lua_value *v, struct lock_reply *ret)
{
    const struct script_key *key = &run->keys[0];

    ret->kind = LOCK_REPLY_VALUE;
    return v->arg == a->value_arg && run->key_count == 1 &&
           key->found != SCRIPT_SAME_PREFIX &&
           (key->after == SCRIPT_SET ||
            (key->found == SCRIPT_MINE && key->after != SCRIPT_DELETED));
}

static bool reply_of_value(const struct script_analysis *a,
                           const struct script_run *run, const struct lua_value *v,
                           struct lock_reply *ret)
{
    *ret = (struct lock_reply){ .kind = LOCK_REPLY_NULL };
    switch (v->kind) {
    case LUA_VALUE_NIL:
    case LUA_VALUE_FALSE:
        return true;
    case LUA_VALUE_TRUE:
    case LUA_VALUE_NUMBER:
        ret->kind = LOCK_REPLY_INTEGER;
        ret->integer = v->kind == LUA_VALUE_TRUE ? 1 : v->number;
        return true;
    case LUA_VALUE_TEXT:
        ret->kind = LOCK_REPLY_BULK;
        ret->text = v->text;
        return true;
    case LUA_VALUE_STATUS:
    case LUA_VALUE_ERROR:
        return reply_of_line(v, ret);
    case LUA_VALUE_WRONG_TYPE:
        ret->kind = LOCK_REPLY_WRONG_TYPE;
        return true;
    case LUA_VALUE_STORED:
        ret->kind = LOCK_REPLY_VALUE;
        return run->key_count == 1 && run->keys[0].after == SCRIPT_UNTOUCHED;
    case LUA_VALUE_TTL:
        return run->key_count == 1 && run->keys[0].after == SCRIPT_UNTOUCHED &&
               reply_of_ttl(v, ret);
    case LUA_VALUE_ARG:
        return reply_of_arg(a, run, v, ret);
    default:
        return false;
    }
}

/* Redis ends a list at its first nil, and turns a status within one into its text. */
static bool is_item(const struct lua_value *v)
{
    return v->kind != LUA_VALUE_NIL && v->kind != LUA_VALUE_STATUS &&
           v->kind != LUA_VALUE_ERROR && v->kind != LUA_VALUE_WRONG_TYPE;
}

static bool reply_of_list(const struct script_analysis *a, const struct script_run *run,
                          struct lock_reply *ret)
{
    *ret = (struct lock_reply){
        .kind = LOCK_REPLY_LIST,
        .item_count = run->item_count,
    };
    for (unsigned i = 0; i < run->item_count; i++) {
        struct lock_reply item;

        if (!is_item(&run->items[i]) ||
            !reply_of_value(a, run, &run->items[i], &item)) {
            return false;
        }
        ret->items[i] = (struct lock_reply_item){
            .kind = item.kind,
            .integer = item.integer,
            .text = item.text,
        };
    }
    return true;
}

/* A reply as the client sees it. False: it is none that an operation has. */
static bool lock_reply_of(const struct script_analysis *a, const struct script_run *run,
                          struct lock_reply *ret)
{
    return run->reply.kind == LUA_VALUE_LIST ? reply_of_list(a, run, ret)
                                             : reply_of_value(a, run, &run->reply, ret);
}

/* The state that an operation takes a key for. */
static enum lock_call_state lock_state_of(const struct lock_plan *plan,
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

/* The effect of an operation on a key in which it can be done; SCRIPT_UNTOUCHED: it
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

/* A key ends with the value of the call, whatever value it had: SET does to a key of
 * the same value what EXTEND does. */
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

/* A run may end early, or not care: a key or TTL that it did not look at may be any.
 * The operation must do the same in each case. Tries all for the keys from `from`. */
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

/* Checks that the operation does what the run did, as far as it can be seen. */
static bool lock_check_run(struct script_analysis *a, const struct lock_plan *plan,
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

const char *lock_call_kind_name(enum lock_call_kind kind)
{
    static const char *const NAMES[LOCK_CALL_KINDS] = {
        [LOCK_CALL_ACQUIRE] = "acquire",
        [LOCK_CALL_ACQUIRE_OR_EXTEND] = "acquire or extend",
        [LOCK_CALL_EXTEND] = "extend",
        [LOCK_CALL_OVERWRITE] = "overwrite",
        [LOCK_CALL_RELEASE] = "release",
        [LOCK_CALL_FORCE_RELEASE] = "force release",
        [LOCK_CALL_GET_VALUE] = "get value",
        [LOCK_CALL_GET_TTL] = "get ttl",
        [LOCK_CALL_EXISTS] = "exists",
    };

    return kind < LOCK_CALL_KINDS ? NAMES[kind] : "nothing";
}

static bool uses_prefix(const struct lua_ast *ast)
{
    for (unsigned i = 0; i < ast->node_count; i++) {
        if (ast->nodes[i].kind == LUA_STRING_SUB) {
            return true;
        }
    }
    return false;
}

/* Runs the script with each number of keys that makes a difference. */
static bool run_with_keys(struct script_analysis *a)
{
    unsigned base = lock_base_keys(a->ast);
    unsigned most = a->ast->loops_over_keys ? SCRIPT_KEYS_MAX : base;

    if (base == 0) {
        return script_refuse(a, 0, "the script looks at no key");
    }
    if (base > SCRIPT_KEYS_MAX || (a->ast->loops_over_keys && a->ast->keys_index > 1)) {
        return script_refuse(a, 0, "the script names too many of KEYS");
    }
    for (unsigned count = base; count <= most; count++) {
        if (!script_run_all(a, count)) {
            return false;
        }
    }
    return true;
}

static bool analyse_text(char *text, size_t len, struct lua_ast *ast,
                         struct lock_script *script, struct lock_script_error *error)
{
    struct script_analysis a = { .ast = ast, .error = error };
    bool ok;

    if (!lua_parse(text, len, ast, error)) {
        return false;
    }
    a.has_prefix = uses_prefix(ast);
    ok = run_with_keys(&a) && lock_classify(&a, script);
    free(a.runs);
    return ok;
}

struct lock_script *lock_script_parse(struct span text,
                                      struct lock_script_error *ret_error)
{
    struct lock_script *script;
    struct lua_ast *ast;
    bool ok;

    *ret_error = (struct lock_script_error){ .line = 0 };
    if (text.len > LOCK_SCRIPT_TEXT_MAX) {
        (void)script_error_set(ret_error, 0, "the script has more than %d bytes",
                               LOCK_SCRIPT_TEXT_MAX);
        return NULL;
    }
    script = xcalloc(1, sizeof(*script));
    script->text = xmemdup0(text.ptr, text.len);
    ast = xmalloc(sizeof(*ast));
    ok = analyse_text(script->text, text.len, ast, script, ret_error);
    free(ast);
    if (!ok) {
        lock_script_free(script);
        return NULL;
    }
    return script;
}

void lock_script_free(struct lock_script *script)
{
    if (script != NULL) {
        free(script->text);
        free(script);
    }
}

/* A text that was read: a script, or why it is none. Its key is its SHA1; its time says
 * nothing, only the order counts. */
struct read_text {
    struct recent_item item;
    struct lock_script *script; /* NULL: refused */
    struct lock_script_error error;
};

struct lock_script_cache {
    struct recent scripts, failures;
    struct throttle *users;
};

static void free_script(void *thing)
{
    const struct read_text *text = thing;

    lock_script_free(text->script);
}

/* Finds a text, and makes it the one used last. */
static struct read_text *find_text(struct recent *texts, const char *sha1)
{
    struct span key = span_of(sha1, SHA1_HEX_LEN);

    return recent_find(texts, key) == NULL ? NULL : recent_note(texts, key, 0);
}

struct lock_script_cache *lock_script_cache_new(void)
{
    static const struct throttle_limits TEXTS = { LOCK_SCRIPT_TEXTS_BURST,
                                                  LOCK_SCRIPT_TEXTS_PER_SECOND,
                                                  LOCK_SCRIPT_USERS_MAX };
    struct lock_script_cache *c = xcalloc(1, sizeof(*c));

    recent_init(&c->scripts, sizeof(struct read_text), LOCK_SCRIPTS_MAX);
    recent_init(&c->failures, sizeof(struct read_text), LOCK_SCRIPT_FAILURES_MAX);
    c->scripts.on_drop = free_script;
    c->users = throttle_new(&TEXTS);
    return c;
}

void lock_script_cache_free(struct lock_script_cache *c)
{
    if (c != NULL) {
        recent_fini(&c->scripts);
        recent_fini(&c->failures);
        throttle_free(c->users);
        free(c);
    }
}

/* Reads a text that is new, and keeps what it is. */
static const struct read_text *read_text(struct lock_script_cache *c, struct span text,
                                         const char *sha1)
{
    struct lock_script_error error = { 0 };
    struct lock_script *script = lock_script_parse(text, &error);
    struct read_text *read = recent_note(script == NULL ? &c->failures : &c->scripts,
                                         span_of(sha1, SHA1_HEX_LEN), 0);

    read->script = script;
    read->error = error;
    return read;
}

enum lock_script_load lock_script_cache_load(struct lock_script_cache *c,
                                             struct span user, struct span text,
                                             uint64_t now_ms,
                                             char ret_sha1[SHA1_HEX_LEN + 1],
                                             const struct lock_script **ret,
                                             struct lock_script_error *ret_error)
{
    const struct read_text *read;

    sha1_hex(text, ret_sha1);
    *ret = lock_script_cache_find(c, span_of(ret_sha1, SHA1_HEX_LEN));
    if (*ret != NULL) {
        return LOCK_SCRIPT_LOADED;
    }
    read = find_text(&c->failures, ret_sha1);
    if (read == NULL) {
        if (!throttle_allows(c->users, user, now_ms)) {
            return LOCK_SCRIPT_TOO_MANY;
        }
        throttle_take(c->users, user, now_ms);
        read = read_text(c, text, ret_sha1);
    }
    *ret = read->script;
    *ret_error = read->error;
    return read->script == NULL ? LOCK_SCRIPT_REFUSED : LOCK_SCRIPT_LOADED;
}

const struct lock_script *lock_script_cache_find(struct lock_script_cache *c,
                                                 struct span sha1)
{
    const struct lock_script *known = lock_script_known(sha1);
    const struct read_text *found = NULL;
    char lower[SHA1_HEX_LEN + 1];

    if (known == NULL && sha1_hex_copy(sha1, lower)) {
        found = find_text(&c->scripts, lower);
    }
    return found == NULL ? known : found->script;
}

void lock_script_cache_flush(struct lock_script_cache *c)
{
    recent_clear(&c->scripts);
}

size_t lock_script_cache_count(const struct lock_script_cache *c)
{
    return c->scripts.count;
}

size_t lock_script_cache_failures(const struct lock_script_cache *c)
{
    return c->failures.count;
}
