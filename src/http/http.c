#include "http/http.h"

#include "http/api.h"
#include "http/host.h"
#include "http/http_priv.h"
#include "http/prometheus.h"
#include "http/response.h"
#include "latchd/protocol.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The answer to each request. */

static void answer_init(struct http *h)
{
    h->page = response_make("text/html; charset=utf-8", HTTP_PAGE, HTTP_PAGE_LEN,
                            MHD_RESPMEM_PERSISTENT);
    response_add_header(h->page, "Content-Security-Policy", HTTP_PAGE_POLICY);
}

static void drop_response(struct MHD_Response **r)
{
    if (*r != NULL) {
        MHD_destroy_response(*r);
        *r = NULL;
    }
}

static void answer_fini(struct http *h)
{
    drop_response(&h->page);
    drop_response(&h->metrics.response);
    drop_response(&h->status.response);
}

/* --- one answer each -------------------------------------------------- */

static enum MHD_Result refuse_request(struct MHD_Connection *c, unsigned code,
                                      const char *text)
{
    struct MHD_Response *r = response_make("text/plain; charset=utf-8", text,
                                           strlen(text), MHD_RESPMEM_PERSISTENT);

    if (code == MHD_HTTP_METHOD_NOT_ALLOWED) {
        response_add_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    } else if (code == MHD_HTTP_SERVICE_UNAVAILABLE) {
        response_add_header(r, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    }
    return response_send(c, code, r);
}

static enum MHD_Result send_page(struct http *h, struct MHD_Connection *c)
{
    return MHD_queue_response(c, MHD_HTTP_OK, h->page);
}

static enum MHD_Result send_body(struct http *h, struct MHD_Connection *c,
                                 struct body *body, const char *type,
                                 void (*fill)(void *ctx, struct buf *out))
{
    uint64_t now = clock_boot_ms();

    if (body->response == NULL || now - body->made_ms >= HTTP_FRESH_MS) {
        struct buf out = { 0 };

        fill(h->setup.ctx, &out);
        drop_response(&body->response);
        body->response = response_from(type, &out);
        body->made_ms = now;
    }
    return MHD_queue_response(c, MHD_HTTP_OK, body->response);
}

static enum MHD_Result send_metrics(struct http *h, struct MHD_Connection *c)
{
    return send_body(h, c, &h->metrics, PROMETHEUS_TYPE, h->setup.metrics);
}

static enum MHD_Result send_status(struct http *h, struct MHD_Connection *c)
{
    return send_body(h, c, &h->status, "application/json", h->setup.status);
}

static enum MHD_Result send_health(struct http *h, struct MHD_Connection *c)
{
    struct buf out = { 0 };
    bool ok;

    ok = h->setup.health(h->setup.ctx, &out);
    buf_add_str(&out, "\n");
    return response_send(c, ok ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
                         response_from("text/plain; charset=utf-8", &out));
}

/* --- what depends on the request -------------------------------------- */

/* Without its percent signs; bytes, and a NUL is one of them. An absent one is empty.
 */
static struct span argument_of(struct MHD_Connection *c, const char *key)
{
    const char *value = NULL;
    size_t len = 0;

    if (MHD_lookup_connection_value_n(c, MHD_GET_ARGUMENT_KIND, key, strlen(key),
                                      &value, &len) != MHD_YES ||
        value == NULL) {
        return SPAN_NONE;
    }
    return span_of(value, len);
}

/* Nothing of these is made once for all who ask: so there are only so many. */
static bool may_look(struct http *h)
{
    uint64_t now = clock_boot_ms();

    if (now - h->looks_since_ms >= HTTP_LOOKS_MS) {
        h->looks_since_ms = now;
        h->looks = 0;
    }
    if (h->looks == HTTP_LOOKS_MAX) {
        return false;
    }
    h->looks++;
    return true;
}

static enum MHD_Result refuse_look(struct MHD_Connection *c)
{
    return refuse_request(c, MHD_HTTP_SERVICE_UNAVAILABLE,
                          "Too many requests for names: ask again in a moment.\n");
}

static enum MHD_Result send_names(struct http *h, struct MHD_Connection *c)
{
    struct span find = argument_of(c, "find"), from = argument_of(c, "cursor");
    struct buf out = { 0 };
    uint64_t cursor = 0;

    if (find.len > LATCHD_NAME_MAX) {
        return refuse_request(c, MHD_HTTP_BAD_REQUEST,
                              "No name is that long: find= has at most 512 bytes.\n");
    }
    if (from.len > 0 && !parse_u64(from, UINT64_MAX, &cursor)) {
        return refuse_request(c, MHD_HTTP_BAD_REQUEST,
                              "cursor= is the number of the answer before.\n");
    }
    if (!may_look(h)) {
        return refuse_look(c);
    }
    h->setup.names(h->setup.ctx, find, cursor, &out);
    return response_send(c, MHD_HTTP_OK, response_from("application/json", &out));
}

static enum MHD_Result send_name(struct http *h, struct MHD_Connection *c)
{
    struct span name = argument_of(c, "name");
    struct buf out = { 0 };

    if (name.len == 0 || name.len > LATCHD_NAME_MAX) {
        return refuse_request(c, MHD_HTTP_BAD_REQUEST,
                              "name= is a lock's name, 1 to 512 bytes, with %XX for "
                              "those that have a meaning in an address.\n");
    }
    if (!may_look(h)) {
        return refuse_look(c);
    }
    h->setup.name(h->setup.ctx, name, &out);
    return response_send(c, MHD_HTTP_OK, response_from("application/json", &out));
}

/* --- routing ---------------------------------------------------------- */

static const struct {
    const char *path;
    enum MHD_Result (*send)(struct http *h, struct MHD_Connection *c);
} ROUTES[] = {
    { "/", send_page },
    { "/healthz", send_health },
    { "/metrics", send_metrics },
    { "/name.json", send_name },
    { "/names.json", send_names },
    { "/status.json", send_status },
};

static bool is_for_us(const struct http *h, struct MHD_Connection *c)
{
    const char *host =
        MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);

    return !h->local || host == NULL || host_is_numeric_or_local(host);
}

