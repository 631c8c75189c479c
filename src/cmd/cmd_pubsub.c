/* SUBSCRIBE and its relatives: events of locks. protocol.h has the channels. */
#include "cmd/cmd_priv.h"

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

/* CLIENT TRACKING and related commands. Options, checks and texts are Redis's, but the
 * connection's holds are tracked, not keys that it read. */

struct wanted {
    bool bcast, optin, optout, noloop;
    struct span *prefixes;
    size_t prefix_count;
};

/* Redis's text for a client that does not exist, and latchd's own for one that does. */
static void refuse_redirect(struct command_ctx *ctx, size_t at)
{
    int64_t id;

    if (!ctx_arg_int(ctx, at, &id)) {
        return;
    }
    if (id <= 0 || net_find(ctx->cmd->env.net, (uint64_t)id) == NULL) {
        ctx_error(ctx, LATCHD_ERR, "The client ID you want redirect to does not exist");
    } else {
        ctx_error(ctx, LATCHD_ERR,
                  "REDIRECT is not supported: use RESP3, or SUBSCRIBE to lost:<name>");
    }
}

static bool read_options(struct command_ctx *ctx, struct wanted *ret)
{
    for (size_t at = 3; at < ctx->argc; at++) {
        bool more = at + 1 < ctx->argc;

        if (ctx_arg_is(ctx, at, "BCAST")) {
            ret->bcast = true;
        } else if (ctx_arg_is(ctx, at, "OPTIN")) {
            ret->optin = true;
        } else if (ctx_arg_is(ctx, at, "OPTOUT")) {
            ret->optout = true;
        } else if (ctx_arg_is(ctx, at, "NOLOOP")) {
            ret->noloop = true;
        } else if (more && ctx_arg_is(ctx, at, "PREFIX")) {
            ret->prefixes[ret->prefix_count++] = ctx->argv[++at];
        } else if (more && ctx_arg_is(ctx, at, "REDIRECT")) {
            refuse_redirect(ctx, at + 1);
            return false;
        } else {
            ctx_syntax_error(ctx);
            return false;
        }
    }
    return true;
}

/* Checks the options against each other, and against the tracking that is on. NULL: no
 * conflict. */
static const char *find_mismatch(const struct tracker *tr, const struct wanted *w)
{
    if (!w->bcast && w->prefix_count != 0) {
        return "PREFIX option requires BCAST mode to be enabled";
    }
    if (tr != NULL && tr->bcast != w->bcast) {
        return "You can't switch BCAST mode on/off before disabling tracking for this "
               "client, and then re-enabling it with a different mode.";
    }
    if (w->bcast && (w->optin || w->optout)) {
        return "OPTIN and OPTOUT are not compatible with BCAST";
    }
    if (w->optin && w->optout) {
        return "You can't specify both OPTIN mode and OPTOUT mode";
    }
    if (tr != NULL && tr->optin && w->optout) {
        return "You can't switch OPTIN/OPTOUT mode before disabling tracking for this "
               "client, and then re-enabling it with a different mode.";
    }
    return NULL;
}

/* Overlapping prefixes are refused: a name would be sent twice. */
static bool prefixes_ok(struct command_ctx *ctx, const struct wanted *w)
{
    const struct tracker *tr = ctx->client->tracker;
    struct span other;

    if (w->prefix_count + (tr == NULL ? 0 : tr->prefix_count) > TRACK_PREFIXES_MAX) {
        ctx_error(ctx, LATCHD_ERR, "more than %d prefixes", TRACK_PREFIXES_MAX);
        return false;
    }
    for (size_t i = 0; i < w->prefix_count; i++) {
        struct span p = w->prefixes[i];

        if (p.len > TRACK_PREFIX_MAX) {
            ctx_error(ctx, LATCHD_ERR, "a prefix is longer than a name can be");
            return false;
        }
        if (tr != NULL && tracker_overlaps(tr, p, &other)) {
            ctx_error(ctx, LATCHD_ERR,
                      "Prefix '%.*s' overlaps with an existing prefix '%.*s'. "
                      "Prefixes for a single client must not overlap.",
                      span_quoted_len(p), p.ptr, span_quoted_len(other), other.ptr);
            return false;
        }
        for (size_t j = i + 1; j < w->prefix_count; j++) {
            other = w->prefixes[j];
            if (prefixes_overlap(p, other)) {
                ctx_error(ctx, LATCHD_ERR,
                          "Prefix '%.*s' overlaps with another provided prefix "
                          "'%.*s'. Prefixes for a single client must not overlap.",
                          span_quoted_len(p), p.ptr, span_quoted_len(other), other.ptr);
                return false;
            }
        }
    }
    return true;
}

