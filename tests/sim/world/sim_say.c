/* The words of scenarios, and how asks and answers look in the trace. */
#include "sim/world/sim_world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const KIND_WORDS[] = {
    [ASK_LOCK] = "LOCK",
    [ASK_UNLOCK] = "UNLOCK",
    [ASK_RENEW] = "RENEW",
    [ASK_FORCE] = "FORCEUNLOCK",
    [ASK_INFO] = "LOCKINFO",
    [ASK_CANCEL] = "CANCEL",
    [ASK_MLOCK] = "MLOCK",
    [ASK_LEADER] = "LEADER",
    [ASK_LATCH_SET] = "LATCH-SET",
    [ASK_LATCH_COUNT] = "LATCH-COUNT",
    [ASK_LATCH_AWAIT] = "LATCH-AWAIT",
    [ASK_LATCH_DELETE] = "LATCH-DELETE",
};

static const char *const LOCK_WORDS[] = {
    [KIND_FAIR] = "FAIR",
    [KIND_READ] = "READ",
    [KIND_WRITE] = "WRITE",
    [KIND_PERMITS] = "PERMITS",
};

enum { KINDS = sizeof(KIND_WORDS) / sizeof(KIND_WORDS[0]) };

/* Writes what the LOCK says of its place in the queue; returns how many bytes. */
static int put_place(char *out, size_t room, const struct ask *ask)
{
    int len = 0;

    out[0] = '\0';
    if ((ask->has & OPT_QUEUE) != 0) {
        len = snprintf(out, room, " QUEUE %" PRIu32, ask->queue_max);
    }
    if (ask->priority != 0) {
        len += snprintf(out + len, room - (size_t)len, " PRIORITY %d", ask->priority);
    }
    return len;
}

#define ADD(...) at += snprintf(text + at, room - (size_t)at, __VA_ARGS__)
static int add_last_words(char *text, size_t room, const struct ask *ask)
{
    int at = 0;

    if (ask->has_after) {
        ADD(" AFTER %" PRIu64, ask->after);
    }
    if (ask->to.len > 0) {
        ADD(" TO %s", ask->to.s);
    }
    if (ask->heartbeat_ms != 0) {
        ADD(" HEARTBEAT %" PRIu32, ask->heartbeat_ms);
    }
    if (ask->data.len > 0) {
        ADD(" DATA %s", ask->data.s);
    }
    if (ask->any) {
        ADD(" ANY");
    }
    return at;
}
#undef ADD
enum { ASK_TEXT_MAX = 400 };

/* Not 0, which stands for an option that is not given. */
static void add_number(char *text, int *at, const char *before, uint64_t number)
{
    if (number != 0) {
        *at += snprintf(text + *at, (size_t)(ASK_TEXT_MAX - *at), "%s%" PRIu64, before,
                        number);
    }
}

