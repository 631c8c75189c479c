#include "http/http_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 64 };

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

int http_listen(const char *address, unsigned port, char *name, size_t room)
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
    if (bind(fd, &at.any, len) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, &at.any, &len) < 0) {
        saved = errno;
        (void)close(fd);
        errno = saved;
        return -1;
    }
    (void)snprintf(name, room, at.any.sa_family == AF_INET6 ? "[%s]:%u" : "%s:%u",
                   address, ntohs(at.v4.sin_port));
    return fd;
}
