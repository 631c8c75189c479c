/* `latchctl why NAME`: explains who holds a name, who waits for it, which holds of it
 * were lost or expired lately, and what to do. */
#include "latchctl/why.h"

#include "latchctl/answer.h"
#include "latchctl/commands.h"
#include "latchctl/link.h"
#include "latchctl/show.h"
#include "util/buf.h"
#include "util/clock.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define WAITERS_COUNT "100"

enum { NUMBER_MAX = 24 };

/* Adds which connection that is, given the id of a client; nothing if there is none. */
static void describe_client(struct link *l, struct buf *out, const redisReply *client)
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

/* Adds a line for each of the first waiters; `waiting`: how many there are. False: an
 * error was printed. */
static bool list_waiters(struct link *l, struct buf *out, const char *name,
                         uint64_t waiting)
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

/* With --json: what LOCKINFO or LATCH INFO said, the other is NULL, and the waiters.
 * Returns latchctl's exit code. */
static int print_answers(struct link *l, const char *name, const redisReply *lock,
                         const redisReply *latch)
{
    redisReply *waiters = ask_daemon(
        l, (const char *[]){ "WAITERS", name, "COUNT", WAITERS_COUNT, NULL });
    struct buf out = { 0 };
    struct json j = { .out = &out };
    int code = CTL_EXIT_FAILED;

    if (waiters != NULL) {
        json_open(&j, NULL, '{');
        json_text(&j, "name", name);
        answer_add_map(&j, "lock", lock);
        answer_add_map(&j, "latch", latch);
        answer_add_maps(&j, "waiters", waiters);
        json_close(&j, '}');
        buf_add_str(&out, "\n");
        code = answer_send(&out) ? 0 : CTL_EXIT_FAILED;
    }
    freeReplyObject(waiters);
    return code;
}

/* Prints what is to be said of the name if it is a latch that is set; else false.
 * *ret_code is latchctl's exit code. */
static bool explain_latch(struct link *l, const struct options *o, int *ret_code)
{
    const char *name = o->name;
    redisReply *info = ask_quietly(l, (const char *[]){ "LATCH", "INFO", name, NULL });
    bool is_set = span_eq(reply_text(reply_get(info, "state")), SPAN("set"));
    uint64_t waiting = reply_number(reply_get(info, "waiting"));
    struct buf out = { 0 };

    if (is_set && o->json) {
        *ret_code = print_answers(l, name, NULL, info);
    } else if (is_set) {
        show_bytes(&out, span_str(name), 0);
        buf_printf(&out,
                   " is a latch: nobody holds it\n"
                   "  %" PRIu64 " to count until it is open\n"
                   "  %" PRIu64 " waiting for that at this latchd%s\n",
                   reply_number(reply_get(info, "left")), waiting,
                   waiting == 0 ? "" : ":");
        if (waiting == 0 || list_waiters(l, &out, name, waiting)) {
            buf_add_str(&out,
                        "To count for a client that does not, or to end the waits: "
                        "latchctl latch NAME count, or delete\n");
            (void)fwrite(buf_ptr(&out), 1, buf_len(&out), stdout);
            *ret_code = 0;
        }
    }
    buf_reset(&out);
    freeReplyObject(info);
    return is_set;
}

/* LOCKINFO of the name. NULL: an error was printed, or what is to be said of a latch of
 * that name; *ret_code is set then. */
static redisReply *latch_or_lockinfo(struct link *l, const struct options *o,
                                     int *ret_code)
{
    const char *const words[] = { "LOCKINFO", o->name, NULL };
    redisReply *info = ask_quietly(l, words);

    if (info == NULL && !explain_latch(l, o, ret_code)) {
        info = ask_daemon(l, words);
    }
    return info;
}

enum {
    /* A token is the time of the grant by Redis's clock, unless an earlier token was
     * greater. */
    TOKEN_EARLIEST_S = 1500000000,
};

struct why {
    struct options *options;
    struct link link;
    struct buf out;
};

static bool is_word(const redisReply *reply, const char *word)
{
    return span_eq(reply_text(reply), span_str(word));
}

/* Of LOCKINFO's reply, or one hold in it. */
static bool is_semaphore(const redisReply *about)
{
    return is_word(reply_get(about, "kind"), "permits");
}