static void turn_on(struct command_ctx *ctx, const struct wanted *w)
{
    struct tracking *t = &ctx->cmd->tracking;
    struct client *client = ctx->client;
    struct tracker *tr = client->tracker;

    if (tr == NULL) {
        tr = client->tracker = tracker_new(t, client->id);
    }
    tr->optin = w->optin;
    tr->noloop = w->noloop;
    tr->caching = false;
    for (size_t i = 0; i < w->prefix_count; i++) {
        tracker_add_prefix(t, tr, w->prefixes[i]);
    }
    if (w->bcast && w->prefix_count == 0 && !tracker_wants(tr, SPAN_NONE)) {
        tracker_add_prefix(t, tr, SPAN_NONE);
    }
    resp_simple(ctx->out, "OK");
}

static void start_tracking(struct command_ctx *ctx, const struct wanted *w)
{
    const char *text = find_mismatch(ctx->client->tracker, w);

    if (text != NULL) {
        ctx_error(ctx, LATCHD_ERR, "%s", text);
    } else if (w->optout) {
        ctx_refuse(
            ctx, LATCHD_ERR,
            "CLIENT TRACKING with OPTOUT is not served: latchd reports holds that "
            "are uncertain or lost, not keys that were read; turn client-side "
            "caching off in the client (rueidislock: ClientOption.DisableCache)");
    } else if (ctx->proto == 2) {
        ctx_error(ctx, LATCHD_ERR,
                  "CLIENT TRACKING needs RESP3: say HELLO 3 first, or SUBSCRIBE to "
                  "lost:<name> and uncertain:<name>");
    } else if (prefixes_ok(ctx, w)) {
        turn_on(ctx, w);
    }
}

void cmd_client_tracking(struct command_ctx *ctx)
{
    struct wanted w = { .prefixes = xcalloc(ctx->argc, sizeof(*w.prefixes)) };

    if (!read_options(ctx, &w)) {
        ; /* an error reply was written */
    } else if (ctx_arg_is(ctx, 2, "ON")) {
        start_tracking(ctx, &w);
    } else if (ctx_arg_is(ctx, 2, "OFF")) {
        client_untrack(ctx->cmd, ctx->client);
        resp_simple(ctx->out, "OK");
    } else {
        ctx_syntax_error(ctx);
    }
    free(w.prefixes);
}

void cmd_client_caching(struct command_ctx *ctx)
{
    struct tracker *tr = ctx->client->tracker;
    bool yes = ctx_arg_is(ctx, 2, "YES");

    if (tr == NULL) {
        ctx_error(ctx, LATCHD_ERR,
                  "CLIENT CACHING can be called only when the client is in tracking "
                  "mode with OPTIN or OPTOUT mode enabled");
    } else if (!yes && !ctx_arg_is(ctx, 2, "NO")) {
        ctx_syntax_error(ctx);
    } else if (yes && !tr->optin) {
        ctx_error(ctx, LATCHD_ERR,
                  "CLIENT CACHING YES is only valid when tracking is enabled in OPTIN "
                  "mode.");
    } else if (!yes) {
        ctx_error(ctx, LATCHD_ERR,
                  "CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT "
                  "mode.");
    } else {
        tr->caching = true;
        resp_simple(ctx->out, "OK");
    }
}

void cmd_client_getredir(struct command_ctx *ctx)
{
    resp_int(ctx->out, ctx->client->tracker == NULL ? -1 : 0);
}

static void write_flags(struct command_ctx *ctx, const struct tracker *tr)
{
    const char *flags[5];
    size_t count = 0;

    flags[count++] = tr == NULL ? "off" : "on";
    if (tr != NULL) {
        if (tr->bcast) {
            flags[count++] = "bcast";
        }
        if (tr->optin) {
            flags[count++] = "optin";
        }
        if (tr->caching) {
            flags[count++] = "caching-yes";
        }
        if (tr->noloop) {
            flags[count++] = "noloop";
        }
    }
    resp_set(ctx->out, ctx->proto, count);
    for (size_t i = 0; i < count; i++) {
        resp_bulk_str(ctx->out, flags[i]);
    }
}

void cmd_client_trackinginfo(struct command_ctx *ctx)
{
    const struct tracker *tr = ctx->client->tracker;
    const struct track_prefix *p;

    resp_map(ctx->out, ctx->proto, 3);
    resp_bulk_str(ctx->out, "flags");
    write_flags(ctx, tr);
    resp_bulk_str(ctx->out, "redirect");
    resp_int(ctx->out, tr == NULL ? -1 : 0);
    resp_bulk_str(ctx->out, "prefixes");
    resp_array(ctx->out, tr == NULL ? 0 : tr->prefix_count);
    if (tr == NULL) {
        return;
    }
    LIST_EACH(p, &tr->prefixes, in_tracker) {
        resp_bulk(ctx->out, span_of(p->text, p->len));
    }
}
