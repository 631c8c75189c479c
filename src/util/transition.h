/* transition: checks a change of state against the table of what may follow what. A
 * change that the table lacks is a defect of the program: the process logs both states
 * and calls abort(), which leaves every lock in Redis with its lease: that is safe. */
#ifndef LATCHD_UTIL_TRANSITION_H
#define LATCHD_UTIL_TRANSITION_H

#include <stdbool.h>
#include <stdint.h>

enum { TRANSITION_STATES_MAX = 8 };

/* The states of one kind of object, from 0 on. */
struct transitions {
    const char *subject; /* whose states these are, for the log: "release" */
    struct {
        const char *name;
        uint32_t next; /* the states that may follow, as bits: INTO(a) | INTO(b) */
    } states[TRANSITION_STATES_MAX];
};

#define INTO(state) (UINT32_C(1) << (state))

static inline bool transition_is_allowed(const struct transitions *t, unsigned from,
                                         unsigned to)
{
    return (t->states[from].next & INTO(to)) != 0;
}

/* Reports a transition that the table lacks, and ends the process. */
void transition_refuse(const struct transitions *t, unsigned from, unsigned to)
    __attribute__((noreturn, cold));

static inline void transition_check(const struct transitions *t, unsigned from,
                                    unsigned to)
{
    if (!transition_is_allowed(t, from, to)) {
        transition_refuse(t, from, to);
    }
}

#endif
