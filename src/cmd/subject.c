#include "cmd/subject.h"

#include "cmd/lock/lock_args.h"
#include "util/hash.h"

static uint32_t number_of(struct span word)
{
    return word.len == 0 ? 0 : (uint32_t)hash_bytes(word.ptr, word.len) | 1U;
}

struct subject subject_of(const struct lock_args *args)
{
    return (struct subject){ .id = number_of(args->terms.id),
                             .owner = number_of(args->terms.owner) };
}

bool subject_overlaps(struct subject a, struct subject b)
{
    return (a.id != 0 && a.id == b.id) || (a.owner != 0 && a.owner == b.owner);
}
