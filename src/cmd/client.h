/* client: what commands know about one connection: its user, how it wants its replies,
 * which call waits, which grants may not have arrived. Created in cmd_on_open() as the
 * conn's data, freed in cmd_on_close(). */
#ifndef LATCHD_CMD_CLIENT_H
#define LATCHD_CMD_CLIENT_H

#include "cmd/command_table.h"
#include "cmd/multi.h"
#include "cmd/pubsub/pubsub.h"
#include "cmd/subject.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CLIENT_NAME_MAX = 256,    /* bytes of SETNAME */
    CLIENT_LIB_MAX = 128,     /* bytes of SETINFO's values */
    SUBSCRIPTION_BYTES = 256, /* memory of one subscription, roughly */
};

struct acl_user;
struct buf;
struct cmd;
struct conn;
struct grants;
struct library_call;

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

/* What the waiting call is about, if it is no lock library's command. */
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

#endif
