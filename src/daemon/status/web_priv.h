/* web_priv: what web.c keeps, and status_json.c and name_json.c tell. */
#ifndef LATCHD_DAEMON_STATUS_WEB_PRIV_H
#define LATCHD_DAEMON_STATUS_WEB_PRIV_H

#include "daemon/status/history.h"
#include "daemon/status/top_granted.h"
#include "daemon/status/top_waited.h"
#include "daemon/status/web.h"

enum {
    WATCHED_MS = 10000, /* a page that asked within this is being looked at */
    SWEEP_MS = 50,      /* between the steps through all names */
};

struct http;

struct web {
    struct http *http;
    struct history history;
    uint64_t watched_until_ms;
    uint64_t sweep_at_ms;
    uint64_t second_at_ms;           /* of the rates */
    struct top_granted *top_granted; /* while somebody watches */
    struct top_waited top_waited;
};

/* Somebody looks at the page. */
void web_watched(struct server *s);

#endif
