/* script_key: what a run's commands see of its keys, and what they make of them. */
#ifndef LATCHD_LOCKSCRIPT_SCRIPT_KEY_H
#define LATCHD_LOCKSCRIPT_SCRIPT_KEY_H

#include "lockscript/script_run.h"

/* The key that an argument of a command names, as it is now: chooses what it was found
 * to be, and whether it got lost meanwhile. NULL: the script was refused. */
struct script_key *script_key_touch(struct script_analysis *a, unsigned line,
                                    const struct lua_value *name);
/* SET: the value, with an end. */
void script_key_set(struct script_key *key, const struct lock_end_plan *end);
void script_key_delete(struct script_key *key);
/* EXPIRE and its kin, of a key that is there. */
void script_key_expire(struct script_key *key, const struct lock_end_plan *end);
/* What TTL or PTTL say of a key that is there. */
enum lua_ttl_left script_key_left(struct script_analysis *a, struct script_key *key,
                                  enum lock_unit unit);

#endif
