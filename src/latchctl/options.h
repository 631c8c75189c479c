/* options: latchctl's command line.
 *
 * Options stand before the subcommand, behind it, or behind its NAME; `run` takes
 * everything from the first word that is none for the command. */
#ifndef LATCHD_LATCHCTL_OPTIONS_H
#define LATCHD_LATCHCTL_OPTIONS_H

#include "latchctl/target.h"
#include "latchd/terms.h"
#include "util/buf.h"

#include <stdint.h>

enum ctl_command {
    CTL_RUN,
    CTL_TOP,
    CTL_WHY,
    CTL_LS,
    CTL_FORCE,
    CTL_LEADER,
    CTL_LATCH,
    CTL_LOCK,
    CTL_UNLOCK,
};

/* The exit statuses of latchctl itself; see latchctl(1). */
enum {
    CTL_EXIT_CONFLICT = 1,
    CTL_EXIT_LOST = 124,
    CTL_EXIT_FAILED = 125,
    CTL_EXIT_NOT_EXECUTABLE = 126,
    CTL_EXIT_NOT_FOUND = 127,
    CTL_EXIT_SIGNAL = 128,
};

/* A row of terms.def. Without a `name` latchctl has no such option. */
struct term {
    const char *word;
    enum { TERM_FLAG, TERM_MS, TERM_NUMBER, TERM_SMALL, TERM_WORD, TERM_TEXT } type;
    uint64_t min, max;
    unsigned takers; /* FOR_* */
    unsigned needs, without;
    const char *why, *name;
    unsigned commands; /* of latchctl: bits of enum ctl_command */
    const char *argument, *help;
};

extern const struct term TERMS[OPTION_COUNT];

#define CTL_FOREVER UINT64_MAX

enum { OPTIONS_TIME_ROOM = 24 };
enum { OPTIONS_MORE_MAX = 15 }; /* --and; a command for all names fits a link's words */

enum options_outcome { OPTIONS_GO, OPTIONS_SAID, OPTIONS_WRONG };

/* The parsed command line. Strings point into argv, except for the target's. */
struct options {
    struct target target;
    enum ctl_command command;
    const char *name;
    const char *more[OPTIONS_MORE_MAX]; /* run: names that are taken with it */
    size_t more_count;
    char **words;       /* run: the command, NULL-terminated */
    char *shell[4];     /* run -c: the words that run its text; all NULL: not given */
    const char *verb;   /* latch: what to do; NULL: not said */
    const char *number; /* latch: behind that; NULL: not given */

    uint64_t wait_ms; /* CTL_FOREVER: no limit */
    uint64_t lease_ms;
    uint64_t kill_after_ms;
    /* The options of terms.def, by their places there: what latchd is sent, "" of a
     * FLAG; NULL: not given. */
    const char *terms[OPTION_COUNT];
    char times[OPTION_COUNT][OPTIONS_TIME_ROOM];
    unsigned has;   /* OPT_*: those that are given */
    const char *id; /* latch: of a set or count; NULL: a new one */
    int conflict_code;
    int lost_code;

    uint64_t interval_ms;
    uint64_t count;
    bool once;
    const char *sort;

    const char *token; /* force, unlock */
    const char *match;
    bool any;
    bool all; /* ls: what is held in Redis */
    bool yes; /* force: do not ask */
    bool follow;
    bool json;
};

/* Parses the command line. WRONG: an error was printed. options_fini() must follow in
 * any case. */
enum options_outcome options_parse(int argc, char **argv, struct options *ret);
void options_fini(struct options *o);

#endif
