/* cmd_priv: what the files of cmd/ share about a running command. Nobody else includes
 * it. See client.h for what is kept about a connection. */
#ifndef LATCHD_CMD_CMD_PRIV_H
#define LATCHD_CMD_CMD_PRIV_H

#include "cmd/acl/users.h"
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/command_table.h"
#include "cmd/connection/client_pause.h"
#include "cmd/observe/command_stats.h"
#include "cmd/observe/slowlog.h"
#include "cmd/pubsub/pubsub.h"
#include "cmd/pubsub/tracking.h"
#include "latchd/protocol.h"
#include "resp/writer.h"

/* What HELLO and INFO call our Redis version: clients derive features from it. */
#define REDIS_COMPAT_VERSION "7.2.0"

enum {
    SCRATCH_KEEP = 64 * 1024, /* bytes of room that are kept between commands */
};

/* What happened in the last second, a second each. */
struct rates {
    uint64_t at_ms;
    uint64_t calls_before, in_before, out_before;
    double calls, bytes_in, bytes_out;
};

struct cmd {
    struct cmd_env env;
    struct cmd_limits limits;
    struct users users;
    struct pubsub *pubsub;
    struct tracking tracking;
    struct command_stat *stats; /* one per row of the table */
    struct buf scratch;         /* takes the replies that nobody wants */
    struct pause pause;
    uint64_t next_call;
    uint64_t started_ms;
    uint64_t calls;   /* of all rows */
    uint64_t unknown; /* calls of commands that are not in the table */
    struct list monitors;
    struct slowlog slow;
    struct slowlog waits; /* that were long */
    struct latency *latency;
    struct rates rates;
    uint64_t top_cursor;      /* where LOCKS TOP goes on */
    uint64_t protect_said_ms; /* 0: protected mode has refused nobody yet */
};

/* One command while it runs. Lives on the stack of the dispatcher. */
struct command_ctx {
    struct cmd *cmd;
    struct conn *conn;
    struct client *client;
    const struct command *command;
    const struct span *argv; /* with the command's name */
    size_t argc;
    struct buf *out; /* where its reply goes */
    int proto;
    enum outcome outcome; /* what it was answered, unless it waits */
    uint64_t started_us;
    struct step *step;      /* its place in the client's pipeline, or NULL */
    struct subject subject; /* a lock command: what it names */
    bool muted;             /* nobody wants its reply */
    bool admitted;          /* what is refused from here on has been run */
    bool waits;             /* for the engine */
    bool put_off;           /* it has not run, and comes again */
    bool counted;           /* it has begun before, and been counted */
};

/* Runs or queues it, or refuses it; in any case it is answered, or waits (dispatch.c).
 */
void dispatch(struct command_ctx *ctx);
/* The same for a command that EXEC took from the queue: it is not looked up again. */
void dispatch_queued(struct command_ctx *ctx);

/* --- protected_mode.c ------------------------------------------------- */

/* False: it was told why not. */
bool protect_lets_in(struct cmd *c, struct conn *conn);

/* --- command_ctx.c ---------------------------------------------------- */

/* An error reply; remembers it as the outcome. */
void ctx_error(struct command_ctx *ctx, const char *word, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* "Not there." */
void ctx_null(struct command_ctx *ctx);
void ctx_syntax_error(struct command_ctx *ctx);
void ctx_arity_error(struct command_ctx *ctx);
/* The same, as subcommands say it whose arity depends on more than their name. */
void ctx_subcommand_error(struct command_ctx *ctx);

/* Appends in upper case, as commands are written for people. */
void buf_add_upper(struct buf *out, const char *text);

/* Closes the connection when this reply, or that of EXEC, has been written. */
void ctx_close_after(struct command_ctx *ctx);

/* The connection waits for the engine's answer: cmd_reply() writes it. */
struct call_ref ctx_wait(struct command_ctx *ctx);
/* The same, but commands behind it may begin (pipeline.h). */
struct call_ref ctx_wait_pipelined(struct command_ctx *ctx);

void cmd_reset_stats(struct cmd *c); /* command_stats.c */

/* HELP of a container, from the table. */
void ctx_help(struct command_ctx *ctx);

/* True when the argument is that word, in any case. */
bool ctx_arg_is(const struct command_ctx *ctx, size_t at, const char *word);

/* A signed integer argument, or Redis's error reply. */
bool ctx_arg_int(struct command_ctx *ctx, size_t at, int64_t *ret);

/* Whether this client must say who it is first. */
bool client_needs_auth(const struct cmd *c, const struct client *client);

/* "plain", "fair", ... (cmd_lockinfo.c). */
const char *lock_kind_word(enum lock_kind kind);
/* The engine's answers (reply.c): the first word of an error reply; a reply; what is
 * counted. */
const char *lock_error_word(enum lock_error error);
void reply_write(struct buf *out, const struct client *client,
                 const struct effect_reply *reply);
enum outcome reply_outcome(const struct effect_reply *reply);

/* `kind` and its word; a number, or null for 0 (cmd_lockinfo.c). */
void write_kind(struct buf *out, enum lock_kind kind);
void write_id(struct buf *out, int proto, uint64_t id);
/* LOCKINFO's answer from the engine (cmd_lockinfo.c). */
void lockinfo_write(struct buf *out, int proto, const struct lock_info *info);

/* tracking_push.c: what the engine told is gathered for whom it concerns.. */
void tracking_notice(struct cmd *c, const struct effect_notice *notice);
/* ..and written to that one now. */
void tracking_push(struct cmd *c, struct client *client);
/* The end of CLIENT TRACKING for this client, if it had begun. */
void client_untrack(struct cmd *c, struct client *client);

/* One line of CLIENT LIST (client_line.c). */
void client_write_line(const struct cmd *c, struct conn *conn, struct buf *out);

#endif
