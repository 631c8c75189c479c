#include "daemon/server_state.h"

#include "net/listener.h"
#include "util/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    NAME_ROOM = 160,
    ADDRESS_ROOM = 64, /* longer texts are no addresses, as config has checked */
    SPARE_FDS =
        128, /* listeners, links to Redis, HTTP, log, files, room to refuse in */
};

uint64_t listen_raise_limit(uint64_t wanted)
{
    struct rlimit limit;
    rlim_t need = (rlim_t)wanted + SPARE_FDS;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
        return wanted;
    }
    if (limit.rlim_cur < need && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = need < limit.rlim_max ? need : limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        (void)getrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur >= need) {
        return wanted;
    }
    return limit.rlim_cur > SPARE_FDS + 1 ? limit.rlim_cur - SPARE_FDS : 1;
}

static bool on_opened(struct server *s, int r, const char *what, const char *name,
                      bool tls)
{
    char text[128];

    if (r < 0) {
        (void)uv_strerror_r(r, text, sizeof(text));
        log_error(
            "server",
            "cannot listen on %s: %s: stop the program that uses it, or change bind, "
            "port, tls-port or unixsocket",
            what, text);
        return false;
    }
    s->listening = true;
    log_notice("server", "listening on %s%s", name, tls ? " with TLS" : "");
    return true;
}

static bool listen_handed_over(struct server *s, int count, uint64_t tls_mask)
{
    char name[NAME_ROOM];
    char what[32];

    for (int i = 0; i < count; i++) {
        bool tls = (tls_mask >> i & 1) != 0;
        int fd = NOTIFY_FIRST_FD + i;
        int r;

        (void)snprintf(what, sizeof(what), "socket %d of systemd", fd);
        if (tls && s->tls == NULL) {
            log_error("server", "%s is called `tls`: set tls-cert-file", what);
            return false;
        }
        r = listeners_add_fd(net_listeners(s->net), fd, tls, name, sizeof(name));
        if (!on_opened(s, r, what, name, tls)) {
            return false;
        }
    }
    return true;
}

/* The default has ::1, which must not fail on machines without IPv6. */
static bool may_be_missing(const char *address, int r)
{
    return strcmp(address, "::1") == 0 &&
           (r == UV_EADDRNOTAVAIL || r == UV_EAFNOSUPPORT);
}

static uint64_t port_of(const char *name)
{
    const char *colon = strrchr(name, ':');

    return colon == NULL ? 0 : strtoull(colon + 1, NULL, 10);
}

static bool listen_address(struct server *s, const char *address, bool tls)
{
    uint64_t port = tls ? s->tls_port : s->config.port;
    char name[NAME_ROOM];
    char what[ADDRESS_ROOM + 32];
    int r = listeners_add_tcp(net_listeners(s->net), address, (int)port,
                              (int)s->config.tcp_backlog, tls, name, sizeof(name));

    if (r < 0 && may_be_missing(address, r)) {
        log_info("server", "not listening on ::1: this machine has no IPv6");
        return true;
    }
    (void)snprintf(what, sizeof(what), "%s port %" PRIu64, address, port);
    if (!on_opened(s, r, what, name, tls)) {
        return false;
    }
    if (tls) {
        s->tls_port = port_of(name); /* the next address uses the same port */
    }
    return true;
}

static bool listen_tcp(struct server *s, bool tls)
{
    char word[ADDRESS_ROOM];
    const char *at = s->config.bind;

    while (*at != '\0') {
        size_t len = strcspn(at, " ");

        (void)snprintf(word, sizeof(word), "%.*s", (int)len, at);
        if (len > 0 && !listen_address(s, word, tls)) {
            return false;
        }
        at += len + (at[len] == ' ' ? 1 : 0);
    }
    return true;
}

static bool listen_tls(struct server *s)
{
    s->tls_port = s->config.tls_port == CONFIG_PORT_AUTO ? 0 : s->config.tls_port;
    return listen_tcp(s, true);
}

static bool listen_unix(struct server *s)
{
    char name[NAME_ROOM];
    int r = listeners_add_unix(net_listeners(s->net), s->config.unixsocket,
                               (unsigned)s->config.unixsocketperm,
                               (int)s->config.tcp_backlog, name, sizeof(name));

    return on_opened(s, r, s->config.unixsocket, name, false);
}

bool listen_all(struct server *s)
{
    bool has_unix = s->config.unixsocket[0] != '\0';
    bool has_tls = s->config.tls_port != 0;
    uint64_t tls_mask;
    int handed_over = notify_listen_fds(&tls_mask);

    /* A socket of systemd's may be the one for TLS; if none is, tls-port is opened
     * beside them. */
    if (has_tls && tls_mask == 0 && !listen_tls(s)) {
        return false;
    }
    if (handed_over > 0) {
        return listen_handed_over(s, handed_over, tls_mask);
    }
    if (has_unix && !listen_unix(s)) {
        return false;
    }
    if ((s->config.port != 0 || (!has_unix && !has_tls)) && !listen_tcp(s, false)) {
        return false;
    }
    if (!s->listening) {
        log_error("server", "no address of `bind` exists on this machine: correct it");
    }
    return s->listening;
}
