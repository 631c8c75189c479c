/* cmd_priv: struct cmd, and what most files of cmd/ include. The state of a connection
 * is in client.h, that of a running command in command_ctx.h. */
#ifndef LATCHD_CMD_CMD_PRIV_H
#define LATCHD_CMD_CMD_PRIV_H

#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/cmd_connection.h"
#include "cmd/command_ctx.h"
#include "cmd/command_table.h"
#include "cmd/events.h"
#include "cmd/library_args.h"
#include "cmd/library_call.h"
#include "cmd/lock_args.h"
#include "cmd/log_identity.h"
#include "cmd/pubsub.h"
#include "cmd/slowlog.h"
#include "cmd/users.h"
#include "latchd/protocol.h"
#include "resp/writer.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/glob.h"
#include "util/recent.h"
#include "util/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The Redis version that HELLO and INFO report; clients derive features from it. */
#define REDIS_COMPAT_VERSION "7.2.0"

enum {
    SCRATCH_KEEP = 64 * 1024, /* bytes of scratch that are kept between commands */
};

/* Counts of the last second, for INFO. */
struct rates {
    uint64_t at_ms;
    uint64_t calls_before, in_before, out_before;
    double calls, bytes_in, bytes_out;
};

struct cmd {
    struct cmd_env env;
    struct cmd_limits limits;
    struct users users;
    struct pubsub *pubsub;
    struct tracking tracking;
    struct command_stat *stats; /* one per row of the table */
    struct buf scratch;         /* takes replies that are dropped */
    struct pause pause;
    uint64_t next_call;
    uint64_t started_ms;
    uint64_t calls;       /* of all rows */
    uint64_t unknown;     /* calls of commands that are not in the table */
    uint64_t answered_us; /* the time of the answers of this round; 0: none yet */
    struct list monitors;
    struct slowlog slow;
    struct slowlog waits; /* long waits, for SLOWLOG WAITS */
    struct latency *latency;
    struct losses *losses;             /* the last ones */
    struct losses *expired;            /* and the last holds that expired */
    struct recent refusals;            /* of lock libraries, for the log */
    struct lock_script_cache *scripts; /* of lock libraries; NULL: none came yet */
    struct recent pollers;             /* lock libraries that ask again and again */
    struct rates rates;
    uint64_t top_cursor;      /* where the next LOCKS TOP begins */
    struct list redis_names;  /* redis_names.in_all */
    uint64_t protect_said_ms; /* last log line about a refusal; 0: none yet */
};

/* The handlers, which the rows of the command table name. */
#define COMMAND(name, run, ...) command_fn run;
#include "cmd/commands.def"

#endif
