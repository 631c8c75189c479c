/* Commands about the connection itself: AUTH, HELLO, PING, SELECT, QUIT, RESET, ... */
#include "cmd/cmd_connection.h"

#include "cmd/cmd_priv.h"

/* Commands of operators and health checks work during a pause. */
static bool is_never_put_off(const struct command *command)
{
    return strcmp(command->group, "connection") == 0 ||
           strcmp(command->group, "server") == 0;
}

static bool changes_something(const struct command_ctx *ctx)
{
    return (ctx->command->flags & CMD_WRITE) != 0 ||
           (ctx->command->run == cmd_exec && multi_writes(ctx->client->multi));
}

bool pause_concerns(const struct command_ctx *ctx)
{
    const struct pause *pause = &ctx->cmd->pause;

    return pause->until_ms != 0 && !is_never_put_off(ctx->command) &&
           (pause->all || changes_something(ctx));
}

void pause_end(struct cmd *c)
{
    struct deferred_command *deferred;

    c->pause.until_ms = 0;
    while (LIST_FIRST(deferred, &c->pause.deferred, in_pause)) {
        struct conn *conn = net_find(c->env.net, deferred->conn);

        list_del(&deferred->in_pause);
        conn_again(conn);
        conn_resume(conn);
    }
}

void pause_tick(struct cmd *c, uint64_t now_ms)
{
    if (c->pause.until_ms != 0 && now_ms >= c->pause.until_ms) {
        pause_end(c);
    }
}

/* A pause that is on can only become longer and stricter, as in Redis. */
static void pause_begin(struct cmd *c, uint64_t ms, bool all)
{
    uint64_t until = c->env.now_ms(c->env.ctx) + ms;

    c->pause.all = all || (c->pause.until_ms != 0 && c->pause.all);
    if (until > c->pause.until_ms) {
        c->pause.until_ms = until;
    }
}

void cmd_client_pause(struct command_ctx *ctx)
{
    bool all = ctx->argc == 3 || ctx_arg_is(ctx, 3, "ALL");
    int64_t ms;

    if (ctx->argc > 4) {
        ctx_subcommand_error(ctx);
    } else if (!all && !ctx_arg_is(ctx, 3, "WRITE")) {
        ctx_error(ctx, LATCHD_ERR, "CLIENT PAUSE mode must be WRITE or ALL");
    } else if (!parse_i64(ctx->argv[2], &ms)) {
        ctx_error(ctx, LATCHD_ERR, "timeout is not an integer or out of range");
    } else if (ms < 0) {
        ctx_error(ctx, LATCHD_ERR, "timeout is negative");
    } else {
        pause_begin(ctx->cmd, (uint64_t)ms, all);
        resp_simple(ctx->out, "OK");
    }
}

void cmd_client_unpause(struct command_ctx *ctx)
{
    pause_end(ctx->cmd);
    resp_simple(ctx->out, "OK");
}

/* CLIENT: this connection and the others. */

/* --- this connection -------------------------------------------------- */

/* Sets the connection's name. False: an error reply was written. */
static bool ctx_set_name(struct command_ctx *ctx, struct span name)
{
    if (name.len > CLIENT_NAME_MAX) {
        ctx_error(ctx, LATCHD_ERR, "Client names cannot be longer than %d bytes.",
                  CLIENT_NAME_MAX);
        return false;
    }
    if (!client_text_ok(name)) {
        ctx_error(
            ctx, LATCHD_ERR,
            "Client names cannot contain spaces, newlines or special characters.");
        return false;
    }
    client_set_text(ctx->client, CLIENT_NAME, name);
    return true;
}

void cmd_client_setname(struct command_ctx *ctx)
{
    if (ctx_set_name(ctx, ctx->argv[2])) {
        resp_simple(ctx->out, "OK");
    }
}

void cmd_client_getname(struct command_ctx *ctx)
{
    const char *name = client_text(ctx->client, CLIENT_NAME);

    if (name == NULL) {
        ctx_null(ctx);
    } else {
        resp_bulk_str(ctx->out, name);
    }
}

