/* command_stats: calls counted by row of the command table and by outcome. A call is
 * counted when it has run; its outcome when the reply is known, which is later for a
 * call that waits for the engine. Nothing here allocates. */
#ifndef LATCHD_CMD_OBSERVE_COMMAND_STATS_H
#define LATCHD_CMD_OBSERVE_COMMAND_STATS_H

#include "util/histogram.h"

#include <stdbool.h>
#include <stdint.h>

struct command_ctx;
struct command;
struct cmd;
struct client;

/* How a call ended. From OUTCOME_ERR on the outcomes are error replies, by their first
 * word. */
enum outcome {
    OUTCOME_OK,
    OUTCOME_NULL,
    OUTCOME_GONE, /* the connection closed before the answer came */
    OUTCOME_ERR,
    OUTCOME_NOAUTH,
    OUTCOME_WRONGPASS,
    OUTCOME_NOPERM,
    OUTCOME_NOPROTO,
    OUTCOME_EXECABORT,
    OUTCOME_WRONGTYPE,
    OUTCOME_NOTHELD,
    OUTCOME_DEADLOCK,
    OUTCOME_BACKEND,
    OUTCOME_NOREPLICAS,
    OUTCOME_CROSSSLOT,
    OUTCOME_LIMIT,
    OUTCOME_GOAWAY,
    OUTCOME_UNBLOCKED,
    OUTCOME_OTHER, /* an error word that is not in this list */
    OUTCOME_COUNT
};

struct command_stat {
    uint64_t calls;
    uint64_t rejected;     /* not run */
    uint64_t failed;       /* run, and answered with an error */
    struct histogram work; /* the handler's time, without what it waits for */
    struct histogram wait; /* from the start to the engine's answer */
    uint64_t outcomes[OUTCOME_COUNT];
};

enum outcome outcome_of_error(const char *word);
const char *outcome_word(enum outcome outcome);
static inline bool outcome_is_error(enum outcome outcome)
{
    return outcome >= OUTCOME_ERR;
}

/* Counts a command that was refused before it ran; its row may be unknown. */
void stats_rejected(const struct command_ctx *ctx);
/* Counts a command whose handler has returned; tells how many microseconds it took. */
uint64_t stats_ran(const struct command_ctx *ctx);
/* Counts the end of a wait that began at `began_us`. OUTCOME_GONE: the client went
 * before the answer. */
void stats_answered(struct cmd *c, const struct command *command, uint64_t began_us,
                    enum outcome outcome);

/* Calls of all rows. */
uint64_t stats_calls(const struct cmd *c);
uint64_t stats_outcome(const struct cmd *c, enum outcome outcome);

#endif
