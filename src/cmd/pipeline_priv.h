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
    STEP_STATES,
};

/* Whether a command may pass a waiting LOCK ahead of it, judged by its arguments. */
enum passage {
    PASSAGE_UNKNOWN, /* not determined yet */
    PASSAGE_NAMED,   /* may pass: it names its own hold or request */
    PASSAGE_IN_TURN, /* may not, but commands behind it may pass it */
    PASSAGE_BARRIER, /* may not, and neither may commands behind it */
};

struct step {
    enum step_state state;
    enum passage passage;
    bool muted;
    bool counted;       /* it has run before */
    bool passes;        /* began while a LOCK ahead of it may still wait */
    bool granted_early; /* before its reply could be written: begins again when it is
                           first */
    bool renewed;       /* its reply is the lease that is left */
    const struct command *command; /* NULL until it is looked up */
    uint64_t began_us;
    uint64_t hash; /* of the one name whose holds it changes; 0: there is no such, or it
                      takes a lock, for which its subject stands */
    struct subject subject;
    struct library_call *library;      /* ASKED: of a lock library's command, or NULL */
    uint64_t number;                   /* ASKED: its call number in the engine */
    struct deferred_command *deferred; /* its words, as long as it may begin again */
    struct lock_req req; /* GATHERED: the request; points into `deferred` */
    struct buf reply;    /* an answer that came before its turn */
    uint64_t grant;      /* the grant in `reply`; 0: none */
    int64_t lease_ms;    /* if `renewed`: the lease, */
    uint64_t renewed_ms; /* at this time; */
    uint64_t token;      /* to be told in its place; 0: not */
};

struct pipeline {
    size_t first; /* the first step without an answer */
    size_t count;
    size_t room;
    size_t waits;                 /* LOCKs, MLOCKs and LEADERs without an answer */
    size_t in_state[STEP_STATES]; /* steps in each; answered ones stay in the count */
    size_t deferred_bytes;        /* memory of the deferred commands */
    bool full;                    /* client->deferred found no room */
    bool again;                   /* pipeline_again() is owed */
    struct step steps[];
};

/* A request as it arrived, or as it was deferred. */
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

static inline bool step_may_wait(const struct step *s)
{
    return command_may_wait(s->command);
}

void step_set_state(struct pipeline *p, struct step *s, enum step_state state);
/* Copies the arguments of a command that may begin again. */
void step_keep(struct pipeline *p, struct step *s, const struct command_ctx *ctx);

/* pipeline.c: writes the replies whose turn it is, and begins what may begin now. */
void pipeline_go_on(struct cmd *c, struct conn *conn, struct client *client);

/* pipeline_begin.c: whether the command may begin beside those ahead as if it were
 * alone on the connection. */
bool pipeline_fits_beside(const struct cmd *c, const struct pipeline *p, size_t at,
                          const struct candidate *r);

/* pipeline_pass.c: classifies a request; sets r->subject. */
enum passage passage_of(const struct cmd_limits *limits, struct candidate *r);
/* Whether the request is independent of all commands before place `at`. */
bool passage_is_free(const struct pipeline *p, size_t at, const struct candidate *r);

#endif
