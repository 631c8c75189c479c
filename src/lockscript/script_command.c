#include "lockscript/lua_eval.h"
#include "lockscript/script_key.h"

/* A command under way: args->list[0] is its name. */
struct command {
    struct script_analysis *a;
    const struct lua_args *args;
    const struct command_row *row;
};

struct command_row {
    struct span name;
    unsigned least, most; /* arguments, with the name */
    struct lua_value (*run)(struct command *c);
    /* Of those that set a time. */
    enum lock_call_end end;
    enum lock_unit unit;
};

static struct lua_value refuse_command(struct command *c, const char *why)
{
    (void)script_refuse(c->a, c->args->line, why);
    return lua_value_of(LUA_VALUE_NIL);
}

static struct script_key *touch_key(struct command *c, unsigned at)
{
    return script_key_touch(c->a, c->args->line, &c->args->list[at]);
}

/* EXPIRE leaves a key what it was. */
static bool is_not_a_string(const struct script_key *key)
{
    return key->present && key->found == SCRIPT_NOT_A_STRING &&
           (key->after == SCRIPT_UNTOUCHED || key->after == SCRIPT_EXTENDED);
}

bool lua_prefix_length(const struct lua_value *v, int less, struct lock_operand *ret)
{
    *ret = (struct lock_operand){ .source = LOCK_OPERAND_NONE };
    if (v->kind == LUA_VALUE_NUMBER && v->number + less >= 1) {
        ret->source = LOCK_OPERAND_NUMBER;
        ret->number = v->number + less;
    } else if ((v->kind == LUA_VALUE_ARG_NUMBER && v->number + less == 0) ||
               (v->kind == LUA_VALUE_ARG && less == 0)) {
        ret->source = LOCK_OPERAND_ARG;
        ret->index = v->arg;
    }
    return ret->source != LOCK_OPERAND_NONE;
}

/* The value of a key: what was there, or what the script wrote. */
static struct lua_value stored_value(const struct command *c,
                                     const struct script_key *key)
{
    if (key->after == SCRIPT_SET ||
        (key->after == SCRIPT_EXTENDED && key->found == SCRIPT_MINE)) {
        return (struct lua_value){ .kind = LUA_VALUE_ARG, .arg = c->a->value_arg };
    }
    return (struct lua_value){ .kind = LUA_VALUE_STORED, .key = c->args->list[1].key };
}

static struct lua_value run_get(struct command *c)
{
    const struct script_key *key = touch_key(c, 1);

    if (key == NULL || !key->present) {
        return lua_value_bool(false);
    }
    return is_not_a_string(key) ? lua_value_of(LUA_VALUE_WRONG_TYPE)
                                : stored_value(c, key);
}

/* GETRANGE key 0 length-1 */
static struct lua_value run_getrange(struct command *c)
{
    const struct lua_value *from = &c->args->list[2], *to = &c->args->list[3];
    struct lua_value v = lua_value_of(LUA_VALUE_STORED_PREFIX);
    const struct script_key *key;

    if (from->kind != LUA_VALUE_NUMBER || from->number != 0 ||
        !lua_prefix_length(to, 1, &v.prefix)) {
        return refuse_command(c, "a range that is no prefix of a known length");
    }
    key = touch_key(c, 1);
    if (key == NULL || !key->present) {
        return (struct lua_value){ .kind = LUA_VALUE_TEXT, .text = SPAN("") };
    }
    if (key->after != SCRIPT_UNTOUCHED) {
        return refuse_command(c, "a prefix is read after the key was set");
    }
    v.key = c->args->list[1].key;
    return is_not_a_string(key) ? lua_value_of(LUA_VALUE_WRONG_TYPE) : v;
}

static struct lua_value run_exists(struct command *c)
{
    const struct script_key *key = touch_key(c, 1);

    return lua_value_number(key != NULL && key->present);
}

static struct lua_value run_delete(struct command *c)
{
    int64_t count = 0;

