#include "latchctl/commands.h"

#include "latchctl/answer.h"
#include "latchctl/link.h"
#include "latchctl/show.h"
#include "latchctl/why.h"
#include "latchd/protocol.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/span.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* --- the names that LOCKS lists, a page at a time ------------------------ */

/* Returns whether to go on. */
typedef bool names_fn(void *ctx, struct span name);

#define NAMES_AT_ONCE "1000"

/* Calls `fn` for each name that this latchd's clients hold or wait for, or with `all`
 * for each that is held in Redis; `match` may be NULL. False: an error was printed. */
static bool names_each(struct link *l, bool all, const char *match, names_fn *fn,
                       void *ctx)
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

/* --- asking a latchd that may be restarted, or have to wait for Redis ----- */

/* A zeroed one with `options` is valid. */
struct patient {
    struct options *options;
    struct link link;
    bool is_told; /* that latchd cannot be asked */
};

enum {
    ANSWER_MAX_MS = 10000, /* beyond what latchd may wait */
    PAUSE_MS = 500,        /* before another try */
    /* The WAIT of each LEADER and LATCH AWAIT; a dead connection shows as soon. */
    LOOK_MS = 5000,
};
#define LOOK_MS_TEXT "5000"

/* Says it once, until an answer comes. */
static void tell_trouble(struct patient *p, const char *what)
{
    if (!p->is_told) {
        print_message("%s; trying again", what);
    }
    p->is_told = true;
    (void)nanosleep(&(struct timespec){ .tv_nsec = PAUSE_MS * 1000000L }, NULL);
}

/* Sends the words, which may ask latchd to wait for so long, and returns the answer, to
 * be freed by freeReplyObject(). NULL: there is none, and a pause was made. */
static redisReply *patient_ask(struct patient *p, const char *const *words,
                               uint64_t wait_ms)
{
    redisReply *reply;

    if (p->link.state != LINK_OPEN &&
        !link_connect(&p->link, &p->options->target, ANSWER_MAX_MS)) {
        tell_trouble(p, p->link.error);
        return NULL;
    }
    link_send(&p->link, words);
    reply = link_wait(&p->link, wait_ms + ANSWER_MAX_MS);
    if (reply == NULL) {
        link_close(&p->link);
        tell_trouble(p, p->link.error);
    }
    return reply;
}

/* Whether the answer is an error that passes; a pause was made then. */
static bool patient_has_to_ask_again(struct patient *p, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR &&
        (reply_is_error(reply, LATCHD_ERR_BACKEND) ||
         reply_is_error(reply, LATCHD_ERR_NOREPLICAS) ||
         reply_is_error(reply, LATCHD_ERR_GOAWAY) ||
         reply_is_error(reply, LATCHD_ERR_LIMIT))) {
        tell_trouble(p, reply->str);
        return true;
    }
    p->is_told = false;
    return false;
}

/* With --json prints whether that was done to the name; else nothing. Returns `code`.
 */
static int print_done(const struct options *o, const char *key, bool done, int code)
{
    const struct answer_field fields[] = {
        { "name", ANSWER_TEXT, true, .text = span_str(o->name) },
        { key, ANSWER_BOOL, true, .number = done },
    };

    return answer_print(o->json, fields, 2) ? code : CTL_EXIT_FAILED;
}

/* `latchctl unlock`: ends what `latchctl lock` began. */

enum { TRY_MS = 10000 }; /* then the lock ends with its lease */

/* A release that was answered before is answered the same again, so that it can be sent
 * until there is an answer. */
int ctl_unlock(struct options *o)
{
    const char *const words[] = { "UNLOCK", o->name, "TOKEN", o->token, NULL };
    uint64_t end = clock_boot_ms() + TRY_MS;
    struct patient p = { .options = o };
    redisReply *reply = NULL;
    int code = CTL_EXIT_FAILED;

    while (!p.link.refused && clock_boot_ms() < end) {
        reply = patient_ask(&p, words, 0);
        if (reply != NULL && !patient_has_to_ask_again(&p, reply)) {
            break;
        }
        freeReplyObject(reply);
        reply = NULL;
    }
    if (reply != NULL && reply->type == REDIS_REPLY_INTEGER) {
        code = print_done(o, "released", true, 0);
    } else if (reply != NULL && reply_is_error(reply, LATCHD_ERR_NOTHELD)) {
        print_message("%s was not held any more: others may have had it", o->name);
        code = print_done(o, "released", false, o->lost_code);
    } else if (reply != NULL) {
        print_message("%s", reply->type == REDIS_REPLY_ERROR
                                ? reply->str
                                : "the server is no latchd");
    }
    freeReplyObject(reply);
    link_close(&p.link);
    return code;
}