/* Our part of a connection of libmicrohttpd. */
static struct client *client_of(struct MHD_Connection *c)
{
    return MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
        ->socket_context;
}

/* A client has time for its answer, and its next request, from when we have served it.
 */
static void note_served(struct client *c, bool served)
{
    if (c->served && !served) {
        c->since_ms = clock_boot_ms();
    }
    c->served = served;
}

static enum MHD_Result answer_call(struct http *h, struct MHD_Connection *connection,
                                   const char *url, const char *method,
                                   const char *upload, size_t *upload_size,
                                   void **state)
{
    enum MHD_Result r =
        api_answer(h->api, connection, url, method, upload_size, upload, state);

    note_served(client_of(connection), api_is_serving(*state));
    return r;
}

/* MHD_AccessHandlerCallback; cls is the struct http. */
static enum MHD_Result answer_request(void *cls, struct MHD_Connection *connection,
                                      const char *url, const char *method,
                                      const char *version, const char *upload,
                                      size_t *upload_size, void **state)
{
    struct http *h = cls;

    if (h->api != NULL && api_owns_path(url) && is_for_us(h, connection)) {
        return answer_call(h, connection, url, method, upload, upload_size, state);
    }
    *state = NULL;
    if (!is_for_us(h, connection)) {
        return refuse_request(
            connection, MHD_HTTP_FORBIDDEN,
            "On a loopback address latchd answers to its address in digits "
            "and to localhost, not to other names.\n");
    }
    /* Answered before a body is read, so that libmicrohttpd closes after each. */
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
        strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        return refuse_request(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
                              "Only GET and HEAD: this is for looking.\n");
    }
    for (size_t i = 0; i < sizeof(ROUTES) / sizeof(ROUTES[0]); i++) {
        if (strcmp(url, ROUTES[i].path) == 0) {
            return ROUTES[i].send(h, connection);
        }
    }
    return refuse_request(connection, MHD_HTTP_NOT_FOUND,
                          "There are /, /status.json, /names.json, /name.json, "
                          "/metrics and /healthz.\n");
}

/* http_listen: the socket that libmicrohttpd is given, so that `auto` can be a port. */

enum { BACKLOG = 64, PROBES = 3, PROBE_INTERVAL_S = 3 };

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static socklen_t parse_address(const char *text, unsigned port, union address *ret)
{
    memset(ret, 0, sizeof(*ret));
    if (inet_pton(AF_INET, text, &ret->v4.sin_addr) == 1) {
        ret->v4.sin_family = AF_INET;
        ret->v4.sin_port = htons((uint16_t)port);
        return sizeof(ret->v4);
    }
    if (inet_pton(AF_INET6, text, &ret->v6.sin6_addr) == 1) {
        ret->v6.sin6_family = AF_INET6;
        ret->v6.sin6_port = htons((uint16_t)port);
        return sizeof(ret->v6);
    }
    return 0;
}

/* Accepted sockets inherit it: a machine that vanished while it waited is noticed, as
 * any client's is. */
