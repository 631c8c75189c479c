/* dial: connecting a stream: the name is looked up on libuv's threads, then the
 * addresses are tried in turn with the stream's one handle. */
#include "io/stream_priv.h"
#include "util/alloc.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/un.h>

/* SYNs that are sent again to an address while another one is left: gives it 3 s. */
enum { SYN_RETRIES = 1 };

struct dial {
    uv_getaddrinfo_t lookup;
    uv_connect_t req;
    struct stream *stream;
    struct stream_options opt;
    struct addrinfo *addresses;
    struct addrinfo *next;
    int error; /* of the last attempt */
    bool resolving;
};

static struct dial *dial_new(struct stream *s, const struct stream_options *opt)
{
    struct dial *d = xcalloc(1, sizeof(*d));

    d->stream = s;
    d->lookup.data = d;
    d->req.data = d;
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
        /* Fails if the lookup is running already; its answer is ignored then. */
        (void)uv_cancel((uv_req_t *)&d->lookup);
    }
}

static void on_connected(uv_connect_t *req, int status)
{
    struct dial *d = req->data;
    struct stream *s = d->stream;

    if (s->closed) {
        return;
    }
    if (status == 0) {
        status = stream_opened(s, &d->opt);
    }
    if (status != 0) {
        d->error = status;
        stream_close_handle(s);
        return;
    }
    if (s->tls == NULL) {
        dial_done(d);
    } /* else after the handshake */
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
    if (d->stream->connected) {
        d->error = error;
        d->stream->connected = false;
        stream_close_handle(d->stream);
    }
}

static int connect_to(struct dial *d, const struct addrinfo *address)
{
    struct stream *s = d->stream;
    int retries = SYN_RETRIES;
    int r = uv_tcp_init_ex(s->io->loop, &s->u.tcp, (unsigned)address->ai_family);

    if (r != 0) {
        return r;
    }
    s->live = true;
    s->write_error = 0;
    s->u.handle.data = s;
    if (d->next != NULL) {
        (void)setsockopt(stream_fd(s), IPPROTO_TCP, TCP_SYNCNT, &retries,
                         sizeof(retries));
    }
    return uv_tcp_connect(&d->req, &s->u.tcp, address->ai_addr, on_connected);
}

bool dial_next(struct dial *d)
{
    while (d->next != NULL) {
        struct addrinfo *address = d->next;
        int r;

        d->next = address->ai_next;
        r = connect_to(d, address);
        if (r == 0) {
            return true;
        }
        d->error = r;
        if (d->stream->live) {
            stream_close_handle(d->stream);
            return true; /* it goes on once the handle is closed */
        }
    }
    return false;
}

void dial_failed(struct dial *d)
{
    struct stream *s = d->stream;
    int error = d->error;

    s->dial = NULL;
    dial_free(d);
    s->ended = true;
    s->events->on_connect(s->ctx, error);
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
    struct stream *s;
    int r;

    /* libuv would cut it off and connect to something else. */
    if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
        return UV_ENAMETOOLONG;
    }
    s = stream_new(io, events, ctx);
    s->is_unix = true;
    r = uv_pipe_init(io->loop, &s->u.pipe, 0);
    if (r != 0) {
        stream_close(s);
        return r;
    }
    s->live = true;
    s->u.handle.data = s;
    uv_pipe_connect(&dial_new(s, NULL)->req, &s->u.pipe, path, on_connected);
    *ret = s;
    return 0;
}
