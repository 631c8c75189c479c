#include "lockscript/lua_eval.h"

#include "lockscript/lua_compare.h"

/* Numbers stay where a double has them exactly. */
enum { NUMBER_MAX = 1000000000 };

enum flow {
    FLOW_ON,
    FLOW_BREAK, /* out of the loop */
    FLOW_END,   /* the script has its reply, or is refused */
};

struct eval {
    struct script_analysis *a;
    const struct lua_ast *ast;
    struct lua_value locals[LUA_LOCALS_MAX];
    bool raised; /* a command raised an error, which ends the script */
};

static struct lua_value eval_expression(struct eval *e, uint16_t at);
static enum flow eval_block(struct eval *e, uint16_t at);

/* Refuses the script; the value is one that nobody looks at. */
static struct lua_value refuse_value(struct eval *e, unsigned line, const char *why)
{
    (void)script_refuse(e->a, line, why);
    return lua_value_of(LUA_VALUE_NIL);
}

static bool is_stopped(const struct eval *e)
{
    return e->raised || script_refused(e->a);
}

/* Evaluates a list of arguments. False: one of them ended the script. */
static bool eval_args(struct eval *e, const struct lua_node *n, struct lua_args *ret)
{
    ret->count = 0;
    ret->line = n->line;
    for (uint16_t at = n->first; at != 0; at = e->ast->nodes[at].next) {
        if (ret->count == LUA_CALL_ARGS_MAX) {
            return script_refuse(e->a, n->line, "a function has too many arguments");
        }
        ret->list[ret->count++] = eval_expression(e, at);
        if (is_stopped(e)) {
            return false;
        }
    }
    return true;
}

static struct lua_value eval_redis_call(struct eval *e, const struct lua_node *n)
{
    struct lua_value reply;
    struct lua_args args;

    if (!eval_args(e, n, &args)) {
        return lua_value_of(LUA_VALUE_NIL);
    }
    reply = script_command(e->a, &args);
    if (reply.kind == LUA_VALUE_WRONG_TYPE && n->kind == LUA_REDIS_CALL) {
        e->raised = true;
        e->a->run->reply = reply;
        e->a->run->line = n->line;
    }
    return reply;
}

/* The one argument of a function; *ret is its value. */
static bool eval_one_arg(struct eval *e, const struct lua_node *n,
                         struct lua_value *ret)
{
    struct lua_args args;

    if (!eval_args(e, n, &args)) {
        return false;
    }
    if (args.count != 1) {
        return script_refuse(e->a, n->line, "a function does not have one argument");
    }
    *ret = args.list[0];
    return true;
}

static struct lua_value eval_reply(struct eval *e, const struct lua_node *n)
{
    struct lua_value v = lua_value_of(LUA_VALUE_NIL);

    if (!eval_one_arg(e, n, &v)) {
        return v;
    }
    if (v.kind != LUA_VALUE_TEXT) {
        return refuse_value(e, n->line, "a status or error is no literal text");
    }
    v.kind = n->kind == LUA_STATUS_REPLY ? LUA_VALUE_STATUS : LUA_VALUE_ERROR;
    return v;
}

static struct lua_value eval_tonumber(struct eval *e, const struct lua_node *n)
{
    struct lua_value v = lua_value_of(LUA_VALUE_NIL);

    if (!eval_one_arg(e, n, &v)) {
        return v;
    }
    if (v.kind == LUA_VALUE_ARG) {
        return (struct lua_value){ .kind = LUA_VALUE_ARG_NUMBER, .arg = v.arg };
    }
    return lua_value_is_number(&v)
               ? v
               : refuse_value(e, n->line,
                              "tonumber() of others than arguments and times");
}

/* string.sub(ARGV[i], 1, length) */
static struct lua_value eval_string_sub(struct eval *e, const struct lua_node *n)
{
    struct lua_value v = lua_value_of(LUA_VALUE_ARG_PREFIX);
    struct lua_args args;

    if (!eval_args(e, n, &args)) {
        return v;
    }
    if (args.count != 3 || args.list[0].kind != LUA_VALUE_ARG ||
        args.list[1].kind != LUA_VALUE_NUMBER || args.list[1].number != 1) {
        return refuse_value(e, n->line,
                            "string.sub() of others than an argument's begin");
    }
    v.arg = args.list[0].arg;
    if (!lua_prefix_length(&args.list[2], 0, &v.prefix)) {
        return refuse_value(e, n->line, "the length of a prefix is not known");
    }
    return v;
}

/* KEYS[i] or ARGV[i] */
static struct lua_value eval_index(struct eval *e, const struct lua_node *n)
{
    struct lua_value i = eval_expression(e, n->first), v = lua_value_of(LUA_VALUE_NIL);

