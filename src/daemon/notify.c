#include "daemon/notify.h"

#include "util/text.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LISTEN_FDS_MAX = 64, MESSAGE_MAX = 1024 };

/* Reads a number from the environment; it counts only if the variable `pid_name` has
 * our process ID. */
static uint64_t env_number(const char *name, const char *pid_name, uint64_t max)
{
    const char *value = getenv(name);
    const char *pid_text = getenv(pid_name);
    uint64_t number = 0;
    uint64_t pid;

    if (value == NULL || !parse_u64(span_str(value), max, &number)) {
        return 0;
    }
    if (pid_text != NULL && (!parse_u64(span_str(pid_text), INT32_MAX, &pid) ||
                             pid != (uint64_t)getpid())) {
        return 0;
    }
    return number;
}

static void open_socket(struct notify *n, const char *path)
{
    size_t len = strlen(path);

    if ((path[0] != '/' && path[0] != '@') || len >= sizeof(n->addr.sun_path)) {
        return;
    }
    n->addr.sun_family = AF_UNIX;
    memcpy(n->addr.sun_path, path, len);
    if (path[0] == '@') {
        n->addr.sun_path[0] = '\0'; /* an abstract name, not NUL-terminated */
    } else {
        len++;
    }
    n->addr_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

void notify_init(struct notify *n)
{
    const char *path = getenv("NOTIFY_SOCKET");
    uint64_t usec = env_number("WATCHDOG_USEC", "WATCHDOG_PID", UINT64_MAX);

    *n = (struct notify){ .fd = -1 };
    if (path != NULL) {
        open_socket(n, path);
    }
    if (n->fd >= 0 && usec > 0) {
        n->watchdog_ms = usec / 2000 == 0 ? 1 : usec / 2000;
    }
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
}

void notify_fini(struct notify *n)
{
    if (n->fd >= 0) {
        (void)close(n->fd);
    }
    n->fd = -1;
}

void notify_send(const struct notify *n, const char *fmt, ...)
{
    char text[MESSAGE_MAX];
    va_list ap;
    int len;

    if (n->fd < 0) {
        return;
    }
    va_start(ap, fmt);
    len = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (len > 0 && (size_t)len < sizeof(text)) {
        /* A service manager that does not listen must not stop a lock service. */
        (void)sendto(n->fd, text, (size_t)len, MSG_NOSIGNAL,
                     (const struct sockaddr *)&n->addr, n->addr_len);
    }
}

void notify_write_env(const struct notify *n, struct buf *socket, struct buf *watchdog)
{
    size_t len = n->addr_len - offsetof(struct sockaddr_un, sun_path);

    if (n->fd < 0) {
        return;
    }
    buf_add_str(socket, "NOTIFY_SOCKET=");
    if (n->addr.sun_path[0] == '\0') {
        buf_add_str(socket, "@");
        buf_add(socket, n->addr.sun_path + 1, len - 1);
        buf_add(socket, "", 1);
    } else {
        buf_add(socket, n->addr.sun_path, len); /* with its NUL */
    }
    if (n->watchdog_ms != 0) {
        buf_printf(watchdog, "WATCHDOG_USEC=%" PRIu64, n->watchdog_ms * 2000);
        buf_add(watchdog, "", 1);
    }
}

void notify_reloading(const struct notify *n)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    notify_send(n, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
                (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
}

static uint64_t names_with(const char *names, const char *wanted)
{
    uint64_t found = 0;

    for (int i = 0; i < LISTEN_FDS_MAX; i++) {
        size_t len = strcspn(names, ":");

        if (len == strlen(wanted) && memcmp(names, wanted, len) == 0) {
            found |= 1ULL << i;
        }
        if (names[len] == '\0') {
            break;
        }
        names += len + 1;
    }
    return found;
}

int notify_listen_fds(uint64_t *ret_tls)
{
    const char *names = getenv("LISTEN_FDNAMES");
    int count = getenv("LISTEN_PID") == NULL
                    ? 0
                    : (int)env_number("LISTEN_FDS", "LISTEN_PID", LISTEN_FDS_MAX);

    for (int fd = NOTIFY_FIRST_FD; fd < NOTIFY_FIRST_FD + count; fd++) {
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    *ret_tls = count > 0 && names != NULL ? names_with(names, "tls") : 0;
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDNAMES");
    return count;
}
