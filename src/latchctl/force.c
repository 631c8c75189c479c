/* `latchctl force`: frees one name, or all that match. */
#include "latchctl/ask.h"
#include "latchctl/commands.h"
#include "latchctl/names.h"
#include "latchctl/show.h"
#include "util/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FORCE_NAMES_MAX = 10000 }; /* more are freed by several calls */

static int force_one(struct link *l, const struct options *o)
{
    const char *words[] = { "FORCEUNLOCK", o->name, "ANY", NULL, NULL };
    redisReply *reply;
    int code = CTL_EXIT_FAILED;

    if (!o->any) {
        words[2] = o->token != NULL ? "TOKEN" : "OWNER";
        words[3] = o->token != NULL ? o->token : o->terms[OPTION_AT_OWNER];
    }
    reply = ask_daemon(l, words);
    if (reply != NULL && reply_number(reply) == 1) {
        code = 0;
    } else if (reply != NULL) {
        print_message("it was not so held");
        code = CTL_EXIT_CONFLICT;
    }
    freeReplyObject(reply);
    return code;
}

/* --- all that match ----------------------------------------------------- */

/* A name, and what LOCKINFO said of it when it was shown: only that is freed. */
struct shown {
    char *name;
    redisReply *info;
};

struct shown_list {
    struct shown *list;
    size_t count, room;
    bool full;
};

static bool has_name(const struct shown_list *s, struct span name)
{
    for (size_t i = 0; i < s->count; i++) {
        if (span_eq(span_str(s->list[i].name), name)) {
            return true;
        }
    }
    return false;
}

/* SCAN may name a key twice. */
static bool add_name(void *ctx, struct span name)
{
    struct shown_list *s = ctx;

    if (memchr(name.ptr, '\0', name.len) != NULL || has_name(s, name)) {
        return true; /* no program can be given a NUL byte */
    }
    if (s->count == FORCE_NAMES_MAX) {
        s->full = true;
        return false;
    }
    if (s->count == s->room) {
        s->room = s->room == 0 ? 16 : 2 * s->room;
        s->list = xrealloc(s->list, s->room * sizeof(*s->list));
    }
    s->list[s->count++] = (struct shown){ .name = xmemdup0(name.ptr, name.len) };
    return true;
}

static void show_one(const struct shown *s)
{
    const redisReply *holds = reply_get(s->info, "holds");
    struct buf line = { 0 };

    show_bytes(&line, span_str(s->name), 0);
    for (size_t i = 0; i < reply_count(holds); i++) {
        const redisReply *hold = reply_at(holds, i);

        buf_add_str(&line, i == 0 ? "  held by " : ", by ");
        show_owner(&line, reply_text(reply_get(hold, "owner")));
        if (reply_has_number(reply_get(hold, "token"))) {
            buf_printf(&line, " token %" PRIu64,
                       reply_number(reply_get(hold, "token")));
        }
    }
    if (reply_has_number(reply_get(s->info, "ttl"))) {
        buf_add_str(&line, ", for ");
        show_ms(&line, reply_number(reply_get(s->info, "ttl")));
    }
    buf_add_str(&line, "\n");
    (void)fwrite(buf_ptr(&line), 1, buf_len(&line), stdout);
    buf_reset(&line);
}

/* Shows who holds each name. What nobody holds any more goes from the list. */
static bool show_all(struct link *l, struct shown_list *s)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->count; i++) {
        const char *words[] = { "LOCKINFO", s->list[i].name, NULL };
        struct shown one = s->list[i];

        one.info = ask_daemon(l, words);
        s->list[i] = (struct shown){ 0 };
        if (one.info == NULL) {
            free(one.name);
            return false;
        }
        if (reply_count(reply_get(one.info, "holds")) == 0) {
            free(one.name);
            freeReplyObject(one.info);
            continue;
        }
        show_one(&one);
        s->list[kept++] = one;
    }
    s->count = kept;
    return fflush(stdout) == 0;
}

/* Without a terminal nobody can be asked. */
static bool is_confirmed(const struct options *o, size_t count)
{
    char answer[16];

    if (o->yes) {
        return true;
    }
    if (isatty(STDIN_FILENO) == 0) {
        print_message("nothing is freed: say --yes, as there is no terminal to ask at");
        return false;
    }
    (void)fprintf(stderr, "Free %zu name%s? Their holders may still work. [yes/no] ",
                  count, count == 1 ? "" : "s");
    return fgets(answer, sizeof(answer), stdin) != NULL && strcmp(answer, "yes\n") == 0;
}

/* Frees one hold, or whatever holds if `token` is 0. Returns 1, 0: it was not so held,
 * -1: an error was printed. */
static int free_hold(struct link *l, const char *name, uint64_t token)
{
    char number[24];
    const char *words[] = { "FORCEUNLOCK", name, "TOKEN", number, NULL };
    redisReply *reply;
    int freed;

    (void)snprintf(number, sizeof(number), "%" PRIu64, token);
    if (token == 0) {
        words[2] = "ANY";
        words[3] = NULL;
    }
    reply = ask_daemon(l, words);
    freed = reply == NULL ? -1 : (int)reply_number(reply);
    freeReplyObject(reply);
    return freed;
}

/* Of a Redisson's hold no token is known: then all holds go. */
static int free_shown(struct link *l, const struct shown *s)
{
    const redisReply *holds = reply_get(s->info, "holds");
    int freed = 0;

    for (size_t i = 0; i < reply_count(holds); i++) {
        if (reply_number(reply_get(reply_at(holds, i), "token")) == 0) {
            return free_hold(l, s->name, 0);
        }
    }
    for (size_t i = 0; i < reply_count(holds) && freed >= 0; i++) {
        uint64_t token = reply_number(reply_get(reply_at(holds, i), "token"));
        int one = free_hold(l, s->name, token);

        freed = one < 0 ? -1 : freed | one;
    }
    return freed;
}

static int free_all(struct link *l, const struct shown_list *s)
{
    size_t freed = 0;

    for (size_t i = 0; i < s->count; i++) {
        int one = free_shown(l, &s->list[i]);

        if (one < 0) {
            return CTL_EXIT_FAILED;
        }
        freed += (size_t)one;
    }
    print_message("%zu of %zu freed%s", freed, s->count,
                  freed < s->count ? "; the others were not so held any more" : "");
    return freed == s->count ? 0 : CTL_EXIT_CONFLICT;
}

static int force_matching(struct link *l, const struct options *o)
{
    struct shown_list s = { 0 };
    int code = CTL_EXIT_FAILED;

    if (names_each(l, true, o->match, add_name, &s) && show_all(l, &s)) {
        if (s.full) {
            print_message("only the first %d names: call it again for more",
                          FORCE_NAMES_MAX);
        }
        if (s.count == 0) {
            print_message("nobody holds a name that matches");
            code = CTL_EXIT_CONFLICT;
        } else {
            code = is_confirmed(o, s.count) ? free_all(l, &s) : CTL_EXIT_CONFLICT;
        }
    }
    for (size_t i = 0; i < s.count; i++) {
        free(s.list[i].name);
        freeReplyObject(s.list[i].info);
    }
    free(s.list);
    return code;
}

int ctl_force(struct options *o)
{
    struct link l = { 0 };
    int code = CTL_EXIT_FAILED;

    if (ask_open(&l, o)) {
        code = o->match != NULL ? force_matching(&l, o) : force_one(&l, o);
    }
    link_close(&l);
    return code;
}
