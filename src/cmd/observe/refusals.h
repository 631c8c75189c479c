/* refusals: what lock libraries were refused, for the log.
 *
 * Many libraries swallow the error, and try again for ever. So the log says what was
 * refused and what to do, once a minute at most for each client library: by the name
 * that it gave with CLIENT SETINFO or CLIENT SETNAME, or else by its user. */
#ifndef LATCHD_CMD_OBSERVE_REFUSALS_H
#define LATCHD_CMD_OBSERVE_REFUSALS_H

#include "util/recent.h"

enum {
    REFUSALS_MAX =
        64, /* libraries; beyond it, the one logged longest ago is forgotten */
    REFUSALS_SAY_AGAIN_MS = 60000,
};

struct command_ctx;

/* The caller owns them, and ends them with recent_fini(). */
void refusals_init(struct recent *r);

/* Writes an error reply about something that only a Redis does, and logs it. */
void ctx_refuse(struct command_ctx *ctx, const char *word, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Refuses a command that only Redis has; the advice says what to do instead. */
void ctx_only_redis(struct command_ctx *ctx, const char *advice);

#endif
