#include "lockscript/lua_parser.h"

#include "lockscript/lua_parser_priv.h"

static uint16_t parse_block(struct lua_parser *p);

bool lua_parser_refuse(struct lua_parser *p, const char *why)
{
    return script_error_set(p->lexer.error, p->token.line, "%s", why);
}

bool lua_parser_unexpected(struct lua_parser *p)
{
    struct span text = p->token.text;

    if (p->token.kind == LUA_TOKEN_END) {
        return lua_parser_refuse(p, "the script ends too early");
    }
    if (p->token.kind == LUA_TOKEN_STRING) {
        return lua_parser_refuse(p, "a string is not expected here");
    }
    return script_error_set(p->lexer.error, p->token.line,
                            "'%.*s' is not understood here", span_quoted_len(text),
                            text.ptr);
}

void lua_parser_advance(struct lua_parser *p)
{
    p->token = lua_lexer_next(&p->lexer);
}

bool lua_parser_accept(struct lua_parser *p, enum lua_token_kind kind)
{
    if (p->token.kind != kind) {
        return false;
    }
    lua_parser_advance(p);
    return true;
}

bool lua_parser_expect(struct lua_parser *p, enum lua_token_kind kind)
{
    return lua_parser_accept(p, kind) || lua_parser_unexpected(p);
}

uint16_t lua_parser_add(struct lua_parser *p, enum lua_node_kind kind)
{
    struct lua_node *n;

    if (p->ast->node_count == LUA_NODES_MAX) {
        (void)lua_parser_refuse(p, "the script is too long");
        return 0;
    }
    n = &p->ast->nodes[p->ast->node_count];
    *n = (struct lua_node){ .kind = kind, .line = p->token.line };
    return p->ast->node_count++;
}

bool lua_parser_enter(struct lua_parser *p)
{
    if (p->depth == LUA_DEPTH_MAX) {
        return lua_parser_refuse(p, "the script is nested too deeply");
    }
    p->depth++;
    return true;
}

void lua_parser_leave(struct lua_parser *p)
{
    p->depth--;
}

const struct lua_name *lua_parser_find(const struct lua_parser *p, struct span name)
{
    for (unsigned i = p->name_count; i-- > 0;) {
        if (span_eq(p->names[i].text, name)) {
            return &p->names[i];
        }
    }
    return NULL;
}

/* Takes a name, for add_local() to declare. */
static bool take_name(struct lua_parser *p, struct span *ret)
{
    *ret = p->token.text;
    return lua_parser_expect(p, LUA_TOKEN_NAME);
}

static bool add_local(struct lua_parser *p, struct span name, uint16_t *ret_slot)
{
    if (p->ast->slot_count == LUA_LOCALS_MAX) {
        return lua_parser_refuse(p, "the script has too many local variables");
    }
    *ret_slot = p->ast->slot_count++;
    p->names[p->name_count++] = (struct lua_name){ name, *ret_slot };
    return true;
}

/* A list of nodes that grows at its end. */
struct node_list {
    uint16_t first, last;
};

static void append_node(struct lua_parser *p, struct node_list *list, uint16_t at)
{
    if (list->first == 0) {
        list->first = at;
    } else {
        p->ast->nodes[list->last].next = at;
    }
    list->last = at;
}

/* Assigns to `count` new variables what the list of expressions from `value` on says;
 * nil to those that are left. Returns the first of the assignments. */
static uint16_t declare_locals(struct lua_parser *p, const struct span *names,
                               unsigned count, uint16_t value)
{
    struct node_list made = { 0, 0 };

    for (unsigned i = 0; i < count; i++) {
        uint16_t at = lua_parser_add(p, LUA_ASSIGN), slot = 0;

        if (at == 0 || !add_local(p, names[i], &slot)) {
            return 0;
        }
        p->ast->nodes[at].slot = slot;
        p->ast->nodes[at].first = value;
        value = value == 0 ? 0 : p->ast->nodes[value].next;
        append_node(p, &made, at);
    }
    if (value != 0) {
        return lua_parser_refuse(p, "there are more values than variables");
    }
    return made.first;
}

