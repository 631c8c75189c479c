#include "daemon/hot.h"

#include "util/alloc.h"
#include "util/hash.h"

#include <stdlib.h>

enum { SMOOTH = 4 /* a second counts for a quarter */ };

struct hot {
    struct hot_name names[HOT_SETS][HOT_WAYS];
};

struct hot *hot_new(void)
{
    return xcalloc(1, sizeof(struct hot));
}

void hot_free(struct hot *h)
{
    free(h);
}

/* What it is worth to be kept. */
static uint64_t weight(const struct hot_name *n)
{
    return n->len == 0 ? 0 : 1 + n->rate_milli + (uint64_t)n->count * 1000;
}

void hot_count(struct hot *h, struct span name)
{
    uint64_t hash = hash_bytes(name.ptr, name.len);
    struct hot_name *set = h->names[hash % HOT_SETS];
    struct hot_name *least = &set[0];

    if (name.len == 0 || name.len > HOT_NAME_MAX) {
        return;
    }
    for (size_t i = 0; i < HOT_WAYS; i++) {
        struct hot_name *n = &set[i];

        if (n->hash == hash && span_eq(span_of(n->name, n->len), name)) {
            n->count++;
            return;
        }
        if (weight(n) < weight(least)) {
            least = n;
        }
    }
    least->hash = hash;
    least->len = (uint16_t)name.len;
    memcpy(least->name, name.ptr, name.len);
    least->rate_milli = 0;
    least->count++;
}

void hot_second(struct hot *h)
{
    for (size_t i = 0; i < HOT_SETS; i++) {
        for (size_t j = 0; j < HOT_WAYS; j++) {
            struct hot_name *n = &h->names[i][j];
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

size_t hot_list(const struct hot *h, const struct hot_name **ret, size_t max)
{
    size_t count = 0;

    for (size_t i = 0; i < (size_t)HOT_SETS * HOT_WAYS; i++) {
        const struct hot_name *n = &h->names[i / HOT_WAYS][i % HOT_WAYS];
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
