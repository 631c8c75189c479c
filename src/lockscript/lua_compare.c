#include "lockscript/lua_compare.h"

enum lua_type { TYPE_NIL, TYPE_BOOL, TYPE_NUMBER, TYPE_TEXT, TYPE_TABLE };

static enum lua_type type_of(const struct lua_value *v)
{
    if (v->kind == LUA_VALUE_NIL) {
        return TYPE_NIL;
    }
    if (v->kind == LUA_VALUE_FALSE || v->kind == LUA_VALUE_TRUE) {
        return TYPE_BOOL;
    }
    if (lua_value_is_number(v)) {
        return TYPE_NUMBER;
    }
    return lua_value_is_text(v) ? TYPE_TEXT : TYPE_TABLE;
}

bool lua_is_true(struct script_analysis *a, unsigned line, const struct lua_value *v)
{
    if (v->kind == LUA_VALUE_ARG) {
        return script_refuse(a, line,
                             "whether an argument is given is no condition here");
    }
    return v->kind != LUA_VALUE_NIL && v->kind != LUA_VALUE_FALSE;
}

/* How `what` compares with a literal number: -1, 0, 1. Refuses what is not known. */
static int order_of_ttl(struct script_analysis *a, unsigned line,
                        const struct lua_value *ttl, int64_t number)
{
    int64_t least = ttl->left == LUA_TTL_ENDLESS ? -1 : 0;

    if (ttl->left == LUA_TTL_POSITIVE) {
        if (number > 0) {
            (void)script_refuse(a, line, "a time to live is compared with more than 0");
        }
        return 1;
    }
    return least < number ? -1 : least > number;
}

static int order_of_numbers(struct script_analysis *a, unsigned line,
                            const struct lua_value *x, const struct lua_value *y)
{
    if (x->kind == LUA_VALUE_NUMBER && y->kind == LUA_VALUE_NUMBER) {
        return x->number < y->number ? -1 : x->number > y->number;
    }
    if (x->kind == LUA_VALUE_TTL && y->kind == LUA_VALUE_NUMBER) {
        return order_of_ttl(a, line, x, y->number);
    }
    if (x->kind == LUA_VALUE_NUMBER && y->kind == LUA_VALUE_TTL) {
        return -order_of_ttl(a, line, y, x->number);
    }
    (void)script_refuse(a, line, "two numbers are compared that are not known");
    return 0;
}

/* Keys are compared in one way only. */
static bool use_compare(struct script_analysis *a, unsigned line, unsigned arg,
                        enum lock_call_compare compare, const struct lock_operand *len)
{
    if (!script_use_value(a, line, arg)) {
        return false;
    }
    if (a->compare != LOCK_COMPARE_NONE &&
        (a->compare != compare ||
         (len != NULL && !lock_operand_eq(len, &a->prefix_len)))) {
        return script_refuse(a, line, "the key's value is compared in two ways");
    }
    a->compare = compare;
    if (len != NULL) {
        a->prefix_len = *len;
    }
    return true;
}

static bool is_stored_equal(struct script_analysis *a, unsigned line,
                            const struct lua_value *stored, const struct lua_value *arg)
{
    return use_compare(a, line, arg->arg, LOCK_COMPARE_VALUE, NULL) &&
           a->run->keys[stored->key - 1].found == SCRIPT_MINE;
}

static bool is_prefix_equal(struct script_analysis *a, unsigned line,
                            const struct lua_value *stored, const struct lua_value *arg)
{
    enum script_found found = a->run->keys[stored->key - 1].found;

    if (!lock_operand_eq(&stored->prefix, &arg->prefix)) {
        return script_refuse(a, line, "prefixes of different lengths are compared");
    }
    return use_compare(a, line, arg->arg, LOCK_COMPARE_PREFIX, &arg->prefix) &&
           (found == SCRIPT_MINE || found == SCRIPT_SAME_PREFIX);
}

/* Two texts; `y` is one that comes from the arguments or the script. */
static bool is_text_equal(struct script_analysis *a, unsigned line,
                          const struct lua_value *x, const struct lua_value *y)
{
    if (x->kind == LUA_VALUE_STORED && y->kind == LUA_VALUE_ARG) {
        return is_stored_equal(a, line, x, y);
    }
    if (x->kind == LUA_VALUE_STORED_PREFIX && y->kind == LUA_VALUE_ARG_PREFIX) {
        return is_prefix_equal(a, line, x, y);
    }
    if (x->kind == LUA_VALUE_ARG && y->kind == LUA_VALUE_TEXT) {
        return script_condition(a, line, x->arg, y->text);
    }
    if (x->kind == LUA_VALUE_ARG && y->kind == LUA_VALUE_ARG && x->arg == y->arg) {
        return true;
    }
    if (x->kind == LUA_VALUE_TEXT && y->kind == LUA_VALUE_TEXT) {
        return span_eq(x->text, y->text);
    }
    if (x->kind == LUA_VALUE_TEXT && x->text.len == 0 &&
        y->kind == LUA_VALUE_ARG_PREFIX) {
        return false; /* a call's prefix is never empty */
    }
    return script_refuse(a, line, "two texts are compared that are not known");
}

/* Whether x == y depends on more than their types; a text that comes from the script or
 * the arguments is then the second. */
static bool is_equal_in_type(struct script_analysis *a, unsigned line,
                             enum lua_type type, const struct lua_value *x,
                             const struct lua_value *y)
{
    bool swap = y->kind == LUA_VALUE_STORED || y->kind == LUA_VALUE_STORED_PREFIX ||
                (x->kind == LUA_VALUE_TEXT && y->kind == LUA_VALUE_ARG) ||
                (x->kind == LUA_VALUE_ARG_PREFIX && y->kind == LUA_VALUE_TEXT);

    switch (type) {
    case TYPE_NIL:
        return true;
    case TYPE_BOOL:
        return x->kind == y->kind;
    case TYPE_NUMBER:
        return order_of_numbers(a, line, x, y) == 0;
    case TYPE_TEXT:
        return is_text_equal(a, line, swap ? y : x, swap ? x : y);
    default:
        return script_refuse(a, line, "two replies are compared");
    }
}

bool lua_is_equal(struct script_analysis *a, unsigned line, const struct lua_value *x,
                  const struct lua_value *y)
{
    enum lua_type type = type_of(x);

    if (type == type_of(y)) {
        return is_equal_in_type(a, line, type, x, y);
    }
    if ((x->kind == LUA_VALUE_ARG && y->kind == LUA_VALUE_NIL) ||
        (y->kind == LUA_VALUE_ARG && x->kind == LUA_VALUE_NIL)) {
        return script_refuse(a, line,
                             "whether an argument is given is no condition here");
    }
    return false;
}

bool lua_is_less(struct script_analysis *a, unsigned line, const struct lua_value *x,
                 const struct lua_value *y, bool or_equal)
{
    int order;

    if (!lua_value_is_number(x) || !lua_value_is_number(y)) {
        return script_refuse(a, line, "'<' between others than numbers");
    }
    order = order_of_numbers(a, line, x, y);
    return order < 0 || (or_equal && order == 0);
}