    for (unsigned i = 1; i < c->args->count; i++) {
        struct script_key *key = touch_key(c, i);

        if (key == NULL) {
            break;
        }
        count += key->present;
        if (key->present) {
            script_key_delete(key);
        }
    }
    return lua_value_number(count);
}

static struct lua_value run_ttl(struct command *c)
{
    struct script_key *key = touch_key(c, 1);
    struct lua_value v = lua_value_of(LUA_VALUE_TTL);

    if (key == NULL || !key->present) {
        return lua_value_number(-2);
    }
    if (key->after != SCRIPT_UNTOUCHED) {
        return refuse_command(c, "a time to live is read after it was set");
    }
    v.key = c->args->list[1].key;
    v.unit = c->row->unit;
    v.left = script_key_left(c->a, key, v.unit);
    return v;
}

/* Reads the time of an end that SET or EXPIRE gives. */
static bool read_time(struct command *c, const struct lua_value *v,
                      struct lock_end_plan *end)
{
    bool may_add = end->command == LOCK_END_BY_EXPIRE && end->end == LOCK_END_IN;

    end->time = (struct lock_operand){ .source = LOCK_OPERAND_ARG, .index = v->arg };
    if (v->kind == LUA_VALUE_ARG ||
        (v->kind == LUA_VALUE_ARG_NUMBER && v->number == 0)) {
        return true;
    }
    if (v->kind == LUA_VALUE_NUMBER && v->number > 0) {
        end->time =
            (struct lock_operand){ .source = LOCK_OPERAND_NUMBER, .number = v->number };
        return true;
    }
    if (v->kind == LUA_VALUE_ARG_PLUS_TTL && may_add && v->unit == end->unit) {
        end->end = LOCK_END_ADDED;
        return v->left != LUA_TTL_ENDLESS ||
               script_refuse(c->a, c->args->line,
                             "a time is added to that of a key that may have none");
    }
    return script_refuse(c->a, c->args->line,
                         "a time is neither an argument nor a positive number");
}

/* The end of a command that has its time as argument `at`. */
static bool read_end(struct command *c, unsigned at, enum lock_end_command command,
                     struct lock_end_plan *ret)
{
    *ret = (struct lock_end_plan){ .end = c->row->end,
                                   .unit = c->row->unit,
                                   .command = command };
    return read_time(c, &c->args->list[at], ret);
}

static struct lua_value run_expire(struct command *c)
{
    struct script_key *key = touch_key(c, 1);
    struct lock_end_plan end;

    if (key == NULL || !read_end(c, 2, LOCK_END_BY_EXPIRE, &end)) {
        return lua_value_number(0);
    }
    if (key->present) {
        script_key_expire(key, &end);
    }
    return lua_value_number(key->present);
}

/* The value that a key is set to must be an argument, and always the same. */
static bool read_value(struct command *c, unsigned at)
{
    const struct lua_value *v = &c->args->list[at];

    if (v->kind != LUA_VALUE_ARG) {
        return script_refuse(c->a, c->args->line,
                             "a key is set to what is no argument");
    }
    return script_use_value(c->a, c->args->line, v->arg);
}

enum set_when { SET_ALWAYS, SET_IF_FREE, SET_IF_THERE };

/* Sets a key; whether it did. */
static bool set_key(struct command *c, enum set_when when,
                    const struct lock_end_plan *end)
{
    struct script_key *key = touch_key(c, 1);

    if (key == NULL || (when == SET_IF_FREE && key->present) ||
        (when == SET_IF_THERE && !key->present)) {
        return false;
    }
    script_key_set(key, end);
    return true;
}

struct set_option {
    struct span word;
    enum set_when when;
    enum lock_call_end end;
    enum lock_unit unit;
};

