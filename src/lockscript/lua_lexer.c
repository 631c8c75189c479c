#include "lockscript/lua_lexer.h"

struct word {
    const char *text;
    enum lua_token_kind kind;
};

static const struct word KEYWORDS[] = {
    { "and", LUA_TOKEN_AND },
    { "break", LUA_TOKEN_BREAK },
    { "do", LUA_TOKEN_DO },
    { "else", LUA_TOKEN_ELSE },
    { "elseif", LUA_TOKEN_ELSEIF },
    { "end", LUA_TOKEN_END_WORD },
    { "false", LUA_TOKEN_FALSE },
    { "for", LUA_TOKEN_FOR },
    { "function", LUA_TOKEN_OTHER_WORD },
    { "if", LUA_TOKEN_IF },
    { "in", LUA_TOKEN_IN },
    { "local", LUA_TOKEN_LOCAL },
    { "nil", LUA_TOKEN_NIL },
    { "not", LUA_TOKEN_NOT },
    { "or", LUA_TOKEN_OR },
    { "repeat", LUA_TOKEN_OTHER_WORD },
    { "return", LUA_TOKEN_RETURN },
    { "then", LUA_TOKEN_THEN },
    { "true", LUA_TOKEN_TRUE },
    { "until", LUA_TOKEN_OTHER_WORD },
    { "while", LUA_TOKEN_OTHER_WORD },
};

/* A longer symbol stands before one that it begins with. */
static const struct word SYMBOLS[] = {
    { "==", LUA_TOKEN_EQ },        { "~=", LUA_TOKEN_NE },
    { "<=", LUA_TOKEN_LE },        { ">=", LUA_TOKEN_GE },
    { "<", LUA_TOKEN_LT },         { ">", LUA_TOKEN_GT },
    { "=", LUA_TOKEN_ASSIGN },     { "+", LUA_TOKEN_PLUS },
    { "-", LUA_TOKEN_MINUS },      { "#", LUA_TOKEN_LENGTH },
    { "(", LUA_TOKEN_OPEN },       { ")", LUA_TOKEN_CLOSE },
    { "[", LUA_TOKEN_OPEN_INDEX }, { "]", LUA_TOKEN_CLOSE_INDEX },
    { "{", LUA_TOKEN_OPEN_TABLE }, { "}", LUA_TOKEN_CLOSE_TABLE },
    { ",", LUA_TOKEN_COMMA },      { ";", LUA_TOKEN_SEMICOLON },
    { ".", LUA_TOKEN_DOT },
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

static enum lua_token_kind find_keyword(struct span text)
{
    for (size_t i = 0; i < sizeof(KEYWORDS) / sizeof(KEYWORDS[0]); i++) {
        if (span_eq(text, span_str(KEYWORDS[i].text))) {
            return KEYWORDS[i].kind;
        }
    }
    return LUA_TOKEN_NAME;
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
    t.kind = find_keyword(t.text);
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
        if (starts_with(l, SYMBOLS[i].text)) {
            struct lua_token t = { .kind = SYMBOLS[i].kind, .line = l->line };

            t.text = span_str(SYMBOLS[i].text);
            l->at += t.text.len;
            return t;
        }
    }
    (void)script_error_set(l->error, l->line, "'%c' is not understood", *l->at);
    return (struct lua_token){ .kind = LUA_TOKEN_REFUSED, .line = l->line };
}

struct lua_token lua_lexer_next(struct lua_lexer *l)
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
