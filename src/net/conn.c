#include "net/conn.h"

#include "io/socket.h"
#include "resp/writer.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/list.h"
#include "util/log.h"
#include "util/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    /* The share of one connection in a turn while others wait: requests that run, and
     * bytes of replies. The rest of its requests run in the next turn. */
    TURN_REQUESTS = 256,
    TURN_REPLY_BYTES = 256 * 1024,
    TURN_SHARE_US = 500, /* microseconds; the first request may take longer */
    /* Microseconds of a turn for all connections that had their share in an earlier
     * one; then those that ask for little come first again. One of them always runs. */
    TURN_BACKLOG_US = 2000,
    /* How long a closing connection may take to read its last replies. */
    LINGER_MS = 5000,
    LINGER_CHECK_MS = 10,
    /* Connections that end per turn because the peer left or did not log in: each
     * costs some 30 us, and very many may leave at the same instant. */
    TURN_ENDS = 64,
    OUT_ROOM = 256, /* first block of a conn's output, from the pool */
};

enum conn_state {
    CONN_OPEN,
    CONN_DRAINING, /* no more requests; closes when its replies are written */
    /* The peer closed while something was suspended. Nothing is written any more; the
     * conn only waits to learn whether the peer's kernel took in what was sent. */
    CONN_ENDING,
    CONN_CLOSED, /* on_close was called; freed at the end of the turn */
};

/* Whether requests run. */
enum conn_flow {
    FLOW_FREE,
    FLOW_AWAITED,   /* they run while replies to earlier ones are awaited */
    FLOW_SUSPENDED, /* none run */
};

/* Input that is incomplete, or cannot be run yet. */
struct input {
    struct buf bytes;
    uint64_t hint; /* the parser's */
};

struct conn {
    struct table_node slot; /* key: the conn's id */
    struct net *net;
    struct stream *stream;
    void *data;
    struct list all;   /* in net->conns or ->unauthenticated; closed: ->dead */
    struct list work;  /* in net->ready, ->backlog, ->later, ->lingering or ->leaving */
    struct list dirty; /* in net->dirty: has output */
    struct input *in;  /* NULL: no incomplete input */
    struct buf *out;   /* NULL: no output */
    uint64_t opened_ms;
    uint64_t active_ms;
    uint32_t inputs;  /* reads; wraps around, but never to 0 or 1 */
    uint32_t turn;    /* the turn in which `ran` counts */
    uint32_t counted; /* its part of net->memory */
    unsigned ran : 9; /* requests in this turn, at most TURN_REQUESTS */
    enum conn_state state : 2;
    enum conn_end end : 5;
    enum conn_flow flow : 2;
    bool opened : 1;  /* on_open accepted it, so on_close must follow */
    bool running : 1; /* inside on_request */
    bool more : 1;    /* input is left behind the request that runs */
    bool trusted : 1;
    bool exempt : 1; /* conn_set_exempt() */
    bool known : 1;  /* it was trusted once, so it is in net->conns */
    bool again : 1;  /* on_again() must be called */
    bool input_over : 1;
    bool broken : 1;        /* the stream ended with an error */
    bool unsent : 1;        /* the peer has not taken in every reply */
    bool has_heartbeat : 1; /* it is in net->heartbeats */
    bool is_guest : 1;      /* it is in net->guests */
};

struct net {
    struct io *io;
    struct net_limits limits;
    struct tls *tls; /* for new connections; NULL: none */
    struct conn_handler handler;
    struct net_stats stats;
    struct resp_parser *parser;
    struct pool pool; /* buffers for the replies of a turn */
    struct table table;
    struct list conns;
    struct list unauthenticated; /* never trusted; oldest first */
    struct list ready;           /* requests can be run */
    struct list backlog; /* the same, but they had their share of an earlier turn */
    struct list later;   /* the same, but they have had their share of this turn */
    struct list dirty;
    struct list lingering; /* closing, waiting for the peer; see LINGER_MS */
    struct list leaving;   /* the peer left; closed later, see TURN_ENDS */
    struct list dead;
    struct listeners listeners;
    struct table heartbeats; /* by the conn's id: few have one */
    struct table guests;     /* the same */
    struct waker *waker;
    size_t client_max;
    uint32_t turn;
    uint32_t ends;       /* conns closed in this turn, see TURN_ENDS */
    uint64_t backlog_us; /* time of this turn that the backlog used */
    size_t memory;       /* sum of `counted` */
    uint64_t linger_checked_ms;
    uint64_t request_us; /* when the request that runs, or ran last, was begun */
    uint64_t swept_ms;   /* time of the last sweep of the heartbeats */
    uint64_t ticked_ms;  /* time of the last net_tick(), for late logins */
};

