/* conn: client connections: bytes in, requests out; replies in, bytes out.
 *
 *   OPEN -> DRAINING (close once the replies are written) -> CLOSED -> freed
 *      \_____ ENDING (the peer's end came: did it take in what was sent?) __/
 *
 * Requests of one connection run in order. A handler that cannot answer yet calls
 * conn_suspend() or conn_await(), at once or, so that requests behind it may begin as
 * well, by the time that on_ran() returns. While a conn is suspended, later requests
 * are read, up to the query buffer limit, but not run until conn_resume(); while one is
 * awaited they run. The end of the input is noticed in both states, and closes the
 * connection: what is awaited gets no reply any more. Requests that were complete
 * before the end, on a conn that awaits nothing, are answered first.
 *
 * Replies are appended to conn_out() and leave at the end of the loop turn, by
 * net_end_turn(), in one write. The net owns the conns; a conn is found by its id,
 * which is never used twice. Pointers to a conn must not be kept across loop turns. */
#ifndef LATCHD_NET_CONN_H
#define LATCHD_NET_CONN_H

#include "io/stream.h"
#include "net/listener.h"
#include "resp/parser.h"
#include "util/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct conn;
struct net;

/* Why a conn ends, and how the log says so; the first reason that is given counts. */
#define CONN_ENDS(END)                                                                 \
    END(UNKNOWN, "latchd closed it")                                                   \
    END(PEER, "its client closed it")                                                  \
    END(BROKEN, "the connection broke") /* reset, or no answer to probes */            \
    END(PROTOCOL, "protocol error")                                                    \
    END(IDLE, "idle for longer than `timeout`")                                        \
    END(INPUT, "sent more than query-buffer-limit behind a command that waits")        \
    END(OUTPUT, "did not read its replies up to output-buffer-limit")                  \
    END(STOP, "latchd stops")                                                          \
    END(QUIT, "QUIT")                                                                  \
    END(KILLED, "CLIENT KILL")                                                         \
    END(USER, "its user was changed or deleted")                                       \
    END(LOGIN, "failed to log in too often")                                           \
    END(UNAUTHENTICATED, "did not log in within auth-timeout")                         \
    END(UNAUTH_EVICTED, "had not logged in, and others came to maxclients")            \
    END(EVICTED, "had most when all had more than maxmemory-clients")                  \
    END(HEARTBEAT, "was silent for longer than its HEARTBEAT")                         \
    END(MOVED, "another latchd serves it after an upgrade")

enum conn_end {
#define CONN_END(name, text) END_##name,
    CONN_ENDS(CONN_END) END_COUNT
#undef CONN_END
};

struct conn_handler {
    void *ctx;
    /* Called before each of the other callbacks. Must be cheap. */
    void (*on_event)(void *ctx);
    /* False: refuse the conn. An error that the handler wrote is sent; on_close is not
     * called. */
    bool (*on_open)(void *ctx, struct conn *c);
    void (*on_request)(void *ctx, struct conn *c, const struct resp_request *req);
    /* Called after conn_again(). May be NULL if conn_again() is never used. */
    void (*on_again)(void *ctx, struct conn *c);
    /* Called after requests ran, when no other runs for now and before anything else
     * happens to the conn. May be NULL. */
    void (*on_ran)(void *ctx, struct conn *c);
    /* Called exactly once per opened conn. `unread`: the peer cannot have read what
     * was written last: it was not sent, or the peer was gone before its kernel had
     * it, or discarded it. False if the peer may have read it, even if nobody knows. */
    void (*on_close)(void *ctx, struct conn *c, bool unread);
    /* True: the conn holds or waits for something, and is not closed as idle (a
     * suspended conn never is). May be NULL. */
    bool (*is_busy)(void *ctx, struct conn *c);
    /* True: the conn still has to log in. False: it is trusted from now on. Not called
     * again once conn_set_trusted() has said so. May be NULL: every conn is trusted. */
    bool (*is_unauthenticated)(void *ctx, struct conn *c);
    /* How often the conn has to say something, in ms, by what it holds now; 0: never.
     * Called when it was silent for too long. Needed with net_set_heartbeat() only. */
    uint32_t (*heartbeat)(void *ctx, struct conn *c);
    /* Bytes that the handler keeps for the conn. Must be cheap. May be NULL: none. */
    size_t (*keeps)(void *ctx, struct conn *c);
};

struct net_limits {
    size_t max_clients;  /* lowered to what the limit of open files allows */
    size_t query_buffer; /* bytes of a request, or of requests behind a suspended one */
    size_t output_buffer;
    size_t memory;     /* buffers of all conns, see conn_memory(); 0: no limit */
    uint64_t idle_ms;  /* 0: never; see is_busy */
    uint64_t login_ms; /* time to log in; 0: no limit */
    struct stream_options stream;
};

struct net_stats {
    uint64_t open, accepted, refused, bytes_in, bytes_out;
    uint64_t last_id;                 /* that a conn got */
    uint64_t unauthenticated;         /* open ones that have not logged in */
    uint64_t late;                    /* closed: not logged in in time */
    uint64_t evicted;                 /* closed: largest client over `memory` */
    uint64_t evicted_unauthenticated; /* closed to make room before they logged in */
    uint64_t silent;                  /* closed: missed their heartbeat */
};

/* Creates a net. It owns a uv handle until net_close(), which keeps the loop turning
 * while requests are left over, as a turn is bounded. */
struct net *net_new(struct io *io, const struct net_limits *limits);
/* Tells where events of conns go. Must come before the first listener. */
void net_set_handler(struct net *n, const struct conn_handler *handler);
/* Frees a net. What is still open is closed as by net_close(); then the loop must run
 * once more. */
