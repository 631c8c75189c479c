#include "cmd/observe/refusals.h"

#include "cmd/cmd_priv.h"
#include "cmd/observe/log_identity.h"

#include <inttypes.h>

/* Noted when it was logged last; its key is the library's name. */
struct refusal {
    struct recent_item item;
    uint64_t unsaid; /* how often something was refused since */
};

void refusals_init(struct recent *r)
{
    recent_init(r, sizeof(struct refusal), REFUSALS_MAX);
}

static struct span library_name(const struct client *client)
{
    const char *name = client_text(client, CLIENT_LIB_NAME);

    if (name == NULL) {
        name = client_text(client, CLIENT_NAME);
    }
    return span_str(name == NULL ? client->user->name : name);
}

static void log_refusal(struct command_ctx *ctx, struct span why)
{
    uint64_t now_ms = ctx->cmd->env.now_ms(ctx->cmd->env.ctx);
    struct recent *refusals = &ctx->cmd->refusals;
    struct span library = library_name(ctx->client);
    struct refusal *refusal = recent_find(refusals, library);

    if (refusal != NULL && now_ms - refusal->item.at < REFUSALS_SAY_AGAIN_MS) {
        refusal->unsaid++;
        return;
    }
    log_about_client(ctx, LOG_WARNING, SPAN_NONE,
                     "'%.*s' of a client library was refused, which may go on trying "
                     "without an error (%" PRIu64
                     " more since the last such line): %.*s",
                     span_quoted_len(ctx->argv[0]), ctx->argv[0].ptr,
                     refusal == NULL ? 0 : refusal->unsaid, (int)why.len, why.ptr);
    refusal = recent_note(refusals, library, now_ms);
    refusal->unsaid = 0;
}

void ctx_refuse(struct command_ctx *ctx, const char *word, const char *fmt, ...)
{
    struct buf text = { 0 };
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    ctx_error(ctx, word, "%.*s", (int)buf_len(&text), buf_ptr(&text));
    log_refusal(ctx, buf_span(&text));
    buf_reset(&text);
}

void ctx_only_redis(struct command_ctx *ctx, const char *advice)
{
    struct span name = ctx->argv[0];

    ctx_refuse(ctx, LATCHD_ERR,
               "latchd keeps locks, not data: '%.*s' is not served; %s",
               span_quoted_len(name), name.ptr, advice);
}
