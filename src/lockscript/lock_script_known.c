#include "lockscript/lock_plan.h"
#include "util/sha1.h"

#include <stdlib.h>

struct known_script {
    char sha1[SHA1_HEX_LEN + 1];
    struct lock_script script;
};

/* By their SHA1. tests/clients/lock_scripts.py makes this from the libraries' packages,
 * and checks it against them. */
static const struct known_script KNOWN[] = {
#include "lockscript/known_scripts.inc"
};

/* A release that also makes a list for waiters, whom only a Redis can serve: the lock
 * is released, and no list is made. Without it a lock that was taken would stay. */
static const struct known_script BY_HAND[] = {
    { "90da91872223f85eb1376a17e3c4df21ace8c54b", /* python-redis-lock 3.7 to 4.0 */
      { .keys_named = 2,
        .keys_locked = 1,
        .plans[0] = { .kind = LOCK_CALL_RELEASE,
                      .compare = LOCK_COMPARE_VALUE,
                      .value_arg = 1,
                      .replies[LOCK_KEY_FREE] = { LOCK_REPLY_INTEGER, .integer = 1 },
                      .replies[LOCK_KEY_MINE] = { LOCK_REPLY_INTEGER, .integer = 0 },
                      .replies[LOCK_KEY_MINE_ENDLESS] = { LOCK_REPLY_INTEGER,
                                                          .integer = 0 },
                      .replies[LOCK_KEY_OTHERS] = { LOCK_REPLY_INTEGER, .integer = 1 },
                      .replies[LOCK_KEY_NOT_A_STRING] = { LOCK_REPLY_WRONG_TYPE } } } },
};

static int compare_sha1(const void *sha1, const void *known)
{
    return memcmp(sha1, ((const struct known_script *)known)->sha1, SHA1_HEX_LEN);
}

const struct lock_script *lock_script_known(struct span sha1)
{
    const struct known_script *found;
    char lower[SHA1_HEX_LEN + 1];

    if (!sha1_hex_copy(sha1, lower)) {
        return NULL;
    }
    found = bsearch(lower, KNOWN, sizeof(KNOWN) / sizeof(KNOWN[0]), sizeof(KNOWN[0]),
                    compare_sha1);
    for (size_t i = 0; i < sizeof(BY_HAND) / sizeof(BY_HAND[0]) && found == NULL; i++) {
        found = compare_sha1(lower, &BY_HAND[i]) == 0 ? &BY_HAND[i] : NULL;
    }
    return found == NULL ? NULL : &found->script;
}
