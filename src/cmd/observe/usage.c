#include "cmd/observe/usage.h"

#include "resp/writer.h"
#include "util/span.h"

#include <ctype.h>
#include <stddef.h>

enum node_type { NODE_VALUE, NODE_WORD, NODE_ONEOF, NODE_BLOCK };

/* Nodes are in one array; children and siblings are indexes, 0 is none. */
struct node {
    enum node_type type;
    struct span token; /* the literal before a value or block */
    struct span name;  /* NODE_VALUE */
    bool optional;
    bool multiple;
    size_t child;
    size_t next;
};

struct parse {
    const char *at;
    struct node nodes[USAGE_NODES_MAX];
    size_t count; /* nodes[0] is the root */
    bool failed;
};

static size_t node_new(struct parse *p, enum node_type type)
{
    if (p->count == USAGE_NODES_MAX) {
        p->failed = true;
        return USAGE_NODES_MAX - 1;
    }
    p->nodes[p->count] = (struct node){ .type = type };
    return p->count++;
}

static void skip_spaces(struct parse *p)
{
    while (*p->at == ' ') {
        p->at++;
    }
}

static bool accept_token(struct parse *p, const char *text)
{
    size_t len = strlen(text);

    skip_spaces(p);
    if (strncmp(p->at, text, len) != 0) {
        return false;
    }
    p->at += len;
    return true;
}

static bool at_word(const struct parse *p)
{
    return isalnum((unsigned char)*p->at) != 0 || *p->at == '-' || *p->at == '_';
}

static struct span read_word(struct parse *p)
{
    const char *from = p->at;

    while (at_word(p) || *p->at == ':') {
        p->at++;
    }
    return span_of(from, (size_t)(p->at - from));
}

static bool is_literal(struct span word)
{
    return isupper((unsigned char)word.ptr[0]) != 0;
}

static size_t read_sequence(struct parse *p);

/* Reads the values after a literal: none, one, or a block of several. */
static size_t read_literal(struct parse *p, struct span token)
{
    size_t first = 0, last = 0, count = 0, node;

    for (skip_spaces(p); at_word(p) && !is_literal(span_of(p->at, 1)); skip_spaces(p)) {
        node = node_new(p, NODE_VALUE);
        p->nodes[node].name = read_word(p);
        p->nodes[node].multiple = accept_token(p, "...");
        if (first == 0) {
            first = node;
        } else {
            p->nodes[last].next = node;
        }
        last = node;
        count++;
    }
    if (count == 1) {
        node = first;
    } else {
        node = node_new(p, count == 0 ? NODE_WORD : NODE_BLOCK);
        p->nodes[node].child = first;
    }
    p->nodes[node].token = token;
    return node;
}

/* Reads the inside of brackets: one alternative, or a choice of several. */
static size_t read_group(struct parse *p, const char *close)
{
    size_t first = read_sequence(p), last = first, node;

    if (!accept_token(p, "|")) {
        p->failed = p->failed || !accept_token(p, close);
        return first;
    }
    node = node_new(p, NODE_ONEOF);
    p->nodes[node].child = first;
    do {
        p->nodes[last].next = read_sequence(p);
        last = p->nodes[last].next;
    } while (!p->failed && accept_token(p, "|"));
    p->failed = p->failed || !accept_token(p, close);
    return node;
}

/* Reads one item; 0 at the end of the group or line. */
static size_t read_item(struct parse *p)
{
    size_t node;
    bool optional;

    skip_spaces(p);
    if (at_word(p)) {
        struct span word = read_word(p);

        if (is_literal(word)) {
            node = read_literal(p, word);
        } else {
            node = node_new(p, NODE_VALUE);
            p->nodes[node].name = word;
        }
    } else if (*p->at == '[' || *p->at == '(') {
        optional = *p->at++ == '[';
        node = read_group(p, optional ? "]" : ")");
        p->nodes[node].optional = optional;
    } else {
        return 0;
    }
    if (accept_token(p, "...")) {
        p->nodes[node].multiple = true;
    }
    return node;
}

/* Reads a sequence of items; several make a block. */
static size_t read_sequence(struct parse *p)
{
    size_t first = read_item(p), last = first, block;

    if (first == 0) {
        p->failed = true;
        return 0;
    }
    while (!p->failed) {
        size_t node = read_item(p);

        if (node == 0) {
            break;
        }
        p->nodes[last].next = node;
        last = node;
    }
    if (last == first) {
        return first;
    }
    block = node_new(p, NODE_BLOCK);
    p->nodes[block].child = first;
    return block;
}

