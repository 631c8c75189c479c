#include "cmd/cmd_priv.h"

#include "cmd/deferred_command.h"
#include "cmd/handlers.h"
#include "cmd/library/pollers.h"
#include "cmd/lock/redis_names.h"
#include "cmd/observe/latency.h"
#include "cmd/observe/log_identity.h"
#include "cmd/observe/monitor.h"
#include "cmd/observe/refusals.h"
#include "cmd/pipeline.h"
#include "cmd/pubsub/events.h"
#include "cmd/redis_only.h"
#include "lockscript/lock_script_cache.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/parse.h"

#include <stdlib.h>

/* Command ctx: what all handlers share: errors, arguments, HELP, waiting. */

static void buf_add_upper(struct buf *out, const char *text);

void ctx_error(struct command_ctx *ctx, const char *word, const char *fmt, ...)
{
    bool aborts =
        !ctx->admitted && ctx->command != NULL && ctx->command->run == cmd_exec;
    struct buf text = { 0 };
    va_list ap;

    if (aborts) {
        buf_printf(&text, "Transaction discarded because of: %s%s",
                   strcmp(word, LATCHD_ERR) == 0 ? "" : word,
                   strcmp(word, LATCHD_ERR) == 0 ? "" : " ");
        word = LATCHD_ERR_EXECABORT;
    }
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    resp_error(ctx->out, word, buf_span(&text));
    buf_reset(&text);
    ctx->outcome = outcome_of_error(word);
}

void ctx_null(struct command_ctx *ctx)
{
    resp_null(ctx->out, ctx->proto);
    ctx->outcome = OUTCOME_NULL;
}

void ctx_syntax_error(struct command_ctx *ctx)
{
    ctx_error(ctx, LATCHD_ERR, "syntax error");
}

void ctx_arity_error(struct command_ctx *ctx)
{
    ctx_error(ctx, LATCHD_ERR, "wrong number of arguments for '%s' command",
              ctx->command->name);
}

void ctx_subcommand_error(struct command_ctx *ctx)
{
    const char *full = ctx->command->name;
    struct span sub = ctx->argv[1];
    struct buf upper = { 0 };

    buf_add_upper(&upper, full);
    ctx_error(ctx, LATCHD_ERR,
              "unknown subcommand or wrong number of arguments for '%.*s'. Try %.*s "
              "HELP.",
              span_quoted_len(sub), sub.ptr, (int)strcspn(full, "|"), buf_ptr(&upper));
    buf_reset(&upper);
}

bool ctx_arg_is(const struct command_ctx *ctx, size_t at, const char *word)
{
    return at < ctx->argc && span_eq_nocase(ctx->argv[at], span_str(word));
}

bool ctx_arg_int(struct command_ctx *ctx, size_t at, int64_t *ret)
{
    if (!parse_i64(ctx->argv[at], ret)) {
        ctx_error(ctx, LATCHD_ERR, "value is not an integer or out of range");
        return false;
    }
    return true;
}

void ctx_close_after(struct command_ctx *ctx)
{
    if (multi_is_running(ctx->client->multi)) {
        ctx->client->leaving = true;
    } else {
        conn_drain(ctx->conn);
    }
}

struct call_ref ctx_wait(struct command_ctx *ctx)
{
    struct client *client = ctx->client;
    uint64_t number = ++ctx->cmd->next_call;

    ctx->waits = true;
    if (pipeline_waits_last(ctx, number)) {
        return (struct call_ref){ .conn = client->id, .call = number };
    }
    client->call = number;
    client->call_us = ctx->started_us;
    client->call_muted = ctx->muted;
    client_set_library(client, ctx->library);
    if (ctx->library == NULL) {
        client->call_subject = ctx->subject;
    }
    if ((command_may_wait(ctx->command) && !multi_is_open(client->multi)) ||
        library_is_parked(ctx->library)) {
        conn_await(ctx->conn); /* later commands may pass it, or end its wait */
    } else {
        conn_suspend(ctx->conn);
    }
    return (struct call_ref){ .conn = client->id, .call = number };
}

struct call_ref ctx_wait_pipelined(struct command_ctx *ctx)
{
    uint64_t number = ctx->cmd->next_call + 1;

