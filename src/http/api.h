/* api: locks over HTTP, for curl, pipelines and functions that keep no connection.
 *
 *   PUT    /v1/locks/NAME?lease=&id=    LOCK, then RENEW by the ID
 *   DELETE /v1/locks/NAME?id=           CANCEL and UNLOCK by the ID
 *   GET    /v1/locks/NAME               LOCKINFO; with after= LEADER AFTER, a long poll
 *   LOCK   /v1/locks/NAME?lease=        the lock of Terraform's http backend: its body
 * is UNLOCK /v1/locks/NAME               the DATA, and has the ID GET /v1/events?name=
 * SUBSCRIBE, as server-sent events
 *
 * A request logs in and runs its commands over a connection of its own to this daemon,
 * a socketpair (setup.connect): so users, rights, limits, statistics and logs are those
 * of every client. Its replies become JSON.
 *
 *   READING -> ASKING -> ANSWERED -> OVER
 *      |         | \__ STREAMING ____/|
 *      \_________\___________________/
 *
 * While a call asks, libmicrohttpd's connection is suspended, and nothing is read from
 * it. Its end is noticed even so, and closes the socketpair: then the daemon does what
 * it does when any client leaves. A hold has an ID and a lease: what a client did not
 * read it finds again by the same PUT, or the lease ends it. */
#ifndef LATCHD_HTTP_API_H
#define LATCHD_HTTP_API_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

enum {
    API_BODY_MAX = 4096,             /* bytes of a request; as much as DATA */
    API_NAMES_MAX = 64,              /* of one stream of events */
    API_REPLY_MAX = 4 * 1024 * 1024, /* bytes of a reply */
    API_UNSENT_MAX = 256 * 1024,     /* of events that a client does not read */
    API_COMMENT_MS = 15000, /* a stream has something to read that often, at least */
};

struct api_setup {
    uv_loop_t *loop;
    void *ctx;
    /* A connection to this daemon, for the client at `peer`, that does not block; the
     * callee closes it. -1: there can be none now. */
    int (*connect)(void *ctx, const char *peer, bool is_local);
    /* Has libmicrohttpd run soon, as it does not notice a resumed connection itself. */
    void (*run_soon)(void *ctx);
    void *run_ctx;
};

struct api;

struct api *api_new(const struct api_setup *setup);
/* Ends all calls: libmicrohttpd can be stopped then. */
void api_stop(struct api *api);
/* Called when no call is left, as libmicrohttpd has stopped. Accepts NULL. */
void api_free(struct api *api);

bool api_owns_path(const char *url);
/* Told the text of each request's first line; *state of the request becomes what it
 * returns. */
void *api_note_uri(const char *uri);
/* The MHD_AccessHandlerCallback of such a path. */
enum MHD_Result api_answer(struct api *api, struct MHD_Connection *connection,
                           const char *url, const char *method, size_t *upload_size,
                           const char *upload, void **state);
/* Whether the request waits for us, and its connection must not be cut as slow. */
bool api_is_serving(const void *state);
/* The request is over. */
void api_completed(void **state);
/* Called about once a second. */
void api_tick(struct api *api, uint64_t now_ms);

#endif
