/* command_table: the commands, made of commands.def. Arity, authentication, statistics,
 * COMMAND, COMMAND DOCS and the subcommands' HELP all come from the row.
 *
 * A row's place in the table is its number, for the statistics. */
#ifndef LATCHD_CMD_COMMAND_TABLE_H
#define LATCHD_CMD_COMMAND_TABLE_H

#include "acl/permissions.h"
#include "util/histogram.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cmd;
struct command_ctx;

typedef void command_fn(struct command_ctx *ctx);

enum command_flag {
    CMD_WRITE = 1 << 0,
    CMD_READONLY = 1 << 1,
    CMD_ADMIN = 1 << 2,
    CMD_BLOCKING = 1 << 3,
    CMD_FAST = 1 << 4,
    CMD_NO_AUTH = 1 << 5,     /* can be run before AUTH */
    CMD_PUBSUB = 1 << 6,      /* can be run while subscribed with RESP2 */
    CMD_CONTAINER = 1 << 7,   /* has subcommands; its own handler runs without one */
    CMD_NEEDS_REPLY = 1 << 8, /* not run when CLIENT REPLY drops its answer */
    CMD_NO_MULTI = 1 << 9,    /* not in a transaction */
    CMD_AT_ONCE = 1 << 10,    /* run, not queued, in a transaction */
    CMD_CHANNELS = 1 << 11,   /* its arguments are channels, */
    CMD_PATTERNS = 1 << 12,   /* or patterns of channels */
    CMD_HARMLESS = 1 << 13,   /* does not change the meaning of later commands */
};

/* Bits of the ACL categories, `@write` and so on. */
enum acl_category {
    ACL_LOCK = 1 << 0,
    ACL_KEYSPACE = 1 << 1,
    ACL_READ = 1 << 2,
    ACL_WRITE = 1 << 3,
    ACL_PUBSUB = 1 << 4,
    ACL_ADMIN = 1 << 5,
    ACL_FAST = 1 << 6,
    ACL_SLOW = 1 << 7,
    ACL_BLOCKING = 1 << 8,
    ACL_DANGEROUS = 1 << 9,
    ACL_CONNECTION = 1 << 10,
    ACL_TRANSACTION = 1 << 11,
};

enum { ACL_CATEGORY_COUNT = 12 };
extern const char *const ACL_CATEGORY_NAMES[ACL_CATEGORY_COUNT]; /* in bit order */
/* The same commands for acl/, numbered as in COMMANDS. */
extern const struct acl_catalog COMMAND_CATALOG;

/* Which arguments are lock names. */
enum command_keys {
    KEYS_NONE,
    KEYS_ONE,     /* the first */
    KEYS_SECOND,  /* the second: that of a subcommand */
    KEYS_ALL,     /* all */
    KEYS_COUNTED, /* the first says how many follow */
    KEYS_SCRIPT,  /* the second says how many follow; there may be none */
};

enum {
    COMMAND_NAME_MAX = 32, /* longest name of the table, with its NUL */
};

struct command {
    char name[COMMAND_NAME_MAX]; /* lower case, then NULs */
    command_fn *run;
    int arity; /* with the name; negative: at least */
    enum command_keys keys;
    unsigned flags;
    unsigned acl;
    const char *group;
    const char *since;
    const char *usage;
    const char *summary;
    const char *complexity;
};

extern const struct command COMMANDS[];
extern const size_t COMMAND_COUNT;

/* By name in any case: "lock", "client|kill". NULL: not there. */
const struct command *command_find(struct span name);
/* The subcommand `sub` of a container. */
const struct command *command_find_sub(const struct command *container,
                                       struct span sub);

/* The row of a request: of its subcommand, if it has one. NULL: not there. */
const struct command *command_resolve(const struct span *argv, size_t argc);

/* Whether the command takes locks, and may wait for long. Accepts NULL. */
bool command_is_lock(const struct command *c);
/* Whether it waits for other clients by its nature: LOCK, MLOCK, LEADER or LATCH AWAIT.
 */
bool command_waits_for_others(const struct command *c);
/* The same, or a lock library's command that takes a lock, which may be parked. */
bool command_may_wait(const struct command *c);
bool command_is_sub(const struct command *c);
/* The first subcommand's row; the last one is before the first row that is none. */
const struct command *command_subs(const struct command *container, size_t *ret_count);
/* The name that a subcommand is called by: what follows the `|`. */
const char *command_short_name(const struct command *c);
bool command_arity_fits(const struct command *c, size_t argc);
/* Which of the arguments, whose number fits, are lock names; false: they do not say it.
 */
bool command_key_range(const struct command *c, const struct span *argv, size_t argc,
                       size_t *ret_first, size_t *ret_count);

/* redis_only: commands that Redis has and latchd has not. */

/* Advice for users of this Redis command, in any case of letters. NULL:
 * Redis 7.0 has no such command either. */
const char *redis_only_advice(struct span name);

/* command_stats: calls counted by row of the command table and by outcome. A call is
 * counted when it has run; its outcome when the reply is known, which is later for a
 * call that waits for the engine. Nothing here allocates. */

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

/* --- for INFO and /metrics ---------------------------------------------- */

struct cmd_outcome {
    const char *word; /* "ok", "null", "gone" or the first word of an error */
    uint64_t count;
};

/* One row of the table of commands, since the start or CONFIG RESETSTAT. */
struct cmd_stats {
    const char *name; /* "lock", "client|list" */
    uint64_t calls;
    uint64_t rejected;                  /* not run: arity, NOAUTH, NOPERM, ... */
    uint64_t failed;                    /* run, and answered with an error */
    const struct cmd_outcome *outcomes; /* only those that occurred */
    size_t outcome_count;
    const struct histogram *work; /* the daemon's own time */
    const struct histogram *wait; /* until the engine's answer; NULL: it never waits */
};

/* Calls `fn` for each row that was called at least once. *stats is valid only during
 * `fn`. */
typedef void cmd_stats_fn(void *ctx, const struct cmd_stats *stats);
void cmd_stats_each(const struct cmd *c, cmd_stats_fn *fn, void *ctx);

/* Begins the counts anew. */
void cmd_reset_stats(struct cmd *c);

#endif
