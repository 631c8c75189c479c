#include "net/listener.h"

#include "io/socket.h"
#include "net/net_priv.h"
#include "util/alloc.h"
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct listener {
    struct net *net;
    struct list node; /* net->listeners */
    bool tls;
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } u;
};

static void on_closed(uv_handle_t *handle)
{
    free(container_of(handle, struct listener, u.handle));
}

static void on_connection(uv_stream_t *handle, int status)
{
    struct listener *l = container_of(handle, struct listener, u.stream);
    char text[128];

    if (status == 0) {
        net_accept(l->net, handle, l->tls);
        return;
    }
    (void)uv_strerror_r(status, text, sizeof(text));
    log_about(LOG_WARNING, "net", &(struct log_about){ 0 },
              "cannot accept connections: %s: raise the limit of open files, or have "
              "fewer clients",
              text);
}

static struct listener *listener_new(struct net *n, bool tls)
{
    struct listener *l = xcalloc(1, sizeof(*l));

    l->net = n;
    l->tls = tls;
    list_init(&l->node);
    return l;
}

/* The last step of every kind: listens, or closes the handle. */
static int start(struct listener *l, int r, int backlog, char *ret_name, size_t room)
{
    uv_os_fd_t fd = -1;

    if (r == 0) {
        r = uv_listen(&l->u.stream, backlog, on_connection);
    }
    if (r != 0) {
        uv_close(&l->u.handle, on_closed);
        return r;
    }
    list_append(&l->net->listeners, &l->node);
    (void)uv_fileno(&l->u.handle, &fd);
    socket_local_name(fd, ret_name, room);
    return 0;
}

void net_stop_listening(struct net *n)
{
    struct list *node;

    while ((node = list_first(&n->listeners)) != NULL) {
        list_del(node);
        uv_close(&container_of(node, struct listener, node)->u.handle, on_closed);
    }
}

int net_listen_tcp(struct net *n, const char *address, int port, int backlog, bool tls,
                   char *ret_name, size_t room)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
    struct addrinfo *info;
    struct listener *l;
    char service[16];
    int r;

    (void)snprintf(service, sizeof(service), "%d", port);
    if (getaddrinfo(address, service, &hints, &info) != 0) {
        return UV_EINVAL;
    }
    l = listener_new(n, tls);
    r = uv_tcp_init(n->io->loop, &l->u.tcp);
    if (r != 0) {
        free(l);
    } else {
        r = uv_tcp_bind(&l->u.tcp, info->ai_addr,
                        info->ai_family == AF_INET6 ? UV_TCP_IPV6ONLY : 0);
        r = start(l, r, backlog, ret_name, room);
    }
    freeaddrinfo(info);
    return r;
}

/* Makes way for a new socket file. Only a socket that nobody listens on is removed. */
static int remove_stale(const char *path)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    struct stat st;
    int fd;
    int r;

    if (lstat(path, &st) != 0) {
        return errno == ENOENT ? 0 : uv_translate_sys_error(errno);
    }
    if (!S_ISSOCK(st.st_mode)) {
        return UV_EEXIST;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return uv_translate_sys_error(errno);
    }
    (void)memcpy(name.sun_path, path, strlen(path) + 1);
    r = connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0 ? 0 : errno;
    (void)close(fd);
    if (r != ECONNREFUSED) {
        return UV_EADDRINUSE; /* alive, or busy, or not ours to judge */
    }
    return unlink(path) == 0 ? 0 : uv_translate_sys_error(errno);
}

int net_listen_unix(struct net *n, const char *path, unsigned mode, int backlog,
                    char *ret_name, size_t room)
{
    struct listener *l;
    mode_t old_mask;
    int r;

    /* libuv would cut it off and bind to something else. */
    if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
        return UV_ENAMETOOLONG;
    }
    r = remove_stale(path);
    if (r != 0) {
        return r;
    }
    l = listener_new(n, false);
    r = uv_pipe_init(n->io->loop, &l->u.pipe, 0);
    if (r != 0) {
        free(l);
        return r;
    }
    /* Never, not even for a moment, open to more than it should be. */
    old_mask = umask(~mode & 0777);
    r = uv_pipe_bind(&l->u.pipe, path);
    (void)umask(old_mask);
    if (r == 0 && chmod(path, mode) != 0) {
        r = uv_translate_sys_error(errno);
    }
    return start(l, r, backlog, ret_name, room);
}

int net_listen_fd(struct net *n, int fd, bool tls, char *ret_name, size_t room)
{
    struct sockaddr_storage name = { 0 };
    socklen_t name_len = sizeof(name);
    int listening = 0;
    socklen_t len = sizeof(listening);
    struct listener *l;
    bool is_unix;
    int r;

    if (getsockname(fd, (struct sockaddr *)&name, &name_len) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) != 0) {
        return uv_translate_sys_error(errno);
    }
    is_unix = name.ss_family == AF_UNIX;
    if (!listening ||
        (!is_unix && name.ss_family != AF_INET && name.ss_family != AF_INET6)) {
        return UV_EINVAL;
    }
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    l = listener_new(n, tls);
    r = is_unix ? uv_pipe_init(n->io->loop, &l->u.pipe, 0)
                : uv_tcp_init(n->io->loop, &l->u.tcp);
    if (r != 0) {
        free(l);
        return r;
    }
    r = is_unix ? uv_pipe_open(&l->u.pipe, fd) : uv_tcp_open(&l->u.tcp, fd);
    return start(l, r, SOMAXCONN, ret_name, room);
}