static void probe_silent_peers(int fd)
{
    static const struct {
        int level, option, value;
    } OPTIONS[] = {
        { SOL_SOCKET, SO_KEEPALIVE, 1 },
        { IPPROTO_TCP, TCP_KEEPIDLE, HTTP_PROBE_S },
        { IPPROTO_TCP, TCP_KEEPINTVL, PROBE_INTERVAL_S },
        { IPPROTO_TCP, TCP_KEEPCNT, PROBES },
    };

    for (size_t i = 0; i < sizeof(OPTIONS) / sizeof(OPTIONS[0]); i++) {
        (void)setsockopt(fd, OPTIONS[i].level, OPTIONS[i].option, &OPTIONS[i].value,
                         sizeof(OPTIONS[i].value));
    }
}

/* Of a listening socket: its address into `host`, with its port into `name`. False:
 * errno. */
static bool write_address(int fd, char host[static INET6_ADDRSTRLEN], char *name,
                          size_t room)
{
    union address at = { .v6 = { .sin6_family = AF_UNSPEC } };
    socklen_t len = sizeof(at);
    bool is_v6;

    if (getsockname(fd, &at.any, &len) < 0) {
        return false;
    }
    is_v6 = at.any.sa_family == AF_INET6;
    if (inet_ntop(at.any.sa_family,
                  is_v6 ? (const void *)&at.v6.sin6_addr : &at.v4.sin_addr, host,
                  INET6_ADDRSTRLEN) == NULL) {
        return false;
    }
    (void)snprintf(name, room, is_v6 ? "[%s]:%u" : "%s:%u", host,
                   ntohs(at.v4.sin_port));
    return true;
}

/* A listening socket that does not block. -1: errno; EINVAL when the address is not
 * one. `port` 0: the kernel chooses. */
static int http_listen(const char *address, unsigned port)
{
    union address at;
    socklen_t len = parse_address(address, port, &at);
    int on = 1, fd, saved;

    if (len == 0) {
        errno = EINVAL;
        return -1;
    }
    fd = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (at.any.sa_family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    }
    probe_silent_peers(fd);
    if (bind(fd, &at.any, len) < 0 || listen(fd, BACKLOG) < 0) {
        saved = errno;
        (void)close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

enum { LOOK_MS = 1000 /* how often slow clients are looked for */ };

/* --- clients ---------------------------------------------------------- */

static void on_connection(void *cls, struct MHD_Connection *connection,
                          void **socket_ctx, enum MHD_ConnectionNotificationCode code)
{
    struct http *h = cls;
    struct client *c = *socket_ctx;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        c = xcalloc(1, sizeof(*c));
        c->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
                    ->connect_fd;
        c->since_ms = clock_boot_ms();
        list_append(&h->clients, &c->all);
        *socket_ctx = c;
    } else if (c != NULL) {
        list_del(&c->all);
        free(c);
        *socket_ctx = NULL;
    }
}

/* MHD_RequestCompletedCallback. */
static void on_completed(void *cls, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    note_served(client_of(connection), false);
    api_completed(state);
}

/* MHD_OPTION_URI_LOG_CALLBACK */
static void *note_uri(void *cls, const char *uri, struct MHD_Connection *connection)
{
    return api_note_uri(uri);
}

/* libmicrohttpd gives up on silence only: who sends or takes a byte now and then would
 * stay for ever. */
static void cut_slow(struct http *h)
{
    uint64_t now = clock_boot_ms();
    struct client *c;

    if (now - h->looked_ms < LOOK_MS) {
        return;
    }
    h->looked_ms = now;
    if (h->api != NULL) {
        api_tick(h->api, now);
    }
    LIST_EACH(c, &h->clients, all) {
        if (!c->cut && !c->served && now - c->since_ms > HTTP_TAKE_MS) {
            c->cut = true;
            (void)shutdown(c->fd, SHUT_RDWR);
        }
    }
}

/* --- on the loop ------------------------------------------------------ */

static void on_timer(uv_timer_t *timer);

/* Once round: libmicrohttpd does what is ready now, and says when it wants to be called
 * in any case; 0: there is more, which has to wait for the sockets of others. */
static void run_turn(struct http *h)
{
    MHD_UNSIGNED_LONG_LONG wait_ms = LOOK_MS;

    cut_slow(h);
    (void)MHD_run(h->mhd);
    if (list_empty(&h->clients)) {
        (void)uv_timer_stop(&h->timer);
        return;
    }
    if (MHD_get_timeout(h->mhd, &wait_ms) != MHD_YES || wait_ms > LOOK_MS) {
        wait_ms = LOOK_MS;
    }
    (void)uv_timer_start(&h->timer, on_timer, wait_ms, 0);
}

static void on_timer(uv_timer_t *timer)
{
    run_turn(timer->data);
}

/* For api.h. */
static void run_soon(void *ctx)
{
    struct http *h = ctx;

    (void)uv_timer_start(&h->timer, on_timer, 0, 0);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    run_turn(poll->data);
}

/* --- open and close --------------------------------------------------- */

static void log_mhd(void *cls, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));

