#include "daemon/embedded/state_dir.h"

#include "daemon/files.h"
#include "util/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BOOT_FILE_MAX = 256 };

static const char BOOT_ID_PATH[] = "/proc/sys/kernel/random/boot_id";

static char *path_in(const char *dir, const char *name)
{
    size_t room = strlen(dir) + 1 + strlen(name) + 1;
    char *path = xmalloc(room);

    (void)snprintf(path, room, "%s/%s", dir, name);
    return path;
}

/* Like mkdir -p: parents with the umask's mode, the last one private. */
static int make_directories(const char *path)
{
    char *copy = xstrdup(path);
    int err = 0;

    for (char *at = strchr(copy + 1, '/'); at != NULL && err == 0;
         at = strchr(at + 1, '/')) {
        *at = '\0';
        err = mkdir(copy, 0755) < 0 && errno != EEXIST ? errno : 0;
        *at = '/';
    }
    if (err == 0 && mkdir(copy, 0700) < 0 && errno != EEXIST) {
        err = errno;
    }
    free(copy);
    return err;
}

/* Reads the first line of a small file; empty if there is none. */
static char *read_line(const char *path)
{
    struct buf text = { 0 };
    char *line;

    if (file_read(path, BOOT_FILE_MAX, &text, NULL) != 0) {
        buf_clear(&text);
    }
    buf_add(&text, "", 1);
    line = xstrdup(buf_ptr(&text));
    line[strcspn(line, "\n")] = '\0';
    buf_reset(&text);
    return line;
}

static bool lock_directory(struct state_dir *dir, char *reterr, size_t room)
{
    char *path = path_in(dir->path, "latchd.lock");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;

    if (ok) {
        dir->lock_fd = fd;
        (void)!ftruncate(fd, 0);
        (void)dprintf(fd, "%d\n", (int)getpid());
    } else if (fd >= 0 && errno == EWOULDBLOCK) {
        char *pid = read_line(path);

        (void)snprintf(reterr, room, "%s is in use by another latchd%s%s", dir->path,
                       pid[0] == '\0' ? "" : ", process ", pid);
        free(pid);
    } else {
        (void)snprintf(reterr, room, "%s: %s", path, strerror(errno));
    }
    if (!ok && fd >= 0) {
        (void)close(fd);
    }
    free(path);
    return ok;
}

bool state_dir_open(struct state_dir *dir, const char *path, const char *boot_id_path,
                    char *reterr, size_t room)
{
    struct sockaddr_un addr;
    int err = make_directories(path);

    *dir = (struct state_dir){ .lock_fd = -1 };
    if (err == 0) {
        dir->path = realpath(path, NULL);
        err = dir->path == NULL ? errno : 0;
    }
    if (err != 0) {
        (void)snprintf(reterr, room, "state directory %s: %s", path, strerror(err));
        return false;
    }
    dir->socket = path_in(dir->path, "redis.sock");
    dir->boot_id = read_line(boot_id_path == NULL ? BOOT_ID_PATH : boot_id_path);
    if (strlen(dir->socket) >= sizeof(addr.sun_path)) {
        (void)snprintf(
            reterr, room,
            "state directory %s: the path is too long for a unix socket in it "
            "(%zu bytes, at most %zu)",
            dir->path, strlen(dir->socket), sizeof(addr.sun_path) - 1);
        state_dir_close(dir);
        return false;
    }
    if (!lock_directory(dir, reterr, room)) {
        state_dir_close(dir);
        return false;
    }
    return true;
}

void state_dir_close(struct state_dir *dir)
{
    if (dir->lock_fd >= 0) {
        (void)close(dir->lock_fd);
    }
    free(dir->path);
    free(dir->socket);
    free(dir->boot_id);
    *dir = (struct state_dir){ .lock_fd = -1 };
}

int state_dir_lock_redis(const struct state_dir *dir)
{
    char *path = path_in(dir->path, "redis.lock");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    free(path);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
        int err = errno;

        (void)close(fd);
        errno = err;
        return -1;
    }
    return fd;
}

static int write_mark(const struct state_dir *dir, const char *state)
{
    char *path = path_in(dir->path, "boot");
    struct buf text = { 0 };
    int err;

    buf_printf(&text, "%s %s\n", state, dir->boot_id);
    err = file_replace(path, buf_span(&text), 0600);
    buf_reset(&text);
    free(path);
    return err;
}

#define RUNNING "running "

/* The file has `clean`, `durable` (running, loses nothing) or `running`, then the boot
 * ID. */
bool state_dir_lost_power(const struct state_dir *dir)
{
    char *path = path_in(dir->path, "boot");
    char *line = read_line(path);
    bool running = strncmp(line, RUNNING, strlen(RUNNING)) == 0;
    const char *id = line + strlen(RUNNING);
    bool same_boot = running && id[0] != '\0' && strcmp(id, dir->boot_id) == 0;

    free(path);
    free(line);
    return running && !same_boot;
}

int state_dir_mark_running(const struct state_dir *dir, bool durable)
{
    return write_mark(dir, durable ? "durable" : "running");
}

int state_dir_mark_clean(const struct state_dir *dir)
{
    return write_mark(dir, "clean");
}
