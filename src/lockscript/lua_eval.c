#include "lockscript/lua_eval.h"

#include "lockscript/lock_script.h"
#include "lockscript/lua_parser.h"
#include "util/alloc.h"

static unsigned script_choose(struct script_analysis *a, unsigned count);
static bool script_use_value(struct script_analysis *a, unsigned line, unsigned arg);

/* Keys that are lost between two commands are tried with so many keys at most. */
enum { LOSS_KEYS_MAX = 2 };

static void choose_found(struct script_analysis *a, struct script_key *key)
{
    key->used = true;
    key->found = (enum script_found)script_choose(
        a, a->has_prefix ? SCRIPT_FOUND_STATES : SCRIPT_FOUND_STATES - 1);
    key->present = key->found != SCRIPT_FREE;
}

/* A key that the script has seen may be gone when it looks again. */
static void choose_loss(struct script_analysis *a, struct script_key *key)
{
    struct script_run *run = a->run;

    if (!key->seen || !key->present || key->after != SCRIPT_UNTOUCHED ||
        run->lost_key >= 0 || run->key_count > LOSS_KEYS_MAX) {
        return;
    }
    if (script_choose(a, 2) == 1) {
        run->lost_key = (int)(key - run->keys);
        key->present = false;
    }
}

/* The key that an argument of a command names, as it is now: chooses what it was found
 * to be, and whether it got lost meanwhile. NULL: the script was refused. */
static struct script_key *script_key_touch(struct script_analysis *a, unsigned line,
                                           const struct lua_value *name)
{
    struct script_key *key;

    if (name->kind != LUA_VALUE_KEY) {
        (void)script_refuse(a, line, "a key is none of KEYS");
        return NULL;
    }
    key = &a->run->keys[name->key - 1];
    if (key->end_unknown && key->end.end != LOCK_END_IN) {
        (void)script_refuse(a, line, "a key is used again after its end was set");
        return NULL;
    }
    if (key->end_unknown) {
        /* Time stands still while a script runs, so the key is there if it got any:
         * a call that gives it none is refused. */
        key->end.command = LOCK_END_BY_SET;
        key->end_unknown = false;
    }
    if (!key->used) {
        choose_found(a, key);
    }
    choose_loss(a, key);
    key->seen = key->present;
    return key;
}

/* Times that may be over already: EXPIRE takes any, PXAT one of the past. */
static bool may_be_over(const struct lock_end_plan *end)
{
    return end->end != LOCK_END_NONE &&
           (end->command == LOCK_END_BY_EXPIRE || end->end == LOCK_END_AT);
}

/* SET: the value, with an end. */
static void script_key_set(struct script_key *key, const struct lock_end_plan *end)
{
    key->after = key->found == SCRIPT_MINE ? SCRIPT_EXTENDED : SCRIPT_SET;
    key->end = *end;
    key->present = true;
    key->end_unknown = may_be_over(end);
}

static void script_key_delete(struct script_key *key)
{
    key->after = key->found == SCRIPT_FREE ? SCRIPT_UNTOUCHED : SCRIPT_DELETED;
    key->present = false;
}

/* EXPIRE and its kin, of a key that is there. */
static void script_key_expire(struct script_key *key, const struct lock_end_plan *end)
{
    if (key->after == SCRIPT_UNTOUCHED) {
        key->after = SCRIPT_EXTENDED;
    }
    key->end = *end;
    key->end_unknown = may_be_over(end);
}

/* The answer of TTL or PTTL for a key that is there. */
static enum lua_ttl_left script_key_left(struct script_analysis *a,
                                         struct script_key *key, enum lock_unit unit)
{
    static const enum lua_ttl_left WITH_END[] = { LUA_TTL_POSITIVE, LUA_TTL_ZERO };

    if (key->left[unit] == LUA_TTL_UNKNOWN) {
        enum lua_ttl_left other =
            key->left[unit == LOCK_UNIT_S ? LOCK_UNIT_MS : LOCK_UNIT_S];

        if (other == LUA_TTL_ENDLESS ||
            (other == LUA_TTL_UNKNOWN && script_choose(a, 2) == 1)) {
            key->left[unit] = LUA_TTL_ENDLESS;
        } else {
            key->left[unit] = WITH_END[script_choose(a, 2)];
        }
    }
    return key->left[unit];
}

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

/* The length of a prefix, of which `v` says `less` too little. False: not known. */
static bool lua_prefix_length(const struct lua_value *v, int less,
                              struct lock_operand *ret)
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

/* A Redis command. Returns its reply, and LUA_VALUE_WRONG_TYPE if it is refused for the
 * type of its key. */
