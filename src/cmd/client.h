/* client: what commands know about one connection: its user, how it wants its replies,
 * which call waits, which grants may not have arrived. Created in cmd_on_open() as the
 * conn's data, freed in cmd_on_close(). */
#ifndef LATCHD_CMD_CLIENT_H
#define LATCHD_CMD_CLIENT_H

#include "cmd/command_table.h"
#include "cmd/pubsub.h"
#include "util/buf.h"
#include "util/list.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct acl_user;
struct client;
struct cmd;
struct command_ctx;
struct conn;
struct deferred_command;
struct grants;
struct library_call;
struct lock_args;
struct watch;

/* subject: the request or hold that a lock command names in its arguments. Names are
 * hashed: two commands whose hashes collide merely wait for each other. */

struct subject {
    uint32_t id;    /* hash of its ID; 0: no ID */
    uint32_t owner; /* hash of its OWNER; 0: no OWNER */
};

struct subject subject_of(const struct lock_args *args);
/* Whether two commands name the same ID or OWNER. */
bool subject_overlaps(struct subject a, struct subject b);

/* multi: a transaction: commands that are queued from MULTI on, and run one after the
 * other by EXEC. Nothing is promised but their order: others come in between, and what
 * was done stays done when a later one fails. After WATCH it is one command, which
 * compares and acts in one step (cmd/library_args.h).
 *
 *   none, WATCHING -- MULTI --> QUEUEING -- EXEC --> RUNNING -- all answered --> none
 *                                  \_ DISCARD, RESET, or EXEC that is refused -> none
 *
 * RUNNING: each command is a step of its own, by conn_again(); one that waits for the
 * engine suspends the connection as always. Replies are gathered, and leave as one
 * array when the last is there; so a client that goes in the middle has seen none of
 * them, and what they granted is taken back. cmd.c runs them. */

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
/* Whether a queued command changes something. */
bool multi_writes(const struct multi *m);
/* Whether MULTI came, and EXEC or DISCARD has not ended it. Accepts NULL. */
bool multi_is_open(const struct multi *m);
/* Whether EXEC runs, and not every command is answered yet. Accepts NULL. */
bool multi_is_running(const struct multi *m);

/* The keys of WATCH until the transaction ends; NULL: none. Accepts NULL. */
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

enum {
    CLIENT_NAME_MAX = 256,    /* bytes of SETNAME */
    CLIENT_LIB_MAX = 128,     /* bytes of SETINFO's values */
    SUBSCRIPTION_BYTES = 256, /* memory of one subscription, roughly */
};

/* The texts that a client may have set about itself, and its address. */
enum client_text {
    CLIENT_NAME,
    CLIENT_LIB_NAME,
    CLIENT_LIB_VER,
    CLIENT_ADDRESS, /* of its peer, see log_identity_connected() */
    CLIENT_TEXTS
};

struct client {
    uint64_t id;
    struct acl_user *user;  /* never NULL while the connection is open */
    char **texts;           /* see client_text(); NULL: none was ever set */
    uint16_t last;          /* see client_last() */
    uint16_t failed_logins; /* since the last successful login */
    uint8_t proto;          /* 2 or 3 */
    bool authenticated : 1; /* logged in, or no login was needed */
    bool cert_checked : 1;  /* its certificate, if any, was checked */
    bool trusted : 1;       /* as conn_set_trusted() was called last */
    bool reply_off : 1;
    bool skip : 1;            /* the reply of the current command is dropped */
    bool skip_next : 1;       /* CLIENT REPLY SKIP: so is that of the next one */
    bool call_muted : 1;      /* the reply of the waiting call is dropped */
    bool exempt : 1;          /* CLIENT NO-EVICT */
    bool call_is_library : 1; /* the waiting call is a lock library's command */
    bool leaving : 1;         /* the connection closes after EXEC's reply */

    struct pipeline *pipeline; /* commands in flight together, or NULL */
    /* The number of the one call that waits for the engine outside a pipeline; 0:
     * none. */
    uint64_t call;
    uint64_t call_us; /* when it began, CLOCK_BOOTTIME */
    union {           /* by call_is_library */
        struct subject call_subject;
        struct library_call *call_library;
    };

