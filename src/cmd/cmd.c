
#include "cmd/cmd_lock.h"
#include "cmd/cmd_lockinfo.h"
#include "cmd/cmd_priv.h"
#include "cmd/cmd_server.h"
#include "cmd/pipeline.h"
#include "lockscript/lock_script.h"
#include "util/log.h"

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

static void reply_write(const struct cmd *c, struct buf *out,
                        const struct client *client, const struct library_call *library,
                        const struct effect_reply *reply)
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
        resp_error(out, lock_error_word(reply->error), reply->text);
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

static enum outcome reply_outcome(const struct library_call *library,
                                  const struct effect_reply *reply)
{
    if (library != NULL) {
        return library_outcome(library, reply);
    }
    if (reply->kind == REPLY_ERROR) {
        return outcome_of_error(lock_error_word(reply->error));
    }
    return reply->kind == REPLY_NULL ? OUTCOME_NULL : OUTCOME_OK;
}

/* --- transactions ------------------------------------------------------ */

static bool names_key(const struct deferred_command *k, struct span key)
{
    size_t first, count;

    if (!command_key_range(k->command, k->argv, k->argc, &first, &count)) {
        return false;
    }
    for (size_t i = first; i < first + count; i++) {
        if (span_eq(k->argv[i], key)) {
            return true;
        }
    }
    return false;
}

/* Whether a later command of the transaction may have ended the grant of command `at`
 * on purpose. */
static bool is_used_later(const struct multi *m, size_t at)
{
    const struct deferred_command *lock = m->queue[at];
    size_t first = 1, count = 0;
    bool one =
        command_key_range(lock->command, lock->argv, lock->argc, &first, &count) &&
        count == 1;

    for (size_t i = at + 1; i < m->count; i++) {
        const struct deferred_command *k = m->queue[i];

        if ((k->command->flags & CMD_WRITE) != 0 &&
            (!one || names_key(k, lock->argv[first]))) {
            return true;
        }
    }
    return false;
}

/* The error to write in place of a token, as later commands may have taken longer than
 * its lease. NULL: the token is good. */
static const char *find_objection(const struct cmd *c, const struct client *client,
                                  const struct multi_grant *g)
{
    switch (engine_grant_state(c->env.engine, client->id, g->grant)) {
    case GRANT_STALE:
        return "the transaction took too long: the lock is given back";
    case GRANT_OVER:
        return is_used_later(client->multi, g->at)
                   ? NULL
                   : "the transaction took too long: the lock is lost";
    case GRANT_FRESH:
        break;
    }
    return NULL;
}

/* Writes the replies. As for any grant, the lease is checked when the reply is
 * written. */
static void write_replies(struct cmd *c, struct conn *conn, struct client *client)
{
    struct multi *m = client->multi;
    struct buf *out = conn_out(conn);
    struct span all = buf_span(&m->out);
    size_t done = 0;

    if (m->watch != NULL && m->watch->changed) {
        resp_null_array(out, client->proto); /* nothing was done or granted */
        return;
    }
    resp_array(out, m->count);
    for (size_t i = 0; i < m->grant_count; i++) {
        const struct multi_grant *g = &m->grants[i];
        const char *text = find_objection(c, client, g);

        if (text == NULL) {
            client_granted(client, g->grant, conn_input_count(conn));
            continue;
        }
        engine_on_undelivered(c->env.engine, client->id, g->grant);
        buf_add(out, all.ptr + done, g->from - done);
        resp_error(out, LATCHD_ERR_BACKEND, span_str(text));
        done = g->from + g->len;
    }
    buf_add(out, all.ptr + done, all.len - done);
}

static void finish_exec(struct cmd *c, struct conn *conn, struct client *client)
{
    if (!client_muted(client)) {
        write_replies(c, conn, client);
    }
    multi_drop(client);
    if (client->leaving) {
        conn_drain(conn);
    }
}

/* Goes on after the reply to a command was appended to multi->out, or dropped. False:
 * the connection was closed. */
