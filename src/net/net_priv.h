/* net_priv: what net.c, conn.c and listener.c share. */
#ifndef LATCHD_NET_NET_PRIV_H
#define LATCHD_NET_NET_PRIV_H

#include "net/conn.h"
#include "util/list.h"
#include "util/pool.h"
#include "util/table.h"

enum {
    /* What one connection may do in a turn while others wait: requests run, and bytes
     * of replies after which the rest of its requests come next turn. */
    TURN_REQUESTS = 256,
    TURN_REPLY_BYTES = 256 * 1024,
    TURN_SHARE_US = 500, /* of work at a stretch; the first request may take longer */
    /* What all connections that had their share before may do in a turn, in
     * microseconds: then those that ask for little go first again. One of them always
     * runs. */
    TURN_BACKLOG_US = 2000,
    /* How long a connection that is going down may take to take its replies in. */
    LINGER_MS = 5000,
    LINGER_CHECK_MS = 10,
    /* Connections that end in a turn, at their peers' wish or as strangers: each costs
     * some 30 us, and very many may leave at the same instant. */
    TURN_ENDS = 64,
    OUT_ROOM = 256, /* what a conn's output gets first, from the pool */
};

enum conn_state {
    CONN_OPEN,
    CONN_DRAINING, /* no more requests; replies are written, then it closes */
    CONN_ENDING, /* the peer ended it while something was suspended: nothing is written
                  * any more, only the fate of what was is waited for */
    CONN_CLOSED, /* on_close came; the memory goes at the end of the turn */
};

/* Whether requests run. */
enum conn_flow {
    FLOW_FREE,
    FLOW_AWAITED,   /* they do, and replies to earlier ones are still awaited */
    FLOW_SUSPENDED, /* they do not */
};

/* Input that is unfinished, or cannot be run yet. */
struct input {
    struct buf bytes;
    uint64_t hint; /* the parser's */
};

struct conn {
    struct table_node slot; /* id, and its place in the table */
    struct net *net;
    struct stream *stream;
    void *data;
    struct list all;   /* net->conns or ->strangers; when closed net->dead */
    struct list work;  /* net->ready, ->backlog, ->later, ->lingering or ->leaving */
    struct list dirty; /* net->dirty: has output */
    struct input *in;  /* NULL: none is unfinished */
    struct buf *out;   /* NULL: nothing is to be written */
    uint64_t opened_ms;
    uint64_t active_ms;
    uint32_t inputs;  /* goes round, but never to 0 or 1 */
    uint32_t turn;    /* in which `ran` counts */
    uint32_t counted; /* of its memory, in net->memory */
    unsigned ran : 9; /* at most TURN_REQUESTS */
    enum conn_state state : 2;
    enum conn_end end : 4;
    enum conn_flow flow : 2;
    bool opened : 1;  /* on_open said yes, so on_close is owed */
    bool running : 1; /* inside on_request */
    bool more : 1;    /* input is left behind the request that runs */
    bool trusted : 1;
    bool exempt : 1; /* conn_set_exempt() */
    bool known : 1;  /* it was trusted once: not among the strangers */
    bool again : 1;  /* on_again() is owed */
    bool input_over : 1;
    bool broken : 1; /* and not by an orderly end */
    bool unsent : 1; /* a reply came too late to be written, or was not taken in */
};

struct net {
    struct io *io;
    struct net_limits limits;
    struct tls *tls; /* for new connections; NULL: none */
    struct conn_handler handler;
    struct net_stats stats;
    struct resp_parser *parser;
    struct pool pool; /* for the replies of a turn */
    struct table table;
    struct list conns;
    struct list unauthenticated; /* never trusted; oldest first */
    struct list ready;           /* requests can be run */
    struct list backlog;         /* so, but the conn had its share of an earlier turn */
    struct list later;           /* so, but the conn has had its share of this turn */
    struct list dirty;
    struct list lingering; /* going down, waiting for the peer; see LINGER_MS */
    struct list leaving;   /* the peer left; its end is put off, see TURN_ENDS */
    struct list dead;
    struct list listeners;
    struct waker *waker;
    size_t client_max;
    uint32_t turn;
    uint32_t ends;       /* of this turn */
    uint64_t backlog_us; /* of this turn: used by the backlog */
    size_t memory;       /* of all conns, when each was looked at last */
    uint64_t last_id;
    uint64_t linger_checked_ms;
    uint64_t ticked_ms; /* net_tick()'s clock, when there may be late strangers */
};

/* A connection that was accepted; takes its socket. */
void net_accept(struct net *n, int fd, bool is_unix, bool tls);

/* client_memory.c: it may have more or less now; it has gone; all of them, if they have
 * too much. */
void conn_count(struct conn *c);
void conn_uncount(struct conn *c);
void net_evict(struct net *n);

/* Makes room for one more, if a stranger can be shown out for it (unauthenticated.c).
 */
bool net_evict_unauthenticated(struct net *n);
/* Shows out some of those who are late to log in. */
void net_show_out(struct net *n);
bool net_has_late(const struct net *n);

/* NULL: it was gone already. It is in no list yet. */
struct conn *conn_accept(struct net *n, int fd, bool is_unix, bool tls);
/* Refuses a connection that was never opened. */
void conn_refuse(struct conn *c, const char *text);
/* Bytes came. */
void conn_on_read(void *ctx, const char *data, size_t len);
/* Runs requests of the input that was kept. */
void conn_run(struct conn *c);
/* Does what was put off when its peer left. */
void conn_leave(struct conn *c);
/* The input is over and what came before the end has run. */
void conn_input_ended(struct conn *c);
void conn_drop_input(struct conn *c);
/* Bytes of replies that were not given to the stream yet. */
size_t conn_unwritten(const struct conn *c);
/* It is no stranger any more. */
void conn_become_known(struct conn *c);
/* No more of its requests in this turn. */
bool conn_had_its_share(struct conn *c);
/* Writes the replies of this turn. */
void conn_flush(struct conn *c);
/* Looks whether a conn that goes down can be closed by now. */
void conn_check_linger(struct conn *c, uint64_t now_ms);
/* Closes it, after one attempt to write its replies. */
void conn_close_last_try(struct conn *c);
/* Only its memory. */
void conn_free(struct conn *c);

#endif
