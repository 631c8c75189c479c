#include "names.h"

#include <stdio.h>
#include <string.h>

enum { ZIPF_NAMES = 10000 };

uint32_t names_dice(void)
{
    static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

static unsigned zipf(void)
{
    static double up_to[ZIPF_NAMES];
    unsigned low = 0, high = ZIPF_NAMES - 1;
    double at;

    if (up_to[0] == 0) {
        double sum = 0;

        for (unsigned i = 0; i < ZIPF_NAMES; i++) {
            sum += 1.0 / (i + 1);
            up_to[i] = sum;
        }
    }
    at = up_to[ZIPF_NAMES - 1] * names_dice() / UINT32_MAX;
    while (low < high) {
        unsigned mid = (low + high) / 2;

        if (up_to[mid] < at) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

void names_choose(struct lane *lane, enum names names)
{
    if (names == NAMES_ZIPF) {
        (void)snprintf(lane->name, sizeof lane->name, "zipf:%u", zipf());
    } else if (lane->name[0] == '\0' && names == NAMES_OWN) {
        (void)snprintf(lane->name, sizeof lane->name, "own:%u", lane->number);
    } else if (lane->name[0] == '\0') {
        (void)snprintf(lane->name, sizeof lane->name, "%s",
                       names == NAMES_SEMAPHORE ? "pool" : "one");
    }
}
