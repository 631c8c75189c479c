/* dial: connecting a stream: the name is looked up on libuv's threads, then the
 * addresses are tried in turn. */
#include "io/poller.h"
#include "io/stream_priv.h"
#include "util/alloc.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* SYN retries for an address if another one is left: it has 3 s. */
enum { SYN_RETRIES = 1 };

struct dial {
    uv_getaddrinfo_t lookup;
    struct stream *stream;
    struct stream_options opt;
    struct addrinfo *addresses;
    struct addrinfo *next;
    int error;  /* of the last attempt */
    int failed; /* error of this attempt, not handled yet */
    bool resolving;
};

static struct dial *dial_new(struct stream *s, const struct stream_options *opt)
{
    struct dial *d = xcalloc(1, sizeof(*d));

    d->stream = s;
    d->lookup.data = d;
    if (opt != NULL) {
        d->opt = *opt;
    }
    s->dial = d;
    return d;
}

void dial_free(struct dial *d)
{
    if (d != NULL) {
        if (d->addresses != NULL) {
            freeaddrinfo(d->addresses);
        }
        free(d);
    }
}

bool dial_is_resolving(const struct dial *d)
{
    return d != NULL && d->resolving;
}

void dial_cancel(struct dial *d)
{
    if (dial_is_resolving(d)) {
        /* Fails if the lookup runs already; then its answer is ignored. */
        (void)uv_cancel((uv_req_t *)&d->lookup);
    }
}

void dial_done(struct dial *d)
{
    struct stream *s = d->stream;

    s->dial = NULL;
    dial_free(d);
    s->events->on_connect(s->ctx, 0);
}

void dial_broke(struct dial *d, int error)
{
    struct stream *s = d->stream;

    if (s->connected) {
        s->connected = false;
        stream_drop_queued(s);
        /* The caller may be in the middle of something: the loop calls dial_ready()
         * later. */
        d->failed = error;
        (void)shutdown(s->fd, SHUT_RDWR);
        poller_update(s);
    }
}

/* Begins to connect. The result always arrives through dial_ready(). */
static int connect_to(struct dial *d, const struct sockaddr *name, socklen_t len)
{
    struct stream *s = d->stream;
    int retries = SYN_RETRIES;
    int fd = socket(name->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int r;

    if (fd < 0) {
        return uv_translate_sys_error(errno);
    }
    s->write_error = 0;
    d->failed = 0;
    if (d->next != NULL) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &retries, sizeof(retries));
    }
    if (connect(fd, name, len) != 0 && errno != EINPROGRESS && errno != EINTR) {
        /* epoll reports an unconnected socket as hung up, so dial_ready() is called. */
        d->failed = uv_translate_sys_error(errno);
    }
    r = poller_add(s, fd);
    if (r != 0) {
        (void)close(fd);
    }
    return r;
}

/* Tries the next address. False: none is left. */
static bool dial_next(struct dial *d)
{
    while (d->next != NULL) {
        struct addrinfo *address = d->next;
        int r;

        d->next = address->ai_next;
        r = connect_to(d, address->ai_addr, address->ai_addrlen);
        if (r == 0) {
            return true;
        }
        d->error = r;
    }
    return false;
}

/* Tells the owner that no address could be reached; it may close the stream. */
static void dial_failed(struct dial *d)
{
    struct stream *s = d->stream;
    int error = d->error;

    s->dial = NULL;
    dial_free(d);
    s->ended = true;
    s->events->on_connect(s->ctx, error);
}

static int connect_error(int fd)
{
    int error = 0;
    socklen_t len = sizeof(error);

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
        error = errno;
    }
    return error == 0 ? 0 : uv_translate_sys_error(error);
}

void dial_ready(struct dial *d)
{
    struct stream *s = d->stream;
    int error = d->failed != 0 ? d->failed : connect_error(s->fd);

    if (error != 0) {
        d->error = error;
        poller_remove(s);
        if (!dial_next(d)) {
            dial_failed(d);
        }
        return;
    }
    stream_opened(s, &d->opt);
    if (s->tls == NULL) {
        dial_done(d);
    } /* with TLS: after the handshake */
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *addresses)
{
    struct dial *d = req->data;

    d->resolving = false;
    d->addresses = d->next = addresses;
    if (d->stream->closed) {
        stream_unref(d->stream);
        return;
    }
    d->error = status == 0 ? UV_EAI_NODATA : status;
    if (!dial_next(d)) {
        dial_failed(d);
    }
}

int stream_connect_tcp(struct io *io, const char *host, const char *port,
                       const struct stream_options *opt,
                       const struct stream_events *events, void *ctx,
                       struct stream **ret)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
    struct stream *s = stream_new(io, events, ctx);
    struct dial *d = dial_new(s, opt);
    int r = 0;

    if (opt != NULL && opt->tls != NULL) {
        stream_tls_new(s, opt->tls, host);
    }
    /* An address needs no thread: this does not block. */
    if (getaddrinfo(host, port, &hints, &d->addresses) == 0) {
        d->next = d->addresses;
        r = dial_next(d) ? 0 : d->error;
    } else {
        d->addresses = NULL;
        hints.ai_flags = AI_ADDRCONFIG;
        r = uv_getaddrinfo(io->loop, &d->lookup, on_resolved, host, port, &hints);
        d->resolving = r == 0;
    }
    if (r != 0) {
        stream_close(s);
        return r;
    }
    *ret = s;
    return 0;
}

int stream_connect_unix(struct io *io, const char *path,
                        const struct stream_events *events, void *ctx,
                        struct stream **ret)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    struct stream *s;
    int r;

    if (strlen(path) >= sizeof(name.sun_path)) {
        return UV_ENAMETOOLONG;
    }
    s = stream_new(io, events, ctx);
    s->is_unix = true;
    (void)memcpy(name.sun_path, path, strlen(path) + 1);
    r = connect_to(dial_new(s, NULL), (struct sockaddr *)&name, sizeof(name));
    if (r != 0) {
        stream_close(s);
        return r;
    }
    *ret = s;
    return 0;
}
