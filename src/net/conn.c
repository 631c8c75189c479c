#include "net/conn.h"

#include "io/socket.h"
#include "net/net_priv.h"
#include "resp/writer.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/log.h"

#include <inttypes.h>
#include <stdlib.h>

static const struct stream_events EVENTS;

/* Life */

struct conn *conn_accept(struct net *n, int fd, bool is_unix, bool tls)
{
    struct stream_options options = n->limits.stream;
    struct conn *c = xcalloc(1, sizeof(*c));
    char text[128];
    int r;

    if (tls && n->tls == NULL) {
        abort(); /* otherwise it would be served without TLS */
    }
    options.tls = tls ? n->tls : NULL;
    c->net = n;
    c->slot.key = ++n->last_id;
    c->opened_ms = c->active_ms = clock_boot_ms();
    list_init(&c->all);
    list_init(&c->work);
    list_init(&c->dirty);
    r = stream_accept(n->io, fd, is_unix, &options, &EVENTS, c, &c->stream);
    if (r != 0) {
        (void)uv_strerror_r(r, text, sizeof(text));
        log_about(LOG_WARNING, "net", &(struct log_about){ 0 },
                  "cannot accept a connection: %s: raise the limit of open files",
                  text);
        free(c);
        return NULL;
    }
    return c;
}

/* Most replies of a turn fit into a pooled block. */
static struct buf *output_of(struct conn *c)
{
    if (c->out == NULL) {
        c->out = pool_take(&c->net->pool, sizeof(*c->out));
        *c->out = (struct buf){ .data = pool_take(&c->net->pool, OUT_ROOM),
                                .room = OUT_ROOM };
    }
    return c->out;
}

static void drop_output(struct conn *c)
{
    if (c->out != NULL) {
        pool_free(&c->net->pool, c->out->data);
        pool_free_sized(&c->net->pool, c->out, sizeof(*c->out));
        c->out = NULL;
    }
}

static void send_output(struct conn *c)
{
    if (c->out != NULL) {
        stream_send(c->stream, c->out);
        drop_output(c);
    }
}

size_t conn_unwritten(const struct conn *c)
{
    return c->out == NULL ? 0 : buf_len(c->out);
}

void conn_refuse(struct conn *c, const char *text)
{
    resp_error(output_of(c), "ERR", span_str(text));
    send_output(c);
    stream_discard_input(c->stream);
    stream_close(c->stream);
    conn_free(c);
}

void conn_free(struct conn *c)
{
    conn_drop_input(c);
    drop_output(c);
    free(c);
}

/* Every conn ends here. The buffers stay until the end of the turn, as a handler may
 * be using them. */
static void close_conn(struct conn *c, bool unread)
{
    struct net *n = c->net;
    bool was_draining = c->state == CONN_DRAINING;

    if (c->state == CONN_CLOSED) {
        return;
    }
    c->state = CONN_CLOSED;
    conn_end_heartbeat(c);
    list_del(&c->work);
    list_del(&c->dirty);
    list_del(&c->all);
    list_append(&n->dead, &c->all);
    conn_uncount(c);
    table_remove(&n->table, &c->slot);
    n->stats.open--;
    n->stats.unauthenticated -= !c->known;
    log_about(LOG_DEBUG, "net", &(struct log_about){ .client = c->slot.key },
              "closed%s", unread ? ", with replies that were not taken in" : "");
    if (c->opened) {
        n->handler.on_event(n->handler.ctx);
        n->handler.on_close(n->handler.ctx, c, unread);
    }
    if (unread) {
        /* The peer must not read it later. */
        stream_abort(c->stream);
        return;
    }
    if (was_draining && !c->input_over) {
        /* Closing with input unread would be a reset, and the last reply lost. */
        stream_discard_input(c->stream);
    }
    stream_close(c->stream);
}

void conn_close(struct conn *c)
{
    close_conn(c, c->unsent || conn_unwritten(c) > 0 || stream_queued(c->stream) > 0);
}