/* Memory: counts the buffers of all connections, and closes the largest
 * connections when the sum exceeds the limit, so that those who behave do not pay for
 * the others. */

static size_t conn_unwritten(const struct conn *c);
static void conn_free(struct conn *c);
static void conn_drop_input(struct conn *c);
static void conn_on_read(void *ctx, const char *data, size_t len);

size_t conn_memory(struct conn *c)
{
    const struct conn_handler *handler = &c->net->handler;
    size_t bytes = stream_queued(c->stream) + conn_unwritten(c);

    if (c->in != NULL) {
        bytes += sizeof(*c->in) + c->in->bytes.room;
    }
    if (handler->keeps != NULL) {
        bytes += handler->keeps(handler->ctx, c);
    }
    return bytes;
}

/* The memory of an exempt conn does not count: otherwise all others could be closed
 * one by one, and nothing would be gained. Its own limits bound it. */
static void count_conn(struct conn *c)
{
    struct net *n = c->net;
    size_t bytes;

    if (n->limits.memory == 0 || c->state == CONN_CLOSED) {
        return;
    }
    bytes = c->exempt ? 0 : conn_memory(c);
    bytes = bytes < UINT32_MAX ? bytes : UINT32_MAX;
    n->memory += bytes - c->counted;
    c->counted = (uint32_t)bytes;
}

static void conn_uncount(struct conn *c)
{
    c->net->memory -= c->counted;
    c->counted = 0;
}

/* A candidate for eviction. */
struct heavy {
    struct conn **conns;
    size_t count;
};

static void weigh_conn(void *ctx, struct conn *c)
{
    struct heavy *h = ctx;

    count_conn(c); /* it may have sent something since */
    if (c->counted > 0) {
        h->conns[h->count++] = c;
    }
}

static int heaviest_first(const void *a, const void *b)
{
    const struct conn *x = *(struct conn *const *)a;
    const struct conn *y = *(struct conn *const *)b;

    return (x->counted < y->counted) - (x->counted > y->counted);
}

static void net_evict(struct net *n)
{
    struct heavy h = { 0 };

    if (n->limits.memory == 0 || n->memory <= n->limits.memory) {
        return;
    }
    h.conns = xcalloc(n->stats.open + 1, sizeof(*h.conns));
    net_foreach(n, weigh_conn, &h);
    qsort(h.conns, h.count, sizeof(*h.conns), heaviest_first);
    for (size_t i = 0; i < h.count && n->memory > n->limits.memory; i++) {
        log_about(LOG_NOTICE, "net",
                  &(struct log_about){ .client = h.conns[i]->slot.key },
                  "clients have more than maxmemory-clients in their buffers, and the "
                  "one that has most is closed: see what it does");
        n->stats.evicted++;
        conn_set_end(h.conns[i], END_EVICTED);
        conn_close(h.conns[i]);
    }
    free(h.conns);
}

void conn_set_exempt(struct conn *c, bool exempt)
{
    c->exempt = exempt;
    count_conn(c);
}

/* Heartbeats: connections that have to say something every so often, as what they hold
 * is to be free soon after their machine vanished.
 *
 * All of them are looked at every SWEEP_MS. One that is overdue is closed by the next
 * sweep only, so that what it sent in time was read before; after a turn of the loop
 * that took long, all times begin anew. */

enum {
    SWEEP_MS = 50,
    /* A sweep that is later than that says that this process stood still. */
    STALL_MS = 100,
};

enum heartbeat_state {
    HEARTBEAT_IN_TIME,
    HEARTBEAT_OVERDUE, /* closed by the next sweep, unless it is heard until then */
};

struct heartbeat {
    struct table_node slot; /* key: the conn's id */
    struct conn *conn;
    enum heartbeat_state state;
    uint32_t every_ms;
    uint64_t since; /* its time counts from then, or from its last input */
};

static struct heartbeat *heartbeat_of(const struct conn *c)
{
    return container_of(table_find(&c->net->heartbeats, c->slot.key), struct heartbeat,
                        slot);
}

static struct heartbeat *heartbeat_new(struct conn *c, uint32_t every_ms)
{
    struct net *n = c->net;
    struct heartbeat *b = xcalloc(1, sizeof(*b));

    if (n->heartbeats.count == 0) {
        n->swept_ms = clock_boot_ms();
    }
    b->conn = c;
    b->every_ms = every_ms;
    b->slot.key = c->slot.key;
    table_add(&n->heartbeats, &b->slot);
    c->has_heartbeat = true;
    return b;
}

