/* user_check: refuses requests that name another user's owner, token or ID. Private to
 * engine/. */
#ifndef LATCHD_ENGINE_USER_CHECK_H
#define LATCHD_ENGINE_USER_CHECK_H

#include "engine/objects.h"
#include "util/span.h"

#include <stdbool.h>
#include <stdint.h>

bool user_differs(uint32_t a, uint32_t b);
/* Whether that owner holds the lock here for another user. */
bool lock_owner_is_others(const struct lock *lock, struct span owner, uint32_t user);
/* Refuses what names another user's; `request` is what its ID names, or NULL. True: it
 * has been answered. */
bool user_refuses(struct engine *eng, const struct lock *lock,
                  const struct request *request, const struct hold_req *req);
/* user_refuses() for an UNLOCK that has been waiting for its turn. */
bool user_refuses_release(struct engine *eng, struct lock *lock,
                          struct pending_release *d);

#endif