void cmd_client_setinfo(struct command_ctx *ctx)
{
    bool is_name = ctx_arg_is(ctx, 2, "LIB-NAME");
    const char *what = is_name ? "lib-name" : "lib-ver";
    struct span value = ctx->argv[3];

    if (!is_name && !ctx_arg_is(ctx, 2, "LIB-VER")) {
        ctx_error(ctx, LATCHD_ERR, "Unrecognized option '%.*s'",
                  span_quoted_len(ctx->argv[2]), ctx->argv[2].ptr);
    } else if (value.len > CLIENT_LIB_MAX) {
        ctx_error(ctx, LATCHD_ERR, "%s cannot be longer than %d bytes.", what,
                  CLIENT_LIB_MAX);
    } else if (!client_text_ok(value)) {
        ctx_error(ctx, LATCHD_ERR,
                  "%s cannot contain spaces, newlines or special characters.", what);
    } else {
        client_set_text(ctx->client, is_name ? CLIENT_LIB_NAME : CLIENT_LIB_VER, value);
        resp_simple(ctx->out, "OK");
    }
}

void cmd_client_id(struct command_ctx *ctx)
{
    resp_int(ctx->out, (int64_t)ctx->client->id);
}

void cmd_client_info(struct command_ctx *ctx)
{
    struct buf line = { 0 };

    client_write_line(ctx->cmd, ctx->conn, &line);
    resp_verbatim(ctx->out, ctx->proto, buf_span(&line));
    buf_reset(&line);
}

void cmd_client_reply(struct command_ctx *ctx)
{
    struct client *client = ctx->client;

    if (ctx_arg_is(ctx, 2, "ON")) {
        client->reply_off = client->skip = false;
        ctx->out = conn_out(ctx->conn);
        resp_simple(ctx->out, "OK");
    } else if (ctx_arg_is(ctx, 2, "OFF")) {
        client->reply_off = true;
    } else if (ctx_arg_is(ctx, 2, "SKIP")) {
        client->skip_next = !client->reply_off;
    } else {
        ctx_syntax_error(ctx);
    }
}

void cmd_client_capa(struct command_ctx *ctx)
{
    resp_simple(ctx->out, "OK");
}

/* Reads ON or OFF into *ret, and replies. */
static bool read_on_off(struct command_ctx *ctx, bool *ret)
{
    bool on = ctx_arg_is(ctx, 2, "ON");

    if (!on && !ctx_arg_is(ctx, 2, "OFF")) {
        ctx_syntax_error(ctx);
        return false;
    }
    *ret = on;
    resp_simple(ctx->out, "OK");
    return true;
}

/* Exempts the connection from eviction over maxmemory-clients; keys are never evicted.
 */
void cmd_client_no_evict(struct command_ctx *ctx)
{
    bool on;

    if (read_on_off(ctx, &on)) {
        ctx->client->exempt = on;
        conn_set_exempt(ctx->conn, on);
    }
}

/* Keys have no access times here. */
void cmd_client_no_touch(struct command_ctx *ctx)
{
    bool on;

    (void)read_on_off(ctx, &on);
}

/* --- other connections ------------------------------------------------ */

