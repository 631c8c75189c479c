/* Ops that are kept to leave together, or not; one call for them, and its reply. */
#include "backend/script/script_codec.h"
#include "backend/script/scripts.h"
#include "support/runner.h"

#include <stdio.h>

static struct script_batch gather;

static void setup(void)
{
    script_batch_clear(&gather);
}

static struct op simple_acquire(const char *name)
{
    return (struct op){ .kind = OP_ACQUIRE,
                        .id = 7,
                        .name = span_str(name),
                        .seen_token = 41,
                        .acquire.claim = { .owner_kind = OWNER_ANONYMOUS,
                                           .entry = SPAN("q:1"),
                                           .member = SPAN("m"),
                                           .lease_ms = 30000 } };
}

static struct op simple_release(const char *name)
{
    return (struct op){ .kind = OP_RELEASE,
                        .id = 8,
                        .name = span_str(name),
                        .release.leave_tombstone = true,
                        .fair_wait_ms = 5000,
                        .release.tombstone_ms = 20001,
                        .release.target = { .kind = TARGET_FIELD,
                                            .field = SPAN("latchd:123"),
                                            .token = 123 } };
}

TEST_GROUP(.setup = setup);

START_TEST(what_happens_most_is_simple)
{
    struct op acquire = simple_acquire("n"), release = simple_release("n");

    ck_assert(script_batch_is_simple(&acquire));
    ck_assert(script_batch_is_simple(&release));
    release.release.subscribed = true;
    ck_assert(script_batch_is_simple(&release));
    release.release.target.token = 0; /* it is in the field */
    ck_assert(script_batch_is_simple(&release));
    script_batch_add(&gather, &release);
    ck_assert_uint_eq(gather.releases.ops[0].release.target.token, 123);
}

static const struct span ID_FIELDS[] = { SPAN("latchd:id:r"),
                                         SPAN("latchd:value:i:7:-:v") };

START_TEST(so_is_an_id, TEST_ROWS(ID_FIELDS))
{
    struct op acquire = simple_acquire("n"), release = simple_release("m");

    acquire.acquire.claim.owner_kind = OWNER_ID;
    acquire.acquire.claim.field = ID_FIELDS[_i];
    acquire.acquire.claim.entry = SPAN_NONE;
    release.release.target.field = ID_FIELDS[_i];
    ck_assert(script_batch_is_simple(&acquire));
    ck_assert(script_batch_is_simple(&release));
    release.release.target.token = 0;
    script_batch_add(&gather, &acquire);
    script_batch_add(&gather, &release);
    ck_assert_int_eq(gather.acquires.ops[0].acquire.claim.owner_kind, OWNER_ID);
    ck_assert(span_eq(gather.acquires.ops[0].acquire.claim.field, ID_FIELDS[_i]));
    ck_assert(span_eq(gather.releases.ops[0].release.target.field, ID_FIELDS[_i]));
    ck_assert_uint_eq(gather.releases.ops[0].release.target.token, 0);
}

static void change_acquire(struct op *op, int how)
{
    switch (how) {
    case 0:
        op->lock_class = CLASS_RW;
        break;
    case 1:
        op->grouped = true;
        break;
    case 2:
        op->acquire.fair = true;
        break;
    case 3:
        op->acquire.enqueue = true;
        break;
    case 4:
        op->acquire.reenter_only = true;
        break;
    case 5:
        op->acquire.propose = 5;
        break;
    case 6: /* its client asked earlier */
        op->acquire.claim.owner_kind = OWNER_ID;
        op->acquire.claim.asked_ago_ms = 1;
        break;
    case 7:
        op->acquire.claim.owner_kind = OWNER_NAMED;
        break;
    case 8:
        op->acquire.claim.lock_kind = KIND_FAIR;
        break;
    case 9:
        op->acquire.claim.lock_kind = KIND_WRITE;
        break;
    case 10:
        op->kind = OP_ATTACH;
        break;
    case 11:
        op->name = SPAN_NONE;
        break;
    default:
        op->acquire.claim.entry.len = SCRIPT_BATCH_TEXT_MAX;
        break;
    }
}

