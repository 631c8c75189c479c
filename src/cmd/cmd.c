#include "cmd/internal.h"

#include "util/alloc.h"
#include "util/clock.h"
#include "util/parse.h"

#include <stdlib.h>

struct cmd *cmd_new(const struct cmd_env *env, const struct cmd_limits *limits)
{
    struct cmd *c = xcalloc(1, sizeof(*c));

    c->env = *env;
    c->limits = *limits;
    c->pubsub = pubsub_new();
    c->stats = xcalloc(COMMAND_COUNT, sizeof(*c->stats));
    c->started_ms = env->now_ms(env->ctx);
    return c;
}

void cmd_free(struct cmd *c)
{
    if (c == NULL) {
        return;
    }
    pubsub_free(c->pubsub);
    free(c->stats);
    buf_reset(&c->scratch);
    free(c);
}

void cmd_set_limits(struct cmd *c, const struct cmd_limits *limits)
{
    c->limits = *limits;
}

void cmd_reset_stats(struct cmd *c)
{
    memset(c->stats, 0, COMMAND_COUNT * sizeof(*c->stats));
    c->unknown = 0;
}

/* --- connections -------------------------------------------------------------------
 */

bool client_needs_auth(const struct cmd *c, const struct client *client)
{
    const char *password = c->env.password(c->env.ctx);

    return !client->authed && password != NULL && password[0] != '\0';
}

bool cmd_on_open(void *ctx, struct conn *conn)
{
    struct cmd *c = ctx;
    struct client *client = client_new(conn_id(conn));

    client->authed = !client_needs_auth(c, client);
    client->trusted = client->authed;
    conn_set_data(conn, client);
    conn_set_trusted(conn, client->trusted);
    return true;
}

void cmd_on_close(void *ctx, struct conn *conn, bool unread)
{
    struct cmd *c = ctx;
    struct client *client = conn_data(conn);
    const uint64_t *grants;

    if (client == NULL) {
        return;
    }
    if (unread) {
        size_t count = client_doubtful(client, conn_input_count(conn), &grants);

        for (size_t i = 0; i < count; i++) {
            locks_undelivered(c->env.locks, client->id, grants[i]);
        }
    }
    locks_conn_closed(c->env.locks, client->id);
    pubsub_remove_all(c->pubsub, &client->sub);
    client_free(client);
    conn_set_data(conn, NULL);
}

/* --- running a command -------------------------------------------------------------
 */

/* Appends in upper case, as commands are written for people. */
static void add_upper(struct buf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        char ch = (char)(*text >= 'a' && *text <= 'z' ? *text - 'a' + 'A' : *text);

        buf_add(out, &ch, 1);
    }
}

/* Redis's words for a command that is not there. */
static void reject_unknown(struct call *call)
{
    enum { SHOWN = 128 };
    struct buf args = { 0 };
    struct span name = call->argv[0];

    for (size_t i = 1; i < call->argc && buf_len(&args) < SHOWN; i++) {
        size_t room = SHOWN - buf_len(&args);

        buf_add_str(&args, "'");
        buf_add(&args, call->argv[i].ptr,
                call->argv[i].len < room ? call->argv[i].len : room);
        buf_add_str(&args, "' ");
    }
    call_error(call, LATCHD_ERR,
               "unknown command '%.*s', with args beginning with: %.*s",
               (int)(name.len < SHOWN ? name.len : SHOWN), name.ptr,
               (int)buf_len(&args), buf_span(&args).ptr);
    buf_reset(&args);
}

static void reject_unknown_sub(struct call *call, const struct command *container)
{
    enum { SHOWN = 128 };
    struct span sub = call->argv[1];
    struct buf upper = { 0 };

    add_upper(&upper, container->name);
    call_error(call, LATCHD_ERR, "unknown subcommand '%.*s'. Try %.*s HELP.",
               (int)(sub.len < SHOWN ? sub.len : SHOWN), sub.ptr, (int)buf_len(&upper),
               buf_ptr(&upper));
    buf_reset(&upper);
}

/* Finds the row; NULL: refused, and answered. */
static const struct command *look_up(struct call *call)
{
    const struct command *command = command_find(call->argv[0]);

    if (command == NULL || command_is_sub(command)) {
        call->cmd->unknown++;
        reject_unknown(call);
        return NULL;
    }
    call->command = command;
    if ((command->flags & CMD_CONTAINER) != 0 && call->argc > 1) {
        command = command_find_sub(command, call->argv[1]);
        if (command == NULL) {
            reject_unknown_sub(call, call->command);
            return NULL;
        }
        call->command = command;
    }
    return command;
}

