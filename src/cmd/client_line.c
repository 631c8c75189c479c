/* A connection as one line of text, for CLIENT LIST and CLIENT INFO. */
#include "cmd/internal.h"

#include <inttypes.h>

static uint64_t seconds_since(uint64_t now_ms, uint64_t then_ms)
{
    return now_ms > then_ms ? (now_ms - then_ms) / 1000 : 0;
}

/* Redis's letters. */
static void add_flags(struct buf *out, const struct client *client)
{
    const struct tracker *tr = client->tracker;
    size_t before = buf_len(out);

    buf_add_str(out, client_is_subscribed(client) ? "P" : "");
    buf_add_str(out, client->call != 0 ? "b" : "");
    buf_add_str(out, tr != NULL ? "t" : "");
    buf_add_str(out, tr != NULL && tr->bcast ? "B" : "");
    if (buf_len(out) == before) {
        buf_add_str(out, "N");
    }
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
               client->id, info.peer, info.local, info.fd,
               client->name == NULL ? "" : client->name,
               seconds_since(now, info.opened_ms), seconds_since(now, info.active_ms));
    add_flags(out, client);
    buf_printf(out, " db=0 sub=%zu psub=%zu ssub=0 multi=%" PRId64,
               client->sub.channels, client->sub.patterns, multi_count(client->multi));
    buf_printf(out, " qbuf=%zu obl=%zu cmd=%s user=default redir=%d resp=%d",
               info.in_buffered, info.out_buffered,
               client->last == NULL ? "NULL" : client->last->name,
               client->tracker == NULL ? -1 : 0, client->proto);
    buf_printf(out, " lib-name=%s lib-ver=%s\n",
               client->lib_name == NULL ? "" : client->lib_name,
               client->lib_ver == NULL ? "" : client->lib_ver);
}