void conn_close_last_try(struct conn *c)
{
    conn_set_end(c, END_STOP);
    if (c->state == CONN_OPEN || c->state == CONN_DRAINING) {
        if (c->out != NULL) {
            stream_send(c->stream, c->out);
        }
        c->state = CONN_DRAINING;
    }
    conn_close(c);
}

static void mark_dirty(struct conn *c)
{
    if (list_empty(&c->dirty) && c->state != CONN_CLOSED) {
        list_append(&c->net->dirty, &c->dirty);
    }
}

void conn_drain(struct conn *c)
{
    if (c->state == CONN_OPEN) {
        c->state = CONN_DRAINING;
        list_del(&c->work);
        stream_read_start(c->stream); /* it may have been throttled */
        mark_dirty(c);
    }
}

/* Replies */

struct buf *conn_out(struct conn *c)
{
    mark_dirty(c);
    return output_of(c);
}

bool conn_overflows(const struct conn *c)
{
    return conn_unwritten(c) + stream_queued(c->stream) > c->net->limits.output_buffer;
}

/* Closes a draining conn if everything is written, and it is known whether the peer
 * took it in. */
static void check_gone(struct conn *c)
{
    enum stream_fate fate = STREAM_TAKEN;

    if (c->input_over) {
        fate = stream_fate(c->stream);
    } else if (stream_queued(c->stream) > 0) {
        fate = STREAM_PENDING;
    }
    if (fate != STREAM_PENDING) {
        close_conn(c, fate == STREAM_LOST || c->unsent);
    } else if (list_empty(&c->work)) {
        c->active_ms = clock_boot_ms();
        list_append(&c->net->lingering, &c->work);
    }
}

void conn_check_linger(struct conn *c, uint64_t now_ms)
{
    check_gone(c);
    if (c->state != CONN_CLOSED && now_ms > c->active_ms + LINGER_MS) {
        /* On a unix socket the peer has all of it, and can read it after our close. */
        close_conn(c, c->unsent || stream_queued(c->stream) > 0 ||
                          !stream_is_unix(c->stream));
    }
}

void conn_flush(struct conn *c)
{
    struct net *n = c->net;
    size_t len = conn_unwritten(c);

    list_del(&c->dirty);
    if (c->state == CONN_ENDING) {
        c->unsent |= len > 0;
        drop_output(c);
        conn_count(c);
        return;
    }
    if (conn_overflows(c)) {
        log_about(LOG_NOTICE, "net", &(struct log_about){ .client = c->slot.key },
                  "a client does not read its replies and is closed: see what it "
                  "does, or raise output-buffer-limit");
        conn_set_end(c, END_OUTPUT);
        conn_close(c);
        return;
    }
    n->stats.bytes_out += len;
    send_output(c);
    conn_count(c);
    if (c->state == CONN_DRAINING) {
        check_gone(c);
    }
}

static void on_drain(void *ctx)
{
    struct conn *c = ctx;

    conn_count(c);
    if (c->state == CONN_DRAINING) {
        check_gone(c);
    }
}

void conn_input_ended(struct conn *c)
{
    if (c->state == CONN_OPEN && c->flow != FLOW_FREE) {
        /* What is still unwritten is never written, so that its grants can be taken
         * back. */
        c->state = CONN_ENDING;
        c->unsent |= conn_unwritten(c) > 0;
        check_gone(c);
        return;
    }
    conn_drain(c);
    if (conn_unwritten(c) == 0) {
        check_gone(c);
    }
}

/* Does only what is cheap: nothing is written to the conn any more, and it is closed
 * in a later turn. */
static void put_off_end(struct conn *c)
{
    bool is_open = c->state == CONN_OPEN;

    if (is_open && (c->broken || c->flow != FLOW_FREE)) {
        c->state = CONN_ENDING;
        c->unsent |= conn_unwritten(c) > 0;
    } else if (is_open) {
        c->state = CONN_DRAINING;
    }
    list_del(&c->work);
    list_append(&c->net->leaving, &c->work);
}

