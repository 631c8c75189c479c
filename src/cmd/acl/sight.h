/* sight: what a user may see of a name and of its holders. Every reply, list, notice
 * and page that tells of holders asks here, so that none tells what another one
 * refuses.
 *
 * Who may not read a name sees nothing of it, but for holds of the same user. The token
 * of a lock library's hold is shown only to users who may act on the holds of others:
 * with it they name a hold whose value they need not know. LEADER tells it to nobody.
 * The status page has no users: it is the operator's, and shows all. */
#ifndef LATCHD_CMD_ACL_SIGHT_H
#define LATCHD_CMD_ACL_SIGHT_H

#include "util/span.h"

#include <stdbool.h>
#include <stdint.h>

struct client;
struct cmd;

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