const char *ask_text(const struct ask *ask)
{
    static char text[ASK_TEXT_MAX];
    int at = snprintf(text, sizeof(text), "%s", KIND_WORDS[ask->kind]);

#define ADD(...) at += snprintf(text + at, sizeof(text) - (size_t)at, __VA_ARGS__)
    if (ask->kind == ASK_MLOCK) {
        ADD(" %zu", ask->name_count);
        for (size_t i = 0; i < ask->name_count; i++) {
            ADD(" %s", ask->names[i].s);
        }
    } else {
        ADD(" %s", ask->name.s);
    }
    if (ask->lock_kind != KIND_PLAIN) {
        ADD(" %s", LOCK_WORDS[ask->lock_kind]);
    }
    add_number(text, &at, " ", ask->permits);
    add_number(text, &at, " OF ", ask->limit);
    add_number(text, &at, " ATLEAST ", ask->atleast_ms);
    if ((ask->has & OPT_WAIT) != 0) {
        ADD(" WAIT %" PRIu64, ask->wait_ms);
    }
    if ((ask->has & OPT_LEASE) != 0 || ask->lease_ms != 0) {
        ADD(" LEASE %" PRIu64, ask->lease_ms);
    }
    if ((ask->has & OPT_ENDLESS) != 0) {
        ADD(" ENDLESS");
    }
    if ((ask->has & OPT_LOCAL) != 0) {
        ADD(" LOCAL");
    }
    if ((ask->has & OPT_KEEP) != 0) {
        ADD(" KEEP %" PRIu64, ask->keep_ms);
    }
    at += put_place(text + at, sizeof(text) - (size_t)at, ask);
    if ((ask->has & OPT_GRACE) != 0) {
        ADD(" GRACE %" PRIu64, ask->grace_ms);
    }
    if (ask->owner.len > 0) {
        ADD(" OWNER %s", ask->owner.s);
    }
    if (ask->id.len > 0) {
        ADD(" ID %s", ask->id.s);
    }
    if (ask->value.len > 0) {
        ADD(" VALUE %s", ask->value.s + strlen(ASK_ORIGIN));
    }
    if (ask->polls_for_ms != 0) {
        ADD(" POLLS %" PRIu64, ask->polls_for_ms);
    }
    if (ask->token != 0) {
        ADD(" TOKEN %" PRIu64, ask->token);
    }
    at += add_last_words(text + at, sizeof(text) - (size_t)at, ask);
#undef ADD
    return text;
}

static char *word(char **rest)
{
    return strtok_r(NULL, " ", rest);
}

static uint64_t number(char **rest)
{
    return strtoull(word(rest), NULL, 10);
}

static bool kind_option(struct ask *ask, const char *w)
{
    for (size_t i = KIND_FAIR; i <= KIND_PERMITS; i++) {
        if (strcmp(w, LOCK_WORDS[i]) == 0) {
            ask->lock_kind = (enum lock_kind)i;
            return true;
        }
    }
    return false;
}

static bool leader_option(struct ask *ask, const char *w, char **rest)
{
    if (strcmp(w, "AFTER") == 0) {
        ask->has_after = true;
        ask->after = number(rest);
    } else if (strcmp(w, "DATA") == 0) {
        ask->data = rtext_of(span_str(word(rest)));
    } else if (strcmp(w, "TO") == 0) {
        ask->to = rtext_of(span_str(word(rest)));
    } else if (strcmp(w, "HEARTBEAT") == 0) {
        ask->heartbeat_ms = (uint32_t)number(rest);
    } else {
        return false;
    }
    return true;
}

static void option(struct ask *ask, const char *w, char **rest)
{
    if (kind_option(ask, w)) {
        ask->permits = ask->lock_kind == KIND_PERMITS ? (uint32_t)number(rest) : 0;
        return;
    }
    if (leader_option(ask, w, rest)) {
        return;
    }
    if (strcmp(w, "OF") == 0) {
        ask->limit = (uint32_t)number(rest);
        return;
    }
    if (strcmp(w, "PRIORITY") == 0) {
        ask->priority = (uint8_t)number(rest);
        return;
    }
    if (strcmp(w, "QUEUE") == 0) {
        ask->queue_max = (uint32_t)number(rest);
        ask->has |= OPT_QUEUE;
        return;
    }
    if (strcmp(w, "WAIT") == 0) {
        ask->wait_ms = number(rest);
        ask->has |= OPT_WAIT;
    } else if (strcmp(w, "LEASE") == 0) {
        ask->lease_ms = number(rest);
        ask->has |= ask->kind == ASK_LOCK || ask->kind == ASK_MLOCK ? OPT_LEASE : 0;
    } else if (strcmp(w, "ENDLESS") == 0) {
        ask->has |= OPT_ENDLESS;
    } else if (strcmp(w, "LOCAL") == 0) {
        ask->has |= OPT_LOCAL;
    } else if (strcmp(w, "KEEP") == 0) {
        ask->keep_ms = number(rest);
        ask->has |= OPT_KEEP;
    } else if (strcmp(w, "ATLEAST") == 0) {
        ask->atleast_ms = number(rest);
    } else if (strcmp(w, "GRACE") == 0) {
        ask->grace_ms = number(rest);
        ask->has |= OPT_GRACE;
    } else if (strcmp(w, "OWNER") == 0) {
        ask->owner = rtext_of(span_str(word(rest)));
    } else if (strcmp(w, "ID") == 0) {
        ask->id = rtext_of(span_str(word(rest)));
    } else if (strcmp(w, "VALUE") == 0) {
        ask->value = rtext_printf(ASK_ORIGIN "%s", word(rest));
    } else if (strcmp(w, "POLLS") == 0) {
        ask->polls_for_ms = number(rest);
    } else if (strcmp(w, "TOKEN") == 0) {
        ask->token = number(rest);
    } else if (strcmp(w, "ANY") == 0) {
        ask->any = true;
    } else {
        abort();
    }
}

