/* `latchctl latch NAME set N | count | await | delete | info`. What is sent again has
 * an ID, so that it takes effect once. */
#include "latchctl/ask.h"
#include "latchctl/commands.h"
#include "latchctl/patient.h"
#include "latchctl/show.h"
#include "latchctl/why_waiters.h"
#include "util/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

enum {
    LOOK_MS = 5000, /* the WAIT of each AWAIT; a dead connection shows as soon */
    ID_BYTES = 16,
    NUMBER_ROOM = 24,
};

enum verb { VERB_SET, VERB_COUNT, VERB_AWAIT, VERB_DELETE, VERB_INFO, VERBS };

static const struct {
    const char *word;    /* of the command line */
    const char *command; /* after LATCH */
    bool has_number;
    bool has_id;
} VERB_ROWS[VERBS] = {
    [VERB_SET] = { "set", "SET", true, true },
    [VERB_COUNT] = { "count", "COUNT", false, true },
    [VERB_AWAIT] = { "await", "AWAIT", false, false },
    [VERB_DELETE] = { "delete", "DELETE", false, false },
    [VERB_INFO] = { "info", "INFO", false, false },
};

struct request {
    enum verb verb;
    uint64_t until; /* of clock_boot_ms(); UINT64_MAX: for ever */
    char id[2 * ID_BYTES + 1];
    char wait[NUMBER_ROOM];
    const char *words[LINK_WORDS_MAX];
};

static bool make_id(char *out)
{
    unsigned char bytes[ID_BYTES];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        print_message("getrandom failed");
        return false;
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    }
    return true;
}

/* False: an error was printed. */
static bool read_verb(const struct options *o, enum verb *ret)
{
    for (int i = 0; i < VERBS && o->verb != NULL; i++) {
        if (strcmp(o->verb, VERB_ROWS[i].word) == 0 &&
            (o->number != NULL) == VERB_ROWS[i].has_number) {
            *ret = (enum verb)i;
            return true;
        }
    }
    print_message("latch: say `set N`, `count`, `await`, `delete` or `info` behind the "
                  "NAME");
    return false;
}

static bool begin_request(struct request *r, struct options *o)
{
    size_t n = 0;

    if (!read_verb(o, &r->verb)) {
        return false;
    }
    r->until = o->wait_ms == CTL_FOREVER ? UINT64_MAX : clock_boot_ms() + o->wait_ms;
    r->words[n++] = "LATCH";
    r->words[n++] = VERB_ROWS[r->verb].command;
    r->words[n++] = o->name;
    if (r->verb == VERB_SET) {
        r->words[n++] = o->number;
    }
    if (VERB_ROWS[r->verb].has_id) {
        if (o->id == NULL && !make_id(r->id)) {
            return false;
        }
        r->words[n++] = "ID";
        r->words[n++] = o->id != NULL ? o->id : r->id;
    } else if (r->verb == VERB_AWAIT) {
        r->words[n++] = "WAIT";
        r->words[n++] = r->wait;
    }
    return true;
}

/* How long latchd may wait this time. */
static uint64_t set_wait(struct request *r)
{
    uint64_t now = clock_boot_ms();
    uint64_t left = now < r->until ? r->until - now : 0;
    uint64_t ms = left < LOOK_MS ? left : LOOK_MS;

    (void)snprintf(r->wait, sizeof(r->wait), "%" PRIu64, ms);
    return ms;
}

/* latchctl's exit code. */
static int tell_answer(const struct request *r, const struct options *o,
                       const redisReply *reply)
{
    switch (r->verb) {
    case VERB_COUNT:
        (void)printf("%lld\n", reply->integer);
        break;
    case VERB_INFO:
        (void)printf("%" PRIu64 " %s %" PRIu64 "\n",
                     reply_number(reply_get(reply, "left")),
                     reply_text(reply_get(reply, "state")).ptr,
                     reply_number(reply_get(reply, "waiting")));
        break;
    case VERB_SET:
    case VERB_DELETE:
    case VERB_AWAIT:
    case VERBS:
        return reply->integer == 1 ? 0 : o->conflict_code;
    }
    return fflush(stdout) == 0 ? 0 : CTL_EXIT_FAILED;
}

/* True: *ret_code is the end of it. */
static bool take_answer(const struct request *r, struct patient *p,
                        const redisReply *reply, int *ret_code)
{
    bool is_over = clock_boot_ms() >= r->until;

    if (reply->type == REDIS_REPLY_NIL) {
        *ret_code = p->options->conflict_code;
        p->is_told = false;
        return is_over;
    }
    if (!is_over && patient_has_to_ask_again(p, reply)) {
        return false;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        print_message("%s", reply->str);
        return true;
    }
    *ret_code = tell_answer(r, p->options, reply);
    return true;
}

int ctl_latch(struct options *o)
{
    struct patient p = { .options = o };
    struct request r = { 0 };
    int code = CTL_EXIT_FAILED;
    bool ended = !begin_request(&r, o);

    while (!ended && !p.link.refused) {
        redisReply *reply = patient_ask(&p, r.words, set_wait(&r));

        ended = reply == NULL ? clock_boot_ms() >= r.until
                              : take_answer(&r, &p, reply, &code);
        freeReplyObject(reply);
    }
    link_close(&p.link);
    return code;
}

/* Prints what is to be said of the name if it is a latch that is set; else false.
 * *ret_code is latchctl's exit code. */
static bool explain_latch(struct link *l, const char *name, int *ret_code)
{
    redisReply *info = ask_quietly(l, (const char *[]){ "LATCH", "INFO", name, NULL });
    bool is_set = span_eq(reply_text(reply_get(info, "state")), SPAN("set"));
    uint64_t waiting = reply_number(reply_get(info, "waiting"));
    struct buf out = { 0 };

    if (is_set) {
        show_bytes(&out, span_str(name), 0);
        buf_printf(&out,
                   " is a latch: nobody holds it\n"
                   "  %" PRIu64 " to count until it is open\n"
                   "  %" PRIu64 " waiting for that at this latchd%s\n",
                   reply_number(reply_get(info, "left")), waiting,
                   waiting == 0 ? "" : ":");
        if (waiting == 0 || list_waiters(l, &out, name, waiting)) {
            buf_add_str(&out,
                        "To count for whoever does not, or to end the waits: latchctl "
                        "latch NAME count, or delete\n");
            (void)fwrite(buf_ptr(&out), 1, buf_len(&out), stdout);
            *ret_code = 0;
        }
    }
    buf_reset(&out);
    freeReplyObject(info);
    return is_set;
}

redisReply *latch_or_lockinfo(struct link *l, const char *name, int *ret_code)
{
    const char *const words[] = { "LOCKINFO", name, NULL };
    redisReply *info = ask_quietly(l, words);

    if (info == NULL && !explain_latch(l, name, ret_code)) {
        info = ask_daemon(l, words);
    }
    return info;
}