START_TEST(another_acquire_is_not_simple, 13)
{
    struct op op = simple_acquire("n");

    change_acquire(&op, _i);
    ck_assert(!script_batch_is_simple(&op));
}

static void change_release(struct op *op, int how)
{
    switch (how) {
    case 0:
        op->lock_class = CLASS_RW;
        break;
    case 1:
        op->grouped = true;
        break;
    case 2:
        op->release.target.field = SPAN("latchd:12x");
        break;
    case 3:
        op->release.has_next = true;
        break;
    case 4:
        op->release.if_keeper = true;
        break;
    case 5:
        op->release.force = true;
        break;
    case 6:
        op->release.retract_from = 5;
        break;
    case 7:
        op->release.target.kind = TARGET_TOKEN;
        break;
    case 8:
        op->release.target.field = SPAN("latchd:");
        break;
    case 9:
        op->release.target.token = 124;
        break;
    case 10:
        op->release.target.token = 12;
        break;
    case 11:
        op->release.target.field = SPAN("latchd:0123");
        break;
    case 12:
        op->release.target.field = SPAN("latchd:id:123");
        op->release.skips_rest = true;
        break;
    default:
        op->release.target.field = SPAN_NONE;
        break;
    }
}

START_TEST(another_release_is_not_simple, 14)
{
    struct op op = simple_release("n");

    change_release(&op, _i);
    ck_assert(!script_batch_is_simple(&op));
}

START_TEST(it_keeps_copies)
{
    char name[] = "name", request[] = "q:9", field[] = "latchd:123";
    struct op acquire = simple_acquire(name), release = simple_release("other");
    const struct op *kept = &gather.acquires.ops[0];

    acquire.acquire.claim.entry = span_str(request);
    release.release.target.field = span_str(field);
    script_batch_add(&gather, &acquire);
    script_batch_add(&gather, &release);
    memset(name, 'x', 4);
    memset(request, 'x', 3);
    memset(field, 'x', 10);
    ck_assert_uint_eq(gather.acquires.count, 1);
    ck_assert_uint_eq(kept->id, 7);
    ck_assert_uint_eq(kept->seen_token, 41);
    ck_assert_uint_eq(kept->acquire.claim.lease_ms, 30000);
    ck_assert(span_eq(kept->name, SPAN("name")));
    ck_assert(span_eq(kept->acquire.claim.entry, SPAN("q:9")));
    kept = &gather.releases.ops[0];
    ck_assert(script_batch_is_simple(kept));
    ck_assert_uint_eq(kept->fair_wait_ms, 5000);
    ck_assert_uint_eq(kept->release.tombstone_ms, 20001);
    ck_assert(span_eq(kept->name, SPAN("other")));
    ck_assert(span_eq(kept->release.target.field, SPAN("latchd:123")));
}

static bool in_the_way(struct op op)
{
    return script_batch_is_in_the_way(&gather, &op, script_batch_is_simple(&op));
}

START_TEST(ops_of_the_same_name_keep_their_order)
{
    struct op acquire = simple_acquire("a-long-name-1"), release = simple_release("n");
    struct op other = simple_acquire("n");

    ck_assert(!in_the_way(acquire));
    script_batch_add(&gather, &acquire);
    script_batch_add(&gather, &release);
    ck_assert(in_the_way(simple_acquire("a-long-name-1")));
    ck_assert(in_the_way(simple_release("a-long-name-1")));
    ck_assert(!in_the_way(simple_release("a-long-name-2")));
    ck_assert(!in_the_way(simple_release("b-long-name-1")));
    ck_assert(!in_the_way(simple_acquire("m")));
    other.kind = OP_INSPECT;
    ck_assert(in_the_way(other));
    other.name = SPAN("m");
    ck_assert(!in_the_way(other));
    other.name = SPAN_NONE; /* of several names */
    other.kind = OP_RENEW;
    ck_assert(in_the_way(other));
    script_batch_clear(&gather);
    ck_assert(!in_the_way(other));
    ck_assert(!in_the_way(simple_acquire("n")));
}

