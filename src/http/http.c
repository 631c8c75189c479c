#include "http/http.h"

#include "http/host.h"
#include "http/http_listen.h"
#include "http/http_priv.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

/* libmicrohttpd gives up on silence only: who sends or takes a byte now and then would
 * stay for ever. */
static void cut_slow(struct http *h)
{
    uint64_t now = clock_boot_ms();
    struct list *it;

    if (now - h->looked_ms < LOOK_MS) {
        return;
    }
    h->looked_ms = now;
    LIST_FOREACH(it, &h->clients)
    {
        struct client *c = container_of(it, struct client, all);

        if (!c->cut && now - c->since_ms > HTTP_TAKE_MS) {
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
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, NULL, NULL, answer_request, h,
        MHD_OPTION_EXTERNAL_LOGGER, log_mhd, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS_MAX,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS_PER_ADDRESS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_CONNECTION_MEMORY,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HTTP_IDLE_S,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION, on_connection, h,
        MHD_OPTION_END);
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
    MHD_stop_daemon(h->mhd); /* and its socket, and its connections */
    answer_fini(h);
}

struct http *http_open(const struct http_setup *setup, char *name, size_t name_room,
                       char *reterr, size_t room)
{
    unsigned port = setup->port == HTTP_PORT_AUTO ? 0 : setup->port;
    int fd = http_listen(setup->address, port, name, name_room);
    struct http *h;

    if (fd < 0) {
        (void)snprintf(reterr, room, "%s",
                       errno == EINVAL ? "that is not an address in digits"
                                       : strerror(errno));
        return NULL;
    }
    h = xcalloc(1, sizeof(*h));
    h->setup = *setup;
    h->setup.address = NULL; /* the caller's */
    h->local = host_is_loopback(setup->address);
    list_init(&h->clients);
    answer_init(h);
    h->mhd = start_daemon(h, fd);
    if (h->mhd == NULL) {
        (void)snprintf(reterr, room, "libmicrohttpd does not start");
        (void)close(fd);
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

void http_close(struct http *h)
{
    if (h != NULL) {
        stop_daemon(h);
    }
}
