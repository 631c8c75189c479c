#include "cmd/multi.h"

#include "cmd/deferred_command.h"
#include "cmd/handlers.h"
#include "cmd/library/watch.h"
#include "cmd/observe/refusals.h"
#include "util/alloc.h"

#include <stdlib.h>

/* A grant among the replies of EXEC. */
struct multi_grant {
    uint64_t grant;
    size_t from; /* where its reply is in `out` */
    size_t len;
    size_t at; /* index of its command */
};

struct multi {
    enum multi_state state;
    struct watch *watch; /* the keys of WATCH, or NULL */
    bool spoilt;         /* a command was refused */
    bool writes;
    struct deferred_command **queue;
    size_t count;
    size_t room;
    size_t bytes;
    size_t next; /* the next command to run */
    struct buf out;
    size_t answered; /* bytes of `out` before the reply to the command that runs */
    struct multi_grant *grants;
    size_t grant_count;
    size_t grant_room;
};

void multi_free(struct multi *m)
{
    if (m == NULL) {
        return;
    }
    for (size_t i = 0; i < m->count; i++) {
        deferred_command_free(m->queue[i]);
    }
    free(m->queue);
    free(m->grants);
    buf_reset(&m->out);
    watch_free(m->watch);
    free(m);
}

/* Ends the transaction, and what it watched. */
static void multi_drop(struct client *client)
{
    multi_free(client->multi);
    client->multi = NULL;
}

int64_t multi_count(const struct multi *m)
{
    return multi_is_open(m) ? (int64_t)m->count : -1;
}

size_t multi_bytes(const struct multi *m)
{
    return m == NULL ? 0
                     : sizeof(*m) + watch_bytes(m->watch) + m->bytes +
                           m->room * sizeof(*m->queue) + m->out.room;
}

bool multi_writes(const struct multi *m)
{
    return m != NULL && m->writes;
}

bool multi_is_running(const struct multi *m)
{
    return m != NULL && m->state == MULTI_RUNNING;
}

bool multi_is_open(const struct multi *m)
{
    return m != NULL && m->state != MULTI_WATCHING;
}

/* --- watching --------------------------------------------------------- */

static struct multi *make_multi(struct client *client)
{
    if (client->multi == NULL) {
        client->multi = xcalloc(1, sizeof(struct multi));
    }
    return client->multi;
}

struct watch *multi_watch(const struct multi *m)
{
    return m == NULL ? NULL : m->watch;
}

bool multi_watch_keys(struct client *client, const struct span *keys, size_t count)
{
    return watch_add(&make_multi(client)->watch, keys, count);
}

void multi_unwatch(struct client *client)
{
    struct multi *m = client->multi;

    if (m != NULL && m->state == MULTI_WATCHING) {
        multi_drop(client);
    } else if (m != NULL) {
        watch_free(m->watch);
        m->watch = NULL;
    }
}

/* --- queueing --------------------------------------------------------- */

void multi_refused(struct command_ctx *ctx)
{
    struct client *client = ctx->client;

    if (ctx->command != NULL && ctx->command->run == cmd_exec) {
        multi_drop(client);
    } else if (multi_is_open(client->multi)) {
        client->multi->spoilt = true;
    }
}

bool multi_queue(struct command_ctx *ctx)
{
    struct multi *m = ctx->client->multi;
    struct deferred_command *k;

    /* While a LOCK waited, others would see a half done transaction. */
    if (command_may_wait(ctx->command) && !ctx_tries_once(ctx)) {
        return false;
    }
    k = deferred_command_new(ctx);
    if (m->count == MULTI_COMMANDS_MAX || m->bytes + k->bytes > MULTI_BYTES_MAX) {
        ctx_error(ctx, LATCHD_ERR_LIMIT,
                  "a transaction has at most %d commands and %d bytes",
                  MULTI_COMMANDS_MAX, MULTI_BYTES_MAX);
        deferred_command_free(k);
        return false;
    }
    if (m->count == m->room) {
        m->room = m->room == 0 ? 8 : m->room * 2;
        m->queue = xrealloc(m->queue, m->room * sizeof(struct deferred_command *));
    }
    m->queue[m->count++] = k;
    m->bytes += k->bytes;
    m->writes |= (ctx->command->flags & CMD_WRITE) != 0;
    resp_simple(ctx->out, "QUEUED");
    return true;
}

