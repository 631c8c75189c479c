/* `latchctl leader NAME`: who leads, once, or with --follow from then on. */
#include "latchctl/ask.h"
#include "latchctl/commands.h"
#include "latchctl/patient.h"
#include "latchctl/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LOOK_MS = 5000, /* the WAIT of each LEADER; a dead connection shows as soon */
    TOKEN_DIGITS = 24,
};
#define LOOK_MS_TEXT "5000"

struct follower {
    struct patient patient;
    char after[TOKEN_DIGITS]; /* the token that was printed last; empty: none was */
};

/* Token, owner and data, as far as there are; data as one line. */
static bool print_leader(const redisReply *reply)
{
    struct span owner = reply_text(reply_at(reply, 1));
    struct span data = reply_text(reply_at(reply, 2));
    struct buf line = { 0 };
    bool written;

    buf_printf(&line, "%" PRIu64, reply_number(reply_at(reply, 0)));
    if (owner.len != 0) {
        buf_add_str(&line, " ");
        show_bytes(&line, owner, 0);
    }
    if (data.len != 0) {
        buf_add_str(&line, " ");
        show_bytes(&line, data, 0);
    }
    buf_add_str(&line, "\n");
    written = fwrite(buf_ptr(&line), 1, buf_len(&line), stdout) == buf_len(&line) &&
              fflush(stdout) == 0;
    buf_reset(&line);
    return written;
}

static int ask_once(struct options *o)
{
    struct link l = { 0 };
    redisReply *reply = NULL;
    int code = CTL_EXIT_FAILED;

    if (ask_open(&l, o)) {
        reply = ask_daemon(&l, (const char *[]){ "LEADER", o->name, NULL });
    }
    if (reply != NULL && print_leader(reply)) {
        code = reply_text(reply_at(reply, 1)).len != 0 ? 0 : CTL_EXIT_CONFLICT;
    }
    freeReplyObject(reply);
    link_close(&l);
    return code;
}

static redisReply *ask_leader(struct follower *f)
{
    const char *words[] = { "LEADER", f->patient.options->name, NULL, NULL, NULL, NULL,
                            NULL };

    if (f->after[0] != '\0') {
        words[2] = "AFTER";
        words[3] = f->after;
        words[4] = "WAIT";
        words[5] = LOOK_MS_TEXT;
    }
    return patient_ask(&f->patient, words, LOOK_MS);
}

/* False: no answer will ever be another one, or nobody reads what is printed. */
static bool take_answer(struct follower *f, const redisReply *reply)
{
    char token[TOKEN_DIGITS];

    if (patient_has_to_ask_again(&f->patient, reply)) {
        return true;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        print_message("%s", reply->str);
        return false;
    }
    (void)snprintf(token, sizeof(token), "%" PRIu64, reply_number(reply_at(reply, 0)));
    if (strcmp(token, f->after) != 0) {
        memcpy(f->after, token, sizeof(token));
        return print_leader(reply);
    }
    return true;
}

static int follow_leader(struct options *o)
{
    struct follower f = { .patient.options = o };
    bool goes_on = true;

    while (goes_on && !f.patient.link.refused) {
        redisReply *reply = ask_leader(&f);

        goes_on = reply == NULL || take_answer(&f, reply);
        freeReplyObject(reply);
    }
    link_close(&f.patient.link);
    return CTL_EXIT_FAILED;
}

int ctl_leader(struct options *o)
{
    return o->follow ? follow_leader(o) : ask_once(o);
}
