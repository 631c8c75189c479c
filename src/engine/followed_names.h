/* followed_names: the names whose leaders the clients of other daemons follow.
 *
 * Redis tells nobody of a grant, nor of a hand-over. So a daemon that watches a name
 * says so on the channel on which daemons announce themselves, again every
 * FOLLOWED_AGAIN_MS, and each daemon announces the changes that it makes there:
 *
 *   follow <instance> <number> <name>    a client of mine follows the name
 *   leader <instance> <number> <name>    the leader of the name has changed
 *
 * An announcement that is lost costs a moment: watches also look by themselves.
 * Private to engine/. */
#ifndef LATCHD_ENGINE_FOLLOWED_NAMES_H
#define LATCHD_ENGINE_FOLLOWED_NAMES_H

#include "engine/objects.h"
#include "util/span.h"

#include <stdbool.h>

enum {
    FOLLOWED_AGAIN_MS = 10000,
    FOLLOWED_MS = 30000, /* after this without another announcement nobody follows */
    FOLLOWED_MAX =
        16384, /* names; for more, other daemons have to look by themselves */
};

#define FOLLOWED_WORD "follow"

void followed_names_init(struct engine *eng);
void followed_name_announce(struct engine *eng, const char *word, struct span name);
/* Announces that another client of this daemon leads, or none does any more. */
void followed_name_step(struct engine *eng, struct lock *lock);
/* Whether a client of another daemon follows the name. Such a name is not lent: that
 * daemon would take the loan's token for a leader's. */
bool followed_name_is(const struct engine *eng, struct span name);
/* True: it was an announcement of these; *ret_changed is the name whose leader has
 * changed, or empty. */
bool followed_names_on_announcement(struct engine *eng, struct span text,
                                    struct span *ret_changed);

#endif
