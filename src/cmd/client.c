#include "cmd/client.h"

#include "cmd/cmd_priv.h"
#include "cmd/pipeline.h"
#include "util/hash.h"

static uint32_t number_of(struct span word)
{
    return word.len == 0 ? 0 : (uint32_t)hash_bytes(word.ptr, word.len) | 1U;
}

struct subject subject_of(const struct lock_args *args)
{
    return (struct subject){ .id = number_of(args->terms.id),
                             .owner = number_of(args->terms.owner) };
}

bool subject_overlaps(struct subject a, struct subject b)
{
    return (a.id != 0 && a.id == b.id) || (a.owner != 0 && a.owner == b.owner);
}

struct deferred_command *deferred_command_new(const struct command_ctx *ctx)
{
    size_t bytes = sizeof(struct deferred_command) + ctx->argc * sizeof(struct span);
    struct deferred_command *k;
    char *at;

    for (size_t i = 0; i < ctx->argc; i++) {
        bytes += ctx->argv[i].len;
    }
    k = xmalloc(bytes);
    *k = (struct deferred_command){
        .conn = ctx->client->id,
        .command = ctx->command,
        .bytes = bytes,
        .argc = ctx->argc,
    };
    list_init(&k->in_pause);
    at = (char *)(k->argv + k->argc);
    for (size_t i = 0; i < ctx->argc; i++) {
        size_t len = ctx->argv[i].len;

        if (len > 0) {
            memcpy(at, ctx->argv[i].ptr, len);
        }
        k->argv[i] = span_of(at, len);
        at += len;
    }
    return k;
}

void deferred_command_free(struct deferred_command *k)
{
    if (k != NULL) {
        list_del(&k->in_pause);
        free(k);
    }
}

/* Frees a transaction. Accepts NULL. */
static void multi_free(struct multi *m)
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

void multi_drop(struct client *client)
{
    multi_free(client->multi);
    client->multi = NULL;
}

/* The number of queued commands; -1: no transaction. */
static int64_t multi_count(const struct multi *m)
{
    return multi_is_open(m) ? (int64_t)m->count : -1;
}

/* The memory of a transaction in bytes. */
static size_t multi_bytes(const struct multi *m)
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

struct multi *multi_make(struct client *client)
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
    return watch_add(&multi_make(client)->watch, keys, count);
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

bool multi_add(struct multi *m, struct deferred_command *k)
{
    if (m->count == MULTI_COMMANDS_MAX || m->bytes + k->bytes > MULTI_BYTES_MAX) {
        return false;
    }
    if (m->count == m->room) {
        m->room = m->room == 0 ? 8 : m->room * 2;
        m->queue = xrealloc(m->queue, m->room * sizeof(struct deferred_command *));
    }
    m->queue[m->count++] = k;
    m->bytes += k->bytes;
    m->writes |= (k->command->flags & CMD_WRITE) != 0;
    return true;
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

enum { GRANTS_KEEP = 64 };

/* Grants whose replies were written since the last input. */
struct grants {
    uint64_t input; /* the number of reads then */
    size_t count;
    size_t room;
    uint64_t ids[];
};

struct client *client_new(uint64_t id)
{
    struct client *cl = xcalloc(1, sizeof(*cl));

    cl->id = id;
    cl->proto = 2;
    subscriber_init(&cl->sub);
    list_init(&cl->monitors);
    return cl;
}

void client_free(struct client *cl)
{
    if (cl == NULL) {
        return;
    }
    list_del(&cl->monitors);
    for (int i = 0; cl->texts != NULL && i < CLIENT_TEXTS; i++) {
        free(cl->texts[i]);
    }
    free(cl->texts);
    free(cl->grants);
    multi_free(cl->multi);
    deferred_command_free(cl->deferred);
    free(cl);
}

void client_reset(struct client *cl)
{
    cl->proto = 2;
    cl->reply_off = cl->skip = cl->skip_next = cl->exempt = false;
    list_del(&cl->monitors);
    client_set_text(cl, CLIENT_NAME, SPAN_NONE);
    multi_free(cl->multi);
    cl->multi = NULL;
}

static size_t pipeline_bytes(const struct pipeline *p)
{
    size_t bytes = 0;

    if (p == NULL) {
        return 0;
    }
    for (size_t i = p->first; i < p->count; i++) {
        bytes += p->steps[i].reply.room;
    }
    return bytes + sizeof(*p) + p->room * sizeof(p->steps[0]) + p->deferred_bytes;
}

size_t client_bytes(const struct client *cl)
{
    return multi_bytes(cl->multi) + pipeline_bytes(cl->pipeline) +
           (cl->deferred == NULL ? 0 : cl->deferred->bytes) +
           ((size_t)cl->sub.channels + cl->sub.patterns) * SUBSCRIPTION_BYTES;
}

const struct command *client_waiting(const struct client *cl, uint64_t number)
{
    const struct pipeline *p = cl->pipeline;

    if (p == NULL) {
        return cl->call == number ? client_last(cl) : NULL;
    }
    for (size_t i = p->first; i < p->count; i++) {
        if (p->steps[i].state == STEP_ASKED && p->steps[i].number == number) {
            return p->steps[i].command;
        }
    }
    return NULL;
}

bool client_text_ok(struct span text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '!' || text.ptr[i] > '~') {
            return false;
        }
    }
    return true;
}

const char *client_text(const struct client *cl, enum client_text which)
{
    return cl->texts == NULL ? NULL : cl->texts[which];
}

void client_set_text(struct client *cl, enum client_text which, struct span text)
{
    if (cl->texts == NULL && text.len == 0) {
        return;
    }
    if (cl->texts == NULL) {
        cl->texts = xcalloc(CLIENT_TEXTS, sizeof(*cl->texts));
    }
    free(cl->texts[which]);
    cl->texts[which] = text.len == 0 ? NULL : xmemdup0(text.ptr, text.len);
}

static struct grants *grants_resize(struct grants *g, size_t room)
{
    g = xrealloc(g, sizeof(*g) + room * sizeof(g->ids[0]));
    g->room = room;
    return g;
}

void client_granted(struct client *cl, uint64_t grant, uint64_t input)
{
    struct grants *g = cl->grants;

    if (g == NULL || (g->input != input && g->room > GRANTS_KEEP)) {
        free(g); /* the list of a long pipeline is not kept */
        g = grants_resize(NULL, 1);
        g->input = ~input;
    }
    if (g->input != input) {
        g->count = 0;
        g->input = input;
    }
    if (g->count == g->room) {
        g = grants_resize(g, g->room * 2);
    }
    g->ids[g->count++] = grant;
    cl->grants = g;
}

size_t client_doubtful(const struct client *cl, uint64_t input, const uint64_t **ret)
{
    const struct grants *g = cl->grants;

    *ret = g == NULL ? NULL : g->ids;
    return g != NULL && g->input == input ? g->count : 0;
}

/* --- a connection as one line of text ------------------------------------ */

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
