#include "lockscript/lua_parser_priv.h"

/* How tightly operators bind, as in Lua. */
enum { BIND_OR = 1, BIND_AND, BIND_COMPARE, BIND_ADD, BIND_UNARY };

struct binary_operator {
    enum lua_token_kind token;
    enum lua_node_kind node;
    int binds;
};

static const struct binary_operator OPERATORS[] = {
    { LUA_TOKEN_OR, LUA_OR, BIND_OR },      { LUA_TOKEN_AND, LUA_AND, BIND_AND },
    { LUA_TOKEN_EQ, LUA_EQ, BIND_COMPARE }, { LUA_TOKEN_NE, LUA_NE, BIND_COMPARE },
    { LUA_TOKEN_LT, LUA_LT, BIND_COMPARE }, { LUA_TOKEN_LE, LUA_LE, BIND_COMPARE },
    { LUA_TOKEN_GT, LUA_GT, BIND_COMPARE }, { LUA_TOKEN_GE, LUA_GE, BIND_COMPARE },
    { LUA_TOKEN_PLUS, LUA_ADD, BIND_ADD },  { LUA_TOKEN_MINUS, LUA_SUBTRACT, BIND_ADD },
};

struct redis_function {
    struct span name;
    enum lua_node_kind node;
};

static const struct redis_function REDIS_FUNCTIONS[] = {
    { SPAN("call"), LUA_REDIS_CALL },
    { SPAN("pcall"), LUA_REDIS_PCALL },
    { SPAN("status_reply"), LUA_STATUS_REPLY },
    { SPAN("error_reply"), LUA_ERROR_REPLY },
};

static uint16_t parse_bound(struct lua_parser *p, int least);

/* Links an item behind the last one of the list of node `at`. */
static void append_item(struct lua_parser *p, uint16_t at, uint16_t *last,
                        uint16_t item)
{
    if (*last == 0) {
        p->ast->nodes[at].first = item;
    } else {
        p->ast->nodes[*last].next = item;
    }
    *last = item;
}

/* The arguments of a function, with their parentheses; `at` is the call. */
static uint16_t parse_arguments(struct lua_parser *p, uint16_t at)
{
    uint16_t last = 0;

    if (!lua_parser_expect(p, LUA_TOKEN_OPEN)) {
        return 0;
    }
    if (lua_parser_accept(p, LUA_TOKEN_CLOSE)) {
        return at;
    }
    do {
        uint16_t arg = lua_parse_expression(p);

        if (arg == 0) {
            return 0;
        }
        append_item(p, at, &last, arg);
    } while (lua_parser_accept(p, LUA_TOKEN_COMMA));
    return lua_parser_expect(p, LUA_TOKEN_CLOSE) ? at : 0;
}

static uint16_t parse_call(struct lua_parser *p, enum lua_node_kind kind)
{
    uint16_t at = lua_parser_add(p, kind);

    return at == 0 ? 0 : parse_arguments(p, at);
}

uint16_t lua_parse_redis_call(struct lua_parser *p)
{
    if (!lua_parser_expect(p, LUA_TOKEN_DOT)) {
        return 0;
    }
    for (size_t i = 0; i < sizeof(REDIS_FUNCTIONS) / sizeof(REDIS_FUNCTIONS[0]); i++) {
        if (p->token.kind == LUA_TOKEN_NAME &&
            span_eq(p->token.text, REDIS_FUNCTIONS[i].name)) {
            lua_parser_advance(p);
            return parse_call(p, REDIS_FUNCTIONS[i].node);
        }
    }
    return lua_parser_unexpected(p);
}

/* string.sub: the only function of that library here. */
static uint16_t parse_string_function(struct lua_parser *p)
{
    if (!lua_parser_expect(p, LUA_TOKEN_DOT)) {
        return 0;
    }
    if (p->token.kind != LUA_TOKEN_NAME || !span_eq(p->token.text, SPAN("sub"))) {
        return lua_parser_unexpected(p);
    }
    lua_parser_advance(p);
    return parse_call(p, LUA_STRING_SUB);
}

/* KEYS[...] or ARGV[...], behind the word. */
static uint16_t parse_index(struct lua_parser *p, enum lua_node_kind kind)
{
    uint16_t at = lua_parser_add(p, kind), index;
    const struct lua_node *n;

    if (at == 0 || !lua_parser_expect(p, LUA_TOKEN_OPEN_INDEX)) {
        return 0;
    }
    index = lua_parse_expression(p);
    if (index == 0 || !lua_parser_expect(p, LUA_TOKEN_CLOSE_INDEX)) {
        return 0;
    }
    p->ast->nodes[at].first = index;
    n = &p->ast->nodes[index];
    if (n->kind == LUA_NUMBER && kind == LUA_KEYS_AT &&
        n->number > (int64_t)p->ast->keys_index) {
        p->ast->keys_index =
            n->number > LUA_INDEX_MAX ? LUA_INDEX_MAX + 1 : (unsigned)n->number;
    }
    return at;
}

static uint16_t parse_global(struct lua_parser *p, struct span name)
{
    if (span_eq(name, SPAN("KEYS"))) {
        return parse_index(p, LUA_KEYS_AT);
    }
    if (span_eq(name, SPAN("ARGV"))) {
        return parse_index(p, LUA_ARGV_AT);
    }
    if (span_eq(name, SPAN("redis"))) {
        return lua_parse_redis_call(p);
    }
    if (span_eq(name, SPAN("tonumber"))) {
        return parse_call(p, LUA_TONUMBER);
    }
    if (span_eq(name, SPAN("string"))) {
        return parse_string_function(p);
    }
    (void)script_error_set(p->lexer.error, p->token.line, "'%.*s' is not understood",
                           span_quoted_len(name), name.ptr);
    return 0;
}