static bool go_on_multi(struct cmd *c, struct conn *conn)
{
    struct client *client = conn_data(conn);
    struct multi *m = client->multi;

    if (buf_len(&m->out) > conn_output_limit(conn)) {
        conn_set_end(conn, END_OUTPUT);
        conn_close(conn); /* as for any replies over the output limit */
        return false;
    }
    if (m->next == m->count) {
        finish_exec(c, conn, client);
    } else {
        conn_again(conn);
    }
    return true;
}

/* --- the engine's answers ---------------------------------------------- */

static bool is_grant(const struct effect_reply *reply)
{
    return reply->kind == REPLY_TOKEN || reply->kind == REPLY_TOKENS;
}

/* Answers the only command of its connection that waits. */
static void answer_alone(struct cmd *c, struct conn *conn, struct client *client,
                         const struct effect_reply *reply)
{
    struct library_call *library = client_library(client);
    bool running = multi_is_running(client->multi);

    stats_answered(c, client_last(client), client->call_us,
                   reply_outcome(library, reply));
    if (!client->call_muted) {
        reply_write(c, running ? &client->multi->out : conn_out(conn), client, library,
                    reply);
        if (is_grant(reply) && running) {
            multi_granted(client->multi, reply->grant);
        } else if (is_grant(reply)) {
            client_granted(client, reply->grant, conn_input_count(conn));
        }
    }
    client->call = 0;
    library_call_free(library);
    client_set_library(client, NULL);
    if (!running || go_on_multi(c, conn)) {
        conn_resume(conn);
    }
}

/* Answers a command of a pipeline: at once if it is the first, else in its turn. */
static void answer_step(struct cmd *c, struct conn *conn, struct client *client,
                        struct step *s, const struct effect_reply *reply)
{
    struct pipeline *p = client->pipeline;
    bool first = s == &p->steps[p->first];

    if (!pipeline_comes_too_early(c, client, s, reply)) {
        stats_answered(c, s->command, s->began_us, reply_outcome(s->library, reply));
        if (!s->muted && (first || !pipeline_keeps_lease(c, s, reply))) {
            reply_write(c, first ? conn_out(conn) : &s->reply, client, s->library,
                        reply);
            if (is_grant(reply) && first) {
                client_granted(client, reply->grant, conn_input_count(conn));
            } else if (is_grant(reply)) {
                s->grant = reply->grant;
            }
        }
        pipeline_answered(p, s);
    }
    pipeline_go_on(c, conn, client);
}

