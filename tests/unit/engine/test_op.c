/* Copies of ops and results have all that they point to. */
#include "engine/op.h"
#include "support/runner.h"

#include <stdlib.h>
#include <string.h>

/* Texts that are gone once a copy was made. */
static char texts[1024];
static size_t texts_len;

static struct span brief(const char *text)
{
    char *at = texts + texts_len;

    texts_len += strlen(text);
    ck_assert_uint_le(texts_len, sizeof(texts));
    memcpy(at, text, strlen(text));
    return span_of(at, strlen(text));
}

static void forget(void *list, size_t size)
{
    memset(texts, '?', sizeof(texts));
    memset(list, '?', size);
}

static void check(struct span s, const char *text)
{
    ck_assert_int_eq(span_eq(s, span_str(text)), true);
}

static void check_claim(const struct claim *c)
{
    check(c->field, "field");
    check(c->entry, "entry");
    check(c->member, "member");
    check(c->data, "data");
}

static struct claim brief_claim(void)
{
    return (struct claim){ .field = brief("field"),
                           .entry = brief("entry"),
                           .member = brief("member"),
                           .data = brief("data") };
}

START_TEST(a_clone_has_the_claims_of_a_batch)
{
    struct batch_item items[2] = {
        { .name = brief("one"), .claim = brief_claim() },
        { .name = brief("two"), .claim = brief_claim() },
    };
    struct op op = { .kind = OP_ACQUIRE_BATCH,
                     .batch = { .items = items, .count = 2 } };
    struct op *clone = op_clone(&op);

    forget(items, sizeof(items));
    ck_assert_uint_eq(clone->batch.count, 2);
    check(clone->batch.items[0].name, "one");
    check(clone->batch.items[1].name, "two");
    check_claim(&clone->batch.items[0].claim);
    check_claim(&clone->batch.items[1].claim);
    free(clone);
}

START_TEST(a_clone_has_the_target_and_the_next_of_a_release)
{
    struct op op = { .kind = OP_RELEASE,
                     .name = brief("job"),
                     .release = {
                         .target = { .field = brief("ended"), .entry = brief("which") },
                         .has_next = true,
                         .next = brief_claim() } };
    struct op *clone = op_clone(&op);

    forget(&op, sizeof(op));
    check(clone->name, "job");
    check(clone->release.target.field, "ended");
    check(clone->release.target.entry, "which");
    check_claim(&clone->release.next);
    free(clone);
}

START_TEST(a_clone_has_members_and_how_long_each_waited)
{
    struct span members[2] = { brief("a"), brief("bc") };
    uint64_t waited_ms[2] = { 5, 7 };
    struct op op = { .kind = OP_QUEUE,
                     .queue = {
                         .members = members, .count = 2, .waited_ms = waited_ms } };
    struct op *clone = op_clone(&op);

    forget(members, sizeof(members));
    forget(waited_ms, sizeof(waited_ms));
    check(clone->queue.members[0], "a");
    check(clone->queue.members[1], "bc");
    ck_assert_uint_eq(clone->queue.waited_ms[0], 5);
    ck_assert_uint_eq(clone->queue.waited_ms[1], 7);
    free(clone);
}

START_TEST(a_copy_of_an_attach_has_its_data)
{
    struct op_result r = { .attach = { .field = brief("field"),
                                       .entry = brief("entry"),
                                       .data = brief("data") } };
    void *memory;
    struct op_result copy = op_result_copy(&r, OP_ATTACH, &memory);

    forget(&r, sizeof(r));
    check(copy.attach.field, "field");
    check(copy.attach.entry, "entry");
    check(copy.attach.data, "data");
    free(memory);
}

START_TEST(a_copy_of_an_inspect_has_owners_queue_and_data)
{
    struct op_field fields[2] = { { .owner = brief("a"), .count = 3 },
                                  { .owner = brief("b"), .token = 9 } };
    struct span queue[1] = { brief("first") };
    struct op_result r = { .inspect = { .who = brief("who"),
                                        .data = brief("data"),
                                        .fields = fields,
                                        .field_count = 2,
                                        .queue = queue,
                                        .queue_count = 1 } };
    void *memory;
    struct op_result copy = op_result_copy(&r, OP_INSPECT, &memory);

    forget(fields, sizeof(fields));
    forget(queue, sizeof(queue));
    check(copy.inspect.who, "who");
    check(copy.inspect.data, "data");
    check(copy.inspect.fields[0].owner, "a");
    ck_assert_int_eq(copy.inspect.fields[0].count, 3);
    check(copy.inspect.fields[1].owner, "b");
    ck_assert_uint_eq(copy.inspect.fields[1].token, 9);
    check(copy.inspect.queue[0], "first");
    free(memory);
}

START_TEST(a_result_that_points_to_nothing_needs_no_memory)
{
    struct op_result r = { .status = OP_BUSY, .ttl_ms = 12 };
    void *memory;
    struct op_result copy = op_result_copy(&r, OP_RELEASE, &memory);

    ck_assert_ptr_null(memory);
    ck_assert_int_eq(copy.ttl_ms, 12);
}
