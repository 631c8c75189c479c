#include "daemon/status/top_granted.h"

#include "util/alloc.h"
#include "util/hash.h"

#include <stdlib.h>

enum { SMOOTH = 4 /* a second counts for a quarter */ };

struct top_granted {
    struct top_granted_name names[TOP_GRANTED_SETS][TOP_GRANTED_WAYS];
};

struct top_granted *top_granted_new(void)
{
    return xcalloc(1, sizeof(struct top_granted));
}

void top_granted_free(struct top_granted *h)
{
    free(h);
}

/* Returns the weight of a name: the lightest one makes room for a new one. */
static uint64_t name_weight(const struct top_granted_name *n)
{
    return n->len == 0 ? 0 : 1 + n->rate_milli + (uint64_t)n->count * 1000;
}

void top_granted_count(struct top_granted *h, struct span name)
{
    uint64_t hash = hash_bytes(name.ptr, name.len);
    struct top_granted_name *set = h->names[hash % TOP_GRANTED_SETS];
    struct top_granted_name *least = &set[0];

    if (name.len == 0 || name.len > TOP_GRANTED_NAME_MAX) {
        return;
    }
    for (size_t i = 0; i < TOP_GRANTED_WAYS; i++) {
        struct top_granted_name *n = &set[i];

        if (n->hash == hash && span_eq(span_of(n->name, n->len), name)) {
            n->count++;
            return;
        }
        if (name_weight(n) < name_weight(least)) {
            least = n;
        }
    }
    least->hash = hash;
    least->len = (uint16_t)name.len;
    memcpy(least->name, name.ptr, name.len);
    least->rate_milli = 0;
    least->count++;
}

void top_granted_second(struct top_granted *h)
{
    for (size_t i = 0; i < TOP_GRANTED_SETS; i++) {
        for (size_t j = 0; j < TOP_GRANTED_WAYS; j++) {
            struct top_granted_name *n = &h->names[i][j];
            uint64_t now = (uint64_t)n->count * 1000;

            n->rate_milli =
                (uint32_t)((n->rate_milli * (uint64_t)(SMOOTH - 1) + now) / SMOOTH);
            n->count = 0;
            if (n->rate_milli < 10) {
                n->len = 0;
                n->hash = 0;
            }
        }
    }
}

size_t top_granted_list(const struct top_granted *h,
                        const struct top_granted_name **ret, size_t max)
{
    size_t count = 0;

    for (size_t i = 0; i < (size_t)TOP_GRANTED_SETS * TOP_GRANTED_WAYS; i++) {
        const struct top_granted_name *n =
            &h->names[i / TOP_GRANTED_WAYS][i % TOP_GRANTED_WAYS];
        size_t at = count;

        if (n->len == 0 || n->rate_milli == 0) {
            continue;
        }
        while (at > 0 && ret[at - 1]->rate_milli < n->rate_milli) {
            at--;
        }
        if (at == max) {
            continue;
        }
        count += count < max;
        memmove(&ret[at + 1], &ret[at], (count - at - 1) * sizeof(*ret));
        ret[at] = n;
    }
    return count;
}
