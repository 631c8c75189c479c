#include "net/listener.h"

#include "io/socket.h"
#include "util/alloc.h"
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct listener {
    struct listeners *set;
    struct list node; /* set->all */
    struct acceptor *acceptor;
    char *path; /* the socket file, removed with the listener; NULL: not ours */
    int fd;     /* the acceptor's */
    bool is_unix;
    bool tls;
};

static void take_connection(void *ctx, int fd)
{
    struct listener *l = ctx;
    char text[128];

    if (fd >= 0) {
        l->set->on_connection(l->set->ctx, fd, l->is_unix, l->tls);
        return;
    }
    (void)uv_strerror_r(fd, text, sizeof(text));
    log_about(LOG_WARNING, "net", &(struct log_about){ 0 },
              "cannot accept connections: %s: raise the limit of open files, or have "
              "fewer clients",
              text);
}

/* Starts to listen, the last step of every kind of listener. Takes `fd`, and on
 * success like->path. */
static int start_listener(struct listeners *set, int fd, const struct listener *like,
                          int backlog, char *ret_name, size_t room)
{
    struct listener *l = xcalloc(1, sizeof(*l));
    int r = listen(fd, backlog) == 0 ? 0 : uv_translate_sys_error(errno);

    *l = *like;
    l->set = set;
    l->fd = fd;
    list_init(&l->node);
    if (r == 0) {
        r = acceptor_open(set->io, fd, take_connection, l, &l->acceptor);
    }
    if (r != 0) {
        (void)close(fd);
        free(l);
        return r;
    }
    list_append(&set->all, &l->node);
    socket_local_name(fd, ret_name, room);
    return 0;
}

static void stop_listener(struct listener *l)
{
    list_del(&l->node);
    if (l->path != NULL) {
        (void)unlink(l->path);
    }
    acceptor_close(l->acceptor);
    free(l->path);
    free(l);
}

void listeners_close(struct listeners *set)
{
    struct listener *l;

    while (LIST_FIRST(l, &set->all, node)) {
        stop_listener(l);
    }
}

static int open_socket(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    return fd >= 0 ? fd : uv_translate_sys_error(errno);
}

static int bind_tcp(int fd, const struct addrinfo *info)
{
    int yes = 1;

    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
        (info->ai_family == AF_INET6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes)) != 0) ||
        bind(fd, info->ai_addr, info->ai_addrlen) != 0) {
        return uv_translate_sys_error(errno);
    }
    return 0;
}

void listeners_init(struct listeners *set, struct io *io, listener_fn *on_connection,
                    void *ctx)
{
    *set = (struct listeners){ .io = io, .on_connection = on_connection, .ctx = ctx };
    list_init(&set->all);
}

int listeners_add_tcp(struct listeners *set, const char *address, int port, int backlog,
                      bool tls, char *ret_name, size_t room)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
    struct addrinfo *info;
    char service[16];
    int fd;
    int r;

    (void)snprintf(service, sizeof(service), "%d", port);
    if (getaddrinfo(address, service, &hints, &info) != 0) {
        return UV_EINVAL;
    }
    fd = open_socket(info->ai_family);
    r = fd < 0 ? fd : bind_tcp(fd, info);
    freeaddrinfo(info);
    if (r == 0) {
        return start_listener(set, fd, &(struct listener){ .tls = tls }, backlog,
                              ret_name, room);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return r;
}

/* Removes a socket file that nobody listens on, to make way for a new one. */
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
    fd = open_socket(AF_UNIX);
    if (fd < 0) {
        return fd;
    }
    (void)memcpy(name.sun_path, path, strlen(path) + 1);
    r = connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0 ? 0 : errno;
    (void)close(fd);
    if (r != ECONNREFUSED) {
        return UV_EADDRINUSE; /* somebody listens, or we cannot tell */
    }
    return unlink(path) == 0 ? 0 : uv_translate_sys_error(errno);
}

static int bind_unix(int fd, const char *path, unsigned mode)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    mode_t old_mask;
    int r;

    (void)memcpy(name.sun_path, path, strlen(path) + 1);
    /* The umask keeps the file from being open to others even for a moment. */
    old_mask = umask(~mode & 0777);
    r = bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0 ? 0 : errno;
    (void)umask(old_mask);
    if (r == 0 && chmod(path, mode) != 0) {
        r = errno;
        (void)unlink(path);
    }
    return r == 0 ? 0 : uv_translate_sys_error(r);
}

int listeners_add_unix(struct listeners *set, const char *path, unsigned mode,
                       int backlog, char *ret_name, size_t room)
{
    struct listener like = { .is_unix = true };
    int fd;
    int r;

    if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
        return UV_ENAMETOOLONG;
    }
    r = remove_stale(path);
    if (r != 0) {
        return r;
    }
    fd = open_socket(AF_UNIX);
    if (fd < 0) {
        return fd;
    }
    r = bind_unix(fd, path, mode);
    if (r != 0) {
        (void)close(fd);
        return r;
    }
    like.path = xstrdup(path);
    r = start_listener(set, fd, &like, backlog, ret_name, room);
    if (r != 0) {
        (void)unlink(path);
        free(like.path);
    }
    return r;
}

int listeners_add_fd(struct listeners *set, int fd, int backlog, bool tls,
                     bool owns_file, char *ret_name, size_t room)
{
    struct listener like = { .tls = tls };
    struct sockaddr_storage name = { 0 };
    socklen_t name_len = sizeof(name);
    int listening = 0;
    socklen_t len = sizeof(listening);
    int r;

    if (getsockname(fd, (struct sockaddr *)&name, &name_len) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) != 0) {
        return uv_translate_sys_error(errno);
    }
    like.is_unix = name.ss_family == AF_UNIX;
    if (!listening ||
        (!like.is_unix && name.ss_family != AF_INET && name.ss_family != AF_INET6)) {
        return UV_EINVAL;
    }
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (owns_file && like.is_unix) {
        like.path = xstrdup(((struct sockaddr_un *)&name)->sun_path);
    }
    r = start_listener(set, fd, &like, backlog, ret_name, room);
    if (r != 0) {
        free(like.path);
    }
    return r;
}

void listeners_foreach(struct listeners *set, listener_socket_fn *fn, void *ctx)
{
    struct listener *l;

    LIST_EACH(l, &set->all, node) {
        fn(ctx, l->fd, l->tls, l->path != NULL);
    }
}

void listeners_leave_files(struct listeners *set)
{
    struct listener *l;

    LIST_EACH(l, &set->all, node) {
        free(l->path);
        l->path = NULL;
    }
}
