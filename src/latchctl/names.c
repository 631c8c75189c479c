#include "latchctl/names.h"

#include "latchctl/ask.h"

#include <stdio.h>
#include <string.h>

#define NAMES_AT_ONCE "1000"

bool names_each(struct link *l, bool all, const char *match, names_fn *fn, void *ctx)
{
    char cursor[32] = "0";
    bool goes_on = true;

    do {
        const char *words[LINK_WORDS_MAX] = { "LOCKS", "CURSOR", cursor, "COUNT",
                                              NAMES_AT_ONCE };
        size_t count = 5;
        redisReply *reply;

        if (all) {
            words[count++] = "REDIS";
        }
        if (match != NULL) {
            words[count++] = "MATCH";
            words[count++] = match;
        }
        reply = ask_daemon(l, words);
        if (reply == NULL) {
            return false;
        }
        for (size_t i = 0; i < reply_count(reply_at(reply, 1)) && goes_on; i++) {
            goes_on = fn(ctx, reply_text(reply_at(reply_at(reply, 1), i)));
        }
        (void)snprintf(cursor, sizeof(cursor), "%.*s",
                       (int)reply_text(reply_at(reply, 0)).len,
                       reply_text(reply_at(reply, 0)).ptr);
        freeReplyObject(reply);
    } while (goes_on && strcmp(cursor, "0") != 0);
    return true;
}
