/* lua_eval: evaluates the tree of a script once, for the run under way. */
#ifndef LATCHD_LOCKSCRIPT_LUA_EVAL_H
#define LATCHD_LOCKSCRIPT_LUA_EVAL_H

#include "lockscript/lock_plan.h"
#include "lockscript/lua_ast.h"

/* lua_value: what an expression of a script may be, with where it came from. No bytes
 * of keys, arguments or Redis are known: a value is what is known about it. */

enum lua_value_kind {
    LUA_VALUE_NIL,
    LUA_VALUE_FALSE,
    LUA_VALUE_TRUE,
    /* Numbers. */
    LUA_VALUE_NUMBER,       /* number; of a literal also text */
    LUA_VALUE_ARG_NUMBER,   /* tonumber(ARGV[arg]) + number */
    LUA_VALUE_TTL,          /* what TTL or PTTL says of KEYS[key], which is there */
    LUA_VALUE_ARG_PLUS_TTL, /* ARGV[arg] + that */
    LUA_VALUE_RECEIVERS,    /* of a PUBLISH */
    /* Texts. */
    LUA_VALUE_TEXT,          /* text */
    LUA_VALUE_KEY,           /* KEYS[key] */
    LUA_VALUE_ARG,           /* ARGV[arg]; nil if that is missing */
    LUA_VALUE_ARG_PREFIX,    /* the first bytes of ARGV[arg]; prefix: how many */
    LUA_VALUE_STORED,        /* what GET says of KEYS[key], which is a string */
    LUA_VALUE_STORED_PREFIX, /* the first bytes of that */
    /* Tables: replies of Redis. */
    LUA_VALUE_STATUS,     /* text */
    LUA_VALUE_ERROR,      /* text, without the '-' */
    LUA_VALUE_WRONG_TYPE, /* Redis's error */
    LUA_VALUE_LIST,       /* of a run's items; only a reply is one */
};

/* The time that a key has left, as far as it is known. */
enum lua_ttl_left {
    LUA_TTL_UNKNOWN,  /* nobody asked yet */
    LUA_TTL_ENDLESS,  /* -1 */
    LUA_TTL_ZERO,     /* 0 */
    LUA_TTL_POSITIVE, /* 1 or more */
};

struct lua_value {
    enum lua_value_kind kind;
    unsigned key; /* index of KEYS, 1 and up */
    unsigned arg; /* index of ARGV, 1 and up */
    enum lock_unit unit;
    enum lua_ttl_left left;
    struct lock_operand prefix;
    int64_t number;
    struct span text;
};

static inline struct lua_value lua_value_of(enum lua_value_kind kind)
{
    return (struct lua_value){ .kind = kind };
}

static inline struct lua_value lua_value_bool(bool value)
{
    return lua_value_of(value ? LUA_VALUE_TRUE : LUA_VALUE_FALSE);
}

static inline struct lua_value lua_value_number(int64_t number)
{
    return (struct lua_value){ .kind = LUA_VALUE_NUMBER, .number = number };
}

static inline bool lua_value_is_number(const struct lua_value *v)
{
    return v->kind >= LUA_VALUE_NUMBER && v->kind <= LUA_VALUE_RECEIVERS;
}

static inline bool lua_value_is_text(const struct lua_value *v)
{
    return v->kind >= LUA_VALUE_TEXT && v->kind <= LUA_VALUE_STORED_PREFIX;
}

/* Script run: one run of a script in one state of its keys, and the search through all
 * runs that there can be.
 *
 * Whatever a run does not know (what a key is, whether an argument is a certain text)
 * it asks of script_choose(). A run follows a list of choices; the search repeats it
 * with the next list until all were tried. So each run is concrete, and together they
 * are all paths. */

enum {
    SCRIPT_KEYS_MAX = 3,      /* keys that a loop is tried with */
    SCRIPT_CHOICES_MAX = 24,  /* of a run */
    SCRIPT_RUNS_MAX = 512,    /* of a script */
    SCRIPT_STEPS_MAX = 20000, /* nodes that all runs evaluate together */
    SCRIPT_CHECKS_MAX =
        2000, /* states in which the runs are compared with operations */
};

/* The state of a key before the run. */
enum script_found {
    SCRIPT_FREE,
    SCRIPT_MINE,
    SCRIPT_OTHERS,
    SCRIPT_NOT_A_STRING,
    SCRIPT_SAME_PREFIX, /* other's, and begins with the same bytes */
    SCRIPT_FOUND_STATES,
};

/* The change of a key in the run. */
enum script_after {
    SCRIPT_UNTOUCHED,
    SCRIPT_DELETED,
    SCRIPT_SET,      /* the value was written, with the end */
    SCRIPT_EXTENDED, /* the value is as before, the end is new */
};

struct script_key {
    bool used; /* a command named it: `found` was chosen */
    enum script_found found;
    enum lua_ttl_left left[2]; /* by unit: what TTL and PTTL say */
    enum script_after after;
    struct lock_end_plan end;
    bool present;     /* now */
    bool seen;        /* the script knows that it was there */
    bool end_unknown; /* it may have expired since its end was set */
};

struct script_run {
    unsigned key_count;
    struct script_key keys[SCRIPT_KEYS_MAX];
    int8_t conditions[LOCK_CONDITIONS_MAX]; /* 1, 0; -1: nobody asked */
    int lost_key; /* the key that is lost between two commands; -1: none */
    unsigned publish_count;
    struct lock_operand channel, message;
    struct lock_operand database; /* of SELECT */
    struct lua_value reply;
    unsigned item_count; /* of a reply that is a list */
    struct lua_value items[LOCK_REPLY_ITEMS_MAX];
    unsigned line; /* where the run ended */
};

struct script_choice {
    uint8_t value, count;
};

/* The findings about a script, over all of its runs. */
struct script_analysis {
    const struct lua_ast *ast;
    struct lock_script_error *error;
    unsigned value_arg;             /* the argument that is the value; 0: none yet */
    enum lock_call_compare compare; /* how keys are compared with it */
    struct lock_operand prefix_len;
    bool has_prefix; /* the script takes a part of a text */
    struct lock_condition conditions[LOCK_CONDITIONS_MAX];
    unsigned condition_count;
    struct script_run *runs;
    unsigned run_count, run_room;
    struct script_choice choices[SCRIPT_CHOICES_MAX];
    unsigned choice_count, choice_at;
    unsigned steps, checks;
    struct script_run *run; /* the one under way */
};

/* Runs the script in all ways, with `key_count` keys. False: it was refused. */
bool script_run_all(struct script_analysis *a, unsigned key_count);
/* Refuses the script; false. */
bool script_refuse(struct script_analysis *a, unsigned line, const char *why);

enum { LUA_CALL_ARGS_MAX = 10 };

/* The arguments of a function, evaluated. */
struct lua_args {
    struct lua_value list[LUA_CALL_ARGS_MAX];
    unsigned count;
    unsigned line;
};

/* Runs the script to its end: a->run has the reply, and what became of the keys. */
void lua_eval(struct script_analysis *a);

#endif
