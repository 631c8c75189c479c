#include "cmd/observe/refusals.h"

#include "cmd/cmd_priv.h"
#include "cmd/observe/log_identity.h"
#include "util/alloc.h"
#include "util/hash.h"

#include <inttypes.h>
#include <stdlib.h>

struct refusal {
    uint64_t library; /* the hash of its name */
    uint64_t said_ms; /* when it was logged last; 0: a place that is free */
    uint64_t unsaid;  /* how often something was refused since */
};

struct refusals {
    struct refusal list[REFUSALS_MAX];
};

struct refusals *refusals_new(void)
{
    return xcalloc(1, sizeof(struct refusals));
}

void refusals_free(struct refusals *r)
{
    free(r);
}

static uint64_t hash_library(const struct client *client)
{
    const char *name = client_text(client, CLIENT_LIB_NAME);

    if (name == NULL) {
        name = client_text(client, CLIENT_NAME);
    }
    if (name == NULL) {
        name = client->user->name;
    }
    return hash_bytes(name, strlen(name));
}

/* The place of the library, or the one that is used instead. */
static struct refusal *find_refusal(struct refusals *r, uint64_t library)
{
    struct refusal *oldest = &r->list[0];

    for (size_t i = 0; i < REFUSALS_MAX; i++) {
        if (r->list[i].said_ms != 0 && r->list[i].library == library) {
            return &r->list[i];
        }
        if (r->list[i].said_ms < oldest->said_ms) {
            oldest = &r->list[i];
        }
    }
    *oldest = (struct refusal){ .library = library };
    return oldest;
}

static void log_refusal(struct command_ctx *ctx, struct span why)
{
    uint64_t now_ms = ctx->cmd->env.now_ms(ctx->cmd->env.ctx);
    struct refusal *refusal =
        find_refusal(ctx->cmd->refusals, hash_library(ctx->client));

    if (refusal->said_ms != 0 && now_ms - refusal->said_ms < REFUSALS_SAY_AGAIN_MS) {
        refusal->unsaid++;
        return;
    }
    log_about_client(ctx, LOG_WARNING, SPAN_NONE,
                     "'%.*s' of a client library was refused, which may go on trying "
                     "without an error (%" PRIu64
                     " more since the last such line): %.*s",
                     span_quoted_len(ctx->argv[0]), ctx->argv[0].ptr, refusal->unsaid,
                     (int)why.len, why.ptr);
    refusal->said_ms = now_ms == 0 ? 1 : now_ms;
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
