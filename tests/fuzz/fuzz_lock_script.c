/* Scripts of anybody: whatever the text, reading it ends soon, and what is accepted can
 * be bound and is within all limits. */
#include "fuzz.h"

#include "lockscript/lock_script.h"

#include <stdio.h>
#include <stdlib.h>

static void fail(const char *what)
{
    (void)fprintf(stderr, "%s\n", what);
    abort();
}

/* A lock operation needs both words. */
static bool may_be_accepted(struct span text)
{
    return memmem(text.ptr, text.len, "redis", 5) != NULL &&
           memmem(text.ptr, text.len, "KEYS", 4) != NULL;
}

static void check_reply(const struct lock_reply *r)
{
    bool has_text = r->kind == LOCK_REPLY_STATUS || r->kind == LOCK_REPLY_ERROR ||
                    r->kind == LOCK_REPLY_PLAIN_ERROR;

    if (r->kind >= LOCK_REPLY_KINDS) {
        fail("a reply is of no kind");
    }
    if (r->item_count > LOCK_REPLY_ITEMS_MAX ||
        (r->item_count != 0 && r->kind != LOCK_REPLY_LIST)) {
        fail("a reply has too many items");
    }
    for (unsigned i = 0; i < r->item_count; i++) {
        struct lock_reply item = lock_reply_item_at(r, i);

        if (item.kind >= LOCK_REPLY_LIST) {
            fail("an item is a list itself");
        }
        check_reply(&item);
    }
    for (size_t i = 0; has_text && i < r->text.len; i++) {
        if (r->text.ptr[i] == '\r' || r->text.ptr[i] == '\n') {
            fail("a reply has more than one line");
        }
    }
}

static void check_call(const struct lock_call *c, size_t key_count)
{
    bool takes = c->kind == LOCK_CALL_ACQUIRE ||
                 c->kind == LOCK_CALL_ACQUIRE_OR_EXTEND ||
                 c->kind == LOCK_CALL_OVERWRITE;

    if (c->kind >= LOCK_CALL_KINDS || c->key_count < 1 || c->key_count > key_count) {
        fail("a call is of no kind, or of no keys");
    }
    if ((takes || c->compare != LOCK_COMPARE_NONE) &&
        (c->value.ptr == NULL || c->value.len > LOCK_CALL_VALUE_MAX)) {
        fail("a call has no value, or too long a one");
    }
    if (takes &&
        (c->end == LOCK_END_ADDED || (c->end == LOCK_END_IN && c->end_ms < 1))) {
        fail("a key is taken for no time");
    }
    if (c->compare == LOCK_COMPARE_PREFIX && c->prefix_len < 1) {
        fail("an empty prefix is compared");
    }
    if (c->publish.channel.ptr != NULL && c->kind != LOCK_CALL_RELEASE &&
        c->kind != LOCK_CALL_FORCE_RELEASE) {
        fail("something is published beside no release");
    }
    for (int i = 0; i < LOCK_KEY_STATES; i++) {
        check_reply(&c->replies[i]);
    }
}

/* Binds a script to keys and arguments of all kinds. */
static void bind(const struct lock_script *script)
{
    static const struct span KEYS[] = { SPAN("k"), SPAN("k"), SPAN("") };
    static const struct span ARGV[][4] = {
        { SPAN("v"), SPAN("30000"), SPAN("1"), SPAN("") },
        { SPAN("30000"), SPAN("v"), SPAN("0"), SPAN("-1") },
        { SPAN(""), SPAN("10.5"), SPAN("9223372036854775807"), SPAN("x") },
        { SPAN("0"), SPAN("-9223372036854775808"), SPAN("5"), SPAN("7") },
    };

    for (size_t keys = 0; keys <= 3; keys++) {
        for (size_t row = 0; row < 4; row++) {
            for (size_t args = 0; args <= 4; args++) {
                struct lock_script_error error;
                struct lock_call call;

                if (lock_script_bind(script, KEYS, keys, ARGV[row], args, &call,
                                     &error)) {
                    check_call(&call, keys);
                } else if (error.why[0] == '\0') {
                    fail("a call is refused without a reason");
                }
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = span_of((const char *)data, size);
    struct lock_script_error error;
    struct lock_script *script = lock_script_parse(text, &error);

    if ((script == NULL) == (error.why[0] == '\0')) {
        fail("a script is refused without a reason, or accepted with one");
    }
    if (script != NULL) {
        if (!may_be_accepted(text)) {
            fail("what calls no Redis, or has no keys, is a lock operation");
        }
        bind(script);
    }
    lock_script_free(script);
    return 0;
}
