/* lua_parser: a script's text to its tree. Whatever is no part of the small language of
 * lock libraries is refused here, by name. */
#ifndef LATCHD_LOCKSCRIPT_LUA_PARSER_H
#define LATCHD_LOCKSCRIPT_LUA_PARSER_H

#include "lockscript/lua_ast.h"
#include "lockscript/lua_eval.h"

/* Parses `text`, in which strings are decoded in place; the tree points into it. False:
 * *error says why. */
bool lua_parse(char *text, size_t len, struct lua_ast *ret,
               struct lock_script_error *error);

/* Sets the reason, unless there is one. Bytes that are not printable become '?'.
 * Returns false, for the caller to return. */
bool script_error_set(struct lock_script_error *e, unsigned line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
