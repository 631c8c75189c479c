/* CONFIG: passed on to the configuration, which is the daemon's. */
#include "cmd/handlers.h"
#include "cmd/observe/log_identity.h"
#include "cmd/observe/redaction.h"

#include "util/glob.h"

enum { CONFIG_REASON_MAX = 512 };

struct config_listing {
    struct command_ctx *call;
    size_t at; /* of the pattern in the arguments */
    struct buf items;
    size_t pairs;
    struct buf patterns; /* all patterns in lower case, one after the other */
};

/* A pattern argument in lower case, as keys are. */
static struct span pattern_at(const struct config_listing *l, size_t at)
{
    size_t before = 0;

    for (size_t i = 2; i < at; i++) {
        before += l->call->argv[i].len;
    }
    return span_of(buf_span(&l->patterns).ptr + before, l->call->argv[at].len);
}

static void list_pair(void *arg, const char *key, const char *value)
{
    struct config_listing *l = arg;

    for (size_t i = 2; i < l->at; i++) {
        if (glob_match(pattern_at(l, i), span_str(key))) {
            return; /* an earlier pattern had it */
        }
    }
    resp_bulk_str(&l->items, key);
    resp_bulk_str(&l->items, value);
    l->pairs++;
}

void cmd_config_get(struct command_ctx *call)
{
    struct config_listing l = { .call = call };

    for (size_t i = 2; i < call->argc; i++) {
        for (size_t k = 0; k < call->argv[i].len; k++) {
            char ch = call->argv[i].ptr[k];

            ch = (char)(ch >= 'A' && ch <= 'Z' ? ch - 'A' + 'a' : ch);
            buf_add(&l.patterns, &ch, 1);
        }
    }
    for (l.at = 2; l.at < call->argc; l.at++) {
        if (call->argv[l.at].len <= ARGS_PATTERN_MAX) {
            call->cmd->env.config_each(call->cmd->env.ctx, pattern_at(&l, l.at),
                                       list_pair, &l);
        }
    }
    resp_map(call->out, call->proto, l.pairs);
    buf_add_span(call->out, buf_span(&l.items));
    buf_reset(&l.items);
    buf_reset(&l.patterns);
}

static void log_set(const struct command_ctx *call)
{
    for (size_t i = 2; i + 1 < call->argc; i += 2) {
        struct span value = redacted_arg(call, i + 1);

        log_about_client(call, LOG_NOTICE, SPAN_NONE, "CONFIG SET %.*s %.*s",
                         (int)call->argv[i].len, call->argv[i].ptr, (int)value.len,
                         value.ptr);
    }
}

void cmd_config_set(struct command_ctx *call)
{
    char reason[CONFIG_REASON_MAX] = "";

    if (call->argc % 2 != 0) {
        ctx_syntax_error(call);
    } else if (!call->cmd->env.config_set(call->cmd->env.ctx, call->argv + 2,
                                          (call->argc - 2) / 2, reason,
                                          sizeof(reason))) {
        ctx_error(call, LATCHD_ERR, "%s", reason);
    } else {
        log_set(call);
        resp_simple(call->out, "OK");
    }
}

void cmd_config_resetstat(struct command_ctx *call)
{
    cmd_reset_stats(call->cmd);
    if (call->cmd->env.reset_stats != NULL) {
        call->cmd->env.reset_stats(call->cmd->env.ctx);
    }
    resp_simple(call->out, "OK");
}

void cmd_config_rewrite(struct command_ctx *call)
{
    char reason[CONFIG_REASON_MAX] = "";

    if (!call->cmd->env.config_rewrite(call->cmd->env.ctx, reason, sizeof(reason))) {
        ctx_error(call, LATCHD_ERR, "%s", reason);
    } else {
        resp_simple(call->out, "OK");
    }
}
