/* `latchctl ls` and `latchctl force`. */
#include "latchctl/ask.h"
#include "latchctl/commands.h"
#include "latchctl/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NAMES_AT_ONCE "1000"

/* Prints names raw into a pipe, for programs; never raw to a terminal. */
static void print_name(struct span name, bool raw)
{
    struct buf line = { 0 };

    if (raw) {
        buf_add_span(&line, name);
    } else {
        show_bytes(&line, name, 0);
    }
    buf_add_str(&line, "\n");
    (void)fwrite(buf_ptr(&line), 1, buf_len(&line), stdout);
    buf_reset(&line);
}

/* Lists one page of names. False: it was the last. */
static bool list_some(struct link *l, const struct options *o, char *cursor,
                      size_t room, uint64_t *left, int *code)
{
    const char *words[LINK_WORDS_MAX] = { "LOCKS", "CURSOR", cursor, "COUNT",
                                          NAMES_AT_ONCE };
    redisReply *reply;
    const redisReply *names;

    if (o->match != NULL) {
        words[5] = "MATCH";
        words[6] = o->match;
    }
    reply = ask_daemon(l, words);
    if (reply == NULL) {
        *code = CTL_EXIT_FAILED;
        return false;
    }
    names = reply_at(reply, 1);
    for (size_t i = 0; i < reply_count(names) && *left > 0; i++, (*left)--) {
        print_name(reply_text(reply_at(names, i)), isatty(STDOUT_FILENO) == 0);
    }
    (void)snprintf(cursor, room, "%.*s", (int)reply_text(reply_at(reply, 0)).len,
                   reply_text(reply_at(reply, 0)).ptr);
    freeReplyObject(reply);
    return *left > 0 && strcmp(cursor, "0") != 0;
}

int ctl_ls(struct options *o)
{
    struct link l = { 0 };
    char cursor[32] = "0";
    uint64_t left = o->count == 0 ? UINT64_MAX : o->count;
    int code = CTL_EXIT_FAILED;

    if (ask_open(&l, o)) {
        code = 0;
        while (list_some(&l, o, cursor, sizeof(cursor), &left, &code)) {
        }
        if (fflush(stdout) != 0) {
            code = CTL_EXIT_FAILED;
        }
    }
    link_close(&l);
    return code;
}

int ctl_force(struct options *o)
{
    const char *words[] = { "FORCEUNLOCK", o->name, "ANY", NULL, NULL };
    struct link l = { 0 };
    redisReply *reply = NULL;
    int code = CTL_EXIT_FAILED;

    if (!o->any) {
        words[2] = o->token != NULL ? "TOKEN" : "OWNER";
        words[3] = o->token != NULL ? o->token : o->owner;
    }
    if (ask_open(&l, o)) {
        reply = ask_daemon(&l, words);
    }
    if (reply != NULL && reply_number(reply) == 1) {
        code = 0;
    } else if (reply != NULL) {
        print_message("it was not so held");
        code = CTL_EXIT_CONFLICT;
    }
    freeReplyObject(reply);
    link_close(&l);
    return code;
}
