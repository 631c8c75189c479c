/* A connection as one line of text, for CLIENT LIST and CLIENT INFO. */
#include "cmd/cmd_priv.h"
#include "cmd/deferred_command.h"

#include <inttypes.h>

static uint64_t seconds_since(uint64_t now_ms, uint64_t then_ms)
{
    return now_ms > then_ms ? (now_ms - then_ms) / 1000 : 0;
}

static const char *text_of(const struct client *client, enum client_text which)
{
    const char *text = client_text(client, which);

    return text == NULL ? "" : text;
}

/* The flags, by Redis's letters. */
static void add_flags(struct buf *out, const struct client *client)
{
    const struct tracker *tr = client->tracker;
    size_t before = buf_len(out);

    buf_add_str(out, list_empty(&client->monitors) ? "" : "O");
    buf_add_str(out, client_is_subscribed(client) ? "P" : "");
    buf_add_str(out, !multi_is_open(client->multi) ? "" : "x");
    buf_add_str(out, client_is_blocked(client) ? "b" : "");
    buf_add_str(out, tr != NULL ? "t" : "");
    buf_add_str(out, tr != NULL && tr->bcast ? "B" : "");
    buf_add_str(out, client->exempt ? "e" : "");
    if (buf_len(out) == before) {
        buf_add_str(out, "N");
    }
}

/* The memory, in Redis's fields; some of Redis's mean nothing here. */
static void add_memory(struct buf *out, const struct client *client,
                       const struct conn_info *info)
{
    size_t argv = client->deferred == NULL ? 0 : client->deferred->bytes;
    size_t multi = multi_bytes(client->multi);
    size_t total =
        sizeof(*client) + client_bytes(client) + info->in_buffered + info->out_buffered;

    buf_printf(out,
               " qbuf=%zu qbuf-free=0 argv-mem=%zu multi-mem=%zu rbs=0 rbp=0 obl=%zu "
               "oll=0 omem=%zu tot-mem=%zu",
               info->in_buffered, argv, multi, info->out_buffered, info->out_buffered,
               total);
}

void client_write_line(const struct cmd *c, struct conn *conn, struct buf *out)
{
    const struct client *client = conn_data(conn);
    uint64_t now = c->env.now_ms(c->env.ctx);
    struct conn_info info;

    conn_info(conn, &info);
    buf_printf(out,
               "id=%" PRIu64 " addr=%s laddr=%s fd=%d name=%s age=%" PRIu64
               " idle=%" PRIu64 " flags=",
               client->id, info.peer, info.local, info.fd, text_of(client, CLIENT_NAME),
               seconds_since(now, info.opened_ms), seconds_since(now, info.active_ms));
    add_flags(out, client);
    buf_printf(out, " db=0 sub=%" PRIu32 " psub=%" PRIu32 " ssub=0 multi=%" PRId64,
               client->sub.channels, client->sub.patterns, multi_count(client->multi));
    add_memory(out, client, &info);
    buf_printf(out, " events=%s cmd=%s user=%s redir=%d resp=%d",
               info.out_buffered == 0 ? "r" : "rw",
               client_last(client) == NULL ? "NULL" : client_last(client)->name,
               client->user->name, client->tracker == NULL ? -1 : 0, client->proto);
    buf_printf(out, " tls=%s", info.tls == NULL ? "" : info.tls);
    buf_printf(out, " lib-name=%s lib-ver=%s\n", text_of(client, CLIENT_LIB_NAME),
               text_of(client, CLIENT_LIB_VER));
}
