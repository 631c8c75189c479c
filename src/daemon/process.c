#include "daemon/process.h"

#include "engine/engine.h"
#include "latchd-config.h"
#include "util/clock.h"
#include "util/log.h"

#include <dirent.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    COUNT_MAX = 1000, /* open files that are counted one by one at most */
    SPARE_FDS =
        128, /* listeners, links to Redis, HTTP, log, files, room to refuse in */
};

static uint64_t timeval_us(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

/* Since Linux 6.2, the size of the directory is the number of open files. */
static uint64_t count_fds(uint64_t about)
{
    struct stat st;
    uint64_t count = 0;
    DIR *dir;

    if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0) {
        return (uint64_t)st.st_size;
    }
    dir = about <= COUNT_MAX ? opendir("/proc/self/fd") : NULL;
    if (dir == NULL) {
        return 0;
    }
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count > 3 ? count - 3 : 0; /* `.`, `..`, and the directory itself */
}

static void look_at_memory(struct process *ret)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    unsigned long long total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (file != NULL) {
        if (fscanf(file, "%llu %llu", &total, &resident) == 2) {
            ret->virtual_bytes = total * page;
            ret->resident_bytes = resident * page;
        }
        (void)fclose(file);
    }
}

/* Only that of it, which costs less. */
static uint64_t process_resident_bytes(void)
{
    struct process process = { 0 };

    look_at_memory(&process);
    return process.resident_bytes;
}

void process_look(struct process *ret, uint64_t about)
{
    struct rusage usage;
    struct rlimit limit;

    *ret = (struct process){ 0 };
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        ret->cpu_us = timeval_us(usage.ru_utime) + timeval_us(usage.ru_stime);
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        ret->max_fds = limit.rlim_cur;
    }
    look_at_memory(ret);
    ret->open_fds = count_fds(about);
}

/* Sanitizers trace the process to find leaks, so it stays visible under them. */
void process_hide(void)
{
    if (!LATCHD_SANITIZED) {
        (void)prctl(PR_SET_DUMPABLE, 0);
    }
}

uint64_t process_raise_limit(uint64_t clients)
{
    struct rlimit limit;
    rlim_t need = (rlim_t)clients + SPARE_FDS;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
        return clients;
    }
    if (limit.rlim_cur < need && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = need < limit.rlim_max ? need : limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        (void)getrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur >= need) {
        return clients;
    }
    return limit.rlim_cur > SPARE_FDS + 1 ? limit.rlim_cur - SPARE_FDS : 1;
}

static void trim_memory(struct memory_trim *t, struct engine *eng, uint64_t before)
{
    uint64_t began = clock_boot_ms();

    engine_trim(eng);
    (void)malloc_trim(0);
    t->resident_bytes = process_resident_bytes();
    log_info("server", "gave %" PRIu64 " KiB of memory back in %" PRIu64 " ms",
             before > t->resident_bytes ? (before - t->resident_bytes) / 1024 : 0,
             clock_boot_ms() - began);
}

void memory_trim_second(struct memory_trim *t, struct engine *eng)
{
    size_t objects = engine_object_count(eng);
    uint64_t resident;

    t->objects = objects > t->objects ? objects : t->objects;
    t->quiet_s = t->turns <= TRIM_TURNS_MAX ? t->quiet_s + 1 : 0;
    t->turns = 0;
    if (t->resident_bytes == 0) {
        t->resident_bytes = process_resident_bytes();
    }
    if (t->quiet_s < TRIM_QUIET_S) {
        return;
    }
    t->quiet_s = 0;
    resident = process_resident_bytes();
    if (resident > t->resident_bytes + TRIM_GROWN_BYTES ||
        t->objects - objects > TRIM_FREED_OBJECTS) {
        t->objects = objects;
        trim_memory(t, eng, resident);
    }
}
