/* lua_parser_priv: what the parser of statements and that of expressions share. */
#ifndef LATCHD_LOCKSCRIPT_LUA_PARSER_PRIV_H
#define LATCHD_LOCKSCRIPT_LUA_PARSER_PRIV_H

#include "lockscript/lua_ast.h"
#include "lockscript/lua_lexer.h"

/* A local variable in scope; an inner one hides an outer one of the same name. */
struct lua_name {
    struct span text;
    uint16_t slot;
};

struct lua_parser {
    struct lua_lexer lexer;
    struct lua_token token; /* the next one, not yet taken */
    struct lua_ast *ast;
    struct lua_name names[LUA_LOCALS_MAX];
    unsigned name_count;
    unsigned depth;
    bool in_loop;
};

/* All that return a node return 0 after an error. */

/* Refuses the script at the line of the next token. */
bool lua_parser_refuse(struct lua_parser *p, const char *why);
/* Refuses the script because of the next token. */
bool lua_parser_unexpected(struct lua_parser *p);
void lua_parser_advance(struct lua_parser *p);
/* Takes the next token if it is of that kind. */
bool lua_parser_accept(struct lua_parser *p, enum lua_token_kind kind);
/* Takes the next token, which must be of that kind. */
bool lua_parser_expect(struct lua_parser *p, enum lua_token_kind kind);
uint16_t lua_parser_add(struct lua_parser *p, enum lua_node_kind kind);
/* One level deeper; lua_parser_leave() must follow if it returns true. */
bool lua_parser_enter(struct lua_parser *p);
void lua_parser_leave(struct lua_parser *p);
/* Finds a local variable; NULL: there is none of that name. */
const struct lua_name *lua_parser_find(const struct lua_parser *p, struct span name);

uint16_t lua_parse_expression(struct lua_parser *p);
/* A table of values, whose '{' is the next token. */
uint16_t lua_parse_table(struct lua_parser *p);
/* A call of a function of redis, behind the word itself. */
uint16_t lua_parse_redis_call(struct lua_parser *p);

#endif
