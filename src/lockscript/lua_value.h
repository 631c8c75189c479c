/* lua_value: what an expression of a script may be, with where it came from. No bytes
 * of keys, arguments or Redis are known: a value is what is known about it. */
#ifndef LATCHD_LOCKSCRIPT_LUA_VALUE_H
#define LATCHD_LOCKSCRIPT_LUA_VALUE_H

#include "lockscript/lock_plan.h"

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

/* What is known about the time that a key has left. */
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

#endif
