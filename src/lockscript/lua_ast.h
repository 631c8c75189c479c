/* lua_ast: a script as a tree, in one array without pointers. Its size is bounded by
 * the limits here, and nothing in it can run for ever: the only loop is the one over
 * KEYS, and no loop stands within a loop. */
#ifndef LATCHD_LOCKSCRIPT_LUA_AST_H
#define LATCHD_LOCKSCRIPT_LUA_AST_H

#include "util/span.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    LUA_NODES_MAX = 768, /* of a script */
    LUA_LOCALS_MAX = 32, /* local variables of a script */
    LUA_DEPTH_MAX = 24,  /* blocks and expressions within each other */
    LUA_INDEX_MAX = 16,  /* of KEYS and ARGV */
};

enum lua_node_kind {
    LUA_NONE, /* nodes[0]: no node */
    /* Expressions. */
    LUA_NIL,
    LUA_TRUE,
    LUA_FALSE,
    LUA_NUMBER,
    LUA_STRING,
    LUA_LOCAL,       /* slot */
    LUA_KEYS_AT,     /* first: the index */
    LUA_ARGV_AT,     /* first: the index */
    LUA_KEYS_LENGTH, /* #KEYS */
    LUA_NOT,         /* first */
    LUA_NEGATE,      /* first */
    LUA_AND,         /* first, second; and so are those that follow */
    LUA_OR,
    LUA_EQ,
    LUA_NE,
    LUA_LT,
    LUA_LE,
    LUA_GT,
    LUA_GE,
    LUA_ADD,
    LUA_SUBTRACT,
    LUA_REDIS_CALL, /* first: the first of the arguments; and so are those below */
    LUA_REDIS_PCALL,
    LUA_STATUS_REPLY,
    LUA_ERROR_REPLY,
    LUA_TONUMBER,
    LUA_STRING_SUB,
    LUA_TABLE, /* first: the first item; only behind `return` */
    /* Statements. */
    LUA_ASSIGN,   /* slot = first; without first, nil */
    LUA_IF,       /* first: the condition, second and third: a block each */
    LUA_FOR_KEYS, /* slot: the index, slot + 1: the key, second: the block */
    LUA_DO,       /* second: the block */
    LUA_RETURN,   /* first, or nothing */
    LUA_BREAK,
    LUA_CALL, /* first: an expression whose value is dropped */
};

/* Links are indices of nodes. A block, or a list of arguments, is its first node. */
struct lua_node {
    enum lua_node_kind kind;
    unsigned line;
    uint16_t first, second, third;
    uint16_t next; /* in a block or a list */
    uint16_t slot;
    int64_t number;
    struct span text; /* of a string or a number */
};

struct lua_ast {
    struct lua_node nodes[LUA_NODES_MAX];
    uint16_t node_count;
    uint16_t slot_count;
    uint16_t chunk;      /* the block of the script */
    unsigned keys_index; /* the largest literal index of KEYS */
    bool loops_over_keys;
};

#endif
