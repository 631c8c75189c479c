#include "cmd/log_identity.h"

#include "cmd/cmd_priv.h"
#include "util/buf.h"

/* Every key that may hold a password has `pass` in its name, except the URL. */
static bool is_secret_key(struct span key)
{
    static const char WORD[] = "pass";
    enum { LEN = sizeof(WORD) - 1 };

    for (size_t i = 0; i + LEN <= key.len; i++) {
        if (span_eq_nocase(span_of(key.ptr + i, LEN), SPAN(WORD))) {
            return true;
        }
    }
    return span_eq_nocase(key, SPAN("redis"));
}

/* HELLO version [AUTH user password] [SETNAME name]. A user or client may be named
 * AUTH, too: then one argument too many is hidden. */
static bool is_secret_of_hello(const struct command_ctx *ctx, size_t at)
{
    for (size_t i = 2; i < at && i < ctx->argc; i++) {
        if (ctx_arg_is(ctx, i, "AUTH") && at <= i + 2) {
            return true;
        }
    }
    return false;
}

static bool is_secret(const struct command_ctx *ctx, size_t at)
{
    const char *name = ctx->command->name;

    if (strcmp(name, "auth") == 0) {
        return at >= 1;
    }
    if (strcmp(name, "hello") == 0) {
        return is_secret_of_hello(ctx, at);
    }
    if (strcmp(name, "acl|setuser") == 0) {
        return at >= 2;
    }
    if (strcmp(name, "acl|dryrun") == 0) {
        return at >= 4; /* the arguments of any command, AUTH's as well */
    }
    return strcmp(name, "config|set") == 0 && at >= 3 && at % 2 == 1 &&
           is_secret_key(ctx->argv[at - 1]);
}

struct span redacted_arg(const struct command_ctx *ctx, size_t at)
{
    return is_secret(ctx, at) ? SPAN("(redacted)") : ctx->argv[at];
}

void redacted_peer(const struct conn *conn, char out[REDACTED_PEER_ROOM])
{
    struct conn_info info;

    conn_info(conn, &info);
    (void)snprintf(out, REDACTED_PEER_ROOM, "%s", info.peer);
}

const char *client_address(const struct cmd *c, uint64_t conn,
                           char room[REDACTED_PEER_ROOM])
{
    const struct conn *found = net_find(c->env.net, conn);
    const char *address =
        found == NULL ? "" : client_text(conn_data(found), CLIENT_ADDRESS);

    if (address == NULL) {
        redacted_peer(found, room);
        address = room;
    }
    return address;
}

static void log_identity_fill(struct log_identity *ret, const struct client *client,
                              const struct conn *conn)
{
    const char *address = client_text(client, CLIENT_ADDRESS);
    const char *lib = client_text(client, CLIENT_LIB_NAME);
    const char *version = client_text(client, CLIENT_LIB_VER);
    int len = 0;

    if (address != NULL) {
        (void)snprintf(ret->address, sizeof(ret->address), "%s", address);
    } else {
        redacted_peer(conn, ret->address);
    }
    if (lib != NULL || version != NULL) {
        len = snprintf(
            ret->library, sizeof(ret->library), "%s%s%s", lib == NULL ? "" : lib,
            lib == NULL || version == NULL ? "" : " ", version == NULL ? "" : version);
    }
    ret->about = (struct log_about){
        .client = client->id,
        .address = span_str(ret->address),
        .client_name = span_str(client_text(client, CLIENT_NAME)),
        .user = strcmp(client->user->name, "default") == 0
                    ? SPAN_NONE
                    : span_of(client->user->name, client->user->name_len),
        .library = span_of(ret->library, (size_t)len),
    };
}

void log_about_client(const struct command_ctx *ctx, enum log_level level,
                      struct span name, const char *fmt, ...)
{
    struct buf text = { 0 };
    struct log_identity identity;
    va_list ap;

    if (!log_enabled(level)) {
        return;
    }
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    log_identity_fill(&identity, ctx->client, ctx->conn);
    identity.about.name = name;
    log_about(level, "client", &identity.about, "%.*s", (int)buf_len(&text),
              buf_ptr(&text));
    buf_reset(&text);
}

void log_identity_connected(struct client *client, const struct conn *conn)
{
    struct log_identity identity;

    if (!log_enabled(LOG_INFO)) {
        return;
    }
    log_identity_fill(&identity, client, conn);
    /* At the end of the connection the kernel may not know the address any more. */
    client_set_text(client, CLIENT_ADDRESS, identity.about.address);
    log_about(LOG_INFO, "client", &identity.about, "connected");
}

void log_identity_closed(const struct client *client, const struct conn *conn)
{
    struct log_identity identity;

    if (log_enabled(LOG_INFO)) {
        log_identity_fill(&identity, client, conn);
        log_about(LOG_INFO, "client", &identity.about, "closed: %s",
                  conn_end_text(conn));
    }
}

/* Noted when it was logged last; its key is the library's name. */
struct refusal {
    struct recent_item item;
    uint64_t unsaid; /* how often something was refused since */
};

void refusals_init(struct recent *r)
{
    recent_init(r, sizeof(struct refusal), REFUSALS_MAX);
}

static struct span library_name(const struct client *client)
{
    const char *name = client_text(client, CLIENT_LIB_NAME);

    if (name == NULL) {
        name = client_text(client, CLIENT_NAME);
    }
    return span_str(name == NULL ? client->user->name : name);
}

static void log_refusal(struct command_ctx *ctx, struct span why)
{
    uint64_t now_ms = ctx->cmd->env.now_ms(ctx->cmd->env.ctx);
    struct recent *refusals = &ctx->cmd->refusals;
    struct span library = library_name(ctx->client);
    struct refusal *refusal = recent_find(refusals, library);

    if (refusal != NULL && now_ms - refusal->item.at < REFUSALS_SAY_AGAIN_MS) {
        refusal->unsaid++;
        return;
    }
    log_about_client(ctx, LOG_WARNING, SPAN_NONE,
                     "'%.*s' of a client library was refused, which may go on trying "
                     "without an error (%" PRIu64
                     " more since the last such line): %.*s",
                     span_quoted_len(ctx->argv[0]), ctx->argv[0].ptr,
                     refusal == NULL ? 0 : refusal->unsaid, (int)why.len, why.ptr);
    refusal = recent_note(refusals, library, now_ms);
    refusal->unsaid = 0;
}

void ctx_refuse(struct command_ctx *ctx, const char *word, const char *fmt, ...)
{
    struct buf text = { 0 };
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    ctx_error(ctx, word, "%.*s", (int)buf_len(&text), buf_ptr(&text));
    log_refusal(ctx, buf_span(&text));
    buf_reset(&text);
}

void ctx_only_redis(struct command_ctx *ctx, const char *advice)
{
    struct span name = ctx->argv[0];

    ctx_refuse(ctx, LATCHD_ERR,
               "latchd keeps locks, not data: '%.*s' is not served; %s",
               span_quoted_len(name), name.ptr, advice);
}
