#include "lockscript/lock_plan.h"

#include <stdlib.h>

enum { SHA1_DIGITS = 40 };

struct known_script {
    char sha1[SHA1_DIGITS + 1];
    struct lock_script script;
};

/* By their SHA1. tests/clients/lock_scripts.py makes this from the libraries' packages,
 * and checks it against them. */
static const struct known_script KNOWN[] = {
#include "lockscript/known_scripts.inc"
};

static int compare_sha1(const void *sha1, const void *known)
{
    return memcmp(sha1, ((const struct known_script *)known)->sha1, SHA1_DIGITS);
}

const struct lock_script *lock_script_known(struct span sha1)
{
    const struct known_script *found;
    char lower[SHA1_DIGITS];

    if (sha1.len != SHA1_DIGITS) {
        return NULL;
    }
    for (size_t i = 0; i < SHA1_DIGITS; i++) {
        char c = sha1.ptr[i];

        lower[i] = c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c;
    }
    found = bsearch(lower, KNOWN, sizeof(KNOWN) / sizeof(KNOWN[0]), sizeof(KNOWN[0]),
                    compare_sha1);
    return found == NULL ? NULL : &found->script;
}