void net_set_heartbeat(struct net *n, uint64_t conn, uint32_t every_ms)
{
    struct conn *c = net_find(n, conn);
    struct heartbeat *b;

    if (c == NULL) {
        return;
    }
    b = c->has_heartbeat ? heartbeat_of(c) : heartbeat_new(c, every_ms);
    b->state = HEARTBEAT_IN_TIME;
    b->every_ms = every_ms < b->every_ms ? every_ms : b->every_ms;
    b->since = clock_boot_ms();
}

/* Lets the conn be silent. */
static void conn_end_heartbeat(struct conn *c)
{
    struct heartbeat *b;

    if (c->has_heartbeat) {
        b = heartbeat_of(c);
        c->has_heartbeat = false;
        table_remove(&c->net->heartbeats, &b->slot);
        free(b);
    }
}

uint64_t net_next_sweep(const struct net *n)
{
    return n->heartbeats.count == 0 ? UINT64_MAX : n->swept_ms + SWEEP_MS;
}

static bool is_overdue(const struct heartbeat *b, uint64_t now_ms)
{
    uint64_t heard = b->conn->active_ms > b->since ? b->conn->active_ms : b->since;

    return now_ms > heard && now_ms - heard > b->every_ms;
}

/* Nothing was heard in time: ends the heartbeat if nothing needs it any more, or else
 * the conn. */
static void miss_heartbeat(struct net *n, struct heartbeat *b)
{
    struct conn *c = b->conn;
    uint32_t every_ms;

    n->handler.on_event(n->handler.ctx);
    every_ms = n->handler.heartbeat(n->handler.ctx, c);
    if (every_ms == 0) {
        conn_end_heartbeat(c);
    } else if (every_ms > b->every_ms) {
        b->every_ms = every_ms;
        b->state = HEARTBEAT_IN_TIME;
    } else {
        n->stats.silent++;
        conn_set_end(c, END_HEARTBEAT);
        conn_close(c);
    }
}

static void sweep_one(struct net *n, struct heartbeat *b, bool stalled, uint64_t now_ms)
{
    if (b->conn->state != CONN_OPEN) {
        conn_end_heartbeat(b->conn); /* it ends anyway */
    } else if (stalled || b->conn->flow != FLOW_FREE || !list_empty(&b->conn->work)) {
        b->since = now_ms; /* its client may be silent while requests wait */
        b->state = HEARTBEAT_IN_TIME;
    } else if (!is_overdue(b, now_ms)) {
        b->state = HEARTBEAT_IN_TIME;
    } else if (b->state == HEARTBEAT_IN_TIME) {
        b->state = HEARTBEAT_OVERDUE;
    } else {
        miss_heartbeat(n, b);
    }
}

void net_sweep_heartbeats(struct net *n, uint64_t now_ms)
{
    bool stalled = now_ms > n->swept_ms + SWEEP_MS + STALL_MS;
    struct heartbeat *heartbeat;

    if (now_ms < net_next_sweep(n)) {
        return;
    }
    n->swept_ms = now_ms;
    TABLE_EACH(heartbeat, &n->heartbeats, slot) {
        sweep_one(n, heartbeat, stalled, now_ms);
    }
}

/* Unauthenticated: connections that have not logged in yet. They have a limited time
 * for it, and when maxclients is reached, the oldest of them makes room for a new
 * connection: clients without a password cannot keep out those who have one. */

/* Moves a conn to those that have logged in. */
static void conn_become_known(struct conn *c)
{
    if (!c->known && c->state != CONN_CLOSED) {
        c->known = true;
        c->net->stats.unauthenticated--;
        list_del(&c->all);
        list_append(&c->net->conns, &c->all);
    }
}

static bool is_unauthenticated(const struct net *n, struct conn *c)
{
    if (n->handler.is_unauthenticated != NULL &&
        n->handler.is_unauthenticated(n->handler.ctx, c)) {
        return true;
    }
    conn_become_known(c);
    return false;
}

/* Closes the oldest unauthenticated conn to make room for a new
 * one. False: there is none. */
static bool net_evict_unauthenticated(struct net *n)
{
    struct conn *c;

    while (LIST_FIRST(c, &n->unauthenticated, all)) {
        if (is_unauthenticated(n, c)) {
            conn_set_end(c, END_UNAUTH_EVICTED);
            conn_close(c);
            n->stats.evicted_unauthenticated++;
            return true;
        }
    }
    return false;
}

static struct conn *next_late(const struct net *n)
{
    struct list *node = list_first(&n->unauthenticated);
    struct conn *c = node == NULL ? NULL : container_of(node, struct conn, all);

