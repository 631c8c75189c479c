/* web_priv: what web.c keeps and status.c tells. */
#ifndef LATCHD_DAEMON_WEB_PRIV_H
#define LATCHD_DAEMON_WEB_PRIV_H

#include "daemon/crowd.h"
#include "daemon/history.h"
#include "daemon/hot.h"
#include "daemon/losses.h"
#include "daemon/web.h"

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
    uint64_t second_at_ms; /* of the rates */
    struct hot *hot;       /* while somebody watches */
    struct crowd crowd;
    struct losses losses;
};

/* Somebody looks at the page. */
void web_watched(struct server *s);

#endif
