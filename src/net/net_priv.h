/* net_priv: what net.c, conn.c and listener.c share. */
#ifndef LATCHD_NET_NET_PRIV_H
#define LATCHD_NET_NET_PRIV_H

#include "net/conn.h"
#include "util/list.h"
#include "util/pool.h"
#include "util/table.h"

enum {
    /* What one connection may do in a turn while others wait: requests that run, and
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
    struct list listeners;
    struct table heartbeats; /* by the conn's id: few have one */
    struct waker *waker;
    size_t client_max;
    uint32_t turn;
    uint32_t ends;       /* conns closed in this turn, see TURN_ENDS */
    uint64_t backlog_us; /* time of this turn that the backlog used */
    size_t memory;       /* sum of `counted` */
    uint64_t last_id;
    uint64_t linger_checked_ms;
    uint64_t request_us; /* when the request that runs, or ran last, was begun */
    uint64_t swept_ms;   /* time of the last sweep of the heartbeats */
    uint64_t ticked_ms;  /* time of the last net_tick(), for late logins */
};

/* Makes an accepted socket a conn, or refuses it; takes the socket. */
void net_accept(struct net *n, int fd, bool is_unix, bool tls);

/* client_memory.c: counts a conn's memory anew; removes it from the sum; closes the
 * largest conns if the sum exceeds the limit. */
void conn_count(struct conn *c);
void conn_uncount(struct conn *c);
void net_evict(struct net *n);

/* unauthenticated.c: closes the oldest unauthenticated conn to make room for a new
 * one. False: there is none. */
bool net_evict_unauthenticated(struct net *n);
/* Closes some of the conns that did not log in in time. */
void net_show_out(struct net *n);
bool net_has_late(const struct net *n);

/* heartbeat.c: lets the conn be silent. */
void conn_end_heartbeat(struct conn *c);

/* Creates a conn that is in no list yet. NULL: the peer has gone already. */
struct conn *conn_accept(struct net *n, int fd, bool is_unix, bool tls);
/* Sends `text` to a connection that was never opened, and closes it. */
void conn_refuse(struct conn *c, const char *text);
/* Takes bytes that arrived. */
void conn_on_read(void *ctx, const char *data, size_t len);
/* Runs requests of the stored input. */
void conn_run(struct conn *c);
/* Ends a conn whose peer left earlier. */
void conn_leave(struct conn *c);
/* Called when the input has ended and all requests before the end have run. */
void conn_input_ended(struct conn *c);
void conn_drop_input(struct conn *c);
/* Bytes of replies that were not passed to the stream yet. */
size_t conn_unwritten(const struct conn *c);
/* Moves a conn to those that have logged in. */
void conn_become_known(struct conn *c);
/* Whether the conn has had its share of this turn. */
bool conn_had_its_share(struct conn *c);
/* Writes the replies of this turn. */
void conn_flush(struct conn *c);
/* Closes a lingering conn if it is done, or out of time. */
void conn_check_linger(struct conn *c, uint64_t now_ms);
/* Closes a conn after one attempt to write its replies. */
void conn_close_last_try(struct conn *c);
/* Frees the memory of a closed conn. */
void conn_free(struct conn *c);

#endif