/* --- holders ---------------------------------------------------------- */

static void add_since(struct why *w, const redisReply *hold)
{
    uint64_t token = reply_number(reply_get(hold, "token"));
    const redisReply *held = reply_get(hold, "held");
    uint64_t now = clock_wall_us();

    if (token != 0) {
        buf_printf(&w->out, "    with token %" PRIu64 "\n", token);
    }
    if (token / 1000000 > TOKEN_EARLIEST_S && token < now) {
        buf_add_str(&w->out, "    since ");
        show_time(&w->out, token);
        buf_add_str(&w->out, ", for ");
        show_ms(&w->out, (now - token) / 1000);
        buf_add_str(&w->out, "\n");
    } else if (reply_has_number(held)) {
        buf_add_str(&w->out, "    for ");
        show_ms(&w->out, reply_number(held));
        buf_add_str(&w->out, "\n");
    }
}

static void add_until(struct why *w, const redisReply *info, const redisReply *hold)
{
    const redisReply *renewed = reply_get(hold, "renewed");
    const redisReply *left = reply_get(hold, "left");
    uint64_t ms = reply_number(reply_has_number(left) ? left : reply_get(info, "ttl"));

    if (is_semaphore(hold) && !reply_has_number(left)) {
        buf_add_str(&w->out, "    its lease is kept by another latchd, or Redisson\n");
        return;
    }
    buf_add_str(&w->out, "    its lease ends in ");
    show_ms(&w->out, ms);
    if (is_word(renewed, "watchdog")) {
        buf_add_str(&w->out, reply_has_number(reply_get(hold, "client"))
                                 ? "; latchd renews it while the connection is open\n"
                                 : "; its connection is gone, nobody renews it\n");
    } else if (is_word(renewed, "endless")) {
        buf_add_str(&w->out, "; latchd renews it until it is released\n");
    } else if (is_word(renewed, "fixed")) {
        buf_add_str(&w->out, ", unless its holder renews it\n");
    } else {
        buf_add_str(&w->out, ", unless its keeper renews it: it came through "
                             "another latchd, or Redisson\n");
    }
}

static void add_holder(struct why *w, const redisReply *info, const redisReply *hold)
{
    uint64_t count = reply_number(reply_get(hold, "count"));

    buf_add_str(&w->out, "  ");
    show_owner(&w->out, reply_text(reply_get(hold, "owner")));
    if (is_word(reply_get(hold, "kind"), "read") ||
        is_word(reply_get(hold, "kind"), "write")) {
        buf_add_str(&w->out, is_word(reply_get(hold, "kind"), "read") ? ", who reads"
                                                                      : ", who writes");
    }
    if (is_semaphore(hold)) {
        buf_printf(&w->out, ", with %" PRIu64 " permit%s", count,
                   count == 1 ? "" : "s");
    } else if (count > 1) {
        buf_printf(&w->out, ", %" PRIu64 " times", count);
    }
    describe_client(&w->link, &w->out, reply_get(hold, "client"));
    buf_add_str(&w->out, "\n");
    if (reply_text(reply_get(hold, "data")).len != 0) {
        buf_add_str(&w->out, "    says of itself: ");
        show_bytes(&w->out, reply_text(reply_get(hold, "data")), 0);
        buf_add_str(&w->out, "\n");
    }
    add_since(w, hold);
    add_until(w, info, hold);
    if (reply_number(reply_get(hold, "atleast")) > 0) {
        buf_add_str(&w->out, "    the name stays taken for another ");
        show_ms(&w->out, reply_number(reply_get(hold, "atleast")));
        buf_add_str(&w->out, ", whatever ends the hold\n");
    }
    if (reply_number(reply_get(hold, "local")) == 1) {
        buf_add_str(&w->out, "    granted from memory: Redis has lent the name to this "
                             "latchd\n");
    }
}

/* The first words about a semaphore. What is free is below 0 if the limit was made
 * smaller than what is held. */
static void add_semaphore(struct why *w, const redisReply *info)
{
    const redisReply *free = reply_get(info, "free");

    buf_printf(&w->out, " is a semaphore of %" PRIu64 " permit%s",
               reply_number(reply_get(info, "limit")),
               reply_number(reply_get(info, "limit")) == 1 ? "" : "s");
    if (free != NULL && free->type == REDIS_REPLY_INTEGER) {
        buf_printf(&w->out, ", %lld of them free", free->integer);
    }
}

