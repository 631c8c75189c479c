/* pipeline_priv: what pipeline.c and pipeline_begin.c share. */
#ifndef LATCHD_CMD_PIPELINE_PRIV_H
#define LATCHD_CMD_PIPELINE_PRIV_H

#include "cmd/handlers.h"
#include "cmd/kept.h"
#include "cmd/pipeline.h"

enum step_state {
    STEP_BEGINS,
    STEP_GATHERED,
    STEP_ASKED,
    STEP_UNREACHED, /* by its run: it begins anew when it is the first */
    STEP_ANSWERED,
};

struct step {
    enum step_state state;
    bool muted;
    const struct command *command;
    uint64_t began_us;
    uint64_t hash;       /* of its name; those that look alike only wait */
    uint64_t number;     /* ASKED: as the engine knows it */
    struct kept *kept;   /* of a LOCK that was gathered, and.. */
    struct lock_req req; /* ..what it asks for, in that */
    struct buf reply;    /* that came before its turn */
    uint64_t grant;      /* in it; 0: none */
};

struct pipeline {
    size_t first; /* that was not answered; those before it are over */
    size_t count;
    size_t room;
    size_t locks; /* LOCKs that are not answered, and.. */
    size_t gathered;
    struct step steps[];
};

static inline bool step_is_lock(const struct step *s)
{
    return s->command->run == cmd_lock;
}

#endif