/* local a, b = x, y */
static uint16_t parse_local(struct lua_parser *p)
{
    struct span names[LUA_LOCALS_MAX];
    struct node_list values = { 0, 0 };
    unsigned count = 0;

    lua_parser_advance(p);
    do {
        if (count == LUA_LOCALS_MAX) {
            return lua_parser_refuse(p, "the script has too many local variables");
        }
        if (!take_name(p, &names[count++])) {
            return 0;
        }
    } while (lua_parser_accept(p, LUA_TOKEN_COMMA));
    if (lua_parser_accept(p, LUA_TOKEN_ASSIGN)) {
        do {
            uint16_t value = lua_parse_expression(p);

            if (value == 0) {
                return 0;
            }
            append_node(p, &values, value);
        } while (lua_parser_accept(p, LUA_TOKEN_COMMA));
    }
    return declare_locals(p, names, count, values.first);
}

/* x = value, or a call whose value is dropped */
static uint16_t parse_assignment(struct lua_parser *p)
{
    struct span name = p->token.text;
    const struct lua_name *local = lua_parser_find(p, name);
    uint16_t at = lua_parser_add(p, local == NULL ? LUA_CALL : LUA_ASSIGN), of;

    if (at == 0) {
        return 0;
    }
    lua_parser_advance(p);
    if (local != NULL) {
        p->ast->nodes[at].slot = local->slot;
        of = lua_parser_expect(p, LUA_TOKEN_ASSIGN) ? lua_parse_expression(p) : 0;
    } else if (span_eq(name, SPAN("redis"))) {
        of = lua_parse_redis_call(p);
    } else {
        of = 0;
        (void)script_error_set(p->lexer.error, p->ast->nodes[at].line,
                               "'%.*s' is no local variable", span_quoted_len(name),
                               name.ptr);
    }
    p->ast->nodes[at].first = of;
    return of == 0 ? 0 : at;
}

/* Sets *ret to a block, which may be empty. */
static bool parse_body(struct lua_parser *p, uint16_t *ret)
{
    *ret = parse_block(p);
    return p->lexer.error->why[0] == '\0';
}

/* An if, whose word is the next token; or an elseif, which is an if within an else. */
static uint16_t parse_if(struct lua_parser *p)
{
    uint16_t at = lua_parser_add(p, LUA_IF), part;

    lua_parser_advance(p);
    part = at == 0 ? 0 : lua_parse_expression(p);
    p->ast->nodes[at].first = part;
    if (part == 0 || !lua_parser_expect(p, LUA_TOKEN_THEN) || !parse_body(p, &part)) {
        return 0;
    }
    p->ast->nodes[at].second = part;
    if (p->token.kind == LUA_TOKEN_ELSEIF) {
        part = lua_parser_enter(p) ? parse_if(p) : 0;
        if (part == 0) {
            return 0;
        }
        lua_parser_leave(p);
        p->ast->nodes[at].third = part;
        return at; /* one end for all */
    }
    if (lua_parser_accept(p, LUA_TOKEN_ELSE)) {
        if (!parse_body(p, &part)) {
            return 0;
        }
        p->ast->nodes[at].third = part;
    }
    return lua_parser_expect(p, LUA_TOKEN_END_WORD) ? at : 0;
}

/* The words from "in" to "do". */
static bool parse_loop_head(struct lua_parser *p)
{
    static const struct span WORDS[] = { SPAN("ipairs"), SPAN("KEYS") };

    if (!lua_parser_accept(p, LUA_TOKEN_IN)) {
        return lua_parser_refuse(p, "a loop is not over ipairs(KEYS)");
    }
    for (size_t i = 0; i < 2; i++) {
        if (p->token.kind != LUA_TOKEN_NAME || !span_eq(p->token.text, WORDS[i]) ||
            lua_parser_find(p, WORDS[i]) != NULL) {
            return lua_parser_refuse(p, "a loop is not over ipairs(KEYS)");
        }
        lua_parser_advance(p);
        if (!lua_parser_expect(p, i == 0 ? LUA_TOKEN_OPEN : LUA_TOKEN_CLOSE)) {
            return false;
        }
    }
    return lua_parser_expect(p, LUA_TOKEN_DO);
}

