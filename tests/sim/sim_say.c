/* The words of scenarios, and of the trace. */
#include "sim/sim_world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const KIND_WORDS[] = {
    [ASK_LOCK] = "LOCK",         [ASK_UNLOCK] = "UNLOCK", [ASK_RENEW] = "RENEW",
    [ASK_FORCE] = "FORCEUNLOCK", [ASK_INFO] = "LOCKINFO", [ASK_CANCEL] = "CANCEL",
};

enum { KINDS = sizeof(KIND_WORDS) / sizeof(KIND_WORDS[0]) };

const char *ask_text(const struct ask *ask)
{
    static char text[400];
    int at = snprintf(text, sizeof(text), "%s %s", KIND_WORDS[ask->kind], ask->name.s);

#define ADD(...) at += snprintf(text + at, sizeof(text) - (size_t)at, __VA_ARGS__)
    if ((ask->has & LOCK_HAS_WAIT) != 0) {
        ADD(" WAIT %" PRIu64, ask->wait_ms);
    }
    if ((ask->has & LOCK_HAS_LEASE) != 0 || ask->lease_ms != 0) {
        ADD(" LEASE %" PRIu64, ask->lease_ms);
    }
    if ((ask->has & LOCK_HAS_KEEP) != 0) {
        ADD(" KEEP %" PRIu64, ask->keep_ms);
    }
    if ((ask->has & LOCK_HAS_GRACE) != 0) {
        ADD(" GRACE %" PRIu64, ask->grace_ms);
    }
    if (ask->owner.len > 0) {
        ADD(" OWNER %s", ask->owner.s);
    }
    if (ask->id.len > 0) {
        ADD(" ID %s", ask->id.s);
    }
    if (ask->token != 0) {
        ADD(" TOKEN %" PRIu64, ask->token);
    }
    if (ask->any) {
        ADD(" ANY");
    }
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

static void option(struct ask *ask, const char *w, char **rest)
{
    if (strcmp(w, "WAIT") == 0) {
        ask->wait_ms = number(rest);
        ask->has |= LOCK_HAS_WAIT;
    } else if (strcmp(w, "LEASE") == 0) {
        ask->lease_ms = number(rest);
        ask->has |= ask->kind == ASK_LOCK ? LOCK_HAS_LEASE : 0;
    } else if (strcmp(w, "KEEP") == 0) {
        ask->keep_ms = number(rest);
        ask->has |= LOCK_HAS_KEEP;
    } else if (strcmp(w, "GRACE") == 0) {
        ask->grace_ms = number(rest);
        ask->has |= LOCK_HAS_GRACE;
    } else if (strcmp(w, "OWNER") == 0) {
        ask->owner = rtext_of(span_str(word(rest)));
    } else if (strcmp(w, "ID") == 0) {
        ask->id = rtext_of(span_str(word(rest)));
    } else if (strcmp(w, "TOKEN") == 0) {
        ask->token = number(rest);
    } else if (strcmp(w, "ANY") == 0) {
        ask->any = true;
    } else {
        abort();
    }
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
    ask.name = rtext_of(span_str(word(&rest)));
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
        [LOCK_GOAWAY] = "-GOAWAY",
    };
    static char text[32];
    const struct sim_conn *c = &s->clients.conns[index];

    if (c->asking) {
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
    case REPLY_TOKENS:
        return "info";
    }
    return "?";
}

uint64_t sim_token(struct sim *s, size_t c)
{
    const struct answer *a = &s->clients.conns[c].answer;

    return a->kind == REPLY_TOKEN ? (uint64_t)a->value : 0;
}

/* --- ops in the trace ---------------------------------------------------- */

static const char *const OP_WORDS[] = {
    [OP_ACQUIRE] = "ACQUIRE", [OP_RELEASE] = "RELEASE", [OP_RENEW] = "RENEW",
    [OP_ATTACH] = "ATTACH",   [OP_INSPECT] = "INSPECT",
};

static const char *const STATUS_WORDS[] = {
    [OP_OK] = "OK",       [OP_BUSY] = "BUSY",           [OP_NOTHELD] = "NOTHELD",
    [OP_ENDED] = "ENDED", [OP_OVER] = "OVER",           [OP_ELSEWHERE] = "ELSEWHERE",
    [OP_LATE] = "LATE",   [OP_WRONGTYPE] = "WRONGTYPE", [OP_UNKNOWN] = "UNKNOWN",
    [OP_ERROR] = "ERROR",
};

static const char *const RENEW_WORDS[] = {
    [RENEW_OK] = "OK",
    [RENEW_GONE] = "GONE",
    [RENEW_ENDED] = "ENDED",
    [RENEW_ELSEWHERE] = "ELSEWHERE",
    [RENEW_WRONGTYPE] = "WRONGTYPE",
};

static void trace_asked(struct sim *s, const struct flight *f)
{
    const struct op *op = &f->op;

    if (op->kind == OP_RENEW) {
        for (size_t i = 0; i < op->item_count; i++) {
            const struct renew_item *it = &op->items[i];

            sim_trace(s, "  op %" PRIu64 " item %.*s %.*s %.*s lease %" PRIu64 "%s%s",
                      op->id, S(it->name), S(it->field), S(it->entry), it->lease_ms,
                      it->exact ? " exact" : "", it->kept ? " kept" : "");
        }
        return;
    }
    if (op->kind == OP_ACQUIRE || op->has_next) {
        sim_trace(s, "  op %" PRIu64 " claim %.*s [%.*s] lease %" PRIu64 "%s", op->id,
                  S(op->claim.field), S(op->claim.entry), op->claim.lease_ms,
                  op->reenter_only ? " reenter_only" : "");
    }
    if (op->kind != OP_ACQUIRE) {
        sim_trace(
            s, "  op %" PRIu64 " target %d %.*s [%.*s] token %" PRIu64 "%s%s%s%s y%d",
            op->id, op->target.kind, S(op->target.field), S(op->target.entry),
            op->target.token, op->own_accord ? " own_accord" : "",
            op->force ? " force" : "", op->mark ? " mark" : "",
            op->exact ? " exact" : "", op->yield);
    }
}

void sim_trace_op(struct sim *s, const char *what, const struct flight *f)
{
    const struct op_result *r = &f->reply.result;

    if (strcmp(what, "asks") == 0) {
        sim_trace(s, "d%zu: asks op %" PRIu64 " %s %.*s", f->daemon, f->op.id,
                  OP_WORDS[f->op.kind], S(f->op.name));
        trace_asked(s, f);
        return;
    }
    sim_trace(
        s,
        "d%zu: %s op %" PRIu64 " %s: %s token %" PRIu64 " count %" PRId64 "%s%s%s %s",
        f->daemon, what, f->op.id, OP_WORDS[f->op.kind], STATUS_WORDS[r->status],
        r->token, r->count, r->moved ? " moved" : "", r->freed ? " freed" : "",
        r->attached ? " attached" : "",
        f->op.kind == OP_RENEW && r->status == OP_OK ? RENEW_WORDS[f->item_results[0]]
                                                     : "");
}