static void log_mhd(void *cls, const char *fmt, va_list ap)
{
    char text[256];

    if (log_enabled(LOG_DEBUG)) {
        (void)vsnprintf(text, sizeof(text), fmt, ap);
        text[strcspn(text, "\n")] = '\0';
        log_debug("http", "%s", text);
    }
}

static struct MHD_Daemon *start_daemon(struct http *h, int fd)
{
    /* Calls that wait take no connection from those who look. */
    unsigned calls = h->api == NULL ? 0 : HTTP_CALLS_MAX;

    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        answer_request, h, MHD_OPTION_EXTERNAL_LOGGER, log_mhd, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_URI_LOG_CALLBACK, note_uri, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, h, MHD_OPTION_CONNECTION_LIMIT,
        HTTP_CONNECTIONS_MAX + calls, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        HTTP_CONNECTIONS_PER_ADDRESS + calls, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)HTTP_CONNECTION_MEMORY, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)HTTP_IDLE_S, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_END);
}

static void on_closed(uv_handle_t *handle)
{
    struct http *h = handle->data;

    if (--h->handles == 0) {
        free(h);
    }
}

/* Opens both handles, or neither. */
static int watch_fd(struct http *h)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(h->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    int r = info == NULL ? UV_ENOTSUP
                         : uv_poll_init(h->setup.loop, &h->poll, info->epoll_fd);

    if (r < 0) {
        return r;
    }
    (void)uv_timer_init(h->setup.loop, &h->timer);
    h->poll.data = h->timer.data = h;
    h->handles = 2;
    return uv_poll_start(&h->poll, UV_READABLE, on_ready);
}

static void stop_daemon(struct http *h)
{
    if (h->handles > 0) {
        uv_close((uv_handle_t *)&h->poll, on_closed);
        uv_close((uv_handle_t *)&h->timer, on_closed);
    }
    if (h->api != NULL) {
        api_stop(h->api);
        /* Resumes the calls, runs them, and sends what they say. */
        for (int i = 0; i < 3; i++) {
            (void)MHD_run(h->mhd);
        }
    }
    MHD_stop_daemon(h->mhd); /* and its socket, and its connections */
    api_free(h->api);
    answer_fini(h);
}

struct http *http_open(const struct http_setup *setup, char *name, size_t name_room,
                       char *reterr, size_t room)
{
    unsigned port = setup->port == HTTP_PORT_AUTO ? 0 : setup->port;
    int fd = setup->fd >= 0 ? setup->fd : http_listen(setup->address, port);
    char host[INET6_ADDRSTRLEN];
    struct http *h;

    if (fd < 0 || !write_address(fd, host, name, name_room)) {
        (void)snprintf(reterr, room, "%s",
                       errno == EINVAL ? "that is not an address in digits"
                                       : strerror(errno));
        if (fd >= 0) {
            (void)close(fd);
        }
        return NULL;
    }
    h = xcalloc(1, sizeof(*h));
    h->setup = *setup;
    h->setup.address = NULL; /* the caller's */
    h->local = host_is_loopback(host);
    list_init(&h->clients);
    answer_init(h);
    if (setup->connect != NULL) {
        h->api = api_new(&(struct api_setup){
            .loop = setup->loop,
            .ctx = setup->ctx,
            .connect = setup->connect,
            .run_soon = run_soon,
            .run_ctx = h,
        });
    }
    h->mhd = start_daemon(h, fd);
    if (h->mhd == NULL) {
        (void)snprintf(reterr, room, "libmicrohttpd does not start");
        (void)close(fd);
        api_free(h->api);
        answer_fini(h);
        free(h);
        return NULL;
    }
    if (watch_fd(h) < 0) {
        (void)snprintf(reterr, room, "its descriptor cannot be watched");
        if (h->handles == 0) {
            stop_daemon(h);
            free(h);
        } else {
            stop_daemon(h);
        }
        return NULL;
    }
    return h;
}

bool http_is_local(const struct http *h)
{
    return h->local;
}

int http_fd(const struct http *h)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(h->mhd, MHD_DAEMON_INFO_LISTEN_FD);

    return info == NULL ? -1 : info->listen_fd;
}

void http_stop_listening(struct http *h)
{
    int fd = MHD_quiesce_daemon(h->mhd);

    if (fd >= 0) {
        (void)close(fd);
    }
}

void http_close(struct http *h)
{
    if (h != NULL) {
        stop_daemon(h);
    }
}
