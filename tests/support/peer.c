#include "support/peer.h"

#include <check.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int peer_connect(const char *socket_path)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", socket_path);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    return fd;
}

pid_t peer_pid(const char *socket_path)
{
    struct ucred cred;
    socklen_t len = sizeof(cred);
    int fd = peer_connect(socket_path);

    ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len), 0);
    (void)close(fd);
    return cred.pid;
}
