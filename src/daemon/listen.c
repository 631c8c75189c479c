#include "daemon/state.h"

#include "net/listener.h"
#include "util/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum {
    NAME_ROOM = 160,
    ADDRESS_ROOM = 64, /* addresses have been checked: longer ones are none */
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

static bool opened(struct server *s, int r, const char *what, const char *name)
{
    char text[128];

    if (r < 0) {
        (void)uv_strerror_r(r, text, sizeof(text));
        log_error(
            "server",
            "cannot listen on %s: %s: stop who else uses it, or change bind, port or "
            "unixsocket",
            what, text);
        return false;
    }
    s->listening = true;
    log_notice("server", "listening on %s", name);
    return true;
}

static bool listen_handed_over(struct server *s, int count)
{
    char name[NAME_ROOM];
    char what[32];

    for (int fd = NOTIFY_FIRST_FD; fd < NOTIFY_FIRST_FD + count; fd++) {
        (void)snprintf(what, sizeof(what), "socket %d of systemd", fd);
        if (!opened(s, net_listen_fd(s->net, fd, false, name, sizeof(name)), what,
                    name)) {
            return false;
        }
    }
    return true;
}

/* ::1 stands in the default; machines without IPv6 are not to trip over it. */
static bool may_be_missing(const char *address, int r)
{
    return strcmp(address, "::1") == 0 &&
           (r == UV_EADDRNOTAVAIL || r == UV_EAFNOSUPPORT);
}

static bool listen_address(struct server *s, const char *address)
{
    char name[NAME_ROOM];
    char what[ADDRESS_ROOM + 32];
    int r = net_listen_tcp(s->net, address, (int)s->config.port,
                           (int)s->config.tcp_backlog, false, name, sizeof(name));

    if (r < 0 && may_be_missing(address, r)) {
        log_info("server", "not listening on ::1: this machine has no IPv6");
        return true;
    }
    (void)snprintf(what, sizeof(what), "%s port %" PRIu64, address, s->config.port);
    return opened(s, r, what, name);
}

static bool listen_tcp(struct server *s)
{
    char word[ADDRESS_ROOM];
    const char *at = s->config.bind;

    while (*at != '\0') {
        size_t len = strcspn(at, " ");

        (void)snprintf(word, sizeof(word), "%.*s", (int)len, at);
        if (len > 0 && !listen_address(s, word)) {
            return false;
        }
        at += len + (at[len] == ' ' ? 1 : 0);
    }
    return true;
}

static bool listen_unix(struct server *s)
{
    char name[NAME_ROOM];
    int r = net_listen_unix(s->net, s->config.unixsocket,
                            (unsigned)s->config.unixsocketperm,
                            (int)s->config.tcp_backlog, name, sizeof(name));

    return opened(s, r, s->config.unixsocket, name);
}

bool listen_all(struct server *s)
{
    bool has_unix = s->config.unixsocket[0] != '\0';
    int handed_over = notify_listen_fds();

    if (handed_over > 0) {
        return listen_handed_over(s, handed_over);
    }
    if (has_unix && !listen_unix(s)) {
        return false;
    }
    if ((s->config.port != 0 || !has_unix) && !listen_tcp(s)) {
        return false;
    }
    if (!s->listening) {
        log_error("server", "no address of `bind` exists on this machine: correct it");
    }
    return s->listening;
}
