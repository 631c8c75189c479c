/* Any answer of Redis to a script is a result, or OP_ERROR.
 *
 * Input: the op's kind, how many items it had, how many ops had the one call; then what
 * comes from the socket. */
#include "fuzz.h"

#include "announces.h"
#include "backend/script/script_codec.h"

#include <stdio.h>
#include <stdlib.h>

enum { HEAD = 3, KINDS = OP_LEAVE + 1 };

static void fail(const char *what)
{
    (void)fprintf(stderr, "%s\n", what);
    abort();
}

/* All of it is there. */
static void touch(struct span s)
{
    volatile char last;

    for (size_t i = 0; i < s.len; i++) {
        last = s.ptr[i];
        (void)last;
    }
}

static void read_one(const redisReply *reply, enum op_kind kind, size_t items)
{
    struct script_result r;

    script_reply(reply, kind, items, &r);
    if (r.result.status < OP_OK || r.result.status > OP_NOREPLICAS) {
        fail("a status that there is not");
    }
    if (r.result.token > UINT64_C(1) << 53) {
        fail("a token that is none");
    }
    touch(r.result.text);
    if (kind == OP_ATTACH) {
        touch(r.result.attach.field);
        touch(r.result.attach.entry);
    }
    for (size_t i = 0; kind == OP_INSPECT && i < r.result.inspect.field_count; i++) {
        touch(r.fields[i].owner);
    }
    for (size_t i = 0; kind == OP_INSPECT && i < r.result.inspect.queue_count; i++) {
        touch(r.queue[i]);
    }
    script_result_fini(&r);
}

static void read_reply(const redisReply *reply, const uint8_t *head)
{
    enum op_kind kind = (enum op_kind)(head[0] % KINDS);
    size_t items = head[1] % (OP_RENEW_MAX + 1);
    size_t count = 1 + head[2] % 16;

    for (size_t i = 0; i < count; i++) {
        const redisReply *part = script_reply_part(reply, i, count);

        if (part != NULL) {
            read_one(part, kind, items);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data + HEAD;
    redisReader *reader;
    void *reply;

    if (size < HEAD || announces_too_many(text, size - HEAD)) {
        return 0;
    }
    reader = redisReaderCreate();
    if (redisReaderFeed(reader, text, size - HEAD) == REDIS_OK) {
        while (redisReaderGetReply(reader, &reply) == REDIS_OK && reply != NULL) {
            read_reply(reply, data);
            freeReplyObject(reply);
        }
    }
    redisReaderFree(reader);
    return 0;
}
