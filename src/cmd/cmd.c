#include "cmd/cmd_priv.h"
#include "cmd/lock/redis_names.h"
#include "cmd/observe/latency.h"
#include "cmd/observe/log_identity.h"
#include "cmd/observe/refusals.h"

#include "cmd/deferred_command.h"
#include "cmd/library/library_publish.h"
#include "cmd/library/pollers.h"
#include "cmd/pipeline.h"
#include "lockscript/lock_script_cache.h"
#include "util/alloc.h"

#include <stdlib.h>

/* A subscriber to the channel of a leader follows the name; one to a channel that is
 * none of latchd's waits for the message of a lock library's script. */
static void follow_channel(void *cmd, enum pubsub_kind kind, struct span channel,
                           bool heard)
{
    const struct cmd *c = cmd;
    struct span name =
        kind == PUBSUB_CHANNEL ? leader_channel_name(channel) : SPAN_NONE;

    if (name.len != 0) {
        engine_follow(c->env.engine, name, heard);
    } else if (library_has_channels(kind, channel)) {
        c->env.hear(c->env.ctx, kind == PUBSUB_PATTERN, channel, heard);
    }
}

struct cmd *cmd_new(const struct cmd_env *env, const struct cmd_limits *limits)
{
    struct cmd *c = xcalloc(1, sizeof(*c));

    c->env = *env;
    c->limits = *limits;
    users_init(&c->users);
    cmd_password_changed(c);
    c->pubsub = pubsub_new(follow_channel, c);
    tracking_init(&c->tracking);
    c->stats = xcalloc(COMMAND_COUNT, sizeof(*c->stats));
    list_init(&c->monitors);
    list_init(&c->redis_names);
    list_init(&c->pause.deferred);
    slowlog_init(&c->slow);
    slowlog_init(&c->waits);
    c->latency = xcalloc(1, sizeof(*c->latency));
    c->losses = xcalloc(1, sizeof(*c->losses));
    c->expired = xcalloc(1, sizeof(*c->expired));
    c->pollers = pollers_new();
    c->refusals = refusals_new();
    c->started_ms = env->now_ms(env->ctx);
    return c;
}

void cmd_free(struct cmd *c)
{
    if (c == NULL) {
        return;
    }
    redis_names_free(c);
    users_fini(&c->users);
    pubsub_free(c->pubsub);
    free(c->stats);
    slowlog_fini(&c->slow);
    slowlog_fini(&c->waits);
    free(c->latency);
    free(c->losses);
    free(c->expired);
    lock_script_cache_free(c->scripts);
    pollers_free(c->pollers);
    refusals_free(c->refusals);
    buf_reset(&c->scratch);
    free(c);
}

void cmd_set_limits(struct cmd *c, const struct cmd_limits *limits)
{
    c->limits = *limits;
    slowlog_trim(&c->slow, limits->slowlog_len);
    slowlog_trim(&c->waits, limits->slowlog_len);
}

/* --- connections ------------------------------------------------------ */

bool client_needs_auth(const struct cmd *c, const struct client *client)
{
    return !client->authenticated && !acl_is_open(c->users.acl);
}

/* Has the loop read the clock, once a turn. */
void cmd_on_event(void *ctx)
{
    struct cmd *c = ctx;

    c->answered_us = 0;
    (void)c->env.now_ms(c->env.ctx);
}

bool cmd_on_open(void *ctx, struct conn *conn)
{
    struct cmd *c = ctx;
    struct client *client;

    if (!protect_lets_in(c, conn)) {
        return false;
    }
    client = client_new(conn_id(conn));
    client_set_user(client, acl_default(c->users.acl));
    client->authenticated = acl_is_open(c->users.acl);
    client->trusted = client->authenticated;
    conn_set_data(conn, client);
    conn_set_trusted(conn, client->trusted);
    log_identity_connected(client, conn);
    return true;
}

/* A TLS certificate is as good as AUTH, even before the first request. */
bool cmd_is_unauthenticated(void *ctx, struct conn *conn)
{
    struct cmd *c = ctx;
    struct client *client = conn_data(conn);

    if (client == NULL) {
        return true; /* the conn is being refused */
    }
    if (!client->cert_checked) {
        users_meet(c, conn, client);
        /* The TLS handshake may not be over. */
        client->cert_checked = client->authenticated;
    }
    client->trusted = !client_needs_auth(c, client);
    conn_set_trusted(conn, client->trusted);
    return !client->trusted;
}

bool cmd_is_busy(void *ctx, struct conn *conn)
{
    struct cmd *c = ctx;

    return engine_conn_busy(c->env.engine, conn_id(conn));
}

uint32_t cmd_heartbeat(void *ctx, struct conn *conn)
{
    struct cmd *c = ctx;

    return engine_conn_heartbeat(c->env.engine, conn_id(conn));
}

