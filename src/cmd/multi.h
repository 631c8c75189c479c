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
 * them, and what they granted is taken back. cmd.c runs them. */
#ifndef LATCHD_CMD_MULTI_H
#define LATCHD_CMD_MULTI_H

#include "util/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client;
struct deferred_command;
struct span;
struct watch;

enum multi_state { MULTI_WATCHING, MULTI_QUEUEING, MULTI_RUNNING };

enum {
    MULTI_COMMANDS_MAX = 10000,    /* queued by one connection, */
    MULTI_BYTES_MAX = 1024 * 1024, /* and the memory that they take */
};

/* A grant among the replies of EXEC. */
struct multi_grant {
    uint64_t grant;
    size_t from; /* where its reply is in `out` */
    size_t len;
    size_t at; /* index of its command */
};

struct multi {
    enum multi_state state;
    struct watch *watch; /* the keys of WATCH, or NULL */
    bool spoilt;         /* a command was refused */
    bool writes;
    struct deferred_command **queue;
    size_t count;
    size_t room;
    size_t bytes;
    size_t next; /* the next command to run */
    struct buf out;
    size_t answered; /* bytes of `out` before the reply to the command that runs */
    struct multi_grant *grants;
    size_t grant_count;
    size_t grant_room;
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

/* The client's transaction; made if there is none. */
struct multi *multi_make(struct client *client);
/* Ends the transaction, and what it watched. */
void multi_drop(struct client *client);
/* Queues a command. False: they are too many, or too large. */
bool multi_add(struct multi *m, struct deferred_command *k);
/* Notes that the last reply is a grant, which is taken back if the client goes. */
void multi_granted(struct multi *m, uint64_t grant);

#endif
