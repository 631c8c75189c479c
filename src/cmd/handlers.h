/* handlers: the functions that the rows of the command table name, one per command,
 * grouped by file. */
#ifndef LATCHD_CMD_HANDLERS_H
#define LATCHD_CMD_HANDLERS_H

#include "cmd/cmd_priv.h"
#include "cmd/lock/lock_args.h"

/* Parses the options of a lock command. False: an error reply was written. */
bool ctx_lock_args(struct command_ctx *ctx, const struct lock_syntax *syntax,
                   struct lock_args *ret);

/* Whether lock libraries are served. False: an error reply was written. */
bool ctx_serves_libraries(struct command_ctx *ctx);

/* Whether the locks are in the database of that number, or of any. False: an error
 * reply was written. */
bool ctx_has_database(struct command_ctx *ctx, int64_t index);

/* Reads a LOCK that is GATHERED. False: an error reply was written. */
bool ctx_lock_request(struct command_ctx *ctx, struct lock_req *ret);

/* Sets the connection's name. False: an error reply was written. */
bool ctx_set_name(struct command_ctx *ctx, struct span name);
#define COMMAND(name, run, ...) command_fn run;
#include "cmd/commands.def"

#endif
