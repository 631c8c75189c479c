#include "cmd/lock/redis_names.h"

#include "cmd/acl/sight.h"
#include "cmd/handlers.h"
#include "util/alloc.h"
#include "util/glob.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MAX_MS = 5000 };

/* A LOCKS REDIS that Redis has not answered. Each connection has one at a time. */
struct redis_names {
    struct list in_all; /* cmd.redis_names, first come first */
    uint64_t id;
    struct call_ref to;
    uint64_t until_ms;
    bool has_match;
    size_t match_len;
    char match[];
};

static struct redis_names *names_of(struct list *it)
{
    return container_of(it, struct redis_names, in_all);
}

/* Ends the request; the answer is for its client. */
static struct effect_reply take_answer(struct redis_names *r, enum reply_kind kind,
                                       struct span text)
{
    struct effect_reply reply = {
        .kind = kind, .to = r->to, .error = LOCK_BACKEND, .text = text
    };

    list_del(&r->in_all);
    free(r);
    return reply;
}

void redis_names_ask(struct command_ctx *ctx, const struct lock_args *args,
                     size_t count)
{
    struct cmd *c = ctx->cmd;
    uint64_t id = c->env.scan_redis == NULL
                      ? 0
                      : c->env.scan_redis(c->env.ctx, args->cursor, count);
    struct redis_names *r;

    if (id == 0) {
        ctx_error(ctx, LATCHD_ERR_BACKEND, "Redis cannot be reached");
        return;
    }
    r = xcalloc(1, sizeof(*r) + args->match.len);
    r->id = id;
    r->to = ctx_wait(ctx);
    r->until_ms = c->env.now_ms(c->env.ctx) + ANSWER_MAX_MS;
    r->has_match = (args->terms.has & OPT_MATCH) != 0;
    r->match_len = args->match.len;
    if (args->match.len > 0) {
        memcpy(r->match, args->match.ptr, args->match.len);
    }
    list_append(&c->redis_names, &r->in_all);
}

static bool is_wanted(const struct cmd *c, const struct redis_names *r,
                      const struct client *client, struct span name)
{
    return name.len > 0 && name.len <= c->limits.max_name &&
           (!r->has_match || glob_match(span_of(r->match, r->match_len), name)) &&
           sight_of(c, client, name, 0) != SIGHT_NOTHING;
}

static void write_names(const struct cmd *c, const struct redis_names *r,
                        const struct client *client, const struct scanned_names *names,
                        struct buf *out)
{
    struct buf items = { 0 };
    char next[24];
    size_t count = 0;

    for (size_t i = 0; i < names->count; i++) {
        if (is_wanted(c, r, client, names->list[i])) {
            resp_bulk(&items, names->list[i]);
            count++;
        }
    }
    (void)snprintf(next, sizeof(next), "%" PRIu64, names->cursor);
    resp_array(out, 2);
    resp_bulk_str(out, next);
    resp_array(out, count);
    buf_add_span(out, buf_span(&items));
    buf_reset(&items);
}

bool redis_names_on_scanned(struct cmd *c, uint64_t id,
                            const struct scanned_names *names, struct buf *out,
                            struct effect_reply *ret)
{
    struct list *it;

    LIST_FOREACH(it, &c->redis_names)
    {
        struct redis_names *r = names_of(it);
        const struct conn *conn;

        if (r->id != id) {
            continue;
        }
        conn = net_find(c->env.net, r->to.conn);
        if (names->error.len != 0) {
            *ret = take_answer(r, REPLY_ERROR, names->error);
            return true;
        }
        if (conn != NULL) {
            write_names(c, r, conn_data(conn), names, out);
        }
        *ret = take_answer(r, REPLY_WRITTEN, buf_span(out));
        return true;
    }
    return false;
}

bool redis_names_on_time(struct cmd *c, uint64_t now_ms, struct effect_reply *ret)
{
    struct list *it = list_first(&c->redis_names);

    if (it == NULL || now_ms < names_of(it)->until_ms) {
        return false;
    }
    *ret = take_answer(names_of(it), REPLY_ERROR, SPAN("Redis did not answer in time"));
    return true;
}

uint64_t redis_names_next_deadline(const struct cmd *c)
{
    struct list *it = list_first(&c->redis_names);

    return it == NULL ? UINT64_MAX : names_of(it)->until_ms;
}

void redis_names_free(struct cmd *c)
{
    struct list *it;

    while ((it = list_first(&c->redis_names)) != NULL) {
        list_del(it);
        free(names_of(it));
    }
}
