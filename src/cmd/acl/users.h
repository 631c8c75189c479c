/* users: who clients are, as far as commands care: the ACL over the table of commands,
 * what it refused, and how often addresses failed to log in. Part of struct cmd.
 *
 * A client always is some user; until it has said who it is, and while nobody needs to,
 * it is `default`. */
#ifndef LATCHD_CMD_ACL_USERS_H
#define LATCHD_CMD_ACL_USERS_H

#include "acl/acl.h"
#include "acl/denials.h"
#include "acl/throttle.h"
#include "cmd/client.h"

#include <stdbool.h>
#include <stddef.h>

struct command_ctx;
struct cmd;
struct conn;

enum {
    LOGIN_TRIES_MAX = 10, /* failures in a row that close a connection */
};

struct users {
    struct acl *acl;
    struct denials *denials;
    struct throttle *throttle;
    size_t force; /* the row of FORCEUNLOCK */
};

void users_init(struct users *u);
void users_fini(struct users *u);

/* NULL: it goes. */
void client_set_user(struct client *client, struct acl_user *user);

/* Before its first request: a certificate may tell who it is. */
void users_meet(struct cmd *c, struct conn *conn, struct client *client);

/* After users were changed or deleted: closes the connections of those that are gone,
 * and those that listen to channels that are not theirs any more. `ctx`: whose own
 * connection is answered first, or NULL. */
void users_kick(struct cmd *c, struct command_ctx *ctx);

/* Logs in, or answers why not (cmd_auth.c). */
bool ctx_log_in(struct command_ctx *ctx, struct span user, struct span password);

/* --- acl_check.c ------------------------------------------------------ */

enum acl_verdict { ACL_ALLOWED, ACL_NO_COMMAND, ACL_NO_NAME, ACL_NO_CHANNEL };

/* Whether that user may run it with these arguments; *ret_object: what he may not. */
enum acl_verdict acl_check_command(const struct acl_user *user,
                                   const struct command *command,
                                   const struct span *argv, size_t argc,
                                   struct span *ret_object);
/* The same for a call; if not, that is answered and remembered. */
bool acl_check_admits(struct command_ctx *ctx);
/* The same for a command that has waited for EXEC. */
bool acl_check_still_admits(struct command_ctx *ctx);
/* Remembers what was refused to this client, for ACL LOG and INFO. */
void acl_check_denied(struct command_ctx *ctx, enum denial_reason reason,
                      struct span object, struct span user);

/* Whether this client may be told of that name, by CLIENT TRACKING BCAST. */
bool client_may_see(const struct client *client, struct span name);
/* Whether its user may use what other users took: by the right to FORCEUNLOCK. */
bool ctx_overrides(const struct command_ctx *ctx);

#endif