void cmd_multi(struct command_ctx *ctx)
{
    if (multi_is_open(ctx->client->multi)) {
        ctx_error(ctx, LATCHD_ERR, "MULTI calls can not be nested");
        return;
    }
    make_multi(ctx->client)->state = MULTI_QUEUEING;
    resp_simple(ctx->out, "OK");
}

void cmd_discard(struct command_ctx *ctx)
{
    if (!multi_is_open(ctx->client->multi)) {
        ctx_error(ctx, LATCHD_ERR, "DISCARD without MULTI");
        return;
    }
    multi_drop(ctx->client);
    resp_simple(ctx->out, "OK");
}

/* --- running ---------------------------------------------------------- */

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

/* Whether what is watched, if anything is, can be compared in the same step in which
 * the transaction does what it does. */
static bool watches_what_it_does(const struct multi *m)
{
    return m->watch == NULL || (m->count == 1 && watch_admits(m->watch, m->queue[0]));
}

void cmd_exec(struct command_ctx *ctx)
{
    struct multi *m = ctx->client->multi;

    if (!multi_is_open(m)) {
        ctx_error(ctx, LATCHD_ERR, "EXEC without MULTI");
    } else if (m->spoilt) {
        multi_drop(ctx->client);
        ctx_error(ctx, LATCHD_ERR_EXECABORT,
                  "Transaction discarded because of previous errors.");
    } else if (!watches_what_it_does(m)) {
        multi_drop(ctx->client);
        ctx_refuse(ctx, LATCHD_ERR_EXECABORT,
                   "Transaction discarded: after WATCH it must be one DEL, UNLINK or "
                   "EXPIRE of one key that is watched, or one SET that takes the key, "
                   "extends it with the same value, or frees it with 0");
    } else if (m->count == 0) {
        finish_exec(ctx->cmd, ctx->conn, ctx->client);
    } else {
        m->state = MULTI_RUNNING;
        conn_again(ctx->conn);
    }
}

void multi_step(struct cmd *c, struct conn *conn)
{
    struct client *client = conn_data(conn);
    struct multi *m = client->multi;
    struct deferred_command *k = m->queue[m->next++];
    struct command_ctx ctx = {
        .cmd = c,
        .conn = conn,
        .client = client,
        .command = k->command,
        .argv = k->argv,
        .argc = k->argc,
        .proto = client->proto,
        .out = client_muted(client) ? &c->scratch : &m->out,
        .muted = client_muted(client),
    };

    m->answered = buf_len(&m->out);
    dispatch_queued(&ctx);
    if (!ctx.waits) {
        (void)multi_answered(c, conn);
    }
}

bool multi_answered(struct cmd *c, struct conn *conn)
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

struct buf *multi_out(struct multi *m)
{
    return &m->out;
}

void multi_granted(struct multi *m, uint64_t grant)
{
    if (m->grant_count == m->grant_room) {
        m->grant_room = m->grant_room == 0 ? 4 : m->grant_room * 2;
        m->grants = xrealloc(m->grants, m->grant_room * sizeof(*m->grants));
    }
    m->grants[m->grant_count++] = (struct multi_grant){
        .grant = grant,
        .from = m->answered,
        .len = buf_len(&m->out) - m->answered,
        .at = m->next - 1,
    };
}

void multi_abandon(struct cmd *c, const struct client *client)
{
    const struct multi *m = client->multi;

    for (size_t i = 0; i < m->grant_count; i++) {
        engine_on_undelivered(c->env.engine, client->id, m->grants[i].grant);
    }
}
