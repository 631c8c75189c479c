/* SUBSCRIBE and its relatives: events of locks. protocol.h has the channels. */
#include "cmd/handlers.h"
#include "cmd/observe/refusals.h"
#include "cmd/pubsub/events.h"

#include "util/glob.h"

enum {
    LISTING_WORK_MAX = 32768, /* of PUBSUB CHANNELS: channels times glob_work() */
};

/* Confirmations are sent even when replies are off, like pushes in Redis. */
static void confirm_subscription(struct command_ctx *ctx, const char *what,
                                 struct span name)
{
    const struct subscriber *s = &ctx->client->sub;
    struct buf *out = conn_out(ctx->conn);

    resp_push(out, ctx->proto, 3);
    resp_bulk_str(out, what);
    if (name.ptr == NULL) {
        resp_null(out, ctx->proto);
    } else {
        resp_bulk(out, name);
    }
    resp_int(out, (int64_t)s->channels + s->patterns);
}

/* --- subscribing ------------------------------------------------------ */

static bool fits_limit(struct command_ctx *ctx, size_t have, size_t max)
{
    for (size_t i = 1; i < ctx->argc; i++) {
        if (ctx->argv[i].len > PUBSUB_NAME_MAX) {
            ctx_error(ctx, LATCHD_ERR, "a channel or pattern has at most %d bytes",
                      PUBSUB_NAME_MAX);
            return false;
        }
    }
    if (ctx->argc - 1 > max - have) {
        ctx_error(ctx, LATCHD_ERR_LIMIT,
                  "a connection can have %zu subscriptions by %s", max,
                  max == PUBSUB_PATTERNS_MAX ? "pattern" : "name");
        return false;
    }
    return true;
}

static void subscribe_all(struct command_ctx *ctx, enum pubsub_kind kind,
                          const char *what)
{
    for (size_t i = 1; i < ctx->argc; i++) {
        (void)pubsub_add(ctx->cmd->pubsub, &ctx->client->sub, kind, ctx->argv[i]);
        confirm_subscription(ctx, what, ctx->argv[i]);
    }
}

void cmd_subscribe(struct command_ctx *ctx)
{
    if (fits_limit(ctx, ctx->client->sub.channels, PUBSUB_CHANNELS_MAX)) {
        subscribe_all(ctx, PUBSUB_CHANNEL, "subscribe");
    }
}

void cmd_psubscribe(struct command_ctx *ctx)
{
    if (!fits_limit(ctx, ctx->client->sub.patterns, PUBSUB_PATTERNS_MAX)) {
        return;
    }
    if (!pubsub_affords(ctx->cmd->pubsub, &ctx->client->sub, ctx->argv + 1,
                        ctx->argc - 1)) {
        ctx_error(ctx, LATCHD_ERR_LIMIT,
                  "these patterns take too long to match with every event: have "
                  "fewer, or less between two stars");
        return;
    }
    subscribe_all(ctx, PUBSUB_PATTERN, "psubscribe");
}

/* --- unsubscribing ---------------------------------------------------- */

struct farewell {
    struct command_ctx *ctx;
    const char *what;
};

static void confirm_removed(void *ctx, struct span name)
{
    const struct farewell *f = ctx;

    confirm_subscription(f->ctx, f->what, name);
}

static void unsubscribe_all(struct command_ctx *ctx, enum pubsub_kind kind,
                            const char *what)
{
    struct farewell f = { ctx, what };
    size_t removed = 0;

    for (size_t i = 1; i < ctx->argc; i++) {
        (void)pubsub_remove(ctx->cmd->pubsub, &ctx->client->sub, kind, ctx->argv[i]);
        confirm_subscription(ctx, what, ctx->argv[i]);
    }
    if (ctx->argc > 1) {
        return;
    }
    while (pubsub_remove_one(ctx->cmd->pubsub, &ctx->client->sub, kind, confirm_removed,
                             &f)) {
        removed++;
    }
    if (removed == 0) {
        confirm_subscription(ctx, what, SPAN_NONE);
    }
}

void cmd_unsubscribe(struct command_ctx *ctx)
{
    unsubscribe_all(ctx, PUBSUB_CHANNEL, "unsubscribe");
}

void cmd_punsubscribe(struct command_ctx *ctx)
{
    unsubscribe_all(ctx, PUBSUB_PATTERN, "punsubscribe");
}

/* --- PUBSUB ----------------------------------------------------------- */

struct channel_listing {
    struct span pattern; /* ptr NULL: all */
    struct buf items;
    size_t count;
};

static void list_channel(void *ctx, struct span name)
{
    struct channel_listing *l = ctx;

    if (l->pattern.ptr == NULL || glob_match(l->pattern, name)) {
        resp_bulk(&l->items, name);
        l->count++;
    }
}

void cmd_pubsub_channels(struct command_ctx *ctx)
{
    struct channel_listing l = { 0 };
    size_t channels = pubsub_total(ctx->cmd->pubsub, PUBSUB_CHANNEL);

    if (ctx->argc > 3) {
        ctx_subcommand_error(ctx);
        return;
    }
    if (ctx->argc == 3) {
        l.pattern = ctx->argv[2];
        if (l.pattern.len > PUBSUB_NAME_MAX) {
            resp_array(ctx->out, 0); /* longer than any channel */
            return;
        }
        if (glob_work(l.pattern) > GLOB_WORK_PLAIN &&
            glob_work(l.pattern) * channels > LISTING_WORK_MAX) {
            ctx_error(ctx, LATCHD_ERR_LIMIT,
                      "there are too many channels for a pattern that takes so long "
                      "to match: have less between two stars");
            return;
        }
    }
    pubsub_each_channel(ctx->cmd->pubsub, list_channel, &l);
    resp_array(ctx->out, l.count);
    buf_add_span(ctx->out, buf_span(&l.items));
    buf_reset(&l.items);
}

/* A count that lacks the subscribers at Redis would be taken for all there are: for
 * some libraries the only subscriber of a channel holds a lock. */
void cmd_pubsub_numsub(struct command_ctx *ctx)
{
    for (size_t i = 2; i < ctx->argc; i++) {
        if (channel_is_of_library(PUBSUB_CHANNEL, ctx->argv[i])) {
            ctx_refuse(
                ctx, LATCHD_ERR,
                "PUBSUB NUMSUB '%.*s' is not served: latchd counts subscribers of "
                "its own channels only; a lock that is a subscription, such as "
                "portalocker's RedisLock, is not kept here: use LOCK, or a "
                "library that takes a key by SET NX",
                span_quoted_len(ctx->argv[i]), ctx->argv[i].ptr);
            return;
        }
    }
    resp_array(ctx->out, 2 * (ctx->argc - 2));
    for (size_t i = 2; i < ctx->argc; i++) {
        resp_bulk(ctx->out, ctx->argv[i]);
        resp_int(ctx->out, (int64_t)pubsub_count(ctx->cmd->pubsub, ctx->argv[i]));
    }
}

void cmd_pubsub_numpat(struct command_ctx *ctx)
{
    resp_int(ctx->out, (int64_t)pubsub_total(ctx->cmd->pubsub, PUBSUB_PATTERN));
}