    if (!pipeline_waits(ctx, number)) {
        return ctx_wait(ctx);
    }
    ctx->waits = true;
    ctx->cmd->next_call = number;
    return (struct call_ref){ .conn = ctx->client->id, .call = number };
}

/* Appends `text` in upper case. */
static void buf_add_upper(struct buf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        char ch = (char)(*text >= 'a' && *text <= 'z' ? *text - 'a' + 'A' : *text);

        buf_add(out, &ch, 1);
    }
}

static void write_line(struct buf *out, struct buf *line)
{
    buf_add(line, "", 1);
    resp_simple(out, buf_ptr(line));
    buf_clear(line);
}

void ctx_help(struct command_ctx *ctx)
{
    const char *full = ctx->command->name; /* container|help */
    const struct command *container =
        command_find(span_of(full, (size_t)(strchr(full, '|') - full)));
    struct buf line = { 0 };
    size_t count;
    const struct command *subs = command_subs(container, &count);

    resp_array(ctx->out, 1 + 2 * count);
    buf_add_upper(&line, container->name);
    buf_add_str(&line, " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    write_line(ctx->out, &line);
    for (size_t i = 0; i < count; i++) {
        buf_add_upper(&line, command_short_name(&subs[i]));
        buf_add_str(&line, subs[i].usage[0] == '\0' ? "" : " ");
        buf_add_str(&line, subs[i].usage);
        write_line(ctx->out, &line);
        buf_printf(&line, "    %s", subs[i].summary);
        write_line(ctx->out, &line);
    }
    buf_reset(&line);
}

/* Passes the engine's answers and events on to clients. */

static const char *const ERROR_WORDS[] = {
    [LOCK_ERR] = LATCHD_ERR,
    [LOCK_WRONGTYPE] = LATCHD_ERR_WRONGTYPE,
    [LOCK_NOTHELD] = LATCHD_ERR_NOTHELD,
    [LOCK_DEADLOCK] = LATCHD_ERR_DEADLOCK,
    [LOCK_BACKEND] = LATCHD_ERR_BACKEND,
    [LOCK_LIMIT] = LATCHD_ERR_LIMIT,
    [LOCK_GOAWAY] = LATCHD_ERR_GOAWAY,
    [LOCK_NOPERM] = LATCHD_ERR_NOPERM,
    [LOCK_UNBLOCKED] = LATCHD_ERR_UNBLOCKED,
    [LOCK_NOREPLICAS] = LATCHD_ERR_NOREPLICAS,
    [LOCK_CROSSSLOT] = LATCHD_ERR_CROSSSLOT,
};

const char *lock_error_word(enum lock_error error)
{
    return ERROR_WORDS[error];
}

/* LATCH INFO */
static void latch_write(struct buf *out, int proto, const struct effect_reply *reply)
{
    static const char *const STATES[] = {
        [LATCH_NONE] = "none", [LATCH_SET] = "set",   [LATCH_OPEN] = "open",
        [LATCH_GONE] = "gone", [LATCH_LOST] = "lost",
    };

    resp_map(out, proto, 3);
    resp_bulk_str(out, "left");
    resp_int(out, reply->value);
    resp_bulk_str(out, "state");
    resp_bulk_str(out, STATES[reply->latch_state]);
    resp_bulk_str(out, "waiting");
    resp_int(out, (int64_t)reply->waiting);
}

void reply_write(const struct cmd *c, struct buf *out, const struct client *client,
                 const struct library_call *library, const struct effect_reply *reply)
{
    if (library != NULL) {
        library_write(out, client->proto, library, reply);
        return;
    }
    switch (reply->kind) {
    case REPLY_TOKENS:
        resp_array(out, reply->token_count);
        for (size_t i = 0; i < reply->token_count; i++) {
            resp_int(out, (int64_t)reply->tokens[i]);
        }
        break;
    case REPLY_TOKEN:
    case REPLY_INT:
        resp_int(out, reply->token != 0 ? (int64_t)reply->token : reply->value);
        break;
    case REPLY_NULL:
        resp_null(out, client->proto);
        break;
    case REPLY_ERROR:
        resp_error(out, ERROR_WORDS[reply->error], reply->text);
        break;
    case REPLY_INFO:
        lockinfo_write(c, client, out, reply->info);
        break;
    case REPLY_LEADER:
        resp_array(out, 3);
        resp_int(out, (int64_t)reply->token);
        resp_bulk(out, reply->text);
        resp_bulk(out, reply->data);
        break;
    case REPLY_LATCH:
        latch_write(out, client->proto, reply);
        break;
    case REPLY_WRITTEN:
        buf_add_span(out, reply->text);
        break;
    case REPLY_UNREACHED: /* handled by the pipeline, never written */
        break;
    }
}

enum outcome reply_outcome(const struct library_call *library,
                           const struct effect_reply *reply)
{
    if (library != NULL) {
        return library_outcome(library, reply);
    }
    if (reply->kind == REPLY_ERROR) {
        return outcome_of_error(ERROR_WORDS[reply->error]);
    }
    return reply->kind == REPLY_NULL ? OUTCOME_NULL : OUTCOME_OK;
}

void cmd_reply(struct cmd *c, const struct effect_reply *reply)
{
    struct conn *conn = net_find(c->env.net, reply->to.conn);
    struct client *client = conn == NULL ? NULL : conn_data(conn);
    struct library_call *library;
    bool running;

    if (client != NULL && client->pipeline != NULL) {
        pipeline_reply(c, conn, reply);
        return;
    }
    /* The client is gone; the engine learned of the close. */
    if (client == NULL || client->call == 0 || client->call != reply->to.call) {
        return;
    }
    library = client_library(client);
    if (library != NULL && library_goes_on(c, library, reply)) {
        return;
    }
    tracking_push(
        c, client); /* losses from before must not seem to come after this reply */
    running = multi_is_running(client->multi);
    stats_answered(c, client_last(client), client->call_us,
                   reply_outcome(library, reply));
    if (!client->call_muted) {
        bool granted = reply->kind == REPLY_TOKEN || reply->kind == REPLY_TOKENS;

        reply_write(c, running ? multi_out(client->multi) : conn_out(conn), client,
                    library, reply);
        if (granted && running) {
            multi_granted(client->multi, reply->grant);
        } else if (granted) {
            client_granted(client, reply->grant, conn_input_count(conn));
        }
    }
    client->call = 0;
    library_call_free(client_library(client));
    client_set_library(client, NULL);
    if (!running || multi_answered(c, conn)) {
        conn_resume(conn);
    }
}

/* Dispatch: from a request to its handler: finds the row, checks whether the client
 * may run it now, and counts it. */

/* Redis's error for an unknown command, and advice for a command that only Redis has.
 */
static void reject_unknown(struct command_ctx *ctx)
{
    struct buf args = { 0 };
    struct span name = ctx->argv[0];
    const char *advice = redis_only_advice(name);

    if (advice != NULL) {
        ctx_only_redis(ctx, advice);
        return;
    }
    for (size_t i = 1; i < ctx->argc && buf_len(&args) < SPAN_QUOTED_MAX; i++) {
        size_t room = SPAN_QUOTED_MAX - buf_len(&args);

        buf_add_str(&args, "'");
        buf_add(&args, ctx->argv[i].ptr,
                ctx->argv[i].len < room ? ctx->argv[i].len : room);
        buf_add_str(&args, "' ");
    }
    ctx_error(ctx, LATCHD_ERR, "unknown command '%.*s', with args beginning with: %.*s",
              span_quoted_len(name), name.ptr, (int)buf_len(&args),
              buf_span(&args).ptr);
    buf_reset(&args);
}

static void reject_unknown_sub(struct command_ctx *ctx, const struct command *container)
{
    struct span sub = ctx->argv[1];
    struct buf upper = { 0 };

    buf_add_upper(&upper, container->name);
    ctx_error(ctx, LATCHD_ERR, "unknown subcommand '%.*s'. Try %.*s HELP.",
              span_quoted_len(sub), sub.ptr, (int)buf_len(&upper), buf_ptr(&upper));
    buf_reset(&upper);
}

/* Finds the row of a command. NULL: an error reply was written. */
static const struct command *look_up(struct command_ctx *ctx)
{
    const struct command *command = ctx->command;

    if (command != NULL) {
        return command; /* pipeline_begin() has found the row */
    }
    command = command_find(ctx->argv[0]);
    if (command == NULL || command_is_sub(command)) {
        reject_unknown(ctx);
        return NULL;
    }
    ctx->command = command;
    if ((command->flags & CMD_CONTAINER) != 0 && ctx->argc > 1) {
        command = command_find_sub(command, ctx->argv[1]);
        if (command == NULL) {
            reject_unknown_sub(ctx, ctx->command);
            return NULL;
        }
        ctx->command = command;
    }
    return command;
}

/* Whether the client may run the command now. False: an error reply was written. */
static bool admit_command(struct command_ctx *ctx)
{
    const struct command *command = ctx->command;
    struct client *client = ctx->client;

    if (!command_arity_fits(command, ctx->argc)) {
        ctx_arity_error(ctx);
        return false;
    }
    if ((command->flags & CMD_NO_AUTH) == 0 && client_needs_auth(ctx->cmd, client)) {
        ctx_error(ctx, LATCHD_ERR_NOAUTH, "Authentication required.");
        return false;
    }
    if (!acl_check_admits(ctx)) {
        return false;
    }
    if (multi_is_open(client->multi) && (command->flags & CMD_NO_MULTI) != 0) {
        ctx_error(ctx, LATCHD_ERR, "Command not allowed inside a transaction");
        return false;
    }
    if (client->proto == 2 && client_is_subscribed(client) &&
        (command->flags & CMD_PUBSUB) == 0) {
        ctx_error(ctx, LATCHD_ERR,
                  "Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / "
                  "QUIT / RESET are allowed in this context",
                  command->name);
        return false;
    }
    return true;
}

/* A command whose reply is dropped must not take locks: nobody would know of the
 * grant. */
static bool is_of_use(const struct command_ctx *ctx)
{
    return (ctx->command->flags & CMD_NEEDS_REPLY) == 0 || !ctx->muted;
}

/* Runs the handler, and counts the command. A command that waits has not failed yet. */
static void execute_command(struct command_ctx *ctx)
{
    client_set_last(ctx->client, ctx->command);
    ctx->admitted = true;
    if (ctx->started_us == 0) {
        ctx->started_us = clock_boot_us();
    }
    ctx->command->run(ctx);
    slowlog_note(ctx, stats_ran(ctx));
    if (!list_empty(&ctx->cmd->monitors) && !ctx->counted) {
        monitor_feed(ctx);
    }
}

static void execute_if_of_use(struct command_ctx *ctx)
{
    if (is_of_use(ctx)) {
        execute_command(ctx);
    } else {
        stats_rejected(ctx);
    }
}

static bool is_queued(const struct command_ctx *ctx)
{
    return multi_is_open(ctx->client->multi) &&
           (ctx->command->flags & CMD_AT_ONCE) == 0;
}

void dispatch_command(struct command_ctx *ctx)
{
    bool ok = look_up(ctx) != NULL && admit_command(ctx);

    if (ok && pause_holds(ctx)) {
        return;
    }
    if (ok && !is_queued(ctx)) {
        execute_if_of_use(ctx);
    } else if (!ok || !multi_queue(ctx)) {
        stats_rejected(ctx);
        multi_refused(ctx);
    }
}

void dispatch_queued(struct command_ctx *ctx)
{
    if (acl_check_still_admits(ctx)) {
        execute_if_of_use(ctx);
    } else {
        stats_rejected(ctx);
    }
}

struct cmd *cmd_new(const struct cmd_env *env, const struct cmd_limits *limits)
{
    struct cmd *c = xcalloc(1, sizeof(*c));

    c->env = *env;
    c->limits = *limits;
    users_init(&c->users);
    cmd_password_changed(c);
    c->pubsub = pubsub_new(events_follow, c);
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
    pollers_init(&c->pollers);
    refusals_init(&c->refusals);
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
    recent_fini(&c->pollers);
    recent_fini(&c->refusals);
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

/* The answers to the next request have a time of their own. */
void cmd_on_event(void *ctx)
{
    struct cmd *c = ctx;

    c->answered_us = 0;
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
    struct effect_reply late;

    pause_tick(c, now_ms);
    while (redis_names_on_time(c, now_ms, &late)) {
        cmd_reply(c, &late);
    }
}

void cmd_on_scanned(struct cmd *c, uint64_t id, const struct scanned_names *names)
{
    struct buf text = { 0 };
    struct effect_reply reply;

    if (redis_names_on_scanned(c, id, names, &text, &reply)) {
        cmd_reply(c, &reply);
    }
    buf_reset(&text);
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