static void add_nobody(struct why *w, const redisReply *state)
{
    if (is_word(state, "withheld")) {
        buf_add_str(&w->out, " is held by nobody, and nobody is granted it for now.\n");
    } else if (is_word(state, "lent")) {
        buf_add_str(&w->out,
                    " is on loan: Redis has lent it to a latchd, which grants it to "
                    "its own clients\nfrom memory, and gives it back at the end of "
                    "local-window.\n");
    } else {
        buf_add_str(&w->out, " is free: nobody holds it.\n");
    }
}

/* Nobody has the name, and nobody gets it. */
static void add_rest(struct why *w, const redisReply *info)
{
    const redisReply *rest = reply_at(reply_get(info, "holds"), 0);

    buf_add_str(&w->out, " rests: nobody is granted it for another ");
    show_ms(&w->out, reply_number(reply_get(info, "ttl")));
    buf_printf(&w->out,
               ", as the hold with token %" PRIu64 " was taken with ATLEAST.\n",
               reply_number(reply_get(rest, "token")));
}

static void add_holders(struct why *w, const redisReply *info)
{
    const redisReply *holds = reply_get(info, "holds");

    show_bytes(&w->out, span_str(w->options->name), 0);
    if (is_semaphore(info) && reply_has_number(reply_get(info, "limit"))) {
        add_semaphore(w, info);
        buf_add_str(&w->out, reply_count(holds) == 0 ? ".\n"
                             : is_word(reply_get(info, "state"), "uncertain")
                                 ? ". Permits have, though Redis has not confirmed all "
                                   "of them lately:\n"
                                 : ". Permits have:\n");
    } else if (reply_count(holds) == 0) {
        add_nobody(w, reply_get(info, "state"));
    } else if (is_word(reply_get(info, "state"), "resting")) {
        add_rest(w, info);
        return;
    } else {
        buf_add_str(&w->out,
                    is_word(reply_get(info, "state"), "uncertain")
                        ? " is held, but Redis has not confirmed it lately, by\n"
                        : " is held by\n");
    }
    for (size_t i = 0; i < reply_count(holds); i++) {
        add_holder(w, info, reply_at(holds, i));
    }
}

/* --- waiters ---------------------------------------------------------- */

static bool add_waiters(struct why *w, const redisReply *info)
{
    uint64_t waiting = reply_number(reply_get(info, "waiting"));
    const redisReply *queue = reply_get(info, "queue");

    if (waiting == 0) {
        buf_add_str(&w->out, "Nobody waits for it here.\n");
    } else {
        buf_printf(&w->out, "%" PRIu64 " wait%s for it here, in this order:\n", waiting,
                   waiting == 1 ? "s" : "");
        if (!list_waiters(&w->link, &w->out, w->options->name, waiting)) {
            return false;
        }
    }
    if (reply_count(queue) > 0) {
        buf_printf(&w->out,
                   "First come, first served, over all latchds and Redisson's; "
                   "%zu stand in the queue:\n",
                   reply_count(queue));
        for (size_t i = 0; i < reply_count(queue); i++) {
            buf_printf(&w->out, "  %zu. ", i + 1);
            show_owner(&w->out, reply_text(reply_at(queue, i)));
            buf_add_str(&w->out, "\n");
        }
    }
    return true;
}

/* --- losses ----------------------------------------------------------- */

static void add_forced_by(struct buf *out, const redisReply *loss)
{
    struct span from = reply_text(reply_get(loss, "forced_from"));

    buf_add_str(out, "freed by force, ");
    if (from.len == 0) {
        buf_add_str(out, "by a client that has gone");
        return;
    }
    buf_printf(out, "by connection %" PRIu64 " from ",
               reply_number(reply_get(loss, "forced_by")));
    show_bytes(out, from, 0);
}

