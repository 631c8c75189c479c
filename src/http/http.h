/* http: metrics and a status page for operators, read only, and locks, on
 * libmicrohttpd.
 *
 *   /             one page, self-contained
 *   /status.json  what it shows
 *   /names.json   ?find=TEXT&cursor=N: names that contain the text, a step at a time
 *   /name.json    ?name=NAME: who holds that name, and who waits for it
 *   /metrics      for Prometheus
 *   /healthz      200 or 503, and why
 *   /v1/...       locks, with setup.connect: see api.h
 *
 * No thread: libmicrohttpd's epoll descriptor is watched by the loop. What others ask
 * for must not hold up locks, so all is bounded: connections, their memory, one request
 * to each and how long it may take; a body is made at most every HTTP_FRESH_MS, however
 * many ask; and of those that depend on the request, HTTP_LOOKS_MAX are made in each
 * HTTP_LOOKS_MS, and more are refused with 503.
 *
 * What is told comes from the callbacks, which add to `out`. There is no
 * authentication but that of locks: any peer that can connect can read. */
#ifndef LATCHD_HTTP_HTTP_H
#define LATCHD_HTTP_HTTP_H

#include "util/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct http;

enum {
    HTTP_CONNECTIONS_MAX = 48,
    HTTP_CONNECTIONS_PER_ADDRESS = 32,
    HTTP_CALLS_MAX = 256, /* beside these: requests for locks that are served */
    HTTP_CALL_FILES = 2,  /* open for each, besides its connection to the daemon */
    HTTP_CONNECTION_MEMORY = 16 * 1024, /* bytes; a request and its headers fit in */
    HTTP_IDLE_S = 10,                   /* silence on a connection */
    HTTP_PROBE_S = 10,                  /* before TCP asks whether its peer is there */
    HTTP_TAKE_MS = 20000,               /* from a connection to the end of its answer */
    HTTP_FRESH_MS = 100,                /* a body younger than this is given again */
    HTTP_LOOKS_MS = 200,
    HTTP_LOOKS_MAX = 20,    /* of /name.json and /names.json together */
    HTTP_PORT_AUTO = 65536, /* the kernel chooses */
};

struct http_setup {
    uv_loop_t *loop;
    const char *address; /* IPv4 or IPv6, in digits; not for `fd` */
    unsigned port;       /* 1..65535, or HTTP_PORT_AUTO */
    int fd;              /* listens there already, and is taken; -1: none does */
    void *ctx;
    bool (*health)(void *ctx, struct buf *out); /* false: `out` says why */
    void (*metrics)(void *ctx, struct buf *out);
    void (*status)(void *ctx, struct buf *out);
    /* `find` is 0 to LATCHD_NAME_MAX bytes, `name` 1 to LATCHD_NAME_MAX: any bytes. */
    void (*names)(void *ctx, struct span find, uint64_t cursor, struct buf *out);
    void (*name)(void *ctx, struct span name, struct buf *out);
    int (*connect)(void *ctx, const char *peer, bool is_local); /* NULL: no locks */
};

/* NULL: *reterr says why, `room` bytes. Otherwise its address is in `name`. */
struct http *http_open(const struct http_setup *setup, char *name, size_t name_room,
                       char *reterr, size_t room);
/* Whether only this machine can reach the server. */
bool http_is_local(const struct http *h);
/* The socket that it listens on. */
int http_fd(const struct http *h);
/* Takes no connection any more: another process has the socket, too. */
void http_stop_listening(struct http *h);
/* Closes its connections, and frees itself once the loop has let go of it. NULL: none
 * was open. */
void http_close(struct http *h);

/* Made from page.html, page.css and page.js by embed_page.py. */
extern const char HTTP_PAGE[];
extern const size_t HTTP_PAGE_LEN;
extern const char HTTP_PAGE_POLICY[]; /* its Content-Security-Policy */

#endif
