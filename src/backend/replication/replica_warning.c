#include "backend/replication/replica_warning.h"

#include "util/clock.h"
#include "util/log.h"

#include <inttypes.h>

enum { TELL_EVERY_MS = 60000 };

void replica_warning_connected(const struct replica_warning *s, unsigned replicas,
                               unsigned wanted)
{
    if (replicas < wanted && !s->lasts) {
        log_warning("redis",
                    "%u replicas are connected, and min-replicas is %u: nothing is "
                    "granted until there are as many; see why they are not connected "
                    "to this master, or lower min-replicas",
                    replicas, wanted);
    }
}

static void log_shortage(int64_t replicas, unsigned wanted, uint64_t wait_ms,
                         const char *text)
{
    if (replicas < 0) {
        log_warning("redis",
                    "min-replicas is %u, but Redis does not say how many replicas have "
                    "a grant: %s; let latchd's user run WAIT, and SET latchd:*",
                    wanted, text);
        return;
    }
    log_warning("redis",
                "%" PRId64 " of min-replicas %u acknowledged within %" PRIu64
                " ms: nothing is granted, and holds run out; see that enough replicas "
                "are connected to this master and keep up, or lower min-replicas",
                replicas, wanted, wait_ms);
}

void replica_warning_waited(struct replica_warning *s, int64_t replicas,
                            unsigned wanted, uint64_t wait_ms, const char *text)
{
    uint64_t now_ms = clock_boot_ms();

    s->lasts = replicas < (int64_t)wanted;
    if (s->lasts && (s->told_ms == 0 || now_ms - s->told_ms >= TELL_EVERY_MS)) {
        s->told_ms = now_ms;
        s->told = true;
        log_shortage(replicas, wanted, wait_ms, text);
    } else if (!s->lasts && s->told) {
        s->told = false;
        log_notice("redis", "%" PRId64 " replicas acknowledge again", replicas);
    }
}