    if (is_stopped(e)) {
        return v;
    }
    if (i.kind != LUA_VALUE_NUMBER || i.number < 1 || i.number > LUA_INDEX_MAX) {
        return refuse_value(e, n->line, "an index of KEYS or ARGV is not known");
    }
    if (n->kind == LUA_ARGV_AT) {
        if (e->ast->nodes[n->first].kind != LUA_NUMBER) {
            return refuse_value(e, n->line, "an index of ARGV is no literal number");
        }
        v.kind = LUA_VALUE_ARG;
        v.arg = (unsigned)i.number;
    } else if (i.number <= e->a->run->key_count) {
        v.kind = LUA_VALUE_KEY;
        v.key = (unsigned)i.number;
    }
    return v;
}

static bool is_ordered(struct eval *e, const struct lua_node *n,
                       const struct lua_value *x, const struct lua_value *y)
{
    switch (n->kind) {
    case LUA_EQ:
        return lua_is_equal(e->a, n->line, x, y);
    case LUA_NE:
        return !lua_is_equal(e->a, n->line, x, y);
    case LUA_LT:
        return lua_is_less(e->a, n->line, x, y, false);
    case LUA_LE:
        return lua_is_less(e->a, n->line, x, y, true);
    case LUA_GT:
        return lua_is_less(e->a, n->line, y, x, false);
    default:
        return lua_is_less(e->a, n->line, y, x, true);
    }
}

/* An argument as a number, where it is one of a sum. */
static void coerce_arg(struct lua_value *v)
{
    if (v->kind == LUA_VALUE_ARG) {
        *v = (struct lua_value){ .kind = LUA_VALUE_ARG_NUMBER, .arg = v->arg };
    }
}

static bool is_plain_arg(const struct lua_value *v)
{
    return v->kind == LUA_VALUE_ARG_NUMBER && v->number == 0;
}

static struct lua_value add_values(struct eval *e, unsigned line, struct lua_value x,
                                   struct lua_value y)
{
    coerce_arg(&x);
    coerce_arg(&y);
    if (y.kind != LUA_VALUE_NUMBER && x.kind != LUA_VALUE_TTL) {
        struct lua_value swapped = x;

        x = y;
        y = swapped;
    }
    if (x.kind == LUA_VALUE_TTL && is_plain_arg(&y)) {
        x.kind = LUA_VALUE_ARG_PLUS_TTL;
        x.arg = y.arg;
        return x;
    }
    if ((x.kind != LUA_VALUE_NUMBER && x.kind != LUA_VALUE_ARG_NUMBER) ||
        y.kind != LUA_VALUE_NUMBER) {
        return refuse_value(e, line, "a sum that is not understood");
    }
    x.number += y.number;
    x.text = SPAN_NONE;
    return x.number > NUMBER_MAX || x.number < -NUMBER_MAX
               ? refuse_value(e, line, "a number is too large")
               : x;
}

static struct lua_value eval_binary(struct eval *e, const struct lua_node *n)
{
    struct lua_value x = eval_expression(e, n->first), y;

    if (is_stopped(e)) {
        return x;
    }
    y = eval_expression(e, n->second);
    if (is_stopped(e)) {
        return y;
    }
    if (n->kind == LUA_ADD) {
        return add_values(e, n->line, x, y);
    }
    if (n->kind == LUA_SUBTRACT) {
        if (y.kind != LUA_VALUE_NUMBER) {
            return refuse_value(e, n->line, "a difference that is not understood");
        }
        y.number = -y.number;
        return add_values(e, n->line, x, y);
    }
    return lua_value_bool(is_ordered(e, n, &x, &y));
}

/* and, or: the second is evaluated only if the first does not decide. */
static struct lua_value eval_logic(struct eval *e, const struct lua_node *n)
{
    struct lua_value x = eval_expression(e, n->first);

    if (is_stopped(e) || lua_is_true(e->a, n->line, &x) != (n->kind == LUA_AND)) {
        return x;
    }
    return eval_expression(e, n->second);
}

static struct lua_value eval_unary(struct eval *e, const struct lua_node *n)
{
    struct lua_value x = eval_expression(e, n->first);

    if (is_stopped(e)) {
        return x;
    }
    if (n->kind == LUA_NOT) {
        return lua_value_bool(!lua_is_true(e->a, n->line, &x));
    }
    return x.kind == LUA_VALUE_NUMBER
               ? lua_value_number(-x.number)
               : refuse_value(e, n->line, "'-' of others than numbers");
}

static struct lua_value eval_literal(const struct lua_node *n)
{
    switch (n->kind) {
    case LUA_NIL:
        return lua_value_of(LUA_VALUE_NIL);
    case LUA_TRUE:
        return lua_value_of(LUA_VALUE_TRUE);
    case LUA_FALSE:
        return lua_value_of(LUA_VALUE_FALSE);
    case LUA_NUMBER:
        return (struct lua_value){ .kind = LUA_VALUE_NUMBER,
                                   .number = n->number,
                                   .text = n->text };
    default:
        return (struct lua_value){ .kind = LUA_VALUE_TEXT, .text = n->text };
    }
}