void conn_leave(struct conn *c)
{
    if (c->broken) {
        close_conn(c, c->unsent || conn_unwritten(c) > 0);
    } else if (c->state == CONN_ENDING) {
        c->unsent |= conn_unwritten(c) > 0;
        check_gone(c);
    } else {
        conn_input_ended(c);
    }
}

static void on_end(void *ctx, int status, bool unread)
{
    struct conn *c = ctx;
    struct net *n = c->net;

    c->input_over = true;
    c->broken = status != UV_EOF;
    conn_set_end(c, c->broken ? END_BROKEN : END_PEER);
    if (!c->broken && c->state == CONN_OPEN && !list_empty(&c->work)) {
        return; /* requests from before the end are left */
    }
    c->unsent |= c->broken && unread;
    if (n->ends >= TURN_ENDS || !list_empty(&n->leaving)) {
        put_off_end(c);
    } else {
        n->ends++;
        conn_leave(c);
    }
}

static const struct stream_events EVENTS = {
    .on_read = conn_on_read,
    .on_drain = on_drain,
    .on_end = on_end,
};

/* Questions */

uint64_t conn_id(const struct conn *c)
{
    return c->slot.key;
}

void conn_set_data(struct conn *c, void *data)
{
    c->data = data;
}

void *conn_data(const struct conn *c)
{
    return c->data;
}

bool conn_suspended(const struct conn *c)
{
    return c->flow == FLOW_SUSPENDED;
}

void conn_set_end(struct conn *c, enum conn_end why)
{
    if (c->end == END_UNKNOWN) {
        c->end = why;
    }
}

const char *conn_end_text(const struct conn *c)
{
    static const char *const TEXTS[END_COUNT] = {
        [END_UNKNOWN] = "latchd closed it",
        [END_PEER] = "its client closed it",
        [END_BROKEN] = "the connection broke",
        [END_PROTOCOL] = "protocol error",
        [END_IDLE] = "idle for longer than `timeout`",
        [END_INPUT] = "sent more than query-buffer-limit behind a command that waits",
        [END_OUTPUT] = "did not read its replies up to output-buffer-limit",
        [END_STOP] = "latchd stops",
        [END_QUIT] = "QUIT",
        [END_KILLED] = "CLIENT KILL",
        [END_USER] = "its user was changed or deleted",
        [END_LOGIN] = "failed to log in too often",
        [END_UNAUTHENTICATED] = "did not log in within auth-timeout",
        [END_EVICTED] = "had most when all had more than maxmemory-clients",
        [END_HEARTBEAT] = "was silent for longer than its HEARTBEAT",
        [END_UNAUTH_EVICTED] = "had not logged in, and others came to maxclients",
    };

    return TEXTS[c->end];
}

void conn_set_trusted(struct conn *c, bool trusted)
{
    c->trusted = trusted;
    if (trusted) {
        conn_become_known(c);
    }
}

size_t conn_output_limit(const struct conn *c)
{
    return c->net->limits.output_buffer;
}

uint64_t conn_request_us(const struct conn *c)
{
    return c->net->request_us;
}

uint64_t conn_input_count(const struct conn *c)
{
    return c->inputs;
}

void conn_info(const struct conn *c, struct conn_info *ret)
{
    *ret = (struct conn_info){
        .fd = stream_fd(c->stream),
        .in_buffered = c->in == NULL ? 0 : buf_len(&c->in->bytes),
        .out_buffered = conn_unwritten(c) + stream_queued(c->stream),
        .opened_ms = c->opened_ms,
        .active_ms = c->active_ms,
        .tls = stream_tls_version(c->stream),
    };
    stream_peer_name(c->stream, ret->peer, sizeof(ret->peer));
    stream_local_name(c->stream, ret->local, sizeof(ret->local));
}

bool conn_is_local(const struct conn *c)
{
    return socket_is_local(stream_fd(c->stream));
}

bool conn_tls_peer(const struct conn *c, char *ret, size_t room)
{
    return stream_tls_peer(c->stream, ret, room);
}
