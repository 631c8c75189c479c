#include "lockscript/lock_plan.h"
#include "lockscript/script_error.h"
#include "util/parse.h"

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
