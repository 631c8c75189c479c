/* CLIENT TRACKING and what goes with it. Options, checks and texts are Redis's; what is
 * tracked are the connection's holds, not keys that it read. */
#include "cmd/handlers.h"

#include "util/alloc.h"

#include <stdlib.h>

struct wanted {
    bool bcast, optin, optout, noloop;
    struct span *prefixes;
    size_t prefix_count;
};

/* Redis's own text for a client that is not there, and ours for one that is. */
static void refuse_redirect(struct command_ctx *call, size_t at)
{
    int64_t id;

    if (!ctx_arg_int(call, at, &id)) {
        return;
    }
    if (id <= 0 || net_find(call->cmd->env.net, (uint64_t)id) == NULL) {
        ctx_error(call, LATCHD_ERR,
                  "The client ID you want redirect to does not exist");
    } else {
        ctx_error(call, LATCHD_ERR,
                  "REDIRECT is not supported: use RESP3, or SUBSCRIBE to lost:<name>");
    }
}

static bool read_options(struct command_ctx *call, struct wanted *ret)
{
    for (size_t at = 3; at < call->argc; at++) {
        bool more = at + 1 < call->argc;

        if (ctx_arg_is(call, at, "BCAST")) {
            ret->bcast = true;
        } else if (ctx_arg_is(call, at, "OPTIN")) {
            ret->optin = true;
        } else if (ctx_arg_is(call, at, "OPTOUT")) {
            ret->optout = true;
        } else if (ctx_arg_is(call, at, "NOLOOP")) {
            ret->noloop = true;
        } else if (more && ctx_arg_is(call, at, "PREFIX")) {
            ret->prefixes[ret->prefix_count++] = call->argv[++at];
        } else if (more && ctx_arg_is(call, at, "REDIRECT")) {
            refuse_redirect(call, at + 1);
            return false;
        } else {
            ctx_syntax_error(call);
            return false;
        }
    }
    return true;
}

/* Whether what is asked for goes with itself, and with what was asked for before. */
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
    if (tr != NULL && ((w->optin && tr->optout) || (w->optout && tr->optin))) {
        return "You can't switch OPTIN/OPTOUT mode before disabling tracking for this "
               "client, and then re-enabling it with a different mode.";
    }
    return NULL;
}

/* Two prefixes that overlap would tell of a name twice. */
static bool prefixes_ok(struct command_ctx *call, const struct wanted *w)
{
    const struct tracker *tr = call->client->tracker;
    struct span other;

    if (w->prefix_count + (tr == NULL ? 0 : tr->prefix_count) > TRACK_PREFIXES_MAX) {
        ctx_error(call, LATCHD_ERR, "more than %d prefixes", TRACK_PREFIXES_MAX);
        return false;
    }
    for (size_t i = 0; i < w->prefix_count; i++) {
        struct span p = w->prefixes[i];

        if (p.len > TRACK_PREFIX_MAX) {
            ctx_error(call, LATCHD_ERR, "a prefix is longer than a name can be");
            return false;
        }
        if (tr != NULL && tracker_overlaps(tr, p, &other)) {
            ctx_error(call, LATCHD_ERR,
                      "Prefix '%.*s' overlaps with an existing prefix '%.*s'. "
                      "Prefixes for a single client must not overlap.",
                      span_shown(p), p.ptr, span_shown(other), other.ptr);
            return false;
        }
        for (size_t j = i + 1; j < w->prefix_count; j++) {
            other = w->prefixes[j];
            if (prefixes_overlap(p, other)) {
                ctx_error(call, LATCHD_ERR,
                          "Prefix '%.*s' overlaps with another provided prefix "
                          "'%.*s'. Prefixes for a single client must not overlap.",
                          span_shown(p), p.ptr, span_shown(other), other.ptr);
                return false;
            }
        }
    }
    return true;
}