/* `latchctl ls`. */

struct listing {
    uint64_t left; /* names that may still be printed */
    bool as_json;
    struct buf text; /* what is yet to be printed */
    struct json json;
};

enum { LISTING_TEXT_MAX = 65536 };

/* Prints a name raw into a pipe, for programs; never raw to a terminal. */
static bool print_name(void *ctx, struct span name)
{
    struct listing *l = ctx;

    if (l->as_json) {
        json_bytes(&l->json, NULL, name);
    } else {
        if (isatty(STDOUT_FILENO) == 0) {
            buf_add_span(&l->text, name);
        } else {
            show_bytes(&l->text, name, 0);
        }
        buf_add_str(&l->text, "\n");
    }
    return (buf_len(&l->text) < LISTING_TEXT_MAX || answer_send(&l->text)) &&
           --l->left > 0;
}

int ctl_ls(struct options *o)
{
    struct link l = { 0 };
    struct listing list = { .left = o->count == 0 ? UINT64_MAX : o->count,
                            .as_json = o->json };
    int code = CTL_EXIT_FAILED;

    list.json.out = &list.text;
    if (ask_open(&l, o)) {
        if (o->json) {
            json_open(&list.json, NULL, '[');
        }
        if (names_each(&l, o->all, o->match, print_name, &list)) {
            if (o->json) {
                json_close(&list.json, ']');
                buf_add_str(&list.text, "\n");
            }
            code = 0;
        } else if (list.left == (o->count == 0 ? UINT64_MAX : o->count)) {
            buf_clear(&list.text);
        }
        /* after an error the names that came before it, and no bracket */
        code = answer_send(&list.text) ? code : CTL_EXIT_FAILED;
    }
    link_close(&l);
    return code;
}

/* `latchctl leader NAME`: who leads, once, or with --follow from then on. */

enum { TOKEN_DIGITS = 24 };

struct follower {
    struct patient patient;
    char after[TOKEN_DIGITS]; /* the token that was printed last; empty: none was */
};

/* Token, owner and data, as far as there are; data as one line. */
static bool print_leader(const struct options *o, const redisReply *reply)
{
    const struct answer_field fields[] = {
        { "name", ANSWER_TEXT, true, .text = span_str(o->name) },
        { "token", ANSWER_NUMBER, .number = reply_number(reply_at(reply, 0)) },
        { "owner", ANSWER_TEXT, .text = reply_text(reply_at(reply, 1)) },
        { "data", ANSWER_TEXT, .text = reply_text(reply_at(reply, 2)) },
    };

    return answer_print(o->json, fields, 4);
}

static int ask_once(struct options *o)
{
    struct link l = { 0 };
    redisReply *reply = NULL;
    int code = CTL_EXIT_FAILED;

    if (ask_open(&l, o)) {
        reply = ask_daemon(&l, (const char *[]){ "LEADER", o->name, NULL });
    }
    if (reply != NULL && print_leader(o, reply)) {
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
static bool take_leader(struct follower *f, const redisReply *reply)
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
        return print_leader(f->patient.options, reply);
    }
    return true;
}

static int follow_leader(struct options *o)
{
    struct follower f = { .patient.options = o };
    bool goes_on = true;

    while (goes_on && !f.patient.link.refused) {
        redisReply *reply = ask_leader(&f);

        goes_on = reply == NULL || take_leader(&f, reply);
        freeReplyObject(reply);
    }
    link_close(&f.patient.link);
    return CTL_EXIT_FAILED;
}

int ctl_leader(struct options *o)
{
    return o->follow ? follow_leader(o) : ask_once(o);
}

/* `latchctl latch NAME set N | count | await | delete | info`. What is sent again has
 * an ID, so that it takes effect once. */

enum {
    ID_BYTES = 16,
    NUMBER_ROOM = 24,
};

enum verb { VERB_SET, VERB_COUNT, VERB_AWAIT, VERB_DELETE, VERB_INFO, VERBS };