void cmd_reply(struct cmd *c, const struct effect_reply *reply)
{
    struct conn *conn = net_find(c->env.net, reply->to.conn);
    struct client *client = conn == NULL ? NULL : conn_data(conn);
    struct library_call *library;
    struct step *s = NULL;

    if (client == NULL) {
        return; /* the engine learned of the close */
    }
    if (client->pipeline != NULL) {
        s = pipeline_step(client->pipeline, reply->to.call);
    }
    if (s == NULL && (client->call == 0 || client->call != reply->to.call)) {
        return;
    }
    library = s != NULL ? s->library : client_library(client);
    if (library != NULL && library_goes_on(c, library, reply)) {
        return;
    }
    tracking_push(
        c, client); /* losses from before must not seem to come after this reply */
    if (s != NULL) {
        answer_step(c, conn, client, s, reply);
    } else {
        answer_alone(c, conn, client, reply);
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

    ctx->aborts = command->run == cmd_exec;
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
    ctx->aborts = false;
    return true;
}

/* A command was refused before it was queued: EXEC runs nothing, and ends the
 * transaction. */
static void spoil_multi(struct command_ctx *ctx)
{
    struct client *client = ctx->client;

    if (ctx->command != NULL && ctx->command->run == cmd_exec) {
        multi_drop(client);
    } else if (multi_is_open(client->multi)) {
        client->multi->spoilt = true;
    }
}

/* Whether a LOCK, MLOCK, LEADER or LATCH AWAIT does not wait for others. False: an
 * error reply was written. */
static bool tries_once(struct command_ctx *ctx)
{
    static const struct {
        command_fn *run;
        const struct lock_syntax *syntax;
        const char *words;
    } TRIES[] = {
        { cmd_lock, &SYNTAX_LOCK, "LOCK" },
        { cmd_mlock, &SYNTAX_MLOCK, "MLOCK" },
        { cmd_leader, &SYNTAX_LEADER, "LEADER with AFTER" },
        { cmd_latch_await, &SYNTAX_LATCH_AWAIT, "LATCH AWAIT" },
    };
    enum { TRIES_COUNT = sizeof(TRIES) / sizeof(TRIES[0]) };
    struct lock_args args;
    size_t i = 0;

    while (i < TRIES_COUNT && TRIES[i].run != ctx->command->run) {
        i++;
    }
    if (i == TRIES_COUNT) {
        ctx_error(ctx, LATCHD_ERR, "a command that waits cannot be in a transaction");
        return false;
    }
    if (!ctx_lock_args(ctx, TRIES[i].syntax, &args)) {
        return false;
    }
    if (ctx->command->run == cmd_leader && (args.terms.has & OPT_AFTER) == 0) {
        return true;
    }
    if ((args.terms.has & OPT_WAIT) == 0 || args.terms.wait_ms > 0) {
        ctx_error(ctx, LATCHD_ERR, "%s in a transaction must have WAIT 0",
                  TRIES[i].words);
        return false;
    }
    return true;
}

/* Queues or refuses the command, and writes the reply. */
static bool queue_command(struct command_ctx *ctx)
{
    struct multi *m = ctx->client->multi;
    struct deferred_command *k;

    /* While a LOCK waited, others would see a half done transaction. */
    if (command_waits_for_others(ctx->command) && !tries_once(ctx)) {
        return false;
    }
    k = deferred_command_new(ctx);
    if (!multi_add(m, k)) {
        ctx_error(ctx, LATCHD_ERR_LIMIT,
                  "a transaction has at most %d commands and %d bytes",
                  MULTI_COMMANDS_MAX, MULTI_BYTES_MAX);
        deferred_command_free(k);
        return false;
    }
    resp_simple(ctx->out, "QUEUED");
    return true;
}

/* A command whose reply is dropped must not take locks: nobody would know of the
 * grant. */
static bool is_of_use(const struct command_ctx *ctx)
{
    return (ctx->command->flags & CMD_NEEDS_REPLY) == 0 || !ctx->muted;
}

/* Takes note of a command that waits for the engine. */
static void note_waiting(struct command_ctx *ctx)
{
    struct client *client = ctx->client;

    if (pipeline_waits(ctx)) {
        return;
    }
    client->call = ctx->call;
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
}

/* Runs the handler, and counts the command. A command that waits has not failed yet. */
static void execute_command(struct command_ctx *ctx)
{
    uint64_t us;

    client_set_last(ctx->client, ctx->command);
    ctx->may_gather = command_is_lock(ctx->command) && pipeline_may_gather(ctx);
    if (ctx->started_us == 0) {
        ctx->started_us = clock_boot_us();
    }
    ctx->command->run(ctx);
    if (ctx->result != ANSWERED) {
        note_waiting(ctx);
    }
    us = stats_ran(ctx);
    slowlog_note(ctx, us);
    cmd_latency(ctx->cmd, LATENCY_COMMAND, us / 1000);
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

/* Defers a command until the CLIENT PAUSE ends. */
static void put_off(struct command_ctx *ctx)
{
    struct deferred_command *deferred;

    ctx->result = PUT_OFF;
    if (ctx->step != NULL) {
        deferred = pipeline_puts_off(ctx);
    } else {
        deferred = ctx->client->deferred = deferred_command_new(ctx);
        conn_suspend(ctx->conn);
    }
    list_del(&deferred->in_pause);
    list_append(&ctx->cmd->pause.deferred, &deferred->in_pause);
}

/* Runs, queues or refuses the command. */
static void dispatch_command(struct command_ctx *ctx)
{
    bool ok = look_up(ctx) != NULL && admit_command(ctx);

    if (ok && pause_concerns(ctx)) {
        put_off(ctx);
        return;
    }
    if (ok && !is_queued(ctx)) {
        execute_if_of_use(ctx);
    } else if (!ok || !queue_command(ctx)) {
        stats_rejected(ctx);
        spoil_multi(ctx);
    }
}

/* The same for a command that EXEC takes from the queue. */
static void dispatch_queued(struct command_ctx *ctx)
{
    if (acl_check_still_admits(ctx)) {
        execute_if_of_use(ctx);
    } else {
        stats_rejected(ctx);
    }
}

/* Runs the next command of an EXEC; the connection may be closed afterwards. */
static void step_multi(struct cmd *c, struct conn *conn)
{
    struct client *client = conn_data(conn);
    struct multi *m = client->multi;
    bool muted = client_muted(client);
    struct command_ctx ctx = {
        .cmd = c,
        .conn = conn,
        .client = client,
        .proto = client->proto,
        .out = muted ? &c->scratch : &m->out,
        .muted = muted,
    };

    m->answered = buf_len(&m->out);
    if (m->next < m->count) {
        const struct deferred_command *k = m->queue[m->next++];

        ctx.command = k->command;
        ctx.argv = k->argv;
        ctx.argc = k->argc;
        dispatch_queued(&ctx);
    }
    if (ctx.result == ANSWERED) {
        (void)go_on_multi(c, conn);
    }
}

/* The connection ended while EXEC runs: takes the grants back, as the client cannot
 * have seen them. */
static void abandon_multi(struct cmd *c, const struct client *client)
{
    const struct multi *m = client->multi;

    for (size_t i = 0; i < m->grant_count; i++) {
        engine_on_undelivered(c->env.engine, client->id, m->grants[i].grant);
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

/* Protected mode: without a password, only clients on this machine may connect. */

enum { PROTECTED_SAY_AGAIN_MS = 60000 };

static const char PROTECTED[] =
    "latchd is in protected mode: the user default has no password, so only clients of "
    "the same machine are served, on the loopback or a unix socket. Set requirepass or "
    "an aclfile; or, where nobody but your clients can reach this port, start latchd "
    "with --protected-mode no, or say CONFIG SET protected-mode no on that machine.";

static void log_protected(struct cmd *c, const struct conn *conn)
{
    uint64_t now_ms = c->env.now_ms(c->env.ctx);
    struct conn_info info;

    if (c->protect_said_ms != 0 &&
        now_ms < c->protect_said_ms + PROTECTED_SAY_AGAIN_MS) {
        return;
    }
    c->protect_said_ms = now_ms;
    conn_info(conn, &info);
    log_warning(
        "client",
        "protected mode: %s was refused, as clients of other machines are while "
        "there is no password: set requirepass or aclfile",
        info.peer);
}

/* False: the connection is refused, and the error is written. */
static bool protect_lets_in(struct cmd *c, struct conn *conn)
{
    if (!c->limits.protected_mode || !acl_is_open(c->users.acl) ||
        conn_is_local(conn)) {
        return true;
    }
    log_protected(c, conn);
    resp_error(conn_out(conn), LATCHD_ERR_DENIED, SPAN(PROTECTED));
    return false;
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

/* The texts that move along with a client. */
static const enum client_text MOVED_TEXTS[] = { CLIENT_NAME, CLIENT_LIB_NAME,
                                                CLIENT_LIB_VER };

bool cmd_write_client(const struct cmd *c, const struct conn *conn, struct buf *out)
{
    const struct client *client = conn_data(conn);

    if (client == NULL || !conn_is_at_rest(conn) || !client->authenticated ||
        engine_knows_conn(c->env.engine, client->id) || client_is_blocked(client) ||
        client_is_subscribed(client) || !list_empty(&client->monitors) ||
        client->multi != NULL || client->tracker != NULL || client->reply_off ||
        client->skip_next || client->exempt) {
        return false;
    }
    buf_printf(out, "%d =%.*s", client->proto, (int)client->user->name_len,
               client->user->name);
    for (size_t i = 0; i < sizeof(MOVED_TEXTS) / sizeof(MOVED_TEXTS[0]); i++) {
        const char *text = client_text(client, MOVED_TEXTS[i]);

        buf_printf(out, " =%s", text == NULL ? "" : text);
    }
    return true;
}

bool cmd_take_client(struct cmd *c, struct conn *conn, struct span words)
{
    struct client *client = conn_data(conn);
    struct span proto = span_next(&words, ' ');
    struct span name = span_next(&words, ' ');
    struct acl_user *user =
        acl_find(c->users.acl, name.len == 0 ? name : span_after(name, 1));

    if (user == NULL || (user->terms.flags & PERM_ON) == 0) {
        conn_set_end(conn, END_USER);
        conn_close(conn);
        return false;
    }
    client_set_user(client, user);
    client->authenticated = client->cert_checked = true;
    client->proto = span_eq(proto, SPAN("3")) ? 3 : 2;
    for (size_t i = 0; i < sizeof(MOVED_TEXTS) / sizeof(MOVED_TEXTS[0]); i++) {
        struct span text = span_next(&words, ' ');

        if (text.len > 1) {
            client_set_text(client, MOVED_TEXTS[i], span_after(text, 1));
        }
    }
    client->trusted = true;
    conn_set_trusted(conn, true);
    return true;
}

bool cmd_is_busy(void *ctx, struct conn *conn)
{
    struct cmd *c = ctx;
    const struct client *client = conn_data(conn);

    return (client != NULL && client_is_subscribed(client)) ||
           engine_conn_busy(c->env.engine, conn_id(conn));
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
        abandon_multi(c, client);
    }
    engine_on_conn_closed(c->env.engine, client->id);
    pubsub_remove_all(c->pubsub, &client->sub);
    client_untrack(c, client);
    client_set_user(client, NULL);
    library_call_free(client_library(client));
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

static void begin_again(struct cmd *c, struct conn *conn, struct step *s)
{
    struct client *client = conn_data(conn);
    struct command_ctx ctx = {
        .cmd = c,
        .conn = conn,
        .client = client,
        .command = s->command,
        .argv = s->deferred->argv,
        .argc = s->deferred->argc,
        .proto = client->proto,
        .out = s->muted ? &c->scratch : &s->reply,
        .muted = s->muted,
        .step = s,
        .counted = s->counted,
    };

    dispatch_command(&ctx);
    pipeline_ran(&ctx);
}

/* Begins what a pipeline has put off again, as far as the commands ahead allow. */
static void run_pipeline(struct cmd *c, struct conn *conn, struct client *client)
{
    struct pipeline *p = client->pipeline;

    p->again = false;
    for (struct step *s = NULL; (s = pipeline_next(c, p, s)) != NULL;) {
        begin_again(c, conn, s);
    }
    if (p->steps[p->first].state == STEP_ANSWERED) {
        pipeline_go_on(c, conn, client);
    }
    p = client->pipeline;
    if (p != NULL && client->deferred != NULL && !p->again) {
        conn_suspend(conn);
    }
    drop_scratch(c);
}

/* Runs what a pipeline has put off, a deferred request, or the next command of an
 * EXEC. */
void cmd_on_again(void *ctx, struct conn *conn)
{
    struct cmd *c = ctx;
    struct client *client = conn_data(conn);

    if (client->pipeline != NULL) {
        run_pipeline(c, conn, client);
        if (pipeline_admits_deferred(client)) {
            run_deferred(c, conn, client);
        }
    } else if (client->deferred != NULL) {
        run_deferred(c, conn, client);
    } else if (multi_is_running(client->multi)) {
        step_multi(c, conn);
        drop_scratch(c);
    }
}

void cmd_on_ran(void *ctx, struct conn *conn)
{
    struct client *client = conn_data(conn);

    if (client->pipeline != NULL && pipeline_ask(ctx, client)) {
        run_pipeline(ctx, conn, client);
    }
    pipeline_settle(conn, client);
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