    return c == NULL || n->limits.login_ms == 0 || n->ticked_ms <= c->opened_ms ||
                   n->ticked_ms - c->opened_ms <= n->limits.login_ms
               ? NULL
               : c;
}

/* Closes some of the conns that did not log in in time. */
static void net_show_out(struct net *n)
{
    struct conn *c;

    for (; n->ends < TURN_ENDS && (c = next_late(n)) != NULL; n->ends++) {
        if (!is_unauthenticated(n, c)) {
            continue;
        }
        conn_become_known(c); /* otherwise it would be the next one again */
        if (c->state == CONN_OPEN) {
            n->stats.late++;
            conn_set_end(c, END_UNAUTHENTICATED);
            resp_error(
                conn_out(c), "NOAUTH",
                SPAN("Authentication required: it took too long (auth-timeout)"));
            conn_drain(c);
        }
    }
}

static const struct stream_events EVENTS;

/* Life */

/* Creates a conn that is in no list yet. NULL: the peer has gone already. */
static struct conn *conn_accept(struct net *n, int fd, bool is_unix, bool tls)
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
    c->slot.key = ++n->stats.last_id;
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

/* Bytes of replies that were not passed to the stream yet. */
static size_t conn_unwritten(const struct conn *c)
{
    return c->out == NULL ? 0 : buf_len(c->out);
}

/* Sends `text` to a connection that was never opened, and closes it. */
static void conn_refuse(struct conn *c, const char *text)
{
    resp_error(output_of(c), "ERR", span_str(text));
    send_output(c);
    stream_discard_input(c->stream);
    stream_close(c->stream);
    conn_free(c);
}

/* The client that a conn of net_add_guest() serves. */
struct guest {
    struct table_node slot; /* key: the conn's id */
    bool is_local;
    char peer[sizeof(((struct conn_info *)NULL)->peer)];
};

/* NULL: the conn is its own client. */
static struct guest *guest_of(const struct conn *c)
{
    return c->is_guest ? container_of(table_find(&c->net->guests, c->slot.key),
                                      struct guest, slot)
                       : NULL;
}