/* Counts a step. False: the script has no more. */
static bool count_step(struct eval *e, unsigned line)
{
    if (e->a->steps == SCRIPT_STEPS_MAX) {
        return script_refuse(e->a, line, "the script does too much");
    }
    e->a->steps++;
    return true;
}

static struct lua_value eval_expression(struct eval *e, uint16_t at)
{
    const struct lua_node *n = &e->ast->nodes[at];

    if (!count_step(e, n->line)) {
        return lua_value_of(LUA_VALUE_NIL);
    }
    switch (n->kind) {
    case LUA_LOCAL:
        return e->locals[n->slot];
    case LUA_KEYS_AT:
    case LUA_ARGV_AT:
        return eval_index(e, n);
    case LUA_KEYS_LENGTH:
        return e->ast->loops_over_keys
                   ? lua_value_number(e->a->run->key_count)
                   : refuse_value(e, n->line, "#KEYS without a loop over KEYS");
    case LUA_NOT:
    case LUA_NEGATE:
        return eval_unary(e, n);
    case LUA_AND:
    case LUA_OR:
        return eval_logic(e, n);
    case LUA_REDIS_CALL:
    case LUA_REDIS_PCALL:
        return eval_redis_call(e, n);
    case LUA_STATUS_REPLY:
    case LUA_ERROR_REPLY:
        return eval_reply(e, n);
    case LUA_TONUMBER:
        return eval_tonumber(e, n);
    case LUA_STRING_SUB:
        return eval_string_sub(e, n);
    case LUA_EQ:
    case LUA_NE:
    case LUA_LT:
    case LUA_LE:
    case LUA_GT:
    case LUA_GE:
    case LUA_ADD:
    case LUA_SUBTRACT:
        return eval_binary(e, n);
    default:
        return eval_literal(n);
    }
}

/* A list that is returned. Its items are the run's. */
static struct lua_value eval_table(struct eval *e, const struct lua_node *n)
{
    struct script_run *run = e->a->run;
    struct lua_args items;

    if (!eval_args(e, n, &items)) {
        return lua_value_of(LUA_VALUE_NIL);
    }
    if (items.count > LOCK_REPLY_ITEMS_MAX) {
        return refuse_value(e, n->line, "a table has too many values");
    }
    run->item_count = items.count;
    memcpy(run->items, items.list, items.count * sizeof(items.list[0]));
    return lua_value_of(LUA_VALUE_LIST);
}

static enum flow eval_if(struct eval *e, const struct lua_node *n)
{
    struct lua_value condition = eval_expression(e, n->first);
    bool holds;

    if (is_stopped(e)) {
        return FLOW_END;
    }
    holds = lua_is_true(e->a, n->line, &condition);
    return script_refused(e->a) ? FLOW_END
                                : eval_block(e, holds ? n->second : n->third);
}

static enum flow eval_loop(struct eval *e, const struct lua_node *n)
{
    for (unsigned i = 1; i <= e->a->run->key_count; i++) {
        enum flow flow;

        e->locals[n->slot] = lua_value_number(i);
        e->locals[n->slot + 1] = lua_value_of(LUA_VALUE_KEY);
        e->locals[n->slot + 1].key = i;
        flow = eval_block(e, n->second);
        if (flow != FLOW_ON) {
            return flow == FLOW_BREAK ? FLOW_ON : flow;
        }
    }
    return FLOW_ON;
}

static enum flow eval_statement(struct eval *e, const struct lua_node *n)
{
    struct lua_value v = lua_value_of(LUA_VALUE_NIL);

    switch (n->kind) {
    case LUA_IF:
        return eval_if(e, n);
    case LUA_FOR_KEYS:
        return eval_loop(e, n);
    case LUA_DO:
        return eval_block(e, n->second);
    case LUA_BREAK:
        return FLOW_BREAK;
    default:
        break; /* those that have an expression at most */
    }
    if (n->first != 0) {
        v = e->ast->nodes[n->first].kind == LUA_TABLE
                ? eval_table(e, &e->ast->nodes[n->first])
                : eval_expression(e, n->first);
    }
    if (is_stopped(e)) {
        return FLOW_END;
    }
    if (n->kind == LUA_ASSIGN) {
        e->locals[n->slot] = v;
    }
    if (n->kind == LUA_RETURN) {
        e->a->run->reply = v;
        e->a->run->line = n->line;
    }
    return n->kind == LUA_RETURN ? FLOW_END : FLOW_ON;
}

static enum flow eval_block(struct eval *e, uint16_t at)
{
    enum flow flow = FLOW_ON;

    while (at != 0 && flow == FLOW_ON) {
        const struct lua_node *n = &e->ast->nodes[at];

        flow = count_step(e, n->line) ? eval_statement(e, n) : FLOW_END;
        at = n->next;
    }
    return flow;
}

void lua_eval(struct script_analysis *a)
{
    struct eval e = { .a = a, .ast = a->ast };

    (void)eval_block(&e, a->ast->chunk);
}
