/* pipeline_priv: what the files of the pipeline share. */
#ifndef LATCHD_CMD_PIPELINE_PRIV_H
#define LATCHD_CMD_PIPELINE_PRIV_H

#include "cmd/deferred_command.h"
#include "cmd/handlers.h"
#include "cmd/pipeline.h"

enum step_state {
    STEP_BEGINS,
    STEP_GATHERED,
    STEP_ASKED,
    STEP_PUT_OFF,
    STEP_ANSWERED,
};

/* Whether a command may pass a LOCK that waits ahead of it, as far as its words say. */
enum passage {
    PASSAGE_UNKNOWN, /* not looked at yet */
    PASSAGE_NAMED,   /* it may: it names its own hold or request */
    PASSAGE_IN_TURN, /* no, but those behind it may pass it */
    PASSAGE_BARRIER, /* no, and nor may those behind it */
};

struct step {
    enum step_state state;
    enum passage passage;
    bool muted;
    bool counted; /* it has run before */
    bool passes;  /* it began although LOCKs that are ahead of it may wait */
    bool stood;   /* its grant came too early: it begins anew when it is the first */
    bool renewed; /* its reply is the lease that was left.. */
    const struct command *command; /* NULL: not looked up yet */
    uint64_t began_us;
    uint64_t hash; /* of its name, 0: none; those that look alike only wait */
    struct subject subject;
    uint64_t number;                   /* ASKED: as the engine knows it */
    struct deferred_command *deferred; /* of what may begin anew, and.. */
    struct lock_req req;               /* ..GATHERED: what it asks for, in that */
    struct buf reply;                  /* that came before its turn */
    uint64_t grant;                    /* in it; 0: none */
    int64_t lease_ms;                  /* ..and what it was.. */
    uint64_t renewed_ms;               /* ..then */
};

struct pipeline {
    size_t first; /* that was not answered; those before it are over */
    size_t count;
    size_t room;
    size_t locks; /* LOCKs and MLOCKs that are not answered, and.. */
    size_t gathered;
    size_t put_off;
    size_t deferred_bytes; /* of the steps that are not over */
    bool full;             /* client->deferred found no room */
    bool again;            /* pipeline_again() is owed */
    struct step steps[];
};

/* A request as it came, or as it was kept. */
struct candidate {
    const struct command *command;
    const struct span *argv;
    size_t argc;
    uint64_t hash;
    struct subject subject;
};

static inline bool step_is_lock(const struct step *s)
{
    return command_is_lock(s->command);
}

void step_set_state(struct pipeline *p, struct step *s, enum step_state state);
/* Keeps the call's words, for when it begins anew. */
void step_keep(struct pipeline *p, struct step *s, const struct command_ctx *ctx);

/* pipeline.c: writes what has its turn, and sees to it that what may begin does. */
void pipeline_go_on(struct cmd *c, struct conn *conn, struct client *client);

/* pipeline_begin.c: it may begin beside what is ahead, as if it had the connection for
 * itself. */
bool pipeline_fits_beside(const struct cmd *c, const struct pipeline *p, size_t at,
                          const struct candidate *r);

/* pipeline_pass.c: `r`'s subject is written. */
enum passage passage_of(const struct cmd_limits *limits, struct candidate *r);
/* It concerns none of the commands that are ahead of that place. */
bool passage_is_free(const struct pipeline *p, size_t at, const struct candidate *r);

#endif
