/* users: the users that clients log in as: the ACL over the table of commands, the log
 * of what it refused, and the failed logins of each address. Part of struct cmd. A
 * connection always has a user. Until its client logs in, and as long as no login is
 * needed, this is `default`. */
#ifndef LATCHD_CMD_USERS_H
#define LATCHD_CMD_USERS_H

#include "acl/acl.h"
#include "acl/denials.h"
#include "cmd/client.h"
#include "util/span.h"
#include "util/throttle.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cmd;
struct command_ctx;
struct conn;

enum {
    LOGIN_TRIES_MAX = 10, /* failures in a row, then the connection is closed */
    /* Of an address; while it has no more, passwords from there are not even checked.
     */
    LOGIN_FAILURES_BURST = 100,
    LOGIN_FAILURES_PER_SECOND = 20,
    LOGIN_ADDRESSES_MAX = 4096,
};

struct users {
    struct acl *acl;
    struct denials *denials;
    struct throttle *throttle;
    size_t force; /* the row of FORCEUNLOCK */
};

void users_init(struct users *u);
void users_fini(struct users *u);

/* Makes `user` the client's user; NULL releases the old one. */
void client_set_user(struct client *client, struct acl_user *user);

/* Whether the client must log in before other commands. */
bool client_needs_auth(const struct cmd *c, const struct client *client);

/* Logs a client in by its TLS certificate, before its first request. */
void users_meet(struct cmd *c, struct conn *conn, struct client *client);

/* After users were changed or deleted: closes the connections of deleted users, and
 * those subscribed to channels that their user may no longer use, and refuses commands
 * that wait for names that their user may no longer use. The connection of `ctx` (may
 * be NULL) is answered first. */
void users_changed(struct cmd *c, struct command_ctx *ctx);

/* For the daemon. */

/* Makes requirepass the only password of the user `default`. */
void cmd_password_changed(struct cmd *c);
/* Replaces all users by those of an ACL file, and closes the connections of users that
 * are not in it; the connection of `ctx` (may be NULL) is answered first. On false
 * nothing is changed, and reterr says what is wrong, with `name` and line. */
bool cmd_load_users(struct cmd *c, const char *name, struct span text,
                    struct command_ctx *ctx, struct buf *reterr);
/* Checks the text of an ACL file without loading it. */
bool cmd_check_users(const char *name, struct span text, struct buf *reterr);

/* --- users.c ------------------------------------------------------ */

enum acl_verdict { ACL_ALLOWED, ACL_NO_COMMAND, ACL_NO_NAME, ACL_NO_CHANNEL };

/* Whether the user may run the command with these arguments. If not, *ret_object is
 * the command, name or channel that is refused. */
enum acl_verdict acl_check_command(const struct acl_user *user,
                                   const struct command *command,
                                   const struct span *argv, size_t argc,
                                   struct span *ret_object);
/* The same for a command context; a refusal is answered and goes into the ACL log. */
bool acl_check_admits(struct command_ctx *ctx);
/* The same for a command that was queued for EXEC: permissions may have changed since.
 */
bool acl_check_still_admits(struct command_ctx *ctx);
/* Records a refusal for ACL LOG and INFO. */
void acl_check_denied(struct command_ctx *ctx, enum denial_reason reason,
                      struct span object, struct span user);
bool ctx_overrides(const struct command_ctx *ctx);

/* sight: what a user may see of a name and of its holders. Every reply, list, notice
 * and page that tells of holders asks here, so that none tells what another one
 * refuses.
 *
 * Who may not read a name sees nothing of it, but for holds of the same user. The token
 * of a lock library's hold is shown only to users who may act on the holds of others:
 * with it they name a hold whose value they need not know. LEADER tells it to nobody.
 * The status page has no users: it is the operator's, and shows all. */

enum sight {
    SIGHT_NOTHING, /* not even that there is a hold */
    SIGHT_HOLDER,  /* all but the tokens of lock libraries' holds */
    SIGHT_ALL,
};

/* `of_user` is the number of the user whose hold it is; 0: not known. */
enum sight sight_of(const struct cmd *c, const struct client *client, struct span name,
                    uint32_t of_user);
/* Whether the user with that number may read the name. */
bool sight_user_may_read(const struct cmd *c, uint32_t user, struct span name);
/* The token to show of a hold with that owner; 0: none. */
uint64_t sight_token(enum sight sight, struct span owner, uint64_t token);

#endif
