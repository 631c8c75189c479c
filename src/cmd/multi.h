/* multi: a transaction: commands that are queued from MULTI on, and run one after the
 * other by EXEC. Nothing is promised but their order: others come in between, and what
 * was done stays done when a later one fails. After WATCH it is one command, which
 * compares and acts in one step (library/watch.h).
 *
 *   none, WATCHING -- MULTI --> QUEUEING -- EXEC --> RUNNING -- all answered --> none
 *                                  \_ DISCARD, RESET, or EXEC that is refused -> none
 *
 * RUNNING: each command is a step of its own, by conn_again(); one that waits for the
 * engine suspends the connection as always. Replies are gathered, and leave as one
 * array when the last is there; so a client that goes in the middle has seen none of
 * them, and what they granted is taken back. */
#ifndef LATCHD_CMD_MULTI_H
#define LATCHD_CMD_MULTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct command_ctx;
struct client;
struct cmd;
struct conn;
struct multi;
struct span;
struct watch;

enum multi_state { MULTI_WATCHING, MULTI_QUEUEING, MULTI_RUNNING };

enum {
    MULTI_COMMANDS_MAX = 10000,    /* queued by one connection, */
    MULTI_BYTES_MAX = 1024 * 1024, /* and the memory that they take */
};

/* Frees a transaction. Accepts NULL. */
void multi_free(struct multi *m);
/* The number of queued commands; -1: no transaction. */
int64_t multi_count(const struct multi *m);
/* The memory of a transaction in bytes. */
size_t multi_bytes(const struct multi *m);
/* Whether a queued command changes something. */
bool multi_writes(const struct multi *m);
/* Whether MULTI came, and EXEC or DISCARD has not ended it. Accepts NULL. */
bool multi_is_open(const struct multi *m);
/* Whether EXEC runs, and not every command is answered yet. Accepts NULL. */
bool multi_is_running(const struct multi *m);

/* What WATCH remembers until the transaction ends; NULL: nothing. Accepts NULL. */
struct watch *multi_watch(const struct multi *m);
/* Adds keys to that. False: they are too many, and none was added. */
bool multi_watch_keys(struct client *client, const struct span *keys, size_t count);
void multi_unwatch(struct client *client);

/* Queues or refuses the command, and writes the reply. */
bool multi_queue(struct command_ctx *ctx);
/* Marks the transaction as spoilt, after a command was refused before it was queued:
 * EXEC runs nothing, and ends it. */
void multi_refused(struct command_ctx *ctx);

/* Runs the next command; the connection may be closed afterwards. */
void multi_step(struct cmd *c, struct conn *conn);
/* Goes on after the reply to a waiting command was appended to multi_out(), or
 * dropped. False: the connection was closed. */
bool multi_answered(struct cmd *c, struct conn *conn);
struct buf *multi_out(struct multi *m);
/* Notes that the last reply is a grant, which is taken back if the client goes. */
void multi_granted(struct multi *m, uint64_t grant);
/* The connection ended while RUNNING: takes the grants back, as the client cannot have
 * seen them. */
void multi_abandon(struct cmd *c, const struct client *client);

#endif
