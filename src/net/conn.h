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
#include "resp/parser.h"
#include "util/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct conn;
struct net;

/* Why a conn ends; the first reason that is given counts. */
enum conn_end {
    END_UNKNOWN,
    END_PEER,   /* the peer closed it */
    END_BROKEN, /* reset, or no answer to probes */
    END_PROTOCOL,
    END_IDLE,
    END_INPUT,  /* more than fits behind what waits */
    END_OUTPUT, /* it does not read */
    END_STOP,   /* the daemon stops */
    END_QUIT,
    END_KILLED,          /* by CLIENT KILL */
    END_USER,            /* its user may not be here any more */
    END_LOGIN,           /* failed to log in too often */
    END_UNAUTHENTICATED, /* never logged in */
    END_UNAUTH_EVICTED,  /* the same, and others wanted its place */
    END_EVICTED,         /* all together had too much, and it most */
    END_COUNT
};

struct conn_handler {
    void *ctx;
    /* Before anything else of a loop turn: the clock is to be looked at. Called before
     * each of the following callbacks; must be cheap. */
    void (*on_event)(void *ctx);
    /* False: refuse it (the handler may have written an error); it is closed then,
     * without on_close. */
    bool (*on_open)(void *ctx, struct conn *c);
    void (*on_request)(void *ctx, struct conn *c, const struct resp_request *req);
    /* For conn_again(), may be NULL if that is never called. */
    void (*on_again)(void *ctx, struct conn *c);
    /* After requests ran, and before anything else happens to the conn: no other runs
     * for now. May be NULL. */
    void (*on_ran)(void *ctx, struct conn *c);
    /* Exactly once per opened conn. `unread`: what was written last was not taken in:
     * it was not sent at all, or the peer was gone before its kernel had it, or threw
     * it away. False where the peer may still read it, even if nobody knows. */
    void (*on_close)(void *ctx, struct conn *c, bool unread);
    /* May be NULL. True: not to be closed as idle, since it holds or waits for
     * something (a suspended conn never is). */
    bool (*is_busy)(void *ctx, struct conn *c);
    /* May be NULL: nobody is. Asked of a conn that conn_set_trusted() was never told to
     * trust. True: it still has to log in; false: it is trusted from now on. */
    bool (*is_unauthenticated)(void *ctx, struct conn *c);
    /* May be NULL: none. Bytes that the handler keeps for it; must be cheap. */
    size_t (*keeps)(void *ctx, struct conn *c);
};

struct net_limits {
    size_t max_clients;  /* lowered to what the limit of open files allows */
    size_t query_buffer; /* bytes of a request, or of requests behind a suspended one */
    size_t output_buffer;
    size_t memory;     /* of the buffers of all, see conn_memory(); 0: no limit */
    uint64_t idle_ms;  /* 0: never; see is_busy */
    uint64_t login_ms; /* for strangers to log in; 0: no limit */
    struct stream_options stream;
};

struct net_stats {
    uint64_t open, accepted, refused, bytes_in, bytes_out;
    uint64_t unauthenticated; /* of those that are open; see is_unauthenticated */
    uint64_t late;            /* strangers that took too long to log in */
    uint64_t evicted;         /* those that had most when there was too much */
    uint64_t
        evicted_unauthenticated; /* strangers that made room for who came after them */
};

/* A net owns a uv handle from here to net_close(): the loop turns on by itself while
 * requests are left over because a turn is bounded. */
struct net *net_new(struct io *io, const struct net_limits *limits);
/* Tells where events of conns go. Must come before the first listener. */
void net_set_handler(struct net *n, const struct conn_handler *handler);
/* Closes what is still open, see net_close(); the loop must run once more if it was. */
void net_free(struct net *n);
void net_set_limits(struct net *n, const struct net_limits *limits);
/* What listeners with TLS use for new connections from now on; it takes a reference. */
void net_set_tls(struct net *n, struct tls *tls);
void net_stats(const struct net *n, struct net_stats *ret);

/* Runs requests of resumed conns until none is left, or each had its share of the turn.
 * True: some ran. For a caller who wants to do their effects in the same turn. */
bool net_run(struct net *n);
/* End of a loop turn: net_run(), then writes all replies, then frees closed conns. Must
 * be called after each turn of the loop, from a prepare or check handle, and never from
 * one of the handler's functions. */
void net_end_turn(struct net *n);
/* Closes listeners (no new connections). */
void net_stop_listening(struct net *n);
/* Closes everything; replies that are waiting get a last try. */
void net_close(struct net *n);
/* Idle check, about once a second. `now_ms`: same clock as conn times. */
void net_tick(struct net *n, uint64_t now_ms);

struct conn *net_find(struct net *n, uint64_t id);
typedef void conn_fn(void *ctx, struct conn *c);
/* Oldest first, and then strangers. `fn` may close the conn that it is given, and no
 * other. */
void net_foreach(struct net *n, conn_fn *fn, void *ctx);

uint64_t conn_id(const struct conn *c);
void conn_set_data(struct conn *c, void *data);
void *conn_data(const struct conn *c);

/* The bytes of replies that may wait for a peer to read them. */
size_t conn_output_limit(const struct conn *c);

/* Where replies go. May be appended to at any time, also while suspended (pushes). */
struct buf *conn_out(struct conn *c);
/* More waits to be written than the limit allows: it will be closed at the end of the
 * turn, and whatever is added is not sent. */
bool conn_overflows(const struct conn *c);

/* While a request runs: more input has come behind it. */
bool conn_has_more(const struct conn *c);

void conn_suspend(struct conn *c);
/* Replies are awaited, but later requests run: to be called while one runs. */
void conn_await(struct conn *c);
/* The end of both. */
void conn_resume(struct conn *c);
bool conn_suspended(const struct conn *c);

/* The handler is not done with what it was asked: on_again() comes before the conn's
 * next request, when it is not suspended, and counts as a request: in this turn, or in
 * a later one if the conn had its share. To be called by a handler, or before
 * conn_resume(). */
void conn_again(struct conn *c);

void conn_set_end(struct conn *c, enum conn_end why);
/* For people. */
const char *conn_end_text(const struct conn *c);

/* Its input, its output, and what the handler keeps for it. Beyond net_limits.memory
 * for all, those that have most are closed, at the end of the turn, unless they are
 * spared. */
size_t conn_memory(struct conn *c);
void conn_set_exempt(struct conn *c, bool exempt);

/* Small limits before AUTH. Who was trusted once is no stranger any more. */
void conn_set_trusted(struct conn *c, bool trusted);

/* Writes what is in conn_out(), then closes. */
void conn_drain(struct conn *c);
/* Closes at once. Idempotent. on_close comes during the call. */
void conn_close(struct conn *c);

/* How often bytes came in: tells whether a client spoke since some reply. */
uint64_t conn_input_count(const struct conn *c);

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
/* See socket_is_local(). */
bool conn_is_local(const struct conn *c);
/* See stream_tls_peer(). */
bool conn_tls_peer(const struct conn *c, char *ret, size_t room);

#endif