static void parse_usage(struct parse *p, const char *usage)
{
    size_t last = 0;

    *p = (struct parse){ .at = usage, .count = 1 };
    while (!p->failed) {
        size_t node = read_item(p);

        if (node == 0) {
            break;
        }
        if (last == 0) {
            p->nodes[0].child = node;
        } else {
            p->nodes[last].next = node;
        }
        last = node;
    }
    p->failed = p->failed || *p->at != '\0';
}

bool usage_is_valid(const char *usage)
{
    struct parse p;

    parse_usage(&p, usage);
    return !p.failed;
}

/* --- COMMAND DOCS ----------------------------------------------------- */

static const char *value_type(struct span name)
{
    static const struct {
        const char *name;
        const char *type;
    } TYPES[] = {
        { "name", "key" },
        { "key", "key" },
        { "ms", "integer" },
        { "count", "integer" },
        { "token", "integer" },
        { "cursor", "integer" },
        { "client-id", "integer" },
        { "index", "integer" },
        { "n", "integer" },
        { "limit", "integer" },
        { "numreplicas", "integer" },
        { "protover", "integer" },
        { "pattern", "pattern" },
        { "glob", "pattern" },
    };

    for (size_t i = 0; i < sizeof(TYPES) / sizeof(TYPES[0]); i++) {
        if (span_eq(name, span_str(TYPES[i].name))) {
            return TYPES[i].type;
        }
    }
    return "string";
}

static size_t count_children(const struct parse *p, size_t node)
{
    size_t count = 0;

    for (size_t i = p->nodes[node].child; i != 0; i = p->nodes[i].next) {
        count++;
    }
    return count;
}

/* A choice or block has no name of its own, and gets that of its first part. */
static void write_name(struct buf *out, const struct parse *p, const struct node *n)
{
    struct span name;

    while (n->name.len == 0 && n->token.len == 0) {
        n = &p->nodes[n->child];
    }
    name = n->name.len != 0 ? n->name : n->token;
    resp_bulk_str(out, "name");
    resp_bulk(out, name);
}

static void write_flags(struct buf *out, int proto, const struct node *n)
{
    resp_bulk_str(out, "flags");
    resp_set(out, proto, (size_t)n->optional + (size_t)n->multiple);
    if (n->optional) {
        resp_simple(out, "optional");
    }
    if (n->multiple) {
        resp_simple(out, "multiple");
    }
}

static void write_children(struct buf *out, int proto, const struct parse *p,
                           size_t node);

static void write_node(struct buf *out, int proto, const struct parse *p,
                       const struct node *n, size_t index)
{
    bool parent = n->type == NODE_ONEOF || n->type == NODE_BLOCK;
    bool flags = n->optional || n->multiple;
    const char *type = n->type == NODE_ONEOF   ? "oneof"
                       : n->type == NODE_BLOCK ? "block"
                       : n->type == NODE_WORD  ? "pure-token"
                                               : value_type(n->name);
    bool key = n->type == NODE_VALUE && strcmp(type, "key") == 0;

    resp_map(out, proto,
             2U + (size_t)key + (size_t)(n->type == NODE_VALUE) +
                 (size_t)(n->token.len != 0) + (size_t)flags + (size_t)parent);
    write_name(out, p, n);
    resp_bulk_str(out, "type");
    resp_bulk_str(out, type);
    if (n->type == NODE_VALUE) {
        resp_bulk_str(out, "display_text");
        resp_bulk(out, n->name);
    }
    if (key) {
        resp_bulk_str(out, "key_spec_index");
        resp_int(out, 0);
    }
    if (n->token.len != 0) {
        resp_bulk_str(out, "token");
        resp_bulk(out, n->token);
    }
    if (flags) {
        write_flags(out, proto, n);
    }
    if (parent) {
        resp_bulk_str(out, "arguments");
        write_children(out, proto, p, index);
    }
}

static void write_children(struct buf *out, int proto, const struct parse *p,
                           size_t node)
{
    resp_array(out, count_children(p, node));
    for (size_t i = p->nodes[node].child; i != 0; i = p->nodes[i].next) {
        write_node(out, proto, p, &p->nodes[i], i);
    }
}

void usage_write_docs(struct buf *out, int proto, const char *usage)
{
    struct parse p;

    parse_usage(&p, usage);
    write_children(out, proto, &p, 0);
}