    struct multi *multi;               /* NULL: no transaction, and no WATCH */
    struct deferred_command *deferred; /* the request that is deferred, or NULL */
    struct grants *grants;             /* see client_granted() */

    struct subscriber sub;
    struct list monitors;    /* in cmd->monitors after MONITOR */
    struct tracker *tracker; /* CLIENT TRACKING; NULL: off */
};

struct client *client_new(uint64_t id);
/* Frees a client that has no subscriptions any more, and waits for nothing. Accepts
 * NULL. */
void client_free(struct client *cl);

/* RESET: restores the state of a new connection, except for holds and waits. */
void client_reset(struct client *cl);

/* The client's memory in bytes without the connection's buffers, roughly. */
size_t client_bytes(const struct client *cl);

/* The command that waits for the engine under that number, or NULL. */
const struct command *client_waiting(const struct client *cl, uint64_t number);

/* Appends the connection's line of CLIENT LIST. */
void client_write_line(const struct cmd *c, struct conn *conn, struct buf *out);

/* Whether a text is allowed as a client name: printable, no space. */
bool client_text_ok(struct span text);
/* One of the client's texts, or NULL if it was never set. */
const char *client_text(const struct client *cl, enum client_text which);
/* Replaces one of the client's texts by a copy; an empty text removes it. */
void client_set_text(struct client *cl, enum client_text which, struct span text);

/* Remembers a grant whose reply was written after `input` reads. Until more input
 * arrives, the client may not have seen this reply. The list is as long as the number
 * of commands that arrived in one read. */
void client_granted(struct client *cl, uint64_t grant, uint64_t input);
/* The grants whose replies may not have arrived when the connection ends after `input`
 * reads. */
size_t client_doubtful(const struct client *cl, uint64_t input, const uint64_t **ret);

/* The command that ran last, or waits alone. */
static inline const struct command *client_last(const struct client *cl)
{
    return cl->last == 0 ? NULL : &COMMANDS[cl->last - 1];
}

static inline void client_set_last(struct client *cl, const struct command *command)
{
    cl->last = (uint16_t)(command - COMMANDS + 1);
}

/* The subject of the waiting call, if it is no lock library's command. */
static inline struct subject client_subject(const struct client *cl)
{
    return cl->call_is_library ? (struct subject){ 0 } : cl->call_subject;
}

/* The waiting call, if it is a lock library's command; else NULL. */
static inline struct library_call *client_library(const struct client *cl)
{
    return cl->call_is_library ? cl->call_library : NULL;
}

/* Makes `library`, or nothing (NULL), what the waiting call is. */
static inline void client_set_library(struct client *cl, struct library_call *library)
{
    cl->call_is_library = library != NULL;
    cl->call_library = library;
}

static inline bool client_muted(const struct client *cl)
{
    return cl->reply_off || cl->skip;
}

/* Whether the client waits for the engine, or for the end of a pause. */
static inline bool client_is_blocked(const struct client *cl)
{
    return cl->call != 0 || cl->pipeline != NULL || cl->deferred != NULL;
}

/* Whether the client is a RESP2 subscriber, which may run few commands. */
static inline bool client_is_subscribed(const struct client *cl)
{
    return cl->sub.channels + cl->sub.patterns != 0;
}

/* deferred_command: a copy of a request that runs later, because it is part of a
 * transaction or was put off. One block of memory. */

struct deferred_command {
    struct list in_pause; /* in pause.deferred during CLIENT PAUSE */
    uint64_t conn;        /* its connection */
    const struct command *command;
    size_t bytes; /* size of this block */
    size_t argc;
    struct span argv[]; /* the bytes follow the array */
};

/* Copies the arguments of a command. */
struct deferred_command *deferred_command_new(const struct command_ctx *ctx)
    __attribute__((malloc, returns_nonnull, warn_unused_result));
/* Accepts NULL. */
void deferred_command_free(struct deferred_command *k);

#endif