/* for i, key in ipairs(KEYS) do ... end */
static uint16_t parse_for(struct lua_parser *p)
{
    uint16_t at = lua_parser_add(p, LUA_FOR_KEYS), body, slot = 0, key_slot = 0;
    unsigned names = p->name_count;
    struct span index, key;

    lua_parser_advance(p);
    if (at == 0 || !take_name(p, &index)) {
        return 0;
    }
    if (!lua_parser_accept(p, LUA_TOKEN_COMMA)) {
        return lua_parser_refuse(p, "a loop is not over ipairs(KEYS)");
    }
    if (!take_name(p, &key) || !parse_loop_head(p)) {
        return 0;
    }
    if (p->in_loop) {
        return lua_parser_refuse(p, "a loop stands within a loop");
    }
    if (!add_local(p, index, &slot) || !add_local(p, key, &key_slot)) {
        return 0;
    }
    p->ast->nodes[at].slot = slot;
    p->ast->loops_over_keys = true;
    p->in_loop = true;
    if (!parse_body(p, &body) || !lua_parser_expect(p, LUA_TOKEN_END_WORD)) {
        return 0;
    }
    p->in_loop = false;
    p->ast->nodes[at].second = body;
    p->name_count = names;
    return at;
}

static uint16_t parse_do(struct lua_parser *p)
{
    uint16_t at = lua_parser_add(p, LUA_DO), body;

    lua_parser_advance(p);
    if (at == 0 || !parse_body(p, &body) || !lua_parser_expect(p, LUA_TOKEN_END_WORD)) {
        return 0;
    }
    p->ast->nodes[at].second = body;
    return at;
}

static bool ends_block(enum lua_token_kind kind)
{
    return kind == LUA_TOKEN_END || kind == LUA_TOKEN_ELSE ||
           kind == LUA_TOKEN_ELSEIF || kind == LUA_TOKEN_END_WORD;
}

/* return, or break: the last statement of its block. */
static uint16_t parse_last(struct lua_parser *p)
{
    bool breaks = p->token.kind == LUA_TOKEN_BREAK;
    uint16_t at = lua_parser_add(p, breaks ? LUA_BREAK : LUA_RETURN), of = 0;

    lua_parser_advance(p);
    if (breaks && !p->in_loop) {
        return lua_parser_refuse(p, "a break stands outside of a loop");
    }
    if (at != 0 && !breaks && !ends_block(p->token.kind) &&
        p->token.kind != LUA_TOKEN_SEMICOLON) {
        of = p->token.kind == LUA_TOKEN_OPEN_TABLE ? lua_parse_table(p)
                                                   : lua_parse_expression(p);
        if (of == 0) {
            return 0;
        }
        p->ast->nodes[at].first = of;
    }
    (void)lua_parser_accept(p, LUA_TOKEN_SEMICOLON);
    return ends_block(p->token.kind) ? at : lua_parser_unexpected(p);
}

static uint16_t parse_statement(struct lua_parser *p)
{
    switch (p->token.kind) {
    case LUA_TOKEN_LOCAL:
        return parse_local(p);
    case LUA_TOKEN_IF:
        return parse_if(p);
    case LUA_TOKEN_FOR:
        return parse_for(p);
    case LUA_TOKEN_DO:
        return parse_do(p);
    case LUA_TOKEN_RETURN:
    case LUA_TOKEN_BREAK:
        return parse_last(p);
    case LUA_TOKEN_NAME:
        return parse_assignment(p);
    default:
        return lua_parser_unexpected(p);
    }
}

/* Statements up to what ends the block. Returns the first; 0: the block is empty, or
 * there was an error. */
static uint16_t parse_block(struct lua_parser *p)
{
    unsigned names = p->name_count;
    struct node_list statements = { 0, 0 };

    if (!lua_parser_enter(p)) {
        return 0;
    }
    while (!ends_block(p->token.kind)) {
        uint16_t at = parse_statement(p);

        if (at == 0) {
            return 0;
        }
        append_node(p, &statements, at);
        while (p->ast->nodes[statements.last].next != 0) {
            statements.last = p->ast->nodes[statements.last].next; /* local a, b */
        }
        (void)lua_parser_accept(p, LUA_TOKEN_SEMICOLON);
    }
    p->name_count = names;
    lua_parser_leave(p);
    return statements.first;
}

bool lua_parse(char *text, size_t len, struct lua_ast *ret,
               struct lock_script_error *error)
{
    struct lua_parser p = {
        .lexer = { .at = text, .end = text + len, .line = 1, .error = error },
        .ast = ret,
    };

    ret->node_count = 1;
    ret->slot_count = 0;
    ret->keys_index = 0;
    ret->loops_over_keys = false;
    ret->nodes[0] = (struct lua_node){ .kind = LUA_NONE };
    lua_parser_advance(&p);
    if (!parse_body(&p, &ret->chunk)) {
        return false;
    }
    return p.token.kind == LUA_TOKEN_END || lua_parser_unexpected(&p);
}
