/* client: what commands know about one connection: who it is, how it wants its replies,
 * which call waits, what was granted but may not have arrived.
 *
 * Made in cmd_on_open(), hangs on the conn as its data, freed in cmd_on_close(). */
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
    SUBSCRIPTION_BYTES = 256, /* what one costs, about */
};

struct acl_user;
struct grants;

/* What may be known of a client as text. */
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
    uint16_t failed_logins; /* since the last that did not fail */
    uint8_t proto;          /* 2 or 3 */
    bool authed : 1;        /* it has said so, or did not need to */
    bool met : 1;           /* its certificate was looked at, if it has one */
    bool trusted : 1;       /* conn_set_trusted() was told */
    bool reply_off : 1;
    bool skip : 1;       /* this command's reply is dropped */
    bool skip_next : 1;  /* CLIENT REPLY SKIP came */
    bool call_muted : 1; /* the reply of the call that waits is dropped */
    bool exempt : 1;     /* CLIENT NO-EVICT */
    bool leaving : 1;    /* the connection closes when EXEC has been answered */

    struct pipeline *pipeline; /* calls that wait beside each other; NULL: none do */
    /* The call that waits for the engine alone; 0: none. */
    uint64_t call;
    uint64_t call_us; /* when it began, CLOCK_BOOTTIME */
    struct subject call_subject;

    struct multi *multi;               /* NULL: no transaction */
    struct deferred_command *deferred; /* the request that was put off, or NULL */
    struct grants *grants;             /* see client_granted() */

    struct subscriber sub;
    struct list monitors;    /* on cmd->monitors, if it is one */
    struct tracker *tracker; /* CLIENT TRACKING; NULL: off */
};

struct client *client_new(uint64_t id);
/* Subscriptions must be gone. Accepts NULL. */
void client_free(struct client *cl);

/* Back to what it was when it connected, except for holds and waits. */
void client_reset(struct client *cl);

/* Bytes that are kept for it besides the connection's buffers, about. */
size_t client_bytes(const struct client *cl);

/* True when the text fits a name: printable, no space. */
bool client_text_ok(struct span text);
/* NULL: it is not known. */
const char *client_text(const struct client *cl, enum client_text which);
/* Replaces it by a copy; empty: none. */
void client_set_text(struct client *cl, enum client_text which, struct span text);

/* A grant's reply was written after `input` reads: while no further input comes, the
 * client may not have seen it. The list is as long as what came in one read asked for.
 */
void client_granted(struct client *cl, uint64_t grant, uint64_t input);
/* The grants that are in doubt when the connection ends after `input` reads. */
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

static inline bool client_muted(const struct client *cl)
{
    return cl->reply_off || cl->skip;
}

/* It waits, for the engine or for the end of a pause. */
static inline bool client_is_blocked(const struct client *cl)
{
    return cl->call != 0 || cl->pipeline != NULL || cl->deferred != NULL;
}

/* RESP2 clients that subscribed can run little else. */
static inline bool client_is_subscribed(const struct client *cl)
{
    return cl->sub.channels + cl->sub.patterns != 0;
}

#endif
