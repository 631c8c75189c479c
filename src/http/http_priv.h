/* http_priv: the struct http from within, for http.c and the fuzzer. */
#ifndef LATCHD_HTTP_HTTP_PRIV_H
#define LATCHD_HTTP_HTTP_PRIV_H

#include "http/http.h"
#include "util/list.h"

#include <microhttpd.h>

/* A body that is made anew when it has become old. */
struct body {
    struct MHD_Response *response;
    uint64_t made_ms;
};

/* libmicrohttpd's connection, as we watch over it. */
struct client {
    struct list all;
    int fd;
    uint64_t since_ms; /* when it came */
    bool cut;          /* shut down already */
    bool served;       /* its request waits for us: not slow */
};

struct http {
    struct http_setup setup;
    struct MHD_Daemon *mhd;
    struct api *api; /* NULL: none */
    uv_poll_t poll;
    uv_timer_t timer;
    unsigned handles; /* that are open */
    bool local;
    struct list clients;
    uint64_t looked_ms; /* when slow ones were looked for */
    struct MHD_Response *page;
    struct body metrics, status;
    uint64_t looks_since_ms;
    unsigned looks; /* since then: what was made for one request alone */
};

#endif