/* Whether this client may run it now; if not, that has been answered. */
static bool admit(struct call *call)
{
    const struct command *command = call->command;
    struct client *client = call->client;

    if (!command_arity_fits(command, call->argc)) {
        call_arity_error(call);
        return false;
    }
    if ((command->flags & CMD_NO_AUTH) == 0 && client_needs_auth(call->cmd, client)) {
        call_error(call, LATCHD_ERR_NOAUTH, "Authentication required.");
        return false;
    }
    if (client->proto == 2 && client_is_subscribed(client) &&
        (command->flags & CMD_PUBSUB) == 0) {
        call_error(
            call, LATCHD_ERR,
            "Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / "
            "QUIT / RESET are allowed in this context",
            command->name);
        return false;
    }
    /* A grant that its client is never told about helps nobody. */
    return (command->flags & CMD_NEEDS_REPLY) == 0 || !client_muted(client);
}

static void run(struct call *call)
{
    struct command_stat *stat = NULL;
    uint64_t started;

    if (look_up(call) == NULL || !admit(call)) {
        if (call->command != NULL) {
            call->cmd->stats[call->command - COMMANDS].rejected++;
        }
        return;
    }
    stat = &call->cmd->stats[call->command - COMMANDS];
    call->client->last = call->command;
    started = clock_boot_us();
    call->command->run(call);
    stat->calls++;
    stat->usec += clock_boot_us() - started;
    stat->failed += call->failed;
}

static void drop_scratch(struct cmd *c)
{
    if (c->scratch.room > SCRATCH_KEEP) {
        buf_reset(&c->scratch);
    } else {
        buf_clear(&c->scratch);
    }
}

void cmd_on_request(void *ctx, struct conn *conn, const struct resp_request *req)
{
    struct cmd *c = ctx;
    struct client *client = conn_data(conn);
    struct call call = {
        .cmd = c, .conn = conn, .client = client, .argv = req->argv, .argc = req->argc
    };

    if (req->argc == 0) {
        return;
    }
    client->skip = client->skip_next;
    client->skip_next = false;
    call.proto = client->proto;
    call.out = client_muted(client) ? &c->scratch : conn_out(conn);
    run(&call);
    drop_scratch(c);
    if (client->trusted == client_needs_auth(c, client)) {
        client->trusted = !client->trusted;
        conn_set_trusted(conn, client->trusted);
    }
}

/* --- for handlers ------------------------------------------------------------------
 */

void call_error(struct call *call, const char *word, const char *fmt, ...)
{
    struct buf text = { 0 };
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    resp_error(call->out, word, buf_span(&text));
    buf_reset(&text);
    call->failed = true;
}

void call_syntax_error(struct call *call)
{
    call_error(call, LATCHD_ERR, "syntax error");
}

void call_arity_error(struct call *call)
{
    call_error(call, LATCHD_ERR, "wrong number of arguments for '%s' command",
               call->command->name);
}

bool call_arg_is(const struct call *call, size_t at, const char *word)
{
    return at < call->argc && span_eq_nocase(call->argv[at], span_str(word));
}

bool call_arg_int(struct call *call, size_t at, int64_t *ret)
{
    if (!parse_i64(call->argv[at], ret)) {
        call_error(call, LATCHD_ERR, "value is not an integer or out of range");
        return false;
    }
    return true;
}

struct call_ref call_wait(struct call *call)
{
    struct client *client = call->client;

    client->call = ++call->cmd->next_call;
    client->waiting = call->command;
    client->call_muted = client_muted(client);
    conn_suspend(call->conn);
    return (struct call_ref){ .conn = client->id, .call = client->call };
}

static void write_line(struct buf *out, struct buf *line)
{
    buf_add(line, "", 1);
    resp_simple(out, buf_ptr(line));
    buf_clear(line);
}

void call_help(struct call *call)
{
    const char *full = call->command->name; /* container|help */
    const struct command *container =
        command_find(span_of(full, (size_t)(strchr(full, '|') - full)));
    struct buf line = { 0 };
    size_t count;
    const struct command *subs = command_subs(container, &count);

    resp_array(call->out, 1 + 2 * count);
    add_upper(&line, container->name);
    buf_add_str(&line, " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    write_line(call->out, &line);
    for (size_t i = 0; i < count; i++) {
        add_upper(&line, command_short_name(&subs[i]));
        buf_add_str(&line, subs[i].usage[0] == '\0' ? "" : " ");
        buf_add_str(&line, subs[i].usage);
        write_line(call->out, &line);
        buf_printf(&line, "    %s", subs[i].summary);
        write_line(call->out, &line);
    }
    buf_reset(&line);
}
