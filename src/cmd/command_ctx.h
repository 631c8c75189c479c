/* command_ctx: a command while its handler runs: what it is asked, and how it tells
 * what became of it. A handler never calls back into what runs it (cmd.c): it writes
 * its reply, or asks the engine with the number that ctx_wait() gives it, and returns.
 */
#ifndef LATCHD_CMD_COMMAND_CTX_H
#define LATCHD_CMD_COMMAND_CTX_H

#include "cmd/client.h"
#include "cmd/command_table.h"
#include "engine/effect.h"
#include "util/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cmd;
struct conn;
struct library_call;
struct step;

/* The outcome of a handler: what the runner has to do next. */
enum command_result {
    ANSWERED,     /* or it has no reply */
    WAITS,        /* for the engine's answer; nothing behind it may begin */
    WAITS_BESIDE, /* the same, but commands behind it may begin (pipeline.h) */
    GATHERED,     /* a LOCK that is asked for together with its neighbours */
    PUT_OFF,      /* it has not run, and begins again */
};

/* One command while it runs, on the stack of cmd.c. */
struct command_ctx {
    struct cmd *cmd;
    struct conn *conn;
    struct client *client;
    const struct command *command;
    const struct span *argv; /* with the command's name */
    size_t argc;
    struct buf *out; /* where the reply goes */
    int proto;
    enum command_result result;
    enum outcome outcome;   /* if ANSWERED */
    uint64_t call;          /* if it waits: its number */
    uint64_t started_us;    /* 0: when it is executed */
    struct step *step;      /* its place in the client's pipeline, or NULL */
    struct subject subject; /* of a lock command: the request or owner that it names */
    struct library_call *library; /* of a lock library's command that waits; or NULL */
    bool muted;                   /* its reply is dropped */
    bool may_gather;              /* a plain LOCK is to be GATHERED */
    bool aborts;  /* EXEC before it is admitted: its errors discard the transaction */
    bool counted; /* was counted when it began for the first time */
};

/* Writes an error reply, and records its word as the outcome. */
void ctx_error(struct command_ctx *ctx, const char *word, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Writes null. */
void ctx_null(struct command_ctx *ctx);
void ctx_syntax_error(struct command_ctx *ctx);
void ctx_arity_error(struct command_ctx *ctx);
/* The arity error of subcommands whose arity depends on their arguments. */
void ctx_subcommand_error(struct command_ctx *ctx);

/* Closes the connection after this reply, or in a transaction after EXEC's. */
void ctx_close_after(struct command_ctx *ctx);

/* The command WAITS: numbers the call that the handler makes of the engine, whose
 * answer is the reply. */
struct call_ref ctx_wait(struct command_ctx *ctx);
/* The same, but it WAITS_BESIDE others. */
struct call_ref ctx_wait_beside(struct command_ctx *ctx);
/* Whether the plain LOCK is GATHERED: then it is not asked for now, but parsed again.
 */
bool ctx_gathers(struct command_ctx *ctx);

/* Replies with the HELP of a container command, made from the table. */
void ctx_help(struct command_ctx *ctx);

/* Whether the argument is `word`, in upper or lower case. */
bool ctx_arg_is(const struct command_ctx *ctx, size_t at, const char *word);

/* Parses a signed integer argument; on failure writes Redis's error reply. */
bool ctx_arg_int(struct command_ctx *ctx, size_t at, int64_t *ret);

/* The first word of an engine's error. */
const char *lock_error_word(enum lock_error error);

/* Appends `text` in upper case. */
void buf_add_upper(struct buf *out, const char *text);

#endif
