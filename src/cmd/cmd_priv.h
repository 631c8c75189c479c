/* cmd_priv: what the files of cmd/ share about a running command; private to cmd/. The
 * state of a connection is in client.h. */
#ifndef LATCHD_CMD_CMD_PRIV_H
#define LATCHD_CMD_CMD_PRIV_H

#include "cmd/acl/users.h"
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/command_table.h"
#include "cmd/connection/client_pause.h"
#include "cmd/library/library_call.h"
#include "cmd/observe/command_stats.h"
#include "cmd/observe/losses.h"
#include "cmd/observe/slowlog.h"
#include "cmd/pubsub/pubsub.h"
#include "cmd/pubsub/tracking.h"
#include "latchd/protocol.h"
#include "resp/writer.h"
#include "util/recent.h"

/* The Redis version that HELLO and INFO report; clients derive features from it. */
#define REDIS_COMPAT_VERSION "7.2.0"

enum {
    SCRATCH_KEEP = 64 * 1024, /* bytes of scratch that are kept between commands */
};

/* Counts of the last second, for INFO. */
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
    struct buf scratch;         /* takes replies that are dropped */
    struct pause pause;
    uint64_t next_call;
    uint64_t started_ms;
    uint64_t calls;       /* of all rows */
    uint64_t unknown;     /* calls of commands that are not in the table */
    uint64_t answered_us; /* the time of the answers of this round; 0: none yet */
    struct list monitors;
    struct slowlog slow;
    struct slowlog waits; /* long waits, for SLOWLOG WAITS */
    struct latency *latency;
    struct losses *losses;             /* the last ones */
    struct losses *expired;            /* and the last holds that expired */
    struct recent refusals;            /* of lock libraries, for the log */
    struct lock_script_cache *scripts; /* of lock libraries; NULL: none came yet */
    struct recent pollers;             /* lock libraries that ask again and again */
    struct rates rates;
    uint64_t top_cursor;      /* where the next LOCKS TOP begins */
    struct list redis_names;  /* redis_names.in_all */
    uint64_t protect_said_ms; /* last log line about a refusal; 0: none yet */
};

/* One command while it runs, on the stack of its caller. */
struct command_ctx {
    struct cmd *cmd;
    struct conn *conn;
    struct client *client;
    const struct command *command;
    const struct span *argv; /* with the command's name */
    size_t argc;
    struct buf *out; /* where the reply goes */
    int proto;
    enum outcome outcome;   /* outcome of the reply, unless it waits */
    uint64_t started_us;    /* 0: when it is executed */
    struct step *step;      /* its place in the client's pipeline, or NULL */
    struct subject subject; /* of a lock command: the request or owner that it names */
    struct library_call *library; /* of a lock library's command that waits; or NULL */
    bool muted;                   /* its reply is dropped */
    bool admitted; /* admitted by the ACL: later errors count as failed, not rejected */
    bool waits;    /* for an answer of the engine */
    bool put_off;  /* deferred: it has not run, and comes again */
    bool counted;  /* was counted when it began for the first time */
};

/* Runs, queues or refuses the command. Afterwards it is answered, or waits
 * (cmd.c). */
void dispatch_command(struct command_ctx *ctx);
/* The same for a command that EXEC takes from the queue; the table is not searched
 * again. */
void dispatch_queued(struct command_ctx *ctx);

/* --- protected_mode.c ------------------------------------------------- */

/* Protected mode. False: the connection is refused, and the error is written. */
bool protect_lets_in(struct cmd *c, struct conn *conn);

/* --- cmd.c ---------------------------------------------------- */

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

/* Makes the connection wait for the engine's answer, which cmd_reply() writes. */
struct call_ref ctx_wait(struct command_ctx *ctx);
/* The same, but commands behind it may begin (pipeline.h). */
struct call_ref ctx_wait_pipelined(struct command_ctx *ctx);

void cmd_reset_stats(struct cmd *c); /* command_stats.c */

/* Replies with the HELP of a container command, made from the table. */
void ctx_help(struct command_ctx *ctx);

/* Whether the argument is `word`, in upper or lower case. */
bool ctx_arg_is(const struct command_ctx *ctx, size_t at, const char *word);

/* Parses a signed integer argument; on failure writes Redis's error reply. */
bool ctx_arg_int(struct command_ctx *ctx, size_t at, int64_t *ret);

/* The engine's answers (cmd.c): the first word of an error, the bytes of a reply,
 * and the outcome that is counted. `library`: of a lock library's command, or NULL. */
const char *lock_error_word(enum lock_error error);
void reply_write(const struct cmd *c, struct buf *out, const struct client *client,
                 const struct library_call *library, const struct effect_reply *reply);
enum outcome reply_outcome(const struct library_call *library,
                           const struct effect_reply *reply);

/* Writes LOCKINFO's reply (cmd_lockinfo.c). The tokens of lock libraries' holds are for
 * who names their values, and for a client that overrides owners. */
void lockinfo_write(const struct cmd *c, const struct client *client, struct buf *out,
                    const struct lock_info *info);

/* tracking.c: collects a notice for the connections that it concerns. */
void tracking_notice(struct cmd *c, const struct effect_notice *notice);
/* Writes the collected notices to this client now. */
void tracking_push(struct cmd *c, struct client *client);
/* Ends CLIENT TRACKING for the client, if it is on. */
void client_untrack(struct cmd *c, struct client *client);

/* Appends one line of CLIENT LIST (client_line.c). */
void client_write_line(const struct cmd *c, struct conn *conn, struct buf *out);

#endif
