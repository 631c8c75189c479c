#include "meter.h"

#include "load.h"
#include "support/stand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { SETTLED_MS = 20, SETTLED_US = 1000 };

/* Of all that ran on a processor, in ns; /proc/PID/stat counts ticks of 10 ms. */
static double processor_us(int pid)
{
    char path[64];
    unsigned long long ns;
    FILE *f;

    (void)snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
    f = fopen(path, "re");
    if (f == NULL || fscanf(f, "%llu", &ns) != 1) {
        bench_die("%s cannot be read", path);
    }
    (void)fclose(f);
    return (double)ns / 1000;
}

static double own_us(void)
{
    struct rusage u;

    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static int64_t commands(void)
{
    static const char FIELD[] = "total_commands_processed:";
    redisReply *r = redis_ask(stand.redis, "INFO stats");
    const char *at = strstr(r->str, FIELD);
    int64_t count = at == NULL ? 0 : strtoll(at + strlen(FIELD), NULL, 10);

    freeReplyObject(r);
    return count;
}

struct meter meter_read(void)
{
    return (struct meter){
        .client_us = own_us(),
        .daemon_us = processor_us(daemon_pid(stand.daemon)),
        .redis_us = processor_us(redis_pid(stand.redis)),
        .commands = commands(),
        .scripts = peek_script_calls(),
        .daemon_bytes = daemon_memory_kib(stand.daemon) * 1024,
    };
}

void meter_settle(void)
{
    int pid = daemon_pid(stand.daemon);
    double before;

    do {
        before = processor_us(pid);
        test_sleep_ms(SETTLED_MS);
    } while (processor_us(pid) - before > SETTLED_US);
}

struct meter meter_since(struct meter now, struct meter before)
{
    return (struct meter){
        .client_us = now.client_us - before.client_us,
        .daemon_us = now.daemon_us - before.daemon_us,
        .redis_us = now.redis_us - before.redis_us,
        .commands = now.commands - before.commands,
        .scripts = now.scripts - before.scripts,
        .daemon_bytes = now.daemon_bytes - before.daemon_bytes,
    };
}
