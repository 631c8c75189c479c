/* lock_classify: which operation all the runs of a script are. */
#ifndef LATCHD_LOCKSCRIPT_LOCK_CLASSIFY_H
#define LATCHD_LOCKSCRIPT_LOCK_CLASSIFY_H

#include "lockscript/script_run.h"

/* What an operation makes of the keys of a run, and what it replies. */
struct lock_outcome {
    enum script_after after[SCRIPT_KEYS_MAX];
    struct lock_reply reply;
};

/* The number of keys that an operation needs to be told from others: 1, or all that a
 * script names. */
unsigned lock_base_keys(const struct lua_ast *ast);

/* Derives the operations of a script from its runs, for each variant. False: they are
 * none; the error says why. */
bool lock_classify(struct script_analysis *a, struct lock_script *ret);

/* A reply as the client sees it. False: it is none that an operation has. */
bool lock_reply_of(const struct script_analysis *a, const struct script_run *run,
                   struct lock_reply *ret);
/* The state that an operation takes a key for. */
enum lock_call_state lock_state_of(const struct lock_plan *plan,
                                   const struct script_key *key);
/* Checks that the operation does what the run did, as far as it can be seen. */
bool lock_check_run(struct script_analysis *a, const struct lock_plan *plan,
                    const struct script_run *run);

#endif