void net_free(struct net *n);
void net_set_limits(struct net *n, const struct net_limits *limits);
/* Sets what TLS listeners use for new connections; takes a reference. */
void net_set_tls(struct net *n, struct tls *tls);
void net_stats(const struct net *n, struct net_stats *ret);

/* Runs requests of resumed conns until none is left, or each had its share of the
 * turn. True: some ran, and their effects can be done in the same turn. */
bool net_run(struct net *n);
/* Whether conns had their share of the last turn, and have more requests. */
bool net_has_backlog(const struct net *n);
/* Ends a loop turn: runs requests as net_run(), writes all replies, frees closed
 * conns. Must be called after the events of each turn of the loop, and never from a
 * function of the handler. True: that left requests to run, or replies to write. */
bool net_end_turn(struct net *n);
/* The sockets that accept connections for the net. Their owner is the net. One with
 * TLS needs net_set_tls() before. */
struct listeners *net_listeners(struct net *n);
/* Closes the listeners: no new connections. */
void net_stop_listening(struct net *n);
/* Closes everything, after one attempt to write the replies that wait. */
void net_close(struct net *n);
/* Closes idle and late connections; called about once a second. `now_ms` is of the
 * same clock as the times of conns. */
void net_tick(struct net *n, uint64_t now_ms);

/* Takes one end of a socketpair, whose other end serves a client of another server of
 * this process: of HTTP. `peer` is the address of that client. False: it could not be
 * taken, and is closed. */
bool net_add_guest(struct net *n, int fd, const char *peer, bool is_local);

/* Takes a client that another process has served, and its id, which must be none of
 * this net's. NULL: it was refused. */
struct conn *net_adopt(struct net *n, int fd, bool is_unix, uint64_t id);
/* The ids of new conns grow from there. */
void net_set_last_id(struct net *n, uint64_t id);

struct conn *net_find(struct net *n, uint64_t id);

/* From now on the conn has to say something at least every so many ms, if it need not
 * do so more often already; otherwise it is closed, up to 100 ms later. Its time stands
 * still while one of its requests waits, and begins anew after this process stood
 * still. Does nothing if the conn is gone. */
void net_set_heartbeat(struct net *n, uint64_t conn, uint32_t every_ms);
/* When net_sweep_heartbeats() is needed next; UINT64_MAX: not at all. */
uint64_t net_next_sweep(const struct net *n);
void net_sweep_heartbeats(struct net *n, uint64_t now_ms);

typedef void conn_fn(void *ctx, struct conn *c);
/* Calls `fn` for each conn: first those that have logged in, then the others, each
 * oldest first. `fn` may close its conn, and no other. */
void net_foreach(struct net *n, conn_fn *fn, void *ctx);

uint64_t conn_id(const struct conn *c);
void conn_set_data(struct conn *c, void *data);
void *conn_data(const struct conn *c);

/* The limit on bytes of replies that wait for the peer to read them. */
size_t conn_output_limit(const struct conn *c);

/* The buffer for replies. Pushes may be appended at any time, also while the conn is
 * suspended. */
struct buf *conn_out(struct conn *c);
/* Whether the output exceeds its limit: the conn will be closed at the end of the
 * turn, and nothing more is sent. */
bool conn_overflows(const struct conn *c);

/* Whether more input follows the request that runs. */
bool conn_has_more(const struct conn *c);

void conn_suspend(struct conn *c);
/* Lets later requests run although a reply is still awaited. Called while a request
 * runs. */
void conn_await(struct conn *c);
/* Ends a suspension or a wait. */
void conn_resume(struct conn *c);
bool conn_suspended(const struct conn *c);
/* Whether its socket is all there is of it: no request is begun or awaited, no reply is
 * unwritten, and neither TLS nor another server of this process is between. */
bool conn_is_at_rest(const struct conn *c);

/* Requests a call of on_again() before the conn's next request, when the conn is not
 * suspended. The call counts as a request: it comes in this turn, or in a later one if
 * the conn had its share. Called by a handler, or before conn_resume(). */
void conn_again(struct conn *c);

void conn_set_end(struct conn *c, enum conn_end why);
/* The reason in words, for the log. */
const char *conn_end_text(const struct conn *c);

/* The memory of a conn: input, output, and what the handler keeps for it. When all
 * conns together exceed net_limits.memory, the largest are closed at the end of the
 * turn, except for exempt ones. */
size_t conn_memory(struct conn *c);
void conn_set_exempt(struct conn *c, bool exempt);

/* Sets whether the conn has logged in; before, its limits are small. A conn that was
 * trusted once is never counted as unauthenticated again. */
void conn_set_trusted(struct conn *c, bool trusted);

/* Closes the conn after conn_out() is written. */
void conn_drain(struct conn *c);
/* Closes the conn at once, calling on_close. Idempotent. */
void conn_close(struct conn *c);

/* Counts reads of input: tells whether a client has sent anything since some reply. */
uint64_t conn_input_count(const struct conn *c);
/* For on_request: when the request was begun, in us. */
uint64_t conn_request_us(const struct conn *c);

struct conn_info {
    char peer[128];
    char local[128];
    int fd;
    size_t in_buffered;
    size_t out_buffered;
    uint64_t opened_ms;
    uint64_t active_ms; /* last input */
    const char *tls;    /* "TLSv1.3"; NULL: not TLS, or still shaking hands */
};

void conn_info(const struct conn *c, struct conn_info *ret);
/* Whether the peer is on this machine; see socket_is_local(). */
bool conn_is_local(const struct conn *c);
/* The name in the peer's certificate; see stream_tls_peer(). */
bool conn_tls_peer(const struct conn *c, char *ret, size_t room);

#endif
