/* http_priv: what http.c (the daemon on the loop) and answer.c (what is answered)
 * share. */
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
};

struct http {
    struct http_setup setup;
    struct MHD_Daemon *mhd;
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

/* MHD_AccessHandlerCallback; cls is the struct http. */
enum MHD_Result answer_request(void *cls, struct MHD_Connection *connection,
                               const char *url, const char *method, const char *version,
                               const char *upload, size_t *upload_size, void **state);
/* What was made beforehand. */
void answer_init(struct http *h);
void answer_fini(struct http *h);

#endif