/* Frees the memory of a closed conn. */
static void conn_free(struct conn *c)
{
    struct guest *guest = guest_of(c);

    if (guest != NULL) {
        table_remove(&c->net->guests, &guest->slot);
        free(guest);
    }
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

/* Closes a conn after one attempt to write its replies. */
static void conn_close_last_try(struct conn *c)
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

/* Closes a lingering conn if it is done, or out of time. */
static void conn_check_linger(struct conn *c, uint64_t now_ms)
{
    check_gone(c);
    if (c->state != CONN_CLOSED && now_ms > c->active_ms + LINGER_MS) {
        /* On a unix socket the peer has all of it, and can read it after our close. */
        close_conn(c, c->unsent || stream_queued(c->stream) > 0 ||
                          !stream_is_unix(c->stream));
    }
}

/* Writes the replies of this turn. */
static void conn_flush(struct conn *c)
{
    struct net *n = c->net;
    size_t len = conn_unwritten(c);

    list_del(&c->dirty);
    if (c->state == CONN_ENDING) {
        c->unsent |= len > 0;
        drop_output(c);
        count_conn(c);
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
    count_conn(c);
    if (c->state == CONN_DRAINING) {
        check_gone(c);
    }
}

static void on_drain(void *ctx)
{
    struct conn *c = ctx;

    count_conn(c);
    if (c->state == CONN_DRAINING) {
        check_gone(c);
    }
}

/* Called when the input has ended and all requests before the end have run. */
static void conn_input_ended(struct conn *c)
{
    if (c->state == CONN_OPEN && c->flow != FLOW_FREE) {
        /* Replies that are still unwritten stay so: their grants can be taken
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

/* Ends a conn whose peer left earlier. */
static void conn_leave(struct conn *c)
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

bool conn_is_at_rest(const struct conn *c)
{
    return c->state == CONN_OPEN && c->flow == FLOW_FREE && !c->again &&
           !c->input_over && c->in == NULL && c->out == NULL && list_empty(&c->work) &&
           stream_queued(c->stream) == 0 && !stream_is_tls(c->stream) && !c->is_guest;
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
#define TEXT(name, text) [END_##name] = (text),
        CONN_ENDS(TEXT)
#undef TEXT
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
    if (c->is_guest) {
        memcpy(ret->peer, guest_of(c)->peer, sizeof(ret->peer));
    }
}

bool conn_is_local(const struct conn *c)
{
    return c->is_guest ? guest_of(c)->is_local : socket_is_local(stream_fd(c->stream));
}

bool conn_tls_peer(const struct conn *c, char *ret, size_t room)
{
    return stream_tls_peer(c->stream, ret, room);
}

/* Input: turns the bytes of a conn into requests, and runs them one at a time, in each
 * turn no more than the others can wait for. */

enum { TLS_HELLO = 0x16 }; /* the first byte of every TLS client */

static void conn_drop_input(struct conn *c)
{
    if (c->in != NULL) {
        buf_reset(&c->in->bytes);
        free(c->in);
        c->in = NULL;
    }
}

static void protocol_error(struct conn *c, const char *text)
{
    log_about(LOG_INFO, "net", &(struct log_about){ .client = c->slot.key },
              "a client does not speak the Redis protocol: %s", text);
    conn_set_end(c, END_PROTOCOL);
    resp_errorf(conn_out(c), "ERR", "Protocol error: %s", text);
    conn_drain(c);
}

/* Whether the conn has had its share of this turn. */
static bool conn_had_its_share(struct conn *c)
{
    if (c->turn != c->net->turn) {
        c->turn = c->net->turn;
        c->ran = 0;
    }
    return c->ran >= TURN_REQUESTS || conn_unwritten(c) > TURN_REPLY_BYTES;
}

static bool can_run(const struct conn *c)
{
    return c->state == CONN_OPEN && c->flow != FLOW_SUSPENDED;
}

static struct resp_limits limits_of(const struct conn *c)
{
    if (c->trusted) {
        return (struct resp_limits){ .args_max = RESP_ARGS_MAX,
                                     .bulk_max = c->net->limits.query_buffer };
    }
    return (struct resp_limits){ .args_max = RESP_ARGS_MAX_UNAUTH,
                                 .bulk_max = RESP_BULK_MAX_UNAUTH,
                                 .unauth = true };
}

static void run_again(struct conn *c)
{
    struct net *n = c->net;

    c->again = false;
    c->ran++;
    n->handler.on_event(n->handler.ctx);
    n->handler.on_again(n->handler.ctx, c);
}

/* Called after the last request for now. True: replies are still awaited. */
static bool has_run(struct conn *c)
{
    struct net *n = c->net;

    if (c->state == CONN_OPEN && n->handler.on_ran != NULL) {
        n->handler.on_ran(n->handler.ctx, c);
    }
    return c->flow != FLOW_FREE;
}

/* Notes when the next request begins. False: the others are to run first. */
static bool begin_request(struct conn *c, uint64_t start_us, bool first)
{
    if (conn_had_its_share(c)) {
        return false;
    }
    c->net->request_us = first ? start_us : clock_boot_us();
    return c->net->request_us < start_us + TURN_SHARE_US;
}

/* Runs the complete requests at the start of `data`; start_us is now. Returns how many
 * bytes that was. *ret_more: stopped because the conn has had its share of the turn. */
static size_t run_requests(struct conn *c, struct span data, uint64_t start_us,
                           uint64_t *hint, bool *ret_more)
{
    struct net *n = c->net;
    struct resp_request req;
    bool first = true;
    size_t at = 0;
    size_t used;

    c->running = true;
    while (can_run(c) && (c->again || at < data.len)) {
        struct resp_limits limits;
        enum resp_status status;

        if (!begin_request(c, start_us, first)) {
            *ret_more = true;
            break;
        }
        first = false;
        c->more = at < data.len;
        if (c->again) {
            run_again(c);
            continue;
        }
        limits = limits_of(c);
        status = resp_parse(n->parser, &limits, span_of(data.ptr + at, data.len - at),
                            hint, &used, &req);
        if (status == RESP_BROKEN && has_run(c)) {
            *hint = 0; /* the error is sent once earlier requests are answered */
            break;
        }
        if (status == RESP_BROKEN) {
            protocol_error(c, resp_parser_error(n->parser));
        }
        if (status != RESP_DONE) {
            break;
        }
        at += used;
        c->ran++;
        c->more = at < data.len;
        if (req.argc > 0) {
            n->handler.on_event(n->handler.ctx);
            n->handler.on_request(n->handler.ctx, c, &req);
        }
    }
    (void)has_run(c);
    if (c->flow == FLOW_SUSPENDED) {
        *ret_more = false; /* conn_resume() continues */
    }
    c->running = false;
    return at;
}

/* Decides what happens next with the input, after requests ran or input was stored. */
static void settle_input(struct conn *c, bool more)
{
    if (c->state != CONN_OPEN) {
        if (c->state != CONN_CLOSED) {
            conn_drop_input(c);
        }
        return;
    }
    if (more) {
        /* Back-pressure: nothing more is read until the input is used up. */
        list_del(&c->work);
        list_append(&c->net->later, &c->work);
        stream_read_stop(c->stream);
        return;
    }
    if (c->input_over) {
        conn_input_ended(c);
        return;
    }
    if (c->in != NULL && buf_len(&c->in->bytes) == 0) {
        conn_drop_input(c);
    }
    stream_read_start(c->stream);
    if (c->in == NULL || buf_len(&c->in->bytes) <= c->net->limits.query_buffer) {
        return;
    }
    if (c->flow != FLOW_FREE) {
        /* The peer would take an error for the reply to the suspended request. */
        log_about(LOG_NOTICE, "net", &(struct log_about){ .client = c->slot.key },
                  "a client sends more than query-buffer-limit behind a command that "
                  "waits, and is closed: it should wait for its replies");
        conn_set_end(c, END_INPUT);
        conn_close(c);
    } else {
        protocol_error(c, "too big request (query-buffer-limit)");
    }
}

static void keep_input(struct conn *c, const char *data, size_t len)
{
    if (len == 0) {
        return;
    }
    if (c->in == NULL) {
        c->in = xcalloc(1, sizeof(*c->in));
    }
    buf_add(&c->in->bytes, data, len);
}

/* Counts the memory of a conn that has taken input. Where conn_flush() counts it at the
 * end of this turn, that is enough. */
static void count_input(struct conn *c)
{
    if (list_empty(&c->dirty)) {
        count_conn(c);
    }
}

/* Runs requests of the stored input. */
static void conn_run(struct conn *c)
{
    struct span data = c->in == NULL ? SPAN("") : buf_span(&c->in->bytes);
    uint64_t hint = c->in == NULL ? 0 : c->in->hint;
    bool more = false;
    size_t used = run_requests(c, data, clock_boot_us(), &hint, &more);

    if (c->in != NULL) {
        c->in->hint = hint;
        buf_drop(&c->in->bytes, used);
    }
    settle_input(c, more);
    count_input(c);
}

/* Takes bytes that arrived. */
static void conn_on_read(void *ctx, const char *data, size_t len)
{
    struct conn *c = ctx;
    uint64_t now_us = clock_boot_us();
    uint64_t hint = 0;
    bool more = false;
    size_t used;

    c->net->stats.bytes_in += len;
    c->active_ms = now_us / 1000;
    c->inputs += c->inputs < UINT32_MAX ? 1 : 3;
    if (c->state != CONN_OPEN) {
        return;
    }
    if (c->inputs == 1 && data[0] == TLS_HELLO && !stream_is_tls(c->stream)) {
        /* A TLS client would wait for ever for our hello. */
        protocol_error(c, "this port does not speak TLS");
        return;
    }
    if (!list_empty(&c->work)) {
        keep_input(c, data, len); /* net_end_turn() runs it */
        count_input(c);
    } else if (c->in != NULL || c->flow == FLOW_SUSPENDED) {
        keep_input(c, data, len);
        conn_run(c);
    } else {
        used = run_requests(c, span_of(data, len), now_us, &hint, &more);
        if (c->state == CONN_OPEN) {
            keep_input(c, data + used, len - used);
        }
        if (c->in != NULL) {
            c->in->hint = hint;
        }
        settle_input(c, more);
        count_input(c);
    }
}

bool conn_has_more(const struct conn *c)
{
    return c->more;
}

void conn_suspend(struct conn *c)
{
    c->flow = FLOW_SUSPENDED;
    if (!c->running && !list_empty(&c->work)) {
        list_del(&c->work);
        settle_input(c, false);
    }
}

void conn_await(struct conn *c)
{
    c->flow = FLOW_AWAITED;
}

void conn_again(struct conn *c)
{
    c->again = true;
}

void conn_resume(struct conn *c)
{
    if (c->flow == FLOW_FREE) {
        return;
    }
    c->flow = FLOW_FREE;
    if (c->state == CONN_OPEN && !c->running && list_empty(&c->work) &&
        (c->in != NULL || c->again)) {
        list_append(conn_had_its_share(c) ? &c->net->later : &c->net->ready, &c->work);
    }
}

/* File descriptors that are no clients: listeners, links to Redis, libuv's own, and
 * one to accept a client and tell it why it is refused. */
enum { SPARE_FDS = 32 };

/* Keeps the loop turning while requests are left for the next turn. */
struct waker {
    uv_idle_t idle;
};

static void on_idle(uv_idle_t *idle)
{
}

static void on_waker_closed(uv_handle_t *handle)
{
    free(container_of(handle, struct waker, idle));
}

/* Closes one conn whose peer left. */
static bool leave_one(struct net *n)
{
    struct list *node = list_first(&n->leaving);
    size_t open = n->stats.open;

    if (node == NULL) {
        return false;
    }
    list_del(node);
    conn_leave(container_of(node, struct conn, work));
    return n->stats.open < open;
}

/* Lets a new conn in, or refuses it. */
static void admit_conn(struct net *n, struct conn *c)
{
    if (n->stats.open >= n->client_max && !leave_one(n) &&
        !net_evict_unauthenticated(n)) {
        n->stats.refused++;
        conn_refuse(c, "max number of clients reached");
        return;
    }
    n->stats.accepted++;
    n->stats.open++;
    n->stats.unauthenticated++;
    list_append(&n->unauthenticated, &c->all);
    table_add(&n->table, &c->slot);
    n->handler.on_event(n->handler.ctx);
    if (n->handler.on_open(n->handler.ctx, c)) {
        c->opened = true;
    } else {
        n->stats.refused++;
        conn_drain(c);
    }
}

/* Makes an accepted socket a conn, or refuses it; takes the socket. */
static void accept_conn(void *ctx, int fd, bool is_unix, bool tls)
{
    struct conn *c = conn_accept(ctx, fd, is_unix, tls);

    if (c != NULL) {
        admit_conn(ctx, c);
    }
}

bool net_add_guest(struct net *n, int fd, const char *peer, bool is_local)
{
    struct conn *c = conn_accept(n, fd, true, false);
    struct guest *guest;

    if (c == NULL) {
        return false;
    }
    guest = xcalloc(1, sizeof(*guest));
    guest->is_local = is_local;
    (void)snprintf(guest->peer, sizeof(guest->peer), "%s", peer);
    guest->slot.key = c->slot.key;
    table_add(&n->guests, &guest->slot);
    c->is_guest = true;
    admit_conn(n, c);
    return true;
}

struct conn *net_adopt(struct net *n, int fd, bool is_unix, uint64_t id)
{
    struct conn *c = conn_accept(n, fd, is_unix, false);

    if (c == NULL) {
        return NULL;
    }
    c->slot.key = id;
    admit_conn(n, c);
    c = net_find(n, id);
    return c != NULL && c->opened ? c : NULL;
}

void net_set_last_id(struct net *n, uint64_t id)
{
    n->stats.last_id = id;
}

struct net *net_new(struct io *io, const struct net_limits *limits)
{
    struct net *n = xcalloc(1, sizeof(*n));

    n->io = io;
    n->parser = resp_parser_new();
    n->turn = 1;
    list_init(&n->conns);
    list_init(&n->unauthenticated);
    list_init(&n->ready);
    list_init(&n->backlog);
    list_init(&n->later);
    list_init(&n->dirty);
    list_init(&n->lingering);
    list_init(&n->leaving);
    list_init(&n->dead);
    listeners_init(&n->listeners, io, accept_conn, n);
    n->waker = xcalloc(1, sizeof(*n->waker));
    (void)uv_idle_init(io->loop, &n->waker->idle); /* cannot fail */
    net_set_limits(n, limits);
    return n;
}

void net_set_handler(struct net *n, const struct conn_handler *handler)
{
    n->handler = *handler;
}

static void free_dead(struct net *n)
{
    struct conn *c;

    while (LIST_POP(c, &n->dead, all)) {
        conn_free(c);
    }
}

void net_free(struct net *n)
{
    if (n == NULL) {
        return;
    }
    net_close(n);
    free_dead(n);
    table_fini(&n->table);
    table_fini(&n->heartbeats);
    table_fini(&n->guests);
    tls_unref(n->tls);
    resp_parser_free(n->parser);
    pool_fini(&n->pool);
    free(n);
}

static void recount_conn(void *ctx, struct conn *c)
{
    (void)ctx;
    conn_uncount(c);
    count_conn(c);
}

void net_set_limits(struct net *n, const struct net_limits *limits)
{
    struct rlimit files;

    n->limits = *limits;
    net_foreach(n, recount_conn, NULL);
    n->client_max = limits->max_clients;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY) {
        size_t room = files.rlim_cur > SPARE_FDS ? files.rlim_cur - SPARE_FDS : 1;

        n->client_max = room < n->client_max ? room : n->client_max;
    }
}

void net_set_tls(struct net *n, struct tls *tls)
{
    tls_unref(n->tls);
    n->tls = tls_ref(tls);
}

void net_stats(const struct net *n, struct net_stats *ret)
{
    *ret = n->stats;
}

/* Turns */

static bool run_all(struct list *ready)
{
    struct conn *c;
    bool any = false;

    while (LIST_POP(c, ready, work)) {
        conn_run(c);
        any = true;
    }
    return any;
}

/* Runs conns that had their share in an earlier turn, as long as this turn has time. */
static bool run_backlog(struct net *n)
{
    struct conn *c;
    uint64_t start;
    bool any = false;

    while (n->backlog_us < TURN_BACKLOG_US && LIST_POP(c, &n->backlog, work)) {
        start = clock_boot_us();
        conn_run(c);
        n->backlog_us += clock_boot_us() - start;
        any = true;
    }
    return any;
}

static bool run_leaving(struct net *n)
{
    bool any = false;

    while (n->ends < TURN_ENDS && !list_empty(&n->leaving)) {
        n->ends++;
        (void)leave_one(n);
        any = true;
    }
    return any;
}

bool net_has_backlog(const struct net *n)
{
    return !list_empty(&n->backlog);
}

bool net_run(struct net *n)
{
    bool any = run_all(&n->ready);

    any = run_leaving(n) || any;
    return run_backlog(n) || any;
}

static void check_lingering(struct net *n, uint64_t now_ms)
{
    struct conn *conn;

    n->linger_checked_ms = now_ms;
    LIST_EACH_SAFE(conn, &n->lingering, work) {
        conn_check_linger(conn, now_ms);
    }
}

bool net_end_turn(struct net *n)
{
    struct conn *c;

    (void)net_run(n);
    net_show_out(n);
    while (LIST_FIRST(c, &n->dirty, dirty)) {
        conn_flush(c);
    }
    net_evict(n);
    if (!list_empty(&n->lingering)) {
        uint64_t now_ms = clock_boot_ms();

        if (now_ms >= n->linger_checked_ms + LINGER_CHECK_MS) {
            check_lingering(n, now_ms);
        }
    }
    io_end_turn(n->io);
    n->turn++;
    n->backlog_us = 0;
    list_splice(&n->backlog, &n->later);
    n->ends = 0;
    if (n->waker != NULL && list_empty(&n->backlog) && list_empty(&n->leaving) &&
        next_late(n) == NULL) {
        (void)uv_idle_stop(&n->waker->idle);
    } else if (n->waker != NULL) {
        (void)uv_idle_start(&n->waker->idle, on_idle);
    }
    free_dead(n);
    return !list_empty(&n->ready) || !list_empty(&n->dirty);
}

static bool is_idle(const struct net *n, struct conn *c, uint64_t now_ms)
{
    return c->state == CONN_OPEN && c->flow == FLOW_FREE && n->limits.idle_ms != 0 &&
           now_ms > c->active_ms && now_ms - c->active_ms > n->limits.idle_ms &&
           (n->handler.is_busy == NULL || !n->handler.is_busy(n->handler.ctx, c));
}

void net_tick(struct net *n, uint64_t now_ms)
{
    struct conn *c;

    check_lingering(n, clock_boot_ms());
    n->ticked_ms = now_ms;
    if (n->limits.idle_ms == 0) {
        return;
    }
    LIST_EACH_SAFE(c, &n->conns, all) {
        if (is_idle(n, c, now_ms)) {
            conn_set_end(c, END_IDLE);
            conn_close(c);
        }
    }
}

struct listeners *net_listeners(struct net *n)
{
    return &n->listeners;
}

void net_stop_listening(struct net *n)
{
    listeners_close(&n->listeners);
}

void net_close(struct net *n)
{
    struct conn *c;

    net_stop_listening(n);
    list_splice(&n->conns, &n->unauthenticated);
    while (LIST_FIRST(c, &n->conns, all)) {
        conn_close_last_try(c);
    }
    if (n->waker != NULL) {
        uv_close((uv_handle_t *)&n->waker->idle, on_waker_closed);
        n->waker = NULL;
    }
}

struct conn *net_find(struct net *n, uint64_t id)
{
    struct table_node *slot = table_find(&n->table, id);

    return slot == NULL ? NULL : container_of(slot, struct conn, slot);
}

static void each_of(const struct list *conns, conn_fn *fn, void *ctx)
{
    struct conn *conn;

    LIST_EACH_SAFE(conn, conns, all) {
        fn(ctx, conn);
    }
}

void net_foreach(struct net *n, conn_fn *fn, void *ctx)
{
    each_of(&n->conns, fn, ctx);
    each_of(&n->unauthenticated, fn, ctx);
}