void cmd_client_unblock(struct command_ctx *ctx)
{
    bool with_error = ctx_arg_is(ctx, 3, "ERROR");
    int64_t id;

    if (ctx->argc > 4) {
        ctx_subcommand_error(ctx);
        return;
    }
    if (ctx->argc == 4 && !with_error && !ctx_arg_is(ctx, 3, "TIMEOUT")) {
        ctx_error(ctx, LATCHD_ERR, "CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
        return;
    }
    if (!ctx_arg_int(ctx, 2, &id)) {
        return;
    }
    resp_int(ctx->out,
             id > 0 && engine_unblock(ctx->cmd->env.engine, (uint64_t)id, with_error));
}

struct list_filter {
    struct command_ctx *ctx;
    struct buf lines;
    bool by_type;
    bool pubsub; /* if by_type: only subscribers, or only the others */
};

static void list_conn(void *ctx, struct conn *conn)
{
    struct list_filter *f = ctx;
    const struct client *client = conn_data(conn);

    if (client == NULL || (f->by_type && client_is_subscribed(client) != f->pubsub)) {
        return;
    }
    client_write_line(f->ctx->cmd, conn, &f->lines);
}

static bool list_ids(struct command_ctx *ctx, struct list_filter *f)
{
    int64_t id;

    for (size_t i = 3; i < ctx->argc; i++) {
        struct conn *conn;

        if (!parse_i64(ctx->argv[i], &id)) {
            ctx_error(ctx, LATCHD_ERR, "Invalid client ID");
            return false;
        }
        conn = id <= 0 ? NULL : net_find(ctx->cmd->env.net, (uint64_t)id);
        if (conn != NULL) {
            list_conn(f, conn);
        }
    }
    return true;
}

/* Reads a client type. *ret_any: latchd can have clients of this type; it never has
 * masters or replicas. False: there is no such type, and an error reply was written. */
static bool ctx_client_type(struct command_ctx *ctx, struct span type, bool *ret_any,
                            bool *ret_pubsub)
{
    *ret_pubsub = span_eq_nocase(type, SPAN("pubsub"));
    *ret_any = *ret_pubsub || span_eq_nocase(type, SPAN("normal"));
    if (!*ret_any && !span_eq_nocase(type, SPAN("master")) &&
        !span_eq_nocase(type, SPAN("replica")) &&
        !span_eq_nocase(type, SPAN("slave"))) {
        ctx_error(ctx, LATCHD_ERR, "Unknown client type '%.*s'", span_quoted_len(type),
                  type.ptr);
        return false;
    }
    return true;
}

void cmd_client_list(struct command_ctx *ctx)
{
    struct list_filter f = { .ctx = ctx };
    bool any = true, ok = true;

    if (ctx->argc == 4 && ctx_arg_is(ctx, 2, "TYPE")) {
        f.by_type = true;
        ok = ctx_client_type(ctx, ctx->argv[3], &any, &f.pubsub);
    } else if (ctx->argc > 3 && ctx_arg_is(ctx, 2, "ID")) {
        any = false;
        ok = list_ids(ctx, &f);
    } else if (ctx->argc != 2) {
        ctx_syntax_error(ctx);
        ok = false;
    }
    if (ok) {
        if (any) {
            net_foreach(ctx->cmd->env.net, list_conn, &f);
        }
        resp_verbatim(ctx->out, ctx->proto, buf_span(&f.lines));
    }
    buf_reset(&f.lines);
}

/* --- KILL ------------------------------------------------------------- */

struct kill_filter {
    struct command_ctx *ctx;
    uint64_t id; /* 0: any */
    struct span addr;
    struct span laddr;
    const struct acl_user *user; /* NULL: any */
    bool by_type;
    bool any_of_type;
    bool pubsub;
    bool skip_me;
    uint64_t *hits; /* collected first, as closing changes the list of conns */
    size_t count;
    size_t room;
};

static void collect_matching(void *ctx, struct conn *conn)
{
    struct kill_filter *f = ctx;
    const struct client *client = conn_data(conn);
    struct conn_info info;

    if (client == NULL || (f->id != 0 && client->id != f->id) ||
        (f->skip_me && client == f->ctx->client) ||
        (f->user != NULL && client->user != f->user) ||
        (f->by_type &&
         (!f->any_of_type || client_is_subscribed(client) != f->pubsub))) {
        return;
    }
    if (f->addr.ptr != NULL || f->laddr.ptr != NULL) {
        conn_info(conn, &info);
        if ((f->addr.ptr != NULL && !span_eq(f->addr, span_str(info.peer))) ||
            (f->laddr.ptr != NULL && !span_eq(f->laddr, span_str(info.local)))) {
            return;
        }
    }
    if (f->count == f->room) {
        f->room = f->room == 0 ? 16 : f->room * 2;
        f->hits = xrealloc(f->hits, f->room * sizeof(*f->hits));
    }
    f->hits[f->count++] = client->id;
}

static size_t kill_matching(struct kill_filter *f)
{
    struct net *net = f->ctx->cmd->env.net;

    net_foreach(net, collect_matching, f);
    if (f->count > 0) {
        log_about_client(f->ctx, LOG_NOTICE, SPAN_NONE,
                         "CLIENT KILL closes %zu connection%s", f->count,
                         f->count == 1 ? "" : "s");
    }
    for (size_t i = 0; i < f->count; i++) {
        struct conn *conn = net_find(net, f->hits[i]);

        if (f->hits[i] == f->ctx->client->id) {
            conn_set_end(f->ctx->conn, END_KILLED);
            ctx_close_after(f->ctx);
        } else if (conn != NULL) {
            conn_set_end(conn, END_KILLED);
            conn_close(conn);
        }
    }
    free(f->hits);
    return f->count;
}

static bool read_filter(struct kill_filter *f, size_t at)
{
    struct command_ctx *ctx = f->ctx;
    struct span value = ctx->argv[at + 1];

    if (ctx_arg_is(ctx, at, "ID")) {
        if (!parse_u64(value, UINT64_MAX, &f->id) || f->id == 0) {
            ctx_error(ctx, LATCHD_ERR, "client-id should be greater than 0");
            return false;
        }
    } else if (ctx_arg_is(ctx, at, "TYPE")) {
        f->by_type = true;
        return ctx_client_type(ctx, value, &f->any_of_type, &f->pubsub);
    } else if (ctx_arg_is(ctx, at, "ADDR")) {
        f->addr = value;
    } else if (ctx_arg_is(ctx, at, "LADDR")) {
        f->laddr = value;
    } else if (ctx_arg_is(ctx, at, "USER")) {
        f->user = acl_find(ctx->cmd->users.acl, value);
        if (f->user == NULL) {
            ctx_error(ctx, LATCHD_ERR, "No such user '%.*s'", span_quoted_len(value),
                      value.ptr);
            return false;
        }
    } else if (ctx_arg_is(ctx, at, "SKIPME") &&
               (ctx_arg_is(ctx, at + 1, "yes") || ctx_arg_is(ctx, at + 1, "no"))) {
        f->skip_me = ctx_arg_is(ctx, at + 1, "yes");
    } else {
        ctx_syntax_error(ctx);
        return false;
    }
    return true;
}

void cmd_client_kill(struct command_ctx *ctx)
{
    struct kill_filter f = { .ctx = ctx, .skip_me = true };

    if (ctx->argc == 3) { /* the old form: one address, which may be the caller's own */
        f.addr = ctx->argv[2];
        f.skip_me = false;
        if (kill_matching(&f) == 0) {
            ctx_error(ctx, LATCHD_ERR, "No such client");
        } else {
            resp_simple(ctx->out, "OK");
        }
        return;
    }
    if (ctx->argc % 2 != 0) {
        ctx_syntax_error(ctx);
        return;
    }
    for (size_t at = 2; at < ctx->argc; at += 2) {
        if (!read_filter(&f, at)) {
            return;
        }
    }
    resp_int(ctx->out, (int64_t)kill_matching(&f));
}

/* --- AUTH, and the login of HELLO ------------------------------------- */

/* A login that fails is counted, logged without the password, and slows its address
 * down. */

/* The length of an IPv6 address without its last 64 bits, which a customer can choose
 * freely. */
static size_t network_len(struct span address)
{
    size_t colons = 0, i = 0;

    if (span_starts(address, SPAN("::ffff:"))) {
        return address.len; /* IPv4 */
    }
    for (; i < address.len; i++) {
        colons += address.ptr[i] == ':';
        if (colons == 4 ||
            (i > 0 && address.ptr[i] == ':' && address.ptr[i - 1] == ':')) {
            break;
        }
    }
    return i;
}

/* "192.0.2.1:4711" without its port, "[2001:db8::1]:4711" as its network. */
static struct span peer_origin(struct span peer)
{
    size_t end = peer.len;

    while (end > 0 && peer.ptr[end - 1] != ':') {
        end--;
    }
    if (end < 2) {
        return peer; /* a unix socket */
    }
    peer.len = end - 1;
    if (peer.ptr[0] != '[') {
        return peer;
    }
    peer = span_of(peer.ptr + 1, peer.len - 2);
    return span_of(peer.ptr, network_len(peer));
}

/* --- logging in ------------------------------------------------------- */

static bool is_slowed_down(struct command_ctx *ctx)
{
    struct throttle *t = ctx->cmd->users.throttle;
    struct conn_info info;

    if (throttle_count(t) == 0) {
        return false;
    }
    conn_info(ctx->conn, &info);
    if (throttle_allows(t, peer_origin(span_str(info.peer)),
                        ctx->cmd->env.now_ms(ctx->cmd->env.ctx))) {
        return false;
    }
    ctx_error(ctx, LATCHD_ERR_LIMIT,
              "too many failed logins from this address: try again in a second");
    return true;
}

/* Users type passwords where a name is expected: only names that exist are logged. */
static void on_login_failed(struct command_ctx *ctx, struct span name)
{
    const struct acl_user *user = acl_find(ctx->cmd->users.acl, name);
    struct span shown =
        user == NULL ? SPAN("(unknown)") : span_of(user->name, user->name_len);
    struct conn_info info;

    conn_info(ctx->conn, &info);
    throttle_take(ctx->cmd->users.throttle, peer_origin(span_str(info.peer)),
                  ctx->cmd->env.now_ms(ctx->cmd->env.ctx));
    acl_check_denied(ctx, DENIAL_LOGIN,
                     ctx->command->run == cmd_auth ? SPAN("AUTH") : SPAN("HELLO"),
                     shown);
    log_about_client(ctx, LOG_NOTICE, SPAN_NONE, "failed to log in as %s%.*s",
                     user == NULL ? "a user that is not there" : "",
                     (int)(user == NULL ? 0 : shown.len), shown.ptr);
    if (++ctx->client->failed_logins >= LOGIN_TRIES_MAX) {
        conn_set_end(ctx->conn, END_LOGIN);
        ctx_close_after(ctx);
    }
}

/* Logs the client in, or replies with the error. */
static bool ctx_log_in(struct command_ctx *ctx, struct span name, struct span password)
{
    struct acl_user *user;

    if (is_slowed_down(ctx)) {
        return false;
    }
    user = acl_login(ctx->cmd->users.acl, name, password);
    if (user == NULL) {
        on_login_failed(ctx, name);
        ctx_error(ctx, LATCHD_ERR_WRONGPASS,
                  "invalid username-password pair or user is disabled.");
        return false;
    }
    client_set_user(ctx->client, user);
    ctx->client->authenticated = true;
    ctx->client->failed_logins = 0;
    return true;
}

void cmd_auth(struct command_ctx *ctx)
{
    const struct acl_user *standard = acl_default(ctx->cmd->users.acl);

    if (ctx->argc > 3) {
        ctx_syntax_error(ctx);
    } else if (ctx->argc == 2 && (standard->terms.flags & PERM_NOPASS) != 0) {
        ctx_error(
            ctx, LATCHD_ERR,
            "AUTH <password> called without any password configured for the default "
            "user. Are you sure your configuration is correct?");
    } else if (ctx_log_in(ctx, ctx->argc == 3 ? ctx->argv[1] : SPAN("default"),
                          ctx->argv[ctx->argc - 1])) {
        resp_simple(ctx->out, "OK");
    }
}

/* --- HELLO ------------------------------------------------------------ */

struct hello {
    int proto;
    bool has_name;
    bool has_auth;
    struct span name;
    struct span user;
    struct span password;
};

static bool hello_read(struct command_ctx *ctx, struct hello *ret)
{
    int64_t version;

    *ret = (struct hello){ .proto = ctx->proto };
    if (ctx->argc > 1) {
        if (!parse_i64(ctx->argv[1], &version)) {
            ctx_error(ctx, LATCHD_ERR,
                      "Protocol version is not an integer or out of range");
            return false;
        }
        if (version != 2 && version != 3) {
            ctx_error(ctx, LATCHD_ERR_NOPROTO, "unsupported protocol version");
            return false;
        }
        ret->proto = (int)version;
    }
    for (size_t at = 2; at < ctx->argc; at++) {
        if (ctx_arg_is(ctx, at, "AUTH") && at + 2 < ctx->argc) {
            ret->has_auth = true;
            ret->user = ctx->argv[at + 1];
            ret->password = ctx->argv[at + 2];
            at += 2;
        } else if (ctx_arg_is(ctx, at, "SETNAME") && at + 1 < ctx->argc) {
            ret->has_name = true;
            ret->name = ctx->argv[++at];
        } else {
            ctx_error(ctx, LATCHD_ERR, "Syntax error in HELLO option '%.*s'",
                      span_quoted_len(ctx->argv[at]), ctx->argv[at].ptr);
            return false;
        }
    }
    return true;
}

static void hello_write(struct command_ctx *ctx)
{
    struct buf *out = ctx->out;

    resp_map(out, ctx->proto, 7);
    resp_bulk_str(out, "server");
    resp_bulk_str(out, "latchd");
    resp_bulk_str(out, "version");
    resp_bulk_str(out, REDIS_COMPAT_VERSION);
    resp_bulk_str(out, "proto");
    resp_int(out, ctx->proto);
    resp_bulk_str(out, "id");
    resp_int(out, (int64_t)ctx->client->id);
    resp_bulk_str(out, "mode");
    resp_bulk_str(out, "standalone");
    resp_bulk_str(out, "role");
    resp_bulk_str(out, "master");
    resp_bulk_str(out, "modules");
    resp_array(out, 0);
}

void cmd_hello(struct command_ctx *ctx)
{
    struct hello hello;

    if (!hello_read(ctx, &hello)) {
        return;
    }
    if (hello.has_auth && !ctx_log_in(ctx, hello.user, hello.password)) {
        return;
    }
    if (client_needs_auth(ctx->cmd, ctx->client)) {
        ctx_error(
            ctx, LATCHD_ERR_NOAUTH,
            "HELLO must be called with the client already authenticated, otherwise "
            "the HELLO <proto> AUTH <user> <pass> option can be used to "
            "authenticate the client and select the RESP protocol version at the "
            "same time");
        return;
    }
    if (hello.has_name && !ctx_set_name(ctx, hello.name)) {
        return;
    }
    ctx->client->proto = ctx->proto = hello.proto;
    hello_write(ctx);
}

/* --- short commands --------------------------------------------------- */

void cmd_ping(struct command_ctx *ctx)
{
    struct span text = ctx->argc == 2 ? ctx->argv[1] : SPAN("");

    if (ctx->argc > 2) {
        ctx_arity_error(ctx);
    } else if (ctx->proto == 2 && client_is_subscribed(ctx->client)) {
        resp_array(ctx->out, 2);
        resp_bulk_str(ctx->out, "pong");
        resp_bulk(ctx->out, text);
    } else if (ctx->argc == 2) {
        resp_bulk(ctx->out, text);
    } else {
        resp_simple(ctx->out, "PONG");
    }
}

void cmd_echo(struct command_ctx *ctx)
{
    resp_bulk(ctx->out, ctx->argv[1]);
}

/* 0 is what clients select that care for no number. */
bool ctx_has_database(struct command_ctx *ctx, int64_t index)
{
    unsigned database = ctx->cmd->limits.database;

    if (index == 0 || index == database) {
        return true;
    }
    ctx_refuse(
        ctx, LATCHD_ERR,
        "DB index is out of range: this latchd keeps its locks in database %u of "
        "its Redis; connect with that number or without one, or to a latchd "
        "whose option redis names the other database",
        database);
    return false;
}

void cmd_select(struct command_ctx *ctx)
{
    int64_t index;

    if (ctx_arg_int(ctx, 1, &index) && ctx_has_database(ctx, index)) {
        resp_simple(ctx->out, "OK");
    }
}

void cmd_quit(struct command_ctx *ctx)
{
    resp_simple(ctx->out, "OK");
    conn_set_end(ctx->conn, END_QUIT);
    conn_drain(ctx->conn);
}

void cmd_reset(struct command_ctx *ctx)
{
    pubsub_remove_all(ctx->cmd->pubsub, &ctx->client->sub);
    client_untrack(ctx->cmd, ctx->client);
    client_reset(ctx->client);
    conn_set_exempt(ctx->conn, false);
    client_set_user(ctx->client, acl_default(ctx->cmd->users.acl));
    ctx->client->authenticated = acl_is_open(ctx->cmd->users.acl);
    ctx->out = conn_out(ctx->conn);
    resp_simple(ctx->out, "RESET");
}

void cmd_readonly(struct command_ctx *ctx)
{
    resp_simple(ctx->out, "OK");
}

void cmd_time(struct command_ctx *ctx)
{
    uint64_t now = clock_wall_us();
    char text[24];

    resp_array(ctx->out, 2);
    (void)snprintf(text, sizeof(text), "%" PRIu64, now / 1000000);
    resp_bulk_str(ctx->out, text);
    (void)snprintf(text, sizeof(text), "%" PRIu64, now % 1000000);
    resp_bulk_str(ctx->out, text);
}

void cmd_role(struct command_ctx *ctx)
{
    resp_array(ctx->out, 3);
    resp_bulk_str(ctx->out, "master");
    resp_int(ctx->out, 0);
    resp_array(ctx->out, 0);
}

/* WAIT: latchd has no replicas that could acknowledge. */
void cmd_wait(struct command_ctx *ctx)
{
    int64_t replicas, timeout;

    if (!ctx_arg_int(ctx, 1, &replicas)) {
        return;
    }
    if (!parse_i64(ctx->argv[2], &timeout)) {
        ctx_error(ctx, LATCHD_ERR, "timeout is not an integer or out of range");
    } else if (timeout < 0) {
        ctx_error(ctx, LATCHD_ERR, "timeout is negative");
    } else {
        resp_int(ctx->out, 0);
    }
}