static struct lua_value script_command(struct script_analysis *a,
                                       const struct lua_args *args)
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

bool script_refuse(struct script_analysis *a, unsigned line, const char *why)
{
    return script_error_set(a->error, line, "%s", why);
}

static bool script_refused(const struct script_analysis *a)
{
    return a->error->why[0] != '\0';
}

/* One of `count` possibilities, 0 and up. */
static unsigned script_choose(struct script_analysis *a, unsigned count)
{
    struct script_choice *c = &a->choices[a->choice_at];

    if (a->choice_at == SCRIPT_CHOICES_MAX) {
        (void)script_refuse(a, 0, "the script asks too much");
        return 0;
    }
    if (a->choice_at == a->choice_count) {
        *c = (struct script_choice){ 0, (uint8_t)count };
        a->choice_count++;
    }
    a->choice_at++;
    return c->value;
}

/* Goes to the next list of choices; false: all were tried. */
static bool advance_choices(struct script_analysis *a)
{
    while (a->choice_count > 0) {
        struct script_choice *last = &a->choices[a->choice_count - 1];

        if (++last->value < last->count) {
            return true;
        }
        a->choice_count--;
    }
    return false;
}

/* Whether the same argument is known to be another text. */
static bool is_other_text(const struct script_analysis *a, unsigned condition)
{
    for (unsigned i = 0; i < a->condition_count; i++) {
        if (i != condition && a->run->conditions[i] == 1 &&
            a->conditions[i].arg == a->conditions[condition].arg) {
            return true;
        }
    }
    return false;
}

/* Whether ARGV[arg] is that text, in this run. */
static bool script_condition(struct script_analysis *a, unsigned line, unsigned arg,
                             struct span text)
{
    unsigned i = 0;

    while (i < a->condition_count &&
           (a->conditions[i].arg != arg || !span_eq(a->conditions[i].text, text))) {
        i++;
    }
    if (i == LOCK_CONDITIONS_MAX) {
        return script_refuse(a, line, "too many arguments are compared with a text");
    }
    if (i == a->condition_count) {
        a->conditions[a->condition_count++] = (struct lock_condition){ arg, text };
    }
    if (a->run->conditions[i] < 0) {
        a->run->conditions[i] = (int8_t)(is_other_text(a, i) ? 0 : script_choose(a, 2));
    }
    return a->run->conditions[i] == 1;
}

/* ARGV[arg] is the value with which keys are compared, or which they are set to. */
static bool script_use_value(struct script_analysis *a, unsigned line, unsigned arg)
{
    if (a->value_arg != 0 && a->value_arg != arg) {
        return script_error_set(a->error, line,
                                "the key's value is ARGV[%u] here, and ARGV[%u] before",
                                arg, a->value_arg);
    }
    a->value_arg = arg;
    return true;
}

static struct script_run *add_run(struct script_analysis *a, unsigned key_count)
{
    struct script_run *run;

    if (a->run_count == a->run_room) {
        a->run_room = a->run_room == 0 ? 32 : a->run_room * 2;
        a->runs = xrealloc(a->runs, a->run_room * sizeof(*a->runs));
    }
    run = &a->runs[a->run_count++];
    memset(run, 0, sizeof(*run));
    run->key_count = key_count;
    run->lost_key = -1;
    for (unsigned i = 0; i < LOCK_CONDITIONS_MAX; i++) {
        run->conditions[i] = -1;
    }
    return run;
}

bool script_run_all(struct script_analysis *a, unsigned key_count)
{
    a->choice_count = 0;
    do {
        if (a->run_count == SCRIPT_RUNS_MAX) {
            return script_refuse(a, 0, "the script has too many cases");
        }
        a->choice_at = 0;
        a->run = add_run(a, key_count);
        lua_eval(a);
        if (script_refused(a)) {
            return false;
        }
    } while (advance_choices(a));
    return true;
}

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

/* Whether a value counts as true. */
static bool lua_is_true(struct script_analysis *a, unsigned line,
                        const struct lua_value *v)
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

/* x == y */
static bool lua_is_equal(struct script_analysis *a, unsigned line,
                         const struct lua_value *x, const struct lua_value *y)
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

/* x < y; with `or_equal`, x <= y */
static bool lua_is_less(struct script_analysis *a, unsigned line,
                        const struct lua_value *x, const struct lua_value *y,
                        bool or_equal)
{
    int order;

    if (!lua_value_is_number(x) || !lua_value_is_number(y)) {
        return script_refuse(a, line, "'<' between others than numbers");
    }
    order = order_of_numbers(a, line, x, y);
    return order < 0 || (or_equal && order == 0);
}

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
