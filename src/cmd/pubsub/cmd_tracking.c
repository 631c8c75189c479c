/* CLIENT TRACKING and related commands. Options, checks and texts are Redis's, but the
 * connection's holds are tracked, not keys that it read. */
#include "cmd/handlers.h"
#include "cmd/observe/refusals.h"

#include "util/alloc.h"

#include <stdlib.h>

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
    struct list *it;

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
    LIST_FOREACH(it, &tr->prefixes)
    {
        const struct track_prefix *p =
            container_of(it, struct track_prefix, in_tracker);

        resp_bulk(ctx->out, span_of(p->text, p->len));
    }
}
