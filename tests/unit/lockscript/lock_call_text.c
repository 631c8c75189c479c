#include "lock_call_text.h"

#include <stdio.h>

static void add_scalar(const struct lock_reply *r, struct buf *out)
{
    static const char *const WORDS[LOCK_REPLY_KINDS] = {
        [LOCK_REPLY_NULL] = "nil",         [LOCK_REPLY_INTEGER] = "",
        [LOCK_REPLY_STATUS] = "+",         [LOCK_REPLY_BULK] = "'",
        [LOCK_REPLY_ERROR] = "-",          [LOCK_REPLY_PLAIN_ERROR] = "-ERR ",
        [LOCK_REPLY_WRONG_TYPE] = "!type", [LOCK_REPLY_KEY_COUNT] = "keys",
        [LOCK_REPLY_DONE_COUNT] = "done",  [LOCK_REPLY_VALUE] = "value",
        [LOCK_REPLY_TTL_MS] = "ttl-ms",    [LOCK_REPLY_TTL_S] = "ttl-s",
    };

    buf_add_str(out, WORDS[r->kind]);
    buf_add_span(out, r->text);
    if (r->kind == LOCK_REPLY_INTEGER) {
        buf_add_int(out, r->integer);
    }
    buf_add_str(out, r->kind == LOCK_REPLY_BULK ? "'" : "");
}

static void add_reply(const struct lock_reply *r, struct buf *out)
{
    if (r->kind != LOCK_REPLY_LIST) {
        add_scalar(r, out);
        return;
    }
    buf_add_str(out, "[");
    for (unsigned i = 0; i < r->item_count; i++) {
        struct lock_reply item = lock_reply_item_at(r, i);

        buf_add_str(out, i == 0 ? "" : " ");
        add_scalar(&item, out);
    }
    buf_add_str(out, "]");
}

static void add_terms(const struct lock_call *c, struct buf *out)
{
    static const char *const ENDS[] = {
        [LOCK_END_NONE] = "endless",
        [LOCK_END_IN] = "in",
        [LOCK_END_AT] = "at",
        [LOCK_END_ADDED] = "added",
    };
    bool ends = c->kind <= LOCK_CALL_OVERWRITE;

    if (c->scope == LOCK_CALL_EACH_KEY) {
        buf_add_str(out, " each");
    }
    if (c->compare == LOCK_COMPARE_PREFIX) {
        buf_printf(out, " ~%zu", c->prefix_len);
    }
    if (c->value.ptr != NULL) {
        buf_printf(out, " %s%.*s", c->compare == LOCK_COMPARE_VALUE ? "=" : "",
                   (int)c->value.len, c->value.ptr);
    }
    if (ends) {
        buf_printf(out, " %s", ENDS[c->end]);
    }
    if (ends && c->end != LOCK_END_NONE) {
        buf_printf(out, " %lld", (long long)c->end_ms);
    }
    if (c->kind == LOCK_CALL_EXTEND && c->endless == LOCK_ENDLESS_REFUSED) {
        buf_add_str(out, " refuses-endless");
    }
}

void lock_call_text(const struct lock_call *c, struct buf *out)
{
    static const char *const STATES[LOCK_KEY_STATES] = {
        [LOCK_KEY_FREE] = "free",
        [LOCK_KEY_MINE] = "mine",
        [LOCK_KEY_MINE_ENDLESS] = "endless",
        [LOCK_KEY_OTHERS] = "others",
        [LOCK_KEY_NOT_A_STRING] = "not-a-string",
    };

    buf_add_str(out, lock_call_kind_name(c->kind));
    add_terms(c, out);
    for (int s = 0; s < LOCK_KEY_STATES; s++) {
        buf_printf(out, "%s%s ", s == 0 ? " | " : ", ", STATES[s]);
        add_reply(&c->replies[s], out);
    }
    if (c->publish.channel.ptr != NULL) {
        buf_printf(out, " | publish %.*s %.*s", (int)c->publish.channel.len,
                   c->publish.channel.ptr, (int)c->publish.message.len,
                   c->publish.message.ptr);
    }
}
