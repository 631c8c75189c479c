#include "lockscript/lock_classify.h"

struct lock_reply lock_reply_item_at(const struct lock_reply *list, unsigned index)
{
    const struct lock_reply_item *item = &list->items[index];

    return (struct lock_reply){
        .kind = item->kind,
        .integer = item->integer,
        .text = item->text,
    };
}

bool lock_reply_eq(const struct lock_reply *a, const struct lock_reply *b)
{
    if (a->kind != b->kind || a->integer != b->integer || !span_eq(a->text, b->text) ||
        a->item_count != b->item_count) {
        return false;
    }
    for (unsigned i = 0; i < a->item_count; i++) {
        const struct lock_reply_item *x = &a->items[i], *y = &b->items[i];

        if (x->kind != y->kind || x->integer != y->integer ||
            !span_eq(x->text, y->text)) {
            return false;
        }
    }
    return true;
}

bool lock_reply_has(const struct lock_reply *r, enum lock_reply_kind kind)
{
    for (unsigned i = 0; i < r->item_count; i++) {
        if (r->items[i].kind == kind) {
            return true;
        }
    }
    return r->kind == kind;
}

/* A text of the script as a reply of one line. */
static bool reply_of_line(const struct lua_value *v, struct lock_reply *ret)
{
    bool code;

    ret->text = v->text;
    if (memchr(v->text.ptr, '\r', v->text.len) != NULL ||
        memchr(v->text.ptr, '\n', v->text.len) != NULL) {
        return false;
    }
    if (v->kind == LUA_VALUE_STATUS) {
        ret->kind = LOCK_REPLY_STATUS;
        return true;
    }
    if (v->text.len > 0 && v->text.ptr[0] == '-') {
        ret->text = span_after(v->text, 1);
    }
    code = memchr(ret->text.ptr, ' ', ret->text.len) != NULL;
    ret->kind = code ? LOCK_REPLY_ERROR : LOCK_REPLY_PLAIN_ERROR;
    return true;
}

static bool reply_of_ttl(const struct lua_value *v, struct lock_reply *ret)
{
    ret->kind = LOCK_REPLY_INTEGER;
    if (v->left == LUA_TTL_POSITIVE) {
        ret->kind = v->unit == LOCK_UNIT_S ? LOCK_REPLY_TTL_S : LOCK_REPLY_TTL_MS;
    }
    ret->integer = v->left == LUA_TTL_ENDLESS ? -1 : 0;
    return true;
}

/* ARGV[value_arg] is the value that the key has, if it was set or is mine. One that has
 * the same beginning keeps the value that it had. */
static bool reply_of_arg(const struct script_analysis *a, const struct script_run *run,
                         const struct lua_value *v, struct lock_reply *ret)
{
    const struct script_key *key = &run->keys[0];

    ret->kind = LOCK_REPLY_VALUE;
    return v->arg == a->value_arg && run->key_count == 1 &&
           key->found != SCRIPT_SAME_PREFIX &&
           (key->after == SCRIPT_SET ||
            (key->found == SCRIPT_MINE && key->after != SCRIPT_DELETED));
}

static bool reply_of_value(const struct script_analysis *a,
                           const struct script_run *run, const struct lua_value *v,
                           struct lock_reply *ret)
{
    *ret = (struct lock_reply){ .kind = LOCK_REPLY_NULL };
    switch (v->kind) {
    case LUA_VALUE_NIL:
    case LUA_VALUE_FALSE:
        return true;
    case LUA_VALUE_TRUE:
    case LUA_VALUE_NUMBER:
        ret->kind = LOCK_REPLY_INTEGER;
        ret->integer = v->kind == LUA_VALUE_TRUE ? 1 : v->number;
        return true;
    case LUA_VALUE_TEXT:
        ret->kind = LOCK_REPLY_BULK;
        ret->text = v->text;
        return true;
    case LUA_VALUE_STATUS:
    case LUA_VALUE_ERROR:
        return reply_of_line(v, ret);
    case LUA_VALUE_WRONG_TYPE:
        ret->kind = LOCK_REPLY_WRONG_TYPE;
        return true;
    case LUA_VALUE_STORED:
        ret->kind = LOCK_REPLY_VALUE;
        return run->key_count == 1 && run->keys[0].after == SCRIPT_UNTOUCHED;
    case LUA_VALUE_TTL:
        return run->key_count == 1 && run->keys[0].after == SCRIPT_UNTOUCHED &&
               reply_of_ttl(v, ret);
    case LUA_VALUE_ARG:
        return reply_of_arg(a, run, v, ret);
    default:
        return false;
    }
}

/* Redis ends a list at its first nil, and turns a status within one into its text. */
static bool is_item(const struct lua_value *v)
{
    return v->kind != LUA_VALUE_NIL && v->kind != LUA_VALUE_STATUS &&
           v->kind != LUA_VALUE_ERROR && v->kind != LUA_VALUE_WRONG_TYPE;
}

static bool reply_of_list(const struct script_analysis *a, const struct script_run *run,
                          struct lock_reply *ret)
{
    *ret = (struct lock_reply){
        .kind = LOCK_REPLY_LIST,
        .item_count = run->item_count,
    };
    for (unsigned i = 0; i < run->item_count; i++) {
        struct lock_reply item;

        if (!is_item(&run->items[i]) ||
            !reply_of_value(a, run, &run->items[i], &item)) {
            return false;
        }
        ret->items[i] = (struct lock_reply_item){
            .kind = item.kind,
            .integer = item.integer,
            .text = item.text,
        };
    }
    return true;
}

bool lock_reply_of(const struct script_analysis *a, const struct script_run *run,
                   struct lock_reply *ret)
{
    return run->reply.kind == LUA_VALUE_LIST ? reply_of_list(a, run, ret)
                                             : reply_of_value(a, run, &run->reply, ret);
}
