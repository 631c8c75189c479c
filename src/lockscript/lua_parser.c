#include "lockscript/lua_parser.h"

#include <stdarg.h>
#include <stdio.h>

bool script_error_set(struct lock_script_error *e, unsigned line, const char *fmt, ...)
{
    va_list ap;

    if (e->why[0] != '\0') {
        return false;
    }
    e->line = line;
    va_start(ap, fmt);
    (void)vsnprintf(e->why, sizeof(e->why), fmt, ap);
    va_end(ap);
    for (char *c = e->why; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~') {
            *c = '?';
        }
    }
    return false;
}

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

static const char *const KEYWORDS[] = {
    "and", "break",    "do",     "else", "elseif", "end",   "false",
    "for", "function", "if",     "in",   "local",  "nil",   "not",
    "or",  "repeat",   "return", "then", "true",   "until", "while",
};

/* A longer symbol stands before one that it begins with. */
static const char *const SYMBOLS[] = {
    "==", "~=", "<=", ">=", "<", ">", "=", "+", "-", "#",
    "(",  ")",  "[",  "]",  "{", "}", ",", ";", ".",
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

static bool starts_with(const struct lua_lexer *l, const char *text)
{
    return span_starts(span_of(l->at, (size_t)(l->end - l->at)), span_str(text));
}

/* The number of '=' of a long bracket "[==[" at `at`; -1: there is none. */
static int long_bracket_level(const struct lua_lexer *l, const char *at)
{
    const char *c = at;

    if (c == l->end || *c++ != '[') {
        return -1;
    }
    while (c != l->end && *c == '=') {
        c++;
    }
    return c != l->end && *c == '[' ? (int)(c - at) - 1 : -1;
}

/* Whether "]==]" of this level begins at `at`. */
static bool is_long_end(const struct lua_lexer *l, const char *at, int level)
{
    if (l->end - at < level + 2 || at[0] != ']' || at[level + 1] != ']') {
        return false;
    }
    for (int i = 1; i <= level; i++) {
        if (at[i] != '=') {
            return false;
        }
    }
    return true;
}

static bool skip_long_comment(struct lua_lexer *l, int level)
{
    unsigned line = l->line;

    for (; l->at != l->end; l->at++) {
        if (is_long_end(l, l->at, level)) {
            l->at += level + 2;
            return true;
        }
        l->line += *l->at == '\n';
    }
    return script_error_set(l->error, line, "a comment has no end");
}

/* Skips spaces and comments. */
static bool skip_blank(struct lua_lexer *l)
{
    while (l->at != l->end) {
        if (*l->at == '\n') {
            l->line++;
            l->at++;
        } else if (*l->at == ' ' || *l->at == '\t' || *l->at == '\r' ||
                   *l->at == '\f' || *l->at == '\v') {
            l->at++;
        } else if (starts_with(l, "--")) {
            int level = long_bracket_level(l, l->at + 2);

            if (level >= 0) {
                l->at += 4 + level;
                if (!skip_long_comment(l, level)) {
                    return false;
                }
                continue;
            }
            while (l->at != l->end && *l->at != '\n') {
                l->at++;
            }
        } else {
            break;
        }
    }
    return true;
}

static bool is_keyword(struct span text)
{
    for (size_t i = 0; i < sizeof(KEYWORDS) / sizeof(KEYWORDS[0]); i++) {
        if (span_eq(text, span_str(KEYWORDS[i]))) {
            return true;
        }
    }
    return false;
}

static struct lua_token refuse_token(struct lua_lexer *l, const char *why)
{
    (void)script_error_set(l->error, l->line, "%s", why);
    return (struct lua_token){ .kind = LUA_TOKEN_REFUSED, .line = l->line };
}

static struct lua_token read_name(struct lua_lexer *l)
{
    struct lua_token t = { .line = l->line };
    const char *begin = l->at;

    while (l->at != l->end && is_name_char(*l->at)) {
        l->at++;
    }
    t.text = span_of(begin, (size_t)(l->at - begin));
    t.kind = is_keyword(t.text) ? LUA_TOKEN_WORD : LUA_TOKEN_NAME;
    return t;
}

static struct lua_token read_number(struct lua_lexer *l)
{
    struct lua_token t = { .kind = LUA_TOKEN_NUMBER, .line = l->line };
    const char *begin = l->at;

    while (l->at != l->end && is_digit(*l->at)) {
        t.number = t.number * 10 + (*l->at - '0');
        l->at++;
        if (l->at - begin > LUA_DIGITS_MAX) {
            return refuse_token(l, "a number has too many digits");
        }
    }
    if (l->at != l->end && (is_name_char(*l->at) || *l->at == '.')) {
        return refuse_token(l, "a number is no decimal integer");
    }
    t.text = span_of(begin, (size_t)(l->at - begin));
    return t;
}

/* Decodes \ddd, of one to three digits; -1: it is above 255. */
static int decode_decimal_escape(struct lua_lexer *l)
{
    int value = 0;

    for (int i = 0; i < 3 && l->at != l->end && is_digit(*l->at); i++) {
        value = value * 10 + (*l->at++ - '0');
    }
    return value > 255 ? -1 : value;
}

/* Decodes what stands behind a backslash; -1: that is none of the escapes here. */
static int decode_escape(struct lua_lexer *l)
{
    static const char NAMES[] = "nrt\\\"'", BYTES[] = "\n\r\t\\\"'";
    const char *found;

    if (l->at == l->end || *l->at == '\0') {
        return -1;
    }
    if (is_digit(*l->at)) {
        return decode_decimal_escape(l);
    }
    found = strchr(NAMES, *l->at);
    if (found == NULL) {
        return -1;
    }
    l->at++;
    return (unsigned char)BYTES[found - NAMES];
}

static struct lua_token read_string(struct lua_lexer *l)
{
    struct lua_token t = { .kind = LUA_TOKEN_STRING, .line = l->line };
    char quote = *l->at++, *out = l->at;

    t.text.ptr = out;
    while (l->at != l->end && *l->at != quote) {
        int c = (unsigned char)*l->at++;

        if (c == '\n') {
            return refuse_token(l, "a string has no end on its line");
        }
        if (c == '\\') {
            c = decode_escape(l);
            if (c < 0) {
                return refuse_token(l, "a string has an escape that is not understood");
            }
        }
        *out++ = (char)c;
    }
    if (l->at == l->end) {
        return refuse_token(l, "a string has no end");
    }
    l->at++;
    t.text.len = (size_t)(out - t.text.ptr);
    return t;
}

static struct lua_token read_symbol(struct lua_lexer *l)
{
    for (size_t i = 0; i < sizeof(SYMBOLS) / sizeof(SYMBOLS[0]); i++) {
        if (starts_with(l, SYMBOLS[i])) {
            struct lua_token t = { .kind = LUA_TOKEN_WORD, .line = l->line };

            t.text = span_str(SYMBOLS[i]);
            l->at += t.text.len;
            return t;
        }
    }
    (void)script_error_set(l->error, l->line, "'%c' is not understood", *l->at);
    return (struct lua_token){ .kind = LUA_TOKEN_REFUSED, .line = l->line };
}

static struct lua_token lua_lexer_next(struct lua_lexer *l)
{
    if (!skip_blank(l)) {
        return (struct lua_token){ .kind = LUA_TOKEN_REFUSED, .line = l->line };
    }
    if (l->at == l->end) {
        return (struct lua_token){ .kind = LUA_TOKEN_END, .line = l->line };
    }
    if (starts_with(l, "..")) {
        return refuse_token(l, "'..' is not understood");
    }
    if (long_bracket_level(l, l->at) >= 0) {
        return refuse_token(l, "a long string is not understood");
    }
    if (is_digit(*l->at)) {
        return read_number(l);
    }
    if (is_name_char(*l->at)) {
        return read_name(l);
    }
    return *l->at == '"' || *l->at == '\'' ? read_string(l) : read_symbol(l);
}

/* Refuses the script at the line of the next token. */
static bool lua_parser_refuse(struct lua_parser *p, const char *why)
{
    return script_error_set(p->lexer.error, p->token.line, "%s", why);
}

/* Refuses the script because of the next token. */
static bool lua_parser_unexpected(struct lua_parser *p)
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

static void lua_parser_advance(struct lua_parser *p)
{
    p->token = lua_lexer_next(&p->lexer);
}

static bool lua_parser_is(const struct lua_parser *p, const char *word)
{
    return p->token.kind == LUA_TOKEN_WORD && span_eq(p->token.text, span_str(word));
}

/* Takes the next token if it is that keyword or symbol. */
static bool lua_parser_accept(struct lua_parser *p, const char *word)
{
    if (!lua_parser_is(p, word)) {
        return false;
    }
    lua_parser_advance(p);
    return true;
}

/* Takes the next token, which must be that one. */
static bool lua_parser_expect(struct lua_parser *p, const char *word)
{
    return lua_parser_accept(p, word) || lua_parser_unexpected(p);
}

static uint16_t lua_parser_add(struct lua_parser *p, enum lua_node_kind kind)
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

/* One level deeper; lua_parser_leave() must follow if it returns true. */
static bool lua_parser_enter(struct lua_parser *p)
{
    if (p->depth == LUA_DEPTH_MAX) {
        return lua_parser_refuse(p, "the script is nested too deeply");
    }
    p->depth++;
    return true;
}

static void lua_parser_leave(struct lua_parser *p)
{
    p->depth--;
}

/* Finds a local variable; NULL: there is none of that name. */
static const struct lua_name *lua_parser_find(const struct lua_parser *p,
                                              struct span name)
{
    for (unsigned i = p->name_count; i-- > 0;) {
        if (span_eq(p->names[i].text, name)) {
            return &p->names[i];
        }
    }
    return NULL;
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

/* How tightly operators bind, as in Lua. */
enum { BIND_OR = 1, BIND_AND, BIND_COMPARE, BIND_ADD, BIND_UNARY };

struct binary_operator {
    const char *word;
    enum lua_node_kind node;
    int binds;
};

static const struct binary_operator OPERATORS[] = {
    { "or", LUA_OR, BIND_OR },      { "and", LUA_AND, BIND_AND },
    { "==", LUA_EQ, BIND_COMPARE }, { "~=", LUA_NE, BIND_COMPARE },
    { "<", LUA_LT, BIND_COMPARE },  { "<=", LUA_LE, BIND_COMPARE },
    { ">", LUA_GT, BIND_COMPARE },  { ">=", LUA_GE, BIND_COMPARE },
    { "+", LUA_ADD, BIND_ADD },     { "-", LUA_SUBTRACT, BIND_ADD },
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
static uint16_t lua_parse_expression(struct lua_parser *p);

/* The arguments of a function, with their parentheses; `at` is the call. */
static uint16_t parse_arguments(struct lua_parser *p, uint16_t at)
{
    struct node_list args = { 0, 0 };

    if (!lua_parser_expect(p, "(")) {
        return 0;
    }
    if (lua_parser_accept(p, ")")) {
        return at;
    }
    do {
        uint16_t arg = lua_parse_expression(p);

        if (arg == 0) {
            return 0;
        }
        append_node(p, &args, arg);
    } while (lua_parser_accept(p, ","));
    p->ast->nodes[at].first = args.first;
    return lua_parser_expect(p, ")") ? at : 0;
}

static uint16_t parse_call(struct lua_parser *p, enum lua_node_kind kind)
{
    uint16_t at = lua_parser_add(p, kind);

    return at == 0 ? 0 : parse_arguments(p, at);
}

/* A call of a function of redis, behind the word itself. */
static uint16_t lua_parse_redis_call(struct lua_parser *p)
{
    if (!lua_parser_expect(p, ".")) {
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
    if (!lua_parser_expect(p, ".")) {
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

    if (at == 0 || !lua_parser_expect(p, "[")) {
        return 0;
    }
    index = lua_parse_expression(p);
    if (index == 0 || !lua_parser_expect(p, "]")) {
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
    return at != 0 && lua_parser_expect(p, ")") ? at : 0;
}

static uint16_t parse_primary(struct lua_parser *p)
{
    switch (p->token.kind) {
    case LUA_TOKEN_NUMBER:
        return parse_literal(p, LUA_NUMBER);
    case LUA_TOKEN_STRING:
        return parse_literal(p, LUA_STRING);
    case LUA_TOKEN_NAME:
        return parse_name(p);
    default:
        return lua_parser_is(p, "nil")     ? parse_literal(p, LUA_NIL)
               : lua_parser_is(p, "true")  ? parse_literal(p, LUA_TRUE)
               : lua_parser_is(p, "false") ? parse_literal(p, LUA_FALSE)
               : lua_parser_is(p, "(")     ? parse_parenthesised(p)
                                           : lua_parser_unexpected(p);
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
    return lua_parser_is(p, "not") ? parse_prefixed(p, LUA_NOT)
           : lua_parser_is(p, "-") ? parse_prefixed(p, LUA_NEGATE)
           : lua_parser_is(p, "#") ? parse_length(p)
                                   : parse_primary(p);
}

static const struct binary_operator *find_operator(const struct lua_parser *p)
{
    for (size_t i = 0; i < sizeof(OPERATORS) / sizeof(OPERATORS[0]); i++) {
        if (lua_parser_is(p, OPERATORS[i].word)) {
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

    while (left != 0 && (op = find_operator(p)) != NULL && op->binds > least) {
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

static uint16_t lua_parse_expression(struct lua_parser *p)
{
    return parse_bound(p, 0);
}

/* A table of values, whose '{' is the next token. */
static uint16_t lua_parse_table(struct lua_parser *p)
{
    uint16_t at = lua_parser_add(p, LUA_TABLE);
    struct node_list items = { 0, 0 };

    lua_parser_advance(p);
    while (at != 0 && !lua_parser_is(p, "}")) {
        uint16_t item = lua_parse_expression(p);

        if (item == 0) {
            return 0;
        }
        append_node(p, &items, item);
        p->ast->nodes[at].first = items.first;
        if (!lua_parser_accept(p, ",") && !lua_parser_accept(p, ";")) {
            break;
        }
    }
    return at != 0 && lua_parser_expect(p, "}") ? at : 0;
}

static uint16_t parse_block(struct lua_parser *p);

/* Takes a name, for add_local() to declare. */
static bool take_name(struct lua_parser *p, struct span *ret)
{
    *ret = p->token.text;
    if (p->token.kind != LUA_TOKEN_NAME) {
        return lua_parser_unexpected(p);
    }
    lua_parser_advance(p);
    return true;
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
    } while (lua_parser_accept(p, ","));
    if (lua_parser_accept(p, "=")) {
        do {
            uint16_t value = lua_parse_expression(p);

            if (value == 0) {
                return 0;
            }
            append_node(p, &values, value);
        } while (lua_parser_accept(p, ","));
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
        of = lua_parser_expect(p, "=") ? lua_parse_expression(p) : 0;
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
    if (part == 0 || !lua_parser_expect(p, "then") || !parse_body(p, &part)) {
        return 0;
    }
    p->ast->nodes[at].second = part;
    if (lua_parser_is(p, "elseif")) {
        part = lua_parser_enter(p) ? parse_if(p) : 0;
        if (part == 0) {
            return 0;
        }
        lua_parser_leave(p);
        p->ast->nodes[at].third = part;
        return at; /* one end for all */
    }
    if (lua_parser_accept(p, "else")) {
        if (!parse_body(p, &part)) {
            return 0;
        }
        p->ast->nodes[at].third = part;
    }
    return lua_parser_expect(p, "end") ? at : 0;
}

/* The words from "in" to "do". */
static bool parse_loop_head(struct lua_parser *p)
{
    static const struct span WORDS[] = { SPAN("ipairs"), SPAN("KEYS") };

    if (!lua_parser_accept(p, "in")) {
        return lua_parser_refuse(p, "a loop is not over ipairs(KEYS)");
    }
    for (size_t i = 0; i < 2; i++) {
        if (p->token.kind != LUA_TOKEN_NAME || !span_eq(p->token.text, WORDS[i]) ||
            lua_parser_find(p, WORDS[i]) != NULL) {
            return lua_parser_refuse(p, "a loop is not over ipairs(KEYS)");
        }
        lua_parser_advance(p);
        if (!lua_parser_expect(p, i == 0 ? "(" : ")")) {
            return false;
        }
    }
    return lua_parser_expect(p, "do");
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
    if (!lua_parser_accept(p, ",")) {
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
    if (!parse_body(p, &body) || !lua_parser_expect(p, "end")) {
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
    if (at == 0 || !parse_body(p, &body) || !lua_parser_expect(p, "end")) {
        return 0;
    }
    p->ast->nodes[at].second = body;
    return at;
}

static bool ends_block(const struct lua_parser *p)
{
    return p->token.kind == LUA_TOKEN_END || lua_parser_is(p, "else") ||
           lua_parser_is(p, "elseif") || lua_parser_is(p, "end");
}

/* return, or break: the last statement of its block. */
static uint16_t parse_last(struct lua_parser *p)
{
    bool breaks = lua_parser_is(p, "break");
    uint16_t at = lua_parser_add(p, breaks ? LUA_BREAK : LUA_RETURN), of = 0;

    lua_parser_advance(p);
    if (breaks && !p->in_loop) {
        return lua_parser_refuse(p, "a break stands outside of a loop");
    }
    if (at != 0 && !breaks && !ends_block(p) && !lua_parser_is(p, ";")) {
        of = lua_parser_is(p, "{") ? lua_parse_table(p) : lua_parse_expression(p);
        if (of == 0) {
            return 0;
        }
        p->ast->nodes[at].first = of;
    }
    (void)lua_parser_accept(p, ";");
    return ends_block(p) ? at : lua_parser_unexpected(p);
}

static uint16_t parse_statement(struct lua_parser *p)
{
    return lua_parser_is(p, "local")                                 ? parse_local(p)
           : lua_parser_is(p, "if")                                  ? parse_if(p)
           : lua_parser_is(p, "for")                                 ? parse_for(p)
           : lua_parser_is(p, "do")                                  ? parse_do(p)
           : lua_parser_is(p, "return") || lua_parser_is(p, "break") ? parse_last(p)
           : p->token.kind == LUA_TOKEN_NAME ? parse_assignment(p)
                                             : lua_parser_unexpected(p);
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
    while (!ends_block(p)) {
        uint16_t at = parse_statement(p);

        if (at == 0) {
            return 0;
        }
        append_node(p, &statements, at);
        while (p->ast->nodes[statements.last].next != 0) {
            statements.last = p->ast->nodes[statements.last].next; /* local a, b */
        }
        (void)lua_parser_accept(p, ";");
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
