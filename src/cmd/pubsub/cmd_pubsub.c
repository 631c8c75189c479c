/* SUBSCRIBE and its relatives: events of locks, see protocol.h for the channels. */
#include "cmd/handlers.h"

#include "util/glob.h"

enum {
    LISTING_WORK_MAX = 32768, /* of PUBSUB CHANNELS: channels times glob_work() */
};

/* Confirmations go out even when replies are off, as pushes do in Redis. */
static void confirm_subscription(struct command_ctx *call, const char *what,
                                 struct span name)
{
    const struct subscriber *s = &call->client->sub;
    struct buf *out = conn_out(call->conn);

    resp_push(out, call->proto, 3);
    resp_bulk_str(out, what);
    if (name.ptr == NULL) {
        resp_null(out, call->proto);
    } else {
        resp_bulk(out, name);
    }
    resp_int(out, (int64_t)s->channels + s->patterns);
}

/* --- subscribing -------------------------------------------------------------------
 */

static bool fits_limit(struct command_ctx *call, size_t have, size_t max)
{
    for (size_t i = 1; i < call->argc; i++) {
        if (call->argv[i].len > PUBSUB_NAME_MAX) {
            ctx_error(call, LATCHD_ERR, "a channel or pattern has at most %d bytes",
                      PUBSUB_NAME_MAX);
            return false;
        }
    }
    if (call->argc - 1 > max - have) {
        ctx_error(call, LATCHD_ERR_LIMIT,
                  "a connection can have %zu subscriptions by %s", max,
                  max == PUBSUB_PATTERNS_MAX ? "pattern" : "name");
        return false;
    }
    return true;
}

static void subscribe_all(struct command_ctx *call, enum pubsub_kind kind,
                          const char *what)
{
    for (size_t i = 1; i < call->argc; i++) {
        (void)pubsub_add(call->cmd->pubsub, &call->client->sub, kind, call->argv[i]);
        confirm_subscription(call, what, call->argv[i]);
    }
}

void cmd_subscribe(struct command_ctx *call)
{
    if (fits_limit(call, call->client->sub.channels, PUBSUB_CHANNELS_MAX)) {
        subscribe_all(call, PUBSUB_CHANNEL, "subscribe");
    }
}

void cmd_psubscribe(struct command_ctx *call)
{
    if (!fits_limit(call, call->client->sub.patterns, PUBSUB_PATTERNS_MAX)) {
        return;
    }
    if (!pubsub_affords(call->cmd->pubsub, &call->client->sub, call->argv + 1,
                        call->argc - 1)) {
        ctx_error(call, LATCHD_ERR_LIMIT,
                  "these patterns take too long to match with every event: have "
                  "fewer, or less between two stars");
        return;
    }
    subscribe_all(call, PUBSUB_PATTERN, "psubscribe");
}

/* --- unsubscribing -----------------------------------------------------------------
 */

struct farewell {
    struct command_ctx *call;
    const char *what;
};

static void confirm_removed(void *ctx, struct span name)
{
    const struct farewell *f = ctx;

    confirm_subscription(f->call, f->what, name);
}

static void unsubscribe_all(struct command_ctx *call, enum pubsub_kind kind,
                            const char *what)
{
    struct farewell f = { call, what };
    size_t removed = 0;

    for (size_t i = 1; i < call->argc; i++) {
        (void)pubsub_remove(call->cmd->pubsub, &call->client->sub, kind, call->argv[i]);
        confirm_subscription(call, what, call->argv[i]);
    }
    if (call->argc > 1) {
        return;
    }
    while (pubsub_remove_one(call->cmd->pubsub, &call->client->sub, kind,
                             confirm_removed, &f)) {
        removed++;
    }
    if (removed == 0) {
        confirm_subscription(call, what, SPAN_NONE);
    }
}

void cmd_unsubscribe(struct command_ctx *call)
{
    unsubscribe_all(call, PUBSUB_CHANNEL, "unsubscribe");
}

void cmd_punsubscribe(struct command_ctx *call)
{
    unsubscribe_all(call, PUBSUB_PATTERN, "punsubscribe");
}

/* --- PUBSUB ------------------------------------------------------------------------
 */

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

void cmd_pubsub_channels(struct command_ctx *call)
{
    struct channel_listing l = { 0 };
    size_t channels = pubsub_total(call->cmd->pubsub, PUBSUB_CHANNEL);

    if (call->argc > 3) {
        ctx_subcommand_error(call);
        return;
    }
    if (call->argc == 3) {
        l.pattern = call->argv[2];
        if (l.pattern.len > PUBSUB_NAME_MAX) {
            resp_array(call->out, 0); /* longer than any channel */
            return;
        }
        if (glob_work(l.pattern) > GLOB_WORK_PLAIN &&
            glob_work(l.pattern) * channels > LISTING_WORK_MAX) {
            ctx_error(call, LATCHD_ERR_LIMIT,
                      "there are too many channels for a pattern that takes so long "
                      "to match: have less between two stars");
            return;
        }
    }
    pubsub_each_channel(call->cmd->pubsub, list_channel, &l);
    resp_array(call->out, l.count);
    buf_add_span(call->out, buf_span(&l.items));
    buf_reset(&l.items);
}

void cmd_pubsub_numsub(struct command_ctx *call)
{
    resp_array(call->out, 2 * (call->argc - 2));
    for (size_t i = 2; i < call->argc; i++) {
        resp_bulk(call->out, call->argv[i]);
        resp_int(call->out, (int64_t)pubsub_count(call->cmd->pubsub, call->argv[i]));
    }
}

void cmd_pubsub_numpat(struct command_ctx *call)
{
    resp_int(call->out, (int64_t)pubsub_total(call->cmd->pubsub, PUBSUB_PATTERN));
}