static uint16_t parse_name(struct lua_parser *p)
{
    struct span name = p->token.text;
    const struct lua_name *local = lua_parser_find(p, name);
    uint16_t at;

    if (local == NULL) {
        lua_parser_advance(p);
        return parse_global(p, name);
    }
    at = lua_parser_add(p, LUA_LOCAL);
    p->ast->nodes[at].slot = local->slot;
    lua_parser_advance(p);
    return at;
}

static uint16_t parse_literal(struct lua_parser *p, enum lua_node_kind kind)
{
    uint16_t at = lua_parser_add(p, kind);

    p->ast->nodes[at].text = p->token.text;
    p->ast->nodes[at].number = p->token.number;
    lua_parser_advance(p);
    return at;
}

static uint16_t parse_parenthesised(struct lua_parser *p)
{
    uint16_t at;

    lua_parser_advance(p);
    at = lua_parse_expression(p);
    return at != 0 && lua_parser_expect(p, LUA_TOKEN_CLOSE) ? at : 0;
}

static uint16_t parse_primary(struct lua_parser *p)
{
    switch (p->token.kind) {
    case LUA_TOKEN_NIL:
        return parse_literal(p, LUA_NIL);
    case LUA_TOKEN_TRUE:
        return parse_literal(p, LUA_TRUE);
    case LUA_TOKEN_FALSE:
        return parse_literal(p, LUA_FALSE);
    case LUA_TOKEN_NUMBER:
        return parse_literal(p, LUA_NUMBER);
    case LUA_TOKEN_STRING:
        return parse_literal(p, LUA_STRING);
    case LUA_TOKEN_NAME:
        return parse_name(p);
    case LUA_TOKEN_OPEN:
        return parse_parenthesised(p);
    default:
        return lua_parser_unexpected(p);
    }
}

/* #KEYS, whose '#' is the next token. */
static uint16_t parse_length(struct lua_parser *p)
{
    uint16_t at;

    lua_parser_advance(p);
    if (p->token.kind != LUA_TOKEN_NAME || !span_eq(p->token.text, SPAN("KEYS")) ||
        lua_parser_find(p, p->token.text) != NULL) {
        return lua_parser_refuse(p, "'#' of anything but KEYS is not understood");
    }
    at = lua_parser_add(p, LUA_KEYS_LENGTH);
    lua_parser_advance(p);
    return at;
}

static uint16_t parse_prefixed(struct lua_parser *p, enum lua_node_kind kind)
{
    uint16_t at = lua_parser_add(p, kind), of;

    lua_parser_advance(p);
    of = at == 0 ? 0 : parse_bound(p, BIND_UNARY);
    p->ast->nodes[at].first = of;
    return of == 0 ? 0 : at;
}

static uint16_t parse_unary(struct lua_parser *p)
{
    switch (p->token.kind) {
    case LUA_TOKEN_NOT:
        return parse_prefixed(p, LUA_NOT);
    case LUA_TOKEN_MINUS:
        return parse_prefixed(p, LUA_NEGATE);
    case LUA_TOKEN_LENGTH:
        return parse_length(p);
    default:
        return parse_primary(p);
    }
}

static const struct binary_operator *find_operator(enum lua_token_kind token)
{
    for (size_t i = 0; i < sizeof(OPERATORS) / sizeof(OPERATORS[0]); i++) {
        if (OPERATORS[i].token == token) {
            return &OPERATORS[i];
        }
    }
    return NULL;
}

/* Operators that bind more tightly than `least`; all of them group to the left. */
static uint16_t parse_operators(struct lua_parser *p, int least)
{
    uint16_t left = parse_unary(p);
    const struct binary_operator *op;

    while (left != 0 && (op = find_operator(p->token.kind)) != NULL &&
           op->binds > least) {
        uint16_t at = lua_parser_add(p, op->node), right;

        lua_parser_advance(p);
        right = at == 0 ? 0 : parse_bound(p, op->binds);
        p->ast->nodes[at].first = left;
        p->ast->nodes[at].second = right;
        left = right == 0 ? 0 : at;
    }
    return left;
}

static uint16_t parse_bound(struct lua_parser *p, int least)
{
    uint16_t at;

    if (!lua_parser_enter(p)) {
        return 0;
    }
    at = parse_operators(p, least);
    lua_parser_leave(p);
    return at;
}

uint16_t lua_parse_expression(struct lua_parser *p)
{
    return parse_bound(p, 0);
}

uint16_t lua_parse_table(struct lua_parser *p)
{
    uint16_t at = lua_parser_add(p, LUA_TABLE), last = 0;

    lua_parser_advance(p);
    while (at != 0 && p->token.kind != LUA_TOKEN_CLOSE_TABLE) {
        uint16_t item = lua_parse_expression(p);

        if (item == 0) {
            return 0;
        }
        append_item(p, at, &last, item);
        if (!lua_parser_accept(p, LUA_TOKEN_COMMA) &&
            !lua_parser_accept(p, LUA_TOKEN_SEMICOLON)) {
            break;
        }
    }
    return at != 0 && lua_parser_expect(p, LUA_TOKEN_CLOSE_TABLE) ? at : 0;
}
