#include "cmd/observe/log_identity.h"

#include "cmd/acl/users.h"
#include "cmd/cmd_priv.h"
#include "util/buf.h"

#include <stdio.h>

void log_identity_fill(struct log_identity *ret, const struct client *client,
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