static void add_cause(struct buf *out, const redisReply *loss)
{
    const redisReply *cause = reply_get(loss, "cause");
    struct span taker = reply_text(reply_get(loss, "taker"));

    if (is_word(cause, "forced")) {
        add_forced_by(out, loss);
    } else if (is_word(cause, "taken") && taker.len != 0) {
        buf_add_str(out, "Redis lost the hold, and then granted the name to ");
        show_owner(out, taker);
    } else if (is_word(cause, "taken")) {
        buf_add_str(out, "Redis lost the hold, and another has the name");
    } else if (is_word(cause, "unconfirmed")) {
        buf_add_str(out, "Redis confirmed no renewal before the lease was over");
    } else {
        buf_add_str(out,
                    "Redis has it no more: deleted, freed through another latchd or "
                    "by Redisson, or lost by Redis");
    }
}

static void add_end(struct why *w, const redisReply *loss)
{
    const redisReply *token = reply_get(loss, "token");
    const redisReply *client = reply_get(loss, "client");

    buf_add_str(&w->out, "  ");
    show_ms(&w->out, reply_number(reply_get(loss, "ago")));
    buf_add_str(&w->out, " ago, of ");
    show_owner(&w->out, reply_text(reply_get(loss, "owner")));
    if (reply_has_number(token)) {
        buf_printf(&w->out, ", token %" PRIu64, reply_number(token));
    }
    if (reply_has_number(client)) {
        buf_printf(&w->out, ", connection %" PRIu64, reply_number(client));
    }
    if (reply_get(loss, "cause") != NULL) {
        buf_add_str(&w->out, ":\n    ");
        add_cause(&w->out, loss);
    }
    buf_add_str(&w->out, "\n");
}

static void add_ends(struct why *w, const redisReply *ends, const char *title)
{
    if (reply_count(ends) != 0) {
        buf_add_str(&w->out, title);
    }
    for (size_t i = 0; i < reply_count(ends); i++) {
        add_end(w, reply_at(ends, i));
    }
}

/* --- advice ----------------------------------------------------------- */

/* Adds a word, in single quotes for the shell if needed. */
static void add_quoted(struct buf *out, const char *word)
{
    if (word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                          "0123456789_-+=:,./@%")] == '\0') {
        buf_add_str(out, word);
        return;
    }
    buf_add_str(out, "$'");
    for (; *word != '\0'; word++) {
        unsigned char c = (unsigned char)*word;

        if (c == '\'' || c == '\\') {
            buf_printf(out, "\\%c", c);
        } else if (c >= ' ' && c < 0x7f) {
            buf_add(out, &c, 1);
        } else {
            buf_printf(out, "\\x%02x", c);
        }
    }
    buf_add_str(out, "'");
}

static void add_advice(struct why *w, const redisReply *info)
{
    const redisReply *hold = reply_at(reply_get(info, "holds"), 0);
    uint64_t token = reply_number(reply_get(hold, "token"));

    if (hold == NULL) {
        return;
    }
    buf_add_str(&w->out,
                is_semaphore(hold)
                    ? "If the first of them should not have them any more (it is "
                      "told):\n  latchctl force "
                : is_word(reply_get(info, "state"), "resting")
                    ? "If it should be granted sooner:\n  latchctl force "
                    : "If the holder should not have it any more (it is told, and its "
                      "token is worth less than the next):\n  latchctl force ");
    add_quoted(&w->out, w->options->name);
    if (token != 0) {
        buf_printf(&w->out, " --token %" PRIu64 "\n", token);
    } else {
        buf_add_str(&w->out, " --any\n");
    }
}

int ctl_why(struct options *o)
{
    struct why w = { .options = o };
    redisReply *info = NULL;
    int code = CTL_EXIT_FAILED;

    if (ask_open(&w.link, o)) {
        info = latch_or_lockinfo(&w.link, o, &code);
    }
    if (info != NULL && o->json) {
        code = print_answers(&w.link, o->name, info, NULL);
    } else if (info != NULL) {
        add_holders(&w, info);
        if (add_waiters(&w, info)) {
            add_ends(&w, reply_get(info, "losses"), "Lost lately, newest first:\n");
            add_ends(&w, reply_get(info, "expired"),
                     "Expired lately, as the LEASE was over or the client had left, "
                     "newest first:\n");
            add_advice(&w, info);
            code =
                fwrite(buf_ptr(&w.out), 1, buf_len(&w.out), stdout) == buf_len(&w.out)
                    ? 0
                    : CTL_EXIT_FAILED;
        }
    }
    freeReplyObject(info);
    buf_reset(&w.out);
    link_close(&w.link);
    return code;
}