static void turn_on(struct command_ctx *call, const struct wanted *w)
{
    struct tracking *t = &call->cmd->tracking;
    struct client *client = call->client;
    struct tracker *tr = client->tracker;

    if (tr == NULL) {
        tr = client->tracker = tracker_new(t, client->id);
    }
    tr->optin = w->optin;
    tr->optout = w->optout;
    tr->noloop = w->noloop;
    tr->caching = false;
    for (size_t i = 0; i < w->prefix_count; i++) {
        tracker_add_prefix(t, tr, w->prefixes[i]);
    }
    if (w->bcast && w->prefix_count == 0 && !tracker_wants(tr, SPAN_NONE)) {
        tracker_add_prefix(t, tr, SPAN_NONE);
    }
    resp_simple(call->out, "OK");
}

static void start_tracking(struct command_ctx *call, const struct wanted *w)
{
    const char *text = find_mismatch(call->client->tracker, w);

    if (text != NULL) {
        ctx_error(call, LATCHD_ERR, "%s", text);
    } else if (call->proto == 2) {
        ctx_error(call, LATCHD_ERR,
                  "CLIENT TRACKING needs RESP3: say HELLO 3 first, or SUBSCRIBE to "
                  "lost:<name> and uncertain:<name>");
    } else if (prefixes_ok(call, w)) {
        turn_on(call, w);
    }
}

void cmd_client_tracking(struct command_ctx *call)
{
    struct wanted w = { .prefixes = xcalloc(call->argc, sizeof(*w.prefixes)) };

    if (!read_options(call, &w)) {
        ; /* and answered */
    } else if (ctx_arg_is(call, 2, "ON")) {
        start_tracking(call, &w);
    } else if (ctx_arg_is(call, 2, "OFF")) {
        client_untrack(call->cmd, call->client);
        resp_simple(call->out, "OK");
    } else {
        ctx_syntax_error(call);
    }
    free(w.prefixes);
}

void cmd_client_caching(struct command_ctx *call)
{
    struct tracker *tr = call->client->tracker;
    bool yes = ctx_arg_is(call, 2, "YES");

    if (tr == NULL) {
        ctx_error(call, LATCHD_ERR,
                  "CLIENT CACHING can be called only when the client is in tracking "
                  "mode with OPTIN or OPTOUT mode enabled");
    } else if (!yes && !ctx_arg_is(call, 2, "NO")) {
        ctx_syntax_error(call);
    } else if (yes && !tr->optin) {
        ctx_error(call, LATCHD_ERR,
                  "CLIENT CACHING YES is only valid when tracking is enabled in OPTIN "
                  "mode.");
    } else if (!yes && !tr->optout) {
        ctx_error(call, LATCHD_ERR,
                  "CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT "
                  "mode.");
    } else {
        tr->caching = true;
        resp_simple(call->out, "OK");
    }
}

void cmd_client_getredir(struct command_ctx *call)
{
    resp_int(call->out, call->client->tracker == NULL ? -1 : 0);
}

static void write_flags(struct command_ctx *call, const struct tracker *tr)
{
    const char *flags[5];
    size_t count = 0;

    flags[count++] = tr == NULL ? "off" : "on";
    if (tr != NULL) {
        if (tr->bcast) {
            flags[count++] = "bcast";
        }
        if (tr->optin || tr->optout) {
            flags[count++] = tr->optin ? "optin" : "optout";
        }
        if (tr->caching) {
            flags[count++] = tr->optin ? "caching-yes" : "caching-no";
        }
        if (tr->noloop) {
            flags[count++] = "noloop";
        }
    }
    resp_set(call->out, call->proto, count);
    for (size_t i = 0; i < count; i++) {
        resp_bulk_str(call->out, flags[i]);
    }
}

void cmd_client_trackinginfo(struct command_ctx *call)
{
    const struct tracker *tr = call->client->tracker;
    struct list *it;

    resp_map(call->out, call->proto, 3);
    resp_bulk_str(call->out, "flags");
    write_flags(call, tr);
    resp_bulk_str(call->out, "redirect");
    resp_int(call->out, tr == NULL ? -1 : 0);
    resp_bulk_str(call->out, "prefixes");
    resp_array(call->out, tr == NULL ? 0 : tr->prefix_count);
    if (tr == NULL) {
        return;
    }
    LIST_FOREACH(it, &tr->prefixes)
    {
        const struct track_prefix *p =
            container_of(it, struct track_prefix, in_tracker);

        resp_bulk(call->out, span_of(p->text, p->len));
    }
}