/* Grants whose replies are still effects of this turn will not reach the connection. */
static void take_back_unwritten(struct cmd *c, uint64_t conn)
{
    const struct effects *effects = engine_effects(c->env.engine);
    size_t count = effects->count; /* replies that this appends are not for `conn` */

    for (size_t i = 0; i < count; i++) {
        const struct effect *fx = effects->list[i];

        if (fx->kind == EFFECT_REPLY &&
            (fx->reply.kind == REPLY_TOKEN || fx->reply.kind == REPLY_TOKENS) &&
            fx->reply.to.conn == conn) {
            engine_on_undelivered(c->env.engine, conn, fx->reply.grant);
        }
    }
}

void cmd_on_close(void *ctx, struct conn *conn, bool unread)
{
    struct cmd *c = ctx;
    struct client *client = conn_data(conn);
    const uint64_t *grants;

    if (client == NULL) {
        return;
    }
    log_identity_closed(client, conn);
    take_back_unwritten(c, client->id);
    if (unread) {
        size_t count = client_doubtful(client, conn_input_count(conn), &grants);

        for (size_t i = 0; i < count; i++) {
            engine_on_undelivered(c->env.engine, client->id, grants[i]);
        }
    }
    if (client->call != 0) {
        stats_answered(c, client_last(client), client->call_us, OUTCOME_GONE);
    }
    pipeline_abandon(c, client);
    if (multi_is_running(client->multi)) {
        multi_abandon(c, client);
    }
    engine_on_conn_closed(c->env.engine, client->id);
    pubsub_remove_all(c->pubsub, &client->sub);
    client_untrack(c, client);
    client_set_user(client, NULL);
    client_free(client);
    conn_set_data(conn, NULL);
}

size_t cmd_keeps(void *ctx, struct conn *conn)
{
    const struct client *client = conn_data(conn);

    (void)ctx;
    return client == NULL ? 0 : client_bytes(client);
}

static void drop_scratch(struct cmd *c)
{
    if (c->scratch.room > SCRATCH_KEEP) {
        buf_reset(&c->scratch);
    } else {
        buf_clear(&c->scratch);
    }
}

/* Runs a request that began at `started_us`; 0: it begins now. */
static void run_request(struct cmd *c, struct conn *conn, const struct span *argv,
                        size_t argc, uint64_t started_us)
{
    struct client *client = conn_data(conn);
    struct command_ctx ctx = { .cmd = c,
                               .conn = conn,
                               .client = client,
                               .argv = argv,
                               .argc = argc,
                               .started_us = started_us };

    ctx.proto = client->proto;
    ctx.out = &c->scratch;
    ctx.muted = client_muted(client);
    library_end_park(c, client);
    if ((client->pipeline != NULL || client->call != 0) && !pipeline_begin(&ctx)) {
        return;
    }
    if (!ctx.muted && ctx.step == NULL) {
        ctx.out = conn_out(conn);
    }
    dispatch_command(&ctx);
    pipeline_ran(&ctx);
    drop_scratch(c);
    if (client->trusted == client_needs_auth(c, client)) {
        client->trusted = !client->trusted;
        conn_set_trusted(conn, client->trusted);
    }
}

void cmd_on_request(void *ctx, struct conn *conn, const struct resp_request *req)
{
    struct client *client = conn_data(conn);

    if (!client->cert_checked) {
        users_meet(ctx, conn, client);
    }
    if (req->argc != 0) {
        client->skip = client->skip_next;
        client->skip_next = false;
        run_request(ctx, conn, req->argv, req->argc, conn_request_us(conn));
    }
}

static void run_deferred(struct cmd *c, struct conn *conn, struct client *client)
{
    struct deferred_command *deferred = client->deferred;

    client->deferred = NULL;
    run_request(c, conn, deferred->argv, deferred->argc, 0);
    deferred_command_free(deferred);
}

/* Runs what a pipeline has put off, a deferred request, or the next command of an
 * EXEC. */
void cmd_on_again(void *ctx, struct conn *conn)
{
    struct cmd *c = ctx;
    struct client *client = conn_data(conn);

    if (client->pipeline != NULL) {
        pipeline_again(c, conn);
        drop_scratch(c);
        if (pipeline_admits_deferred(client)) {
            run_deferred(c, conn, client);
        }
    } else if (client->deferred != NULL) {
        run_deferred(c, conn, client);
    } else if (multi_is_running(client->multi)) {
        multi_step(c, conn);
        drop_scratch(c);
    }
}

void cmd_on_ran(void *ctx, struct conn *conn)
{
    pipeline_settle(ctx, conn);
}

/* --- time ------------------------------------------------------------- */

void cmd_tick(struct cmd *c, uint64_t now_ms)
{
    pause_tick(c, now_ms);
    redis_names_tick(c, now_ms);
}

uint64_t cmd_next_deadline(const struct cmd *c)
{
    uint64_t pause_ms = c->pause.until_ms == 0 ? UINT64_MAX : c->pause.until_ms;
    uint64_t names_ms = redis_names_next_deadline(c);

    return pause_ms < names_ms ? pause_ms : names_ms;
}

void cmd_stop(struct cmd *c)
{
    pause_end(c);
}