START_TEST(one_call_may_lend_some_of_its_names)
{
    struct op lent = simple_acquire("n"), plain = simple_acquire("m");

    lent.acquire.claim.block_us = 5;
    script_batch_add(&gather, &lent);
    ck_assert_uint_eq(gather.acquires.ops[0].acquire.claim.block_us, 5);
    ck_assert(!in_the_way(plain));
    script_batch_add(&gather, &plain);
    ck_assert_uint_eq(gather.acquires.ops[1].acquire.claim.block_us, 0);
}

START_TEST(there_is_room_for_so_many)
{
    for (int i = 0; i <= SCRIPT_BATCH_MAX; i++) {
        char taken[8], ended[8];
        struct op acquire, release;

        (void)snprintf(taken, sizeof taken, "n%d", i);
        (void)snprintf(ended, sizeof ended, "m%d", i);
        acquire = simple_acquire(taken);
        release = simple_release(ended);
        ck_assert_int_eq(in_the_way(acquire), i == SCRIPT_BATCH_MAX);
        ck_assert_int_eq(in_the_way(release), i == SCRIPT_BATCH_MAX);
        if (i < SCRIPT_BATCH_MAX) {
            script_batch_add(&gather, &acquire);
            script_batch_add(&gather, &release);
        }
    }
}

START_TEST(long_names_are_fewer)
{
    static char text[SCRIPT_BATCH_TEXT_MAX / 4];
    struct op op = simple_acquire("n");

    memset(text, 'x', sizeof text);
    op.name = span_of(text, sizeof text);
    for (int i = 0; i < 3; i++) {
        text[0] = (char)('a' + i);
        ck_assert(!in_the_way(op));
        script_batch_add(&gather, &op);
    }
    text[0] = 'z';
    ck_assert(in_the_way(op));
    ck_assert(!in_the_way(simple_release("short")));
}

/* --- the call, and its reply -------------------------------------------------------
 */

static void expect_call(const struct op *ops, const char *want)
{
    struct buf out = { 0 };
    struct op_times times = { .asked_us = 2, .deadline_us = 3 };
    const char *keys;

    script_call(&out, ops, 2, "iiiiiiiiiiiiiiii", times);
    buf_add(&out, "", 1);
    keys = strstr(buf_ptr(&out), "\r\n$40\r\n"); /* the script, then how many keys */
    ck_assert_ptr_nonnull(keys);
    ck_assert_str_eq(keys + 7 + LUA_SHA1_LEN + 2, want);
    buf_reset(&out);
}

#define NAMES "$1\r\nn\r\n$1\r\nm\r\n"
#define QUEUES                                                                         \
    "$23\r\nredisson_lock_queue:{n}\r\n"                                               \
    "$23\r\nredisson_lock_queue:{m}\r\n"
#define COUNTERS                                                                       \
    "$23\r\nredisson_lock_token:{n}\r\n"                                               \
    "$23\r\nredisson_lock_token:{m}\r\n"
#define FENCES "$16\r\nlatchd:fence:{n}\r\n$16\r\nlatchd:fence:{m}\r\n"
#define STAMP(seen)                                                                    \
    "$64\r\n00000000000000030000000000000002" seen "iiiiiiiiiiiiiiii\r\n"

START_TEST(one_call_names_all_of_them)
{
    struct op acquires[] = { simple_acquire("n"), simple_acquire("m") };
    struct op releases[] = { simple_release("n"), simple_release("m") };

    acquires[1].seen_token = 42;
    expect_call(acquires,
                "$1\r\n8\r\n" NAMES QUEUES COUNTERS FENCES STAMP(
                    "0000000000000042") "$7\r\n3630000\r\n$5\r\n30000\r\n$1\r\n0\r\n$"
                                        "3\r\nq:1\r\n$3\r\nq:1\r\n");
    acquires[1].acquire.claim.lease_ms = 5;
    expect_call(acquires,
                "$1\r\n8\r\n" NAMES QUEUES COUNTERS FENCES STAMP(
                    "0000000000000042") "$7\r\n3630000\r\n$5\r\n30000\r\n$1\r\n0\r\n$"
                                        "3\r\nq:1\r\n$3\r\nq:1\r\n"
                                        "$5\r\n30000\r\n$1\r\n5\r\n");
    releases[0].release.tombstone_ms = releases[1].release.tombstone_ms =
        0; /* the least */
    expect_call(releases, "$1\r\n4\r\n" NAMES QUEUES STAMP(
                              "0000000000000000") "$5\r\n20000\r\n$4\r\n5000\r\n$"
                                                  "3\r\n123\r\n");
    releases[1].release.leave_tombstone = false;
    expect_call(releases, "$1\r\n4\r\n" NAMES QUEUES STAMP(
                              "0000000000000000") "$5\r\n20000\r\n$4\r\n5000\r\n$"
                                                  "3\r\n123\r\n$4\r\n-123\r\n");
    releases[1].release.tombstone_ms = 30000; /* the greatest is for all */
    expect_call(releases, "$1\r\n4\r\n" NAMES QUEUES STAMP(
                              "0000000000000000") "$5\r\n30000\r\n$4\r\n5000\r\n$"
                                                  "3\r\n123\r\n$4\r\n-123\r\n");
}

