#include "latchctl/why_waiters.h"

#include "latchctl/ask.h"
#include "latchctl/show.h"

#include <inttypes.h>
#include <stdio.h>

#define WAITERS_COUNT "100"

enum { NUMBER_MAX = 24 };

void describe_client(struct link *l, struct buf *out, const redisReply *client)
{
    char id[NUMBER_MAX];
    redisReply *list;
    struct span line;

    if (!reply_has_number(client)) {
        return;
    }
    (void)snprintf(id, sizeof(id), "%" PRIu64, reply_number(client));
    buf_printf(out, ", connection %s", id);
    list = ask_quietly(l, (const char *[]){ "CLIENT", "LIST", "ID", id, NULL });
    line = reply_text(list);
    if (line_get(line, "addr").len != 0) {
        buf_add_str(out, " from ");
        show_bytes(out, line_get(line, "addr"), 0);
    }
    if (line_get(line, "name").len != 0) {
        buf_add_str(out, ", named ");
        show_bytes(out, line_get(line, "name"), 0);
    }
    freeReplyObject(list);
}

static void add_waiter(struct link *l, struct buf *out, const redisReply *waiter,
                       size_t place)
{
    const redisReply *left = reply_get(waiter, "left");
    struct span kind = reply_text(reply_get(waiter, "kind"));

    buf_printf(out, "  %zu. ", place);
    show_owner(out, reply_text(reply_get(waiter, "owner")));
    buf_add_str(out, ", ");
    show_bytes(out, kind, 0);
    if (reply_number(reply_get(waiter, "local")) == 1) {
        buf_add_str(out, ", local");
    }
    if (reply_number(reply_get(waiter, "priority")) != 0) {
        buf_printf(out, ", priority %" PRIu64,
                   reply_number(reply_get(waiter, "priority")));
    }
    buf_add_str(out, ", for ");
    show_ms(out, reply_number(reply_get(waiter, "waited")));
    if (reply_has_number(left)) {
        buf_add_str(out, ", waits for another ");
        show_ms(out, reply_number(left));
    } else {
        buf_add_str(out, ", waits for ever");
    }
    if (reply_has_number(reply_get(waiter, "client"))) {
        describe_client(l, out, reply_get(waiter, "client"));
    } else {
        buf_add_str(out, ", its place is kept until it asks again");
    }
    buf_add_str(out, "\n");
}

bool list_waiters(struct link *l, struct buf *out, const char *name, uint64_t waiting)
{
    redisReply *waiters = ask_daemon(
        l, (const char *[]){ "WAITERS", name, "COUNT", WAITERS_COUNT, NULL });

    if (waiters == NULL) {
        return false;
    }
    for (size_t i = 0; i < reply_count(waiters); i++) {
        add_waiter(l, out, reply_at(waiters, i), i + 1);
    }
    if (waiting > reply_count(waiters)) {
        buf_printf(out, "  and %" PRIu64 " more\n", waiting - reply_count(waiters));
    }
    freeReplyObject(waiters);
    return true;
}
