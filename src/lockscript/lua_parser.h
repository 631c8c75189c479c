/* lua_parser: a script's text to its tree. Whatever is no part of the small language of
 * lock libraries is refused here, by name. */
#ifndef LATCHD_LOCKSCRIPT_LUA_PARSER_H
#define LATCHD_LOCKSCRIPT_LUA_PARSER_H

#include "lockscript/lock_script.h"
#include "lockscript/lua_ast.h"

/* Parses `text`, in which strings are decoded in place; the tree points into it. False:
 * *error says why. */
bool lua_parse(char *text, size_t len, struct lua_ast *ret,
               struct lock_script_error *error);

/* Sets the reason, unless there is one. Bytes that are not printable become '?'.
 * Returns false, for the caller to return. */
bool script_error_set(struct lock_script_error *e, unsigned line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* lua_lexer: the tokens of a script. Of Lua's tokens these are left out, and refused:
 * numbers that are no decimal integers, long strings, and most escapes. */

enum {
    LUA_DIGITS_MAX = 15, /* of a number, so that a double has it exactly */
};

enum lua_token_kind {
    LUA_TOKEN_END,
    LUA_TOKEN_REFUSED, /* the error says why */
    LUA_TOKEN_NAME,
    LUA_TOKEN_STRING,
    LUA_TOKEN_NUMBER,
    LUA_TOKEN_WORD, /* a keyword, or a symbol */
};

struct lua_token {
    enum lua_token_kind kind;
    unsigned line;
    struct span text; /* of a string, what it says; of others, as written */
    int64_t number;
};

struct lua_lexer {
    char *at; /* into the caller's text, in which strings are decoded in place */
    char *end;
    unsigned line;
    struct lock_script_error *error;
};

#endif
