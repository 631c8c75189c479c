/* CONFIG: passed on to the configuration, which is the daemon's. */
#include "cmd/handlers.h"
#include "cmd/observe/log_identity.h"
#include "cmd/observe/redaction.h"

#include "util/glob.h"

enum { CONFIG_REASON_MAX = 512 };

struct config_listing {
    struct command_ctx *ctx;
    size_t at; /* index of the pattern in the arguments */
    struct buf items;
    size_t pairs;
    struct buf patterns; /* all patterns in lower case, one after the other */
};

/* A pattern argument in lower case, as keys are. */
static struct span pattern_at(const struct config_listing *l, size_t at)
{
    size_t before = 0;

    for (size_t i = 2; i < at; i++) {
        before += l->ctx->argv[i].len;
    }
    return span_of(buf_span(&l->patterns).ptr + before, l->ctx->argv[at].len);
}

static void list_pair(void *arg, const char *key, const char *value)
{
    struct config_listing *l = arg;

    for (size_t i = 2; i < l->at; i++) {
        if (glob_match(pattern_at(l, i), span_str(key))) {
            return; /* an earlier pattern matched the key */
        }
    }
    resp_bulk_str(&l->items, key);
    resp_bulk_str(&l->items, value);
    l->pairs++;
}

void cmd_config_get(struct command_ctx *ctx)
{
    struct config_listing l = { .ctx = ctx };

    for (size_t i = 2; i < ctx->argc; i++) {
        for (size_t k = 0; k < ctx->argv[i].len; k++) {
            char ch = ctx->argv[i].ptr[k];

            ch = (char)(ch >= 'A' && ch <= 'Z' ? ch - 'A' + 'a' : ch);
            buf_add(&l.patterns, &ch, 1);
        }
    }
    for (l.at = 2; l.at < ctx->argc; l.at++) {
        if (ctx->argv[l.at].len <= ARGS_PATTERN_MAX) {
            ctx->cmd->env.config_each(ctx->cmd->env.ctx, pattern_at(&l, l.at),
                                      list_pair, &l);
        }
    }
    resp_map(ctx->out, ctx->proto, l.pairs);
    buf_add_span(ctx->out, buf_span(&l.items));
    buf_reset(&l.items);
    buf_reset(&l.patterns);
}

static void log_set(const struct command_ctx *ctx)
{
    for (size_t i = 2; i + 1 < ctx->argc; i += 2) {
        struct span value = redacted_arg(ctx, i + 1);

        log_about_client(ctx, LOG_NOTICE, SPAN_NONE, "CONFIG SET %.*s %.*s",
                         (int)ctx->argv[i].len, ctx->argv[i].ptr, (int)value.len,
                         value.ptr);
    }
}

void cmd_config_set(struct command_ctx *ctx)
{
    char reason[CONFIG_REASON_MAX] = "";

    if (ctx->argc % 2 != 0) {
        ctx_syntax_error(ctx);
    } else if (!ctx->cmd->env.config_set(ctx->cmd->env.ctx, ctx->argv + 2,
                                         (ctx->argc - 2) / 2, reason, sizeof(reason))) {
        ctx_error(ctx, LATCHD_ERR, "%s", reason);
    } else {
        log_set(ctx);
        resp_simple(ctx->out, "OK");
    }
}

void cmd_config_resetstat(struct command_ctx *ctx)
{
    cmd_reset_stats(ctx->cmd);
    if (ctx->cmd->env.reset_stats != NULL) {
        ctx->cmd->env.reset_stats(ctx->cmd->env.ctx);
    }
    resp_simple(ctx->out, "OK");
}

void cmd_config_rewrite(struct command_ctx *ctx)
{
    char reason[CONFIG_REASON_MAX] = "";

    if (!ctx->cmd->env.config_rewrite(ctx->cmd->env.ctx, reason, sizeof(reason))) {
        ctx_error(ctx, LATCHD_ERR, "%s", reason);
    } else {
        resp_simple(ctx->out, "OK");
    }
}