static const struct set_option SET_OPTIONS[] = {
    { SPAN("NX"), SET_IF_FREE, LOCK_END_NONE, LOCK_UNIT_MS },
    { SPAN("XX"), SET_IF_THERE, LOCK_END_NONE, LOCK_UNIT_MS },
    { SPAN("PX"), SET_ALWAYS, LOCK_END_IN, LOCK_UNIT_MS },
    { SPAN("EX"), SET_ALWAYS, LOCK_END_IN, LOCK_UNIT_S },
    { SPAN("PXAT"), SET_ALWAYS, LOCK_END_AT, LOCK_UNIT_MS },
    { SPAN("EXAT"), SET_ALWAYS, LOCK_END_AT, LOCK_UNIT_S },
};

static const struct set_option *find_set_option(const struct lua_value *v)
{
    for (size_t i = 0; i < sizeof(SET_OPTIONS) / sizeof(SET_OPTIONS[0]); i++) {
        if (v->kind == LUA_VALUE_TEXT && span_eq_nocase(v->text, SET_OPTIONS[i].word)) {
            return &SET_OPTIONS[i];
        }
    }
    return NULL;
}

/* Reads what stands behind the value; each of the two kinds of options once. */
static bool read_set_options(struct command *c, enum set_when *when,
                             struct lock_end_plan *end)
{
    for (unsigned i = 3; i < c->args->count; i++) {
        const struct set_option *option = find_set_option(&c->args->list[i]);

        if (option == NULL ||
            (option->when != SET_ALWAYS ? *when != SET_ALWAYS
                                        : end->end != LOCK_END_NONE)) {
            return script_refuse(c->a, c->args->line,
                                 "an option of SET is not understood");
        }
        if (option->when != SET_ALWAYS) {
            *when = option->when;
            continue;
        }
        end->end = option->end;
        end->unit = option->unit;
        if (++i == c->args->count) {
            return script_refuse(c->a, c->args->line, "an option of SET has no time");
        }
        if (!read_time(c, &c->args->list[i], end)) {
            return false;
        }
    }
    return true;
}

static struct lua_value run_set(struct command *c)
{
    struct lock_end_plan end = { .command = LOCK_END_BY_SET };
    enum set_when when = SET_ALWAYS;

    if (!read_value(c, 2) || !read_set_options(c, &when, &end) ||
        !set_key(c, when, &end)) {
        return lua_value_bool(false);
    }
    return (struct lua_value){ .kind = LUA_VALUE_STATUS, .text = SPAN("OK") };
}

static struct lua_value run_setnx(struct command *c)
{
    struct lock_end_plan end = { .command = LOCK_END_BY_SET };

    return lua_value_number(read_value(c, 2) && set_key(c, SET_IF_FREE, &end));
}

/* SETEX, PSETEX: the time stands before the value. */
static struct lua_value run_setex(struct command *c)
{
    struct lock_end_plan end;

    if (read_end(c, 2, LOCK_END_BY_SET, &end) && read_value(c, 3)) {
        (void)set_key(c, SET_ALWAYS, &end);
    }
    return (struct lua_value){ .kind = LUA_VALUE_STATUS, .text = SPAN("OK") };
}

/* A channel or a message. */
static bool read_word(const struct lua_value *v, struct lock_operand *ret)
{
    *ret = (struct lock_operand){ .source = LOCK_OPERAND_TEXT, .text = v->text };
    switch (v->kind) {
    case LUA_VALUE_TEXT:
        return true;
    case LUA_VALUE_NUMBER:
        return v->text.ptr != NULL;
    case LUA_VALUE_ARG:
        *ret = (struct lock_operand){ .source = LOCK_OPERAND_ARG, .index = v->arg };
        return true;
    case LUA_VALUE_KEY:
        *ret = (struct lock_operand){ .source = LOCK_OPERAND_KEY, .index = v->key };
        return true;
    default:
        return false;
    }
}

static struct lua_value run_publish(struct command *c)
{
    struct script_run *run = c->a->run;

    if (!read_word(&c->args->list[1], &run->channel) ||
        !read_word(&c->args->list[2], &run->message)) {
        return refuse_command(c, "what is published is not known");
    }
    run->publish_count++;
    return lua_value_of(LUA_VALUE_RECEIVERS);
}

