/* Parks who asks for a lock again: which call waits in the queue, and what ends it. */
#include "cmd/handlers.h"
#include "cmd/library/library_reply.h"
#include "cmd/library/pollers.h"
#include "util/hash.h"

/* A library believes that it has the lock from when it asked, and some give up a try
 * after a twentieth of the time for which they ask: a wait has to be shorter. */
enum { PARK_PART = 25 };

/* The asker of a key: a user at an address (without its port), with a value. */
static uint64_t hash_asker(const struct command_ctx *ctx,
                           const struct library_call *lib)
{
    struct buf text = { 0 };
    struct conn_info info;
    struct span address, port;
    uint64_t hash;

    conn_info(ctx->conn, &info);
    port = address = span_str(info.peer);
    if (!span_cut_last(&port, ':', &address)) {
        address = span_str(info.peer);
    }
    buf_add_span(&text, address);
    buf_add_str(&text, " ");
    buf_add_span(&text, buf_span(&lib->value)); /* has no white space in it */
    buf_add_str(&text, " ");
    buf_add_span(&text, lib->keys[0]);
    hash = hash_bytes(buf_ptr(&text), buf_len(&text));
    buf_reset(&text);
    return hash;
}

static uint64_t now_of(const struct cmd *c)
{
    return c->env.now_ms(c->env.ctx);
}

/* Whether the command may wait: nothing is behind it, and nobody sees a part of it. */
static bool may_park(const struct command_ctx *ctx, const struct library_call *lib)
{
    return ctx->cmd->limits.library_park_ms > 0 && lock_call_takes(lib->call.kind) &&
           lib->key_count == 1 && ctx->step == NULL &&
           !multi_is_open(ctx->client->multi) && !ctx->muted &&
           !conn_has_more(ctx->conn) && engine_has_room(ctx->cmd->env.engine);
}

void library_choose_park(const struct command_ctx *ctx, struct library_call *lib)
{
    struct cmd *c = ctx->cmd;
    uint64_t part = (uint64_t)lib->lease_ms / PARK_PART;
    uint64_t most = c->limits.library_park_ms;

    if (lock_call_takes(lib->call.kind)) {
        lib->asker = hash_asker(ctx, lib);
        lib->asks_since_ms = pollers_since(c->pollers, lib->asker, now_of(c));
    }
    if (lib->asks_since_ms != 0 && may_park(ctx, lib)) {
        lib->park_ms = part < most ? part : most;
    }
}

void library_note_poller(struct cmd *c, const struct library_call *lib, bool taken)
{
    if (taken && lib->asks_since_ms != 0) {
        pollers_forget(c->pollers, lib->asker);
    } else if (!taken && lib->key_count == 1 && c->limits.library_park_ms > 0) {
        pollers_remember(c->pollers, lib->asker,
                         lib->asks_since_ms == 0 ? now_of(c) : lib->asks_since_ms,
                         now_of(c));
    }
}

bool library_is_parked(const struct library_call *lib)
{
    return lib != NULL && lib->phase == LIBRARY_TAKES && lib->park_ms > 0;
}

void library_end_park(struct cmd *c, const struct client *client)
{
    const struct library_call *lib = client->call == 0 ? NULL : client_library(client);

    if (library_is_parked(lib)) {
        engine_end_wait(c->env.engine, lib->from);
    }
}
