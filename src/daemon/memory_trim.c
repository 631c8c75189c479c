#include "daemon/memory_trim.h"

#include "daemon/process.h"
#include "engine/engine.h"
#include "util/clock.h"
#include "util/log.h"

#include <inttypes.h>
#include <malloc.h>

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
    uint64_t resident;

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
    if (resident > t->resident_bytes + TRIM_GROWN_BYTES) {
        trim_memory(t, eng, resident);
    }
}