/* Locks of one database only are kept, so the number must come first, and be known. */
static struct lua_value run_select(struct command *c)
{
    const struct lua_value *v = &c->args->list[1];
    struct script_run *run = c->a->run;
    struct lock_operand database = { .source = LOCK_OPERAND_ARG, .index = v->arg };

    for (unsigned i = 0; i < run->key_count; i++) {
        if (run->keys[i].used || run->database.source != LOCK_OPERAND_NONE) {
            return refuse_command(c, "SELECT is not the first command");
        }
    }
    if (v->kind == LUA_VALUE_NUMBER && v->number >= 0) {
        database =
            (struct lock_operand){ .source = LOCK_OPERAND_NUMBER, .number = v->number };
    } else if (v->kind != LUA_VALUE_ARG &&
               (v->kind != LUA_VALUE_ARG_NUMBER || v->number != 0)) {
        return refuse_command(c, "the number of a database is not known");
    }
    run->database = database;
    return (struct lua_value){ .kind = LUA_VALUE_STATUS, .text = SPAN("OK") };
}

static const struct command_row COMMANDS[] = {
    { SPAN("GET"), 2, 2, run_get, 0, 0 },
    { SPAN("SET"), 3, LUA_CALL_ARGS_MAX, run_set, 0, 0 },
    { SPAN("DEL"), 2, LUA_CALL_ARGS_MAX, run_delete, 0, 0 },
    { SPAN("UNLINK"), 2, LUA_CALL_ARGS_MAX, run_delete, 0, 0 },
    { SPAN("EXISTS"), 2, 2, run_exists, 0, 0 },
    { SPAN("SETNX"), 3, 3, run_setnx, 0, 0 },
    { SPAN("SETEX"), 4, 4, run_setex, LOCK_END_IN, LOCK_UNIT_S },
    { SPAN("PSETEX"), 4, 4, run_setex, LOCK_END_IN, LOCK_UNIT_MS },
    { SPAN("GETRANGE"), 4, 4, run_getrange, 0, 0 },
    { SPAN("TTL"), 2, 2, run_ttl, 0, LOCK_UNIT_S },
    { SPAN("PTTL"), 2, 2, run_ttl, 0, LOCK_UNIT_MS },
    { SPAN("EXPIRE"), 3, 3, run_expire, LOCK_END_IN, LOCK_UNIT_S },
    { SPAN("PEXPIRE"), 3, 3, run_expire, LOCK_END_IN, LOCK_UNIT_MS },
    { SPAN("EXPIREAT"), 3, 3, run_expire, LOCK_END_AT, LOCK_UNIT_S },
    { SPAN("PEXPIREAT"), 3, 3, run_expire, LOCK_END_AT, LOCK_UNIT_MS },
    { SPAN("PUBLISH"), 3, 3, run_publish, 0, 0 },
    { SPAN("SELECT"), 2, 2, run_select, 0, 0 },
};

static const struct command_row *find_command(struct span name)
{
    for (size_t i = 0; i < sizeof(COMMANDS) / sizeof(COMMANDS[0]); i++) {
        if (span_eq_nocase(name, COMMANDS[i].name)) {
            return &COMMANDS[i];
        }
    }
    return NULL;
}

struct lua_value script_command(struct script_analysis *a, const struct lua_args *args)
{
    struct command c = { .a = a, .args = args };

    if (args->count == 0 || args->list[0].kind != LUA_VALUE_TEXT) {
        return refuse_command(&c, "the name of a command is no literal text");
    }
    c.row = find_command(args->list[0].text);
    if (c.row == NULL) {
        (void)script_error_set(
            a->error, args->line, "'%.*s' is no command of lock libraries",
            span_quoted_len(args->list[0].text), args->list[0].text.ptr);
        return lua_value_of(LUA_VALUE_NIL);
    }
    if (args->count < c.row->least || args->count > c.row->most) {
        return refuse_command(&c, "a command has too few or too many arguments");
    }
    /* cppcheck-suppress returnDanglingLifetime ; the value has no pointer to it */
    return c.row->run(&c);
}