START_TEST(one_call_says_which_ids_hold)
{
    struct op acquires[] = { simple_acquire("n"), simple_acquire("m") };
    struct op releases[] = { simple_release("n"), simple_release("m") };

    acquires[1].acquire.claim.owner_kind = OWNER_ID;
    acquires[1].acquire.claim.field = SPAN("latchd:id:r");
    expect_call(acquires,
                "$1\r\n8\r\n" NAMES QUEUES COUNTERS FENCES STAMP(
                    "0000000000000041") "$7\r\n3630000\r\n$5\r\n30000\r\n$1\r\n0\r\n$"
                                        "3\r\nq:1\r\n$11\r\nlatchd:id:r\r\n");
    releases[0].release.target.field = releases[1].release.target.field =
        SPAN("latchd:id:r");
    releases[0].release.target.token = 0;
    releases[1].release.leave_tombstone = false;
    expect_call(releases, "$1\r\n4\r\n" NAMES QUEUES STAMP(
                              "0000000000000000") "$5\r\n20001\r\n$4\r\n5000\r\n$"
                                                  "11\r\nlatchd:id:r\r\n$"
                                                  "15\r\n-123latchd:id:r\r\n");
}

static redisReply *reply_of(const char *text)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;

    ck_assert_int_eq(redisReaderFeed(reader, text, strlen(text)), REDIS_OK);
    ck_assert_int_eq(redisReaderGetReply(reader, &reply), REDIS_OK);
    redisReaderFree(reader);
    return reply;
}

START_TEST(a_reply_is_of_all_or_of_each)
{
    redisReply *one = reply_of(":7\r\n");
    redisReply *word = reply_of("$5\r\nFREED\r\n");
    redisReply *each = reply_of("*2\r\n:7\r\n$4\r\nLATE\r\n");

    for (size_t i = 0; i < 2; i++) {
        ck_assert_ptr_eq(script_reply_part(one, i, 2), one);
        ck_assert_ptr_eq(script_reply_part(word, i, 2), word);
        ck_assert_ptr_eq(script_reply_part(each, i, 2), each->element[i]);
    }
    ck_assert_ptr_eq(script_reply_part(each, 0, 1), each);
    freeReplyObject(one);
    freeReplyObject(word);
    freeReplyObject(each);
}

static const char *const OF_NONE[] = {
    "-NOPERM no\r\n",
    "*0\r\n",
    "*-1\r\n",
    "*1\r\n:7\r\n",
    "*3\r\n:7\r\n:7\r\n:7\r\n",
    "*4\r\n$2\r\nOK\r\n:7\r\n:1\r\n:0\r\n",
};

START_TEST(a_reply_of_another_number_is_of_none, TEST_ROWS(OF_NONE))
{
    redisReply *reply = reply_of(OF_NONE[_i]);

    for (size_t i = 0; i < 2; i++) {
        const redisReply *part = script_reply_part(reply, i, 2);
        struct script_result r = { 0 };

        if (part != NULL) { /* *-1 */
            script_reply(part, OP_ACQUIRE, 0, &r);
            ck_assert_int_eq(r.result.status, OP_ERROR);
        }
    }
    freeReplyObject(reply);
    ck_assert_ptr_null(script_reply_part(NULL, 1, 2));
}
