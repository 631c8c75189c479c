/* lock_script_cache: the scripts that clients of this daemon sent, by their SHA1.
 *
 * A text is read once, when it is first seen; from then on SCRIPT LOAD, EVAL and
 * EVALSHA find what it is. Known scripts need no place here. At most LOCK_SCRIPTS_MAX
 * scripts are kept, and of texts that are no lock operation the last
 * LOCK_SCRIPT_FAILURES_MAX, so that the same one costs nothing again; both forget what
 * was not used for longest. Each user may bring a number of new texts at a time:
 * LOCK_SCRIPT_TEXTS_BURST. */
#ifndef LATCHD_LOCKSCRIPT_LOCK_SCRIPT_CACHE_H
#define LATCHD_LOCKSCRIPT_LOCK_SCRIPT_CACHE_H

#include "lockscript/lock_script.h"
#include "util/sha1.h"

enum {
    LOCK_SCRIPTS_MAX = 500,
    LOCK_SCRIPT_FAILURES_MAX = 500,
    LOCK_SCRIPT_TEXTS_BURST = 100, /* new texts of a user, at once */
    LOCK_SCRIPT_TEXTS_PER_SECOND = 10,
    LOCK_SCRIPT_USERS_MAX = 1000, /* with a rate of their own at a time */
};

struct lock_script_cache;

struct lock_script_cache *lock_script_cache_new(void);
void lock_script_cache_free(struct lock_script_cache *c);

enum lock_script_load {
    LOCK_SCRIPT_LOADED,
    LOCK_SCRIPT_REFUSED,  /* no lock operation: *ret_error says why */
    LOCK_SCRIPT_TOO_MANY, /* the user brings too many new texts: later */
};

/* EVAL and SCRIPT LOAD: what `text` is, which is read if it is new. Sets ret_sha1 in
 * any case. *ret is the cache's, or constant: use it before the next call. */
enum lock_script_load lock_script_cache_load(struct lock_script_cache *c,
                                             struct span user, struct span text,
                                             uint64_t now_ms,
                                             char ret_sha1[SHA1_HEX_LEN + 1],
                                             const struct lock_script **ret,
                                             struct lock_script_error *ret_error);

/* EVALSHA and SCRIPT EXISTS: the script with that SHA1, 40 hex digits of either case;
 * NULL: it is neither known nor here, which Redis calls NOSCRIPT. It is the cache's, or
 * constant: use it before the next call. */
const struct lock_script *lock_script_cache_find(struct lock_script_cache *c,
                                                 struct span sha1);

/* SCRIPT FLUSH: forgets all scripts but the known ones. The failures stay. */
void lock_script_cache_flush(struct lock_script_cache *c);

/* Scripts, and failures, that are kept. */
size_t lock_script_cache_count(const struct lock_script_cache *c);
size_t lock_script_cache_failures(const struct lock_script_cache *c);

#endif