static void names_of(struct ask *ask, char **rest)
{
    if (ask->kind != ASK_MLOCK) {
        ask->name = rtext_of(span_str(word(rest)));
        return;
    }
    ask->name_count = number(rest);
    if (ask->name_count > ASK_NAMES_MAX) {
        abort();
    }
    for (size_t i = 0; i < ask->name_count; i++) {
        ask->names[i] = rtext_of(span_str(word(rest)));
    }
    ask->name = ask->names[0];
}

void sim_say(struct sim *s, size_t c, const char *fmt, ...)
{
    struct ask ask = { .kind = ASK_LOCK };
    bool known = false;
    char text[400];
    char *rest = NULL;
    char *w;
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    w = strtok_r(text, " ", &rest);
    for (size_t i = 0; i < KINDS; i++) {
        if (strcmp(w, KIND_WORDS[i]) == 0) {
            ask.kind = (enum ask_kind)i;
            known = true;
        }
    }
    if (!known) {
        abort();
    }
    names_of(&ask, &rest);
    while ((w = word(&rest)) != NULL) {
        option(&ask, w, &rest);
    }
    sim_ask(s, c, &ask);
}

const char *sim_heard(struct sim *s, size_t index)
{
    static const char *const ERRORS[] = {
        [LOCK_ERR] = "-ERR",         [LOCK_WRONGTYPE] = "-WRONGTYPE",
        [LOCK_NOTHELD] = "-NOTHELD", [LOCK_DEADLOCK] = "-DEADLOCK",
        [LOCK_BACKEND] = "-BACKEND", [LOCK_LIMIT] = "-LIMIT",
        [LOCK_GOAWAY] = "-GOAWAY",   [LOCK_NOREPLICAS] = "-NOREPLICAS",
    };
    static char text[32];
    const struct sim_conn *c = &s->clients.conns[index];

    if (sim_is_busy(c)) {
        return "...";
    }
    switch (c->answer.kind) {
    case REPLY_TOKEN:
        return "token";
    case REPLY_INT:
        (void)snprintf(text, sizeof(text), "%" PRId64, c->answer.value);
        return text;
    case REPLY_NULL:
        return "nil";
    case REPLY_ERROR:
        return ERRORS[c->answer.error];
    case REPLY_INFO:
        return "info";
    case REPLY_TOKENS:
        return "tokens";
    case REPLY_LEADER:
        return c->answer.value == 0 ? "nobody" : "leader";
    case REPLY_LATCH:
    case REPLY_UNREACHED:
    case REPLY_WRITTEN:
        break;
    }
    return "?";
}

uint64_t sim_token(struct sim *s, size_t c)
{
    const struct answer *a = &s->clients.conns[c].answer;

    return a->kind == REPLY_TOKEN ? (uint64_t)a->value : 0;
}

uint64_t sim_token_of(struct sim *s, size_t c, size_t i)
{
    const struct answer *a = &s->clients.conns[c].answer;

    return a->kind == REPLY_TOKENS ? a->tokens[i] : 0;
}
