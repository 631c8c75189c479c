/* The clocks and the disk of a program's machine, for tests: to be preloaded.
 *
 * LATCHD_CLOCK names a file of two int64_t, mapped for as long as the program runs: by
 * how many us its wall clock is ahead, and for how many us the machine was suspended.
 * CLOCK_BOOTTIME runs on during suspend, as the wall clock does; clocks that stand
 * still then, like CLOCK_MONOTONIC, are left alone. (libfaketime does it for many
 * programs, but hangs in one with jemalloc.)
 *
 * LATCHD_DISK names a file which each fsync() and fdatasync() adds a struct synced to:
 * what is on the disk for certain from then on. servers.py cuts the rest off, as a
 * power cut does; so nothing has to go to a real disk. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

enum { US_PER_S = 1000000, NS_PER_US = 1000, NS_PER_S = US_PER_S * NS_PER_US };

struct clocks {
    int64_t ahead_us, slept_us;
};

struct synced {
    uint64_t inode, size;
};

static const volatile struct clocks *clocks;
static int disk = -1;

__attribute__((constructor)) static void find_machine(void)
{
    const char *path = getenv("LATCHD_CLOCK"), *journal = getenv("LATCHD_DISK");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*clocks), PROT_READ, MAP_SHARED, fd, 0);

    if (map != MAP_FAILED) {
        clocks = map;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (journal != NULL) {
        disk = open(journal, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    }
}

static int64_t wall_us(void)
{
    struct timespec at;

    (void)syscall(SYS_clock_gettime, CLOCK_REALTIME, &at);
    return (int64_t)at.tv_sec * US_PER_S + at.tv_nsec / NS_PER_US +
           (clocks != NULL ? clocks->ahead_us + clocks->slept_us : 0);
}

SHOWN int clock_gettime(clockid_t id, struct timespec *at)
{
    int code = (int)syscall(SYS_clock_gettime, id, at);
    int64_t more = 0;

    if (code == 0 && clocks != NULL) {
        more = id == CLOCK_REALTIME   ? clocks->ahead_us + clocks->slept_us
               : id == CLOCK_BOOTTIME ? clocks->slept_us
                                      : 0;
        more = more * NS_PER_US + at->tv_nsec;
        at->tv_sec += more / NS_PER_S;
        at->tv_nsec = more % NS_PER_S;
        if (at->tv_nsec < 0) {
            at->tv_sec--;
            at->tv_nsec += NS_PER_S;
        }
    }
    return code;
}

SHOWN int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    int64_t us = wall_us();

    (void)zone;
    tv->tv_sec = us / US_PER_S;
    tv->tv_usec = us % US_PER_S;
    return 0;
}

SHOWN time_t time(time_t *at)
{
    time_t s = wall_us() / US_PER_S;

    if (at != NULL) {
        *at = s;
    }
    return s;
}

/* The size before it counts: what is written meanwhile may be missing. */
static int sync_file(int fd, long number)
{
    struct stat file;

    if (disk < 0) {
        return (int)syscall(number, fd);
    }
    if (fstat(fd, &file) < 0) {
        return -1;
    }
    struct synced synced = { file.st_ino, (uint64_t)file.st_size };

    return write(disk, &synced, sizeof(synced)) == sizeof(synced) ? 0 : -1;
}

SHOWN int fsync(int fd)
{
    return sync_file(fd, SYS_fsync);
}

SHOWN int fdatasync(int fd)
{
    return sync_file(fd, SYS_fdatasync);
}