static const struct {
    const char *word;    /* of the command line */
    const char *command; /* after LATCH */
    bool has_number;
    bool has_id;
    const char *key; /* of --json, for an answer that is yes or no */
} VERB_ROWS[VERBS] = {
    [VERB_SET] = { "set", "SET", true, true, "set" },
    [VERB_COUNT] = { "count", "COUNT", false, true, NULL },
    [VERB_AWAIT] = { "await", "AWAIT", false, false, "open" },
    [VERB_DELETE] = { "delete", "DELETE", false, false, "deleted" },
    [VERB_INFO] = { "info", "INFO", false, false, NULL },
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
    print_message(
        "latch: behind the NAME stands `set N`, `count`, `await`, `delete` or "
        "`info`");
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
    bool counts = r->verb == VERB_COUNT;
    const redisReply *left = counts ? reply : reply_get(reply, "left");
    const struct answer_field fields[] = {
        { "name", ANSWER_TEXT, true, .text = span_str(o->name) },
        { "left", ANSWER_NUMBER, .number = reply_number(left) },
        { "state", ANSWER_TEXT, .text = reply_text(reply_get(reply, "state")) },
        { "waiting", ANSWER_NUMBER,
          .number = reply_number(reply_get(reply, "waiting")) },
    };

    if (VERB_ROWS[r->verb].key != NULL) {
        return print_done(o, VERB_ROWS[r->verb].key, reply_number(reply) == 1,
                          reply_number(reply) == 1 ? 0 : o->conflict_code);
    }
    return answer_print(o->json, fields, counts ? 2 : 4) ? 0 : CTL_EXIT_FAILED;
}

/* True: *ret_code is the end of it. */
static bool take_latch_answer(const struct request *r, struct patient *p,
                              const redisReply *reply, int *ret_code)
{
    bool is_over = clock_boot_ms() >= r->until;

    if (reply->type == REDIS_REPLY_NIL) {
        p->is_told = false;
        *ret_code = p->options->conflict_code;
        if (is_over && VERB_ROWS[r->verb].key != NULL) {
            *ret_code =
                print_done(p->options, VERB_ROWS[r->verb].key, false, *ret_code);
        }
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
                              : take_latch_answer(&r, &p, reply, &code);
        freeReplyObject(reply);
    }
    link_close(&p.link);
    return code;
}

/* `latchctl force`: frees one name, or all that match. */

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
        code = print_done(o, "freed", true, 0);
    } else if (reply != NULL) {
        print_message("nothing to free: no such holder has %s", o->name);
        code = print_done(o, "freed", false, CTL_EXIT_CONFLICT);
    }
    freeReplyObject(reply);
    return code;
}

/* --- all that match ----------------------------------------------------- */

/* A name, and what LOCKINFO said of it when it was shown: only that is freed. */
struct shown {
    char *name;
    redisReply *info;
    bool freed;
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
static bool show_all(struct link *l, struct shown_list *s, bool json)
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
        if (!json) {
            show_one(&one);
        }
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
        print_message("nothing is freed: there is no terminal to ask at; add --yes");
        return false;
    }
    (void)fprintf(stderr, "Free %zu name%s? Their holders may still work. [yes/no] ",
                  count, count == 1 ? "" : "s");
    return fgets(answer, sizeof(answer), stdin) != NULL && strcmp(answer, "yes\n") == 0;
}

/* Frees one hold, or whatever holds if `token` is 0. Returns 1, 0: there was no such
 * hold, -1: an error was printed. */
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

/* With --json: each name, its holds, and whether they were freed. */
static bool print_freed(const struct shown_list *s)
{
    struct buf out = { 0 };
    struct json j = { .out = &out };

    json_open(&j, NULL, '[');
    for (size_t i = 0; i < s->count; i++) {
        json_open(&j, NULL, '{');
        json_text(&j, "name", s->list[i].name);
        answer_add_maps(&j, "holds", reply_get(s->list[i].info, "holds"));
        json_bool(&j, "freed", s->list[i].freed);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    buf_add_str(&out, "\n");
    return answer_send(&out);
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

static int free_all(struct link *l, struct shown_list *s)
{
    size_t freed = 0;

    for (size_t i = 0; i < s->count; i++) {
        int one = free_shown(l, &s->list[i]);

        if (one < 0) {
            return CTL_EXIT_FAILED;
        }
        s->list[i].freed = one == 1;
        freed += (size_t)one;
    }
    print_message(
        "%zu of %zu freed%s", freed, s->count,
        freed < s->count ? "; the others have ended, or other clients hold them" : "");
    return freed == s->count ? 0 : CTL_EXIT_CONFLICT;
}

static int force_matching(struct link *l, const struct options *o)
{
    struct shown_list s = { 0 };
    int code = CTL_EXIT_FAILED;

    if (names_each(l, true, o->match, add_name, &s) && show_all(l, &s, o->json)) {
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
        if (o->json && !print_freed(&s)) {
            code = CTL_EXIT_FAILED;
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
