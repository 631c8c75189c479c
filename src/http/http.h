/* http: metrics and a status page for operators, read only, on libmicrohttpd.
 *
 *   /             one page, self-contained
 *   /status.json  what it shows
 *   /metrics      for Prometheus
 *   /healthz      200 or 503, and why
 *
 * No thread: libmicrohttpd's epoll descriptor is watched by the loop. What others ask
 * for must not hold up locks, so all is bounded: connections, their memory, one request
 * to each and how long it may take; and a body is made at most every HTTP_FRESH_MS,
 * however many ask.
 *
 * What is told comes from the callbacks, which add to `out`. There is no
 * authentication: whoever can connect can read. */
#ifndef LATCHD_HTTP_HTTP_H
#define LATCHD_HTTP_HTTP_H

#include "util/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

enum {
    HTTP_CONNECTIONS_MAX = 48,
    HTTP_CONNECTIONS_PER_ADDRESS = 32,
    HTTP_CONNECTION_MEMORY = 16 * 1024, /* bytes; a request and its headers fit in */
    HTTP_IDLE_S = 10,                   /* silence on a connection */
    HTTP_TAKE_MS = 20000,               /* from a connection to the end of its answer */
    HTTP_FRESH_MS = 100,                /* a body younger than this is given again */
    HTTP_PORT_AUTO = 65536,             /* the kernel chooses */
};

struct http;

struct http_setup {
    uv_loop_t *loop;
    const char *address; /* IPv4 or IPv6, in digits */
    unsigned port;       /* 1..65535, or HTTP_PORT_AUTO */
    void *ctx;
    void (*on_event)(void *ctx); /* before each of the following: look at the clock */
    bool (*health)(void *ctx, struct buf *out); /* false: `out` says why */
    void (*metrics)(void *ctx, struct buf *out);
    void (*status)(void *ctx, struct buf *out);
};

/* NULL: *reterr says why, `room` bytes. Otherwise its address is in `name`. */
struct http *http_open(const struct http_setup *setup, char *name, size_t name_room,
                       char *reterr, size_t room);
/* It can be reached from this machine only. */
bool http_is_local(const struct http *h);
/* Closes its connections, and frees itself once the loop has let go of it. NULL: none
 * was open. */
void http_close(struct http *h);

/* Made from page.html, page.css and page.js by embed.py. */
extern const char HTTP_PAGE[];
extern const size_t HTTP_PAGE_LEN;
extern const char HTTP_PAGE_POLICY[]; /* its Content-Security-Policy */

#endif
