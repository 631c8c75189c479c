#include "daemon/files.h"

#include "util/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_STEP = 4096 };

static int read_fd(int fd, size_t max, struct buf *out, mode_t *ret_mode)
{
    size_t before = buf_len(out);
    struct stat st;

    if (fstat(fd, &st) < 0) {
        return errno;
    }
    if (S_ISDIR(st.st_mode)) {
        return EISDIR;
    }
    if (ret_mode != NULL) {
        *ret_mode = st.st_mode & 07777;
    }
    for (;;) {
        ssize_t n = read(fd, buf_reserve(out, READ_STEP), READ_STEP);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? errno : 0;
        }
        buf_grew(out, (size_t)n);
        if (buf_len(out) - before > max) {
            return EFBIG;
        }
    }
}

int file_read(const char *path, size_t max, struct buf *out, mode_t *ret_mode)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int err = fd < 0 ? errno : read_fd(fd, max, out, ret_mode);

    if (fd >= 0) {
        (void)close(fd);
    }
    return err;
}

/* Syncs the directory of `path`, so that what was done in it survives a power cut. */
static int file_sync_dir_of(const char *path)
{
    char *copy = xstrdup(path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int err = fd < 0 || fsync(fd) < 0 ? errno : 0;

    if (fd >= 0) {
        (void)close(fd);
    }
    free(copy);
    return err;
}

static int write_fd(int fd, struct span text, mode_t mode)
{
    while (text.len > 0) {
        ssize_t n = write(fd, text.ptr, text.len);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return errno;
        }
        text = span_of(text.ptr + n, text.len - (size_t)n);
    }
    return fchmod(fd, mode) < 0 || fsync(fd) < 0 ? errno : 0;
}

int file_replace(const char *path, struct span text, mode_t mode)
{
    size_t room = strlen(path) + sizeof(".XXXXXX");
    char *temp = xmalloc(room);
    int err;
    int fd;

    (void)snprintf(temp, room, "%s.XXXXXX", path);
    fd = mkostemp(temp, O_CLOEXEC);
    if (fd < 0) {
        err = errno;
        free(temp);
        return err;
    }
    err = write_fd(fd, text, mode);
    (void)close(fd);
    if (err == 0 && rename(temp, path) < 0) {
        err = errno;
    }
    if (err != 0) {
        (void)unlink(temp);
    } else {
        err = file_sync_dir_of(path);
    }
    free(temp);
    return err;
}
