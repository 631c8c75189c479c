/* web: what the daemon serves over HTTP, and what it keeps for that: the history, and
 * the hot names while somebody looks at the page.
 *
 * Opened with the other sockets if http-port is set, and closed with the links. Without
 * it nothing is kept. */
#ifndef LATCHD_DAEMON_STATUS_WEB_H
#define LATCHD_DAEMON_STATUS_WEB_H

#include "util/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct server;
struct web;

/* False: it was wanted, and cannot be; the log says why. */
bool web_open(struct server *s);
void web_close(struct server *s);
/* When it next wants a web_tick(); UINT64_MAX: never. */
uint64_t web_next_ms(const struct server *s);
void web_tick(struct server *s);

/* Whether grants are possible; `out` says "ok", or why not. */
bool web_health(void *ctx, struct buf *out);

/* The bodies of /metrics and /status.json. */
void web_metrics(void *ctx, struct buf *out);
void web_status(void *ctx, struct buf *out);
/* /names.json: one step of a search from `cursor` on; /name.json: one name. */
void web_names(void *ctx, struct span find, uint64_t cursor, struct buf *out);
void web_name(void *ctx, struct span name, struct buf *out);

#endif
