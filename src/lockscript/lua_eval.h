/* lua_eval: evaluates the tree of a script once, for the run under way. */
#ifndef LATCHD_LOCKSCRIPT_LUA_EVAL_H
#define LATCHD_LOCKSCRIPT_LUA_EVAL_H

#include "lockscript/script_run.h"

enum { LUA_CALL_ARGS_MAX = 10 };

/* The arguments of a function, evaluated. */
struct lua_args {
    struct lua_value list[LUA_CALL_ARGS_MAX];
    unsigned count;
    unsigned line;
};

/* Runs the script to its end: a->run has the reply, and what became of the keys. */
void lua_eval(struct script_analysis *a);

/* The length of a prefix, of which `v` says `less` too little. False: not known. */
bool lua_prefix_length(const struct lua_value *v, int less, struct lock_operand *ret);

/* A Redis command. Returns its reply, and LUA_VALUE_WRONG_TYPE if it is refused for the
 * type of its key. */
struct lua_value script_command(struct script_analysis *a, const struct lua_args *args);

#endif
