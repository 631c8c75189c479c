/* id_table: objects by number. Chains through the objects themselves: 8 bytes each,
 * where a general hash table wants 56. Only for ids that are counted up by us: they
 * need no hashing, and nobody can choose ones that collide.
 *
 * The caller owns the struct, which owns its array; the objects are others'. A zeroed
 * table is empty and valid. */
#ifndef LATCHD_UTIL_ID_TABLE_H
#define LATCHD_UTIL_ID_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct id_slot {
    uint64_t id;
    struct id_slot *next;
};

struct id_table {
    struct id_slot **heads;
    size_t room; /* a power of two, or 0 */
    size_t count;
};

void id_table_add(struct id_table *t, struct id_slot *slot);
void id_table_remove(struct id_table *t, struct id_slot *slot);
/* NULL: it is not there. */
struct id_slot *id_table_find(const struct id_table *t, uint64_t id);
/* Some object, or NULL; for emptying it. `*at` is 0 at first, and then where it goes
 * on: nothing may be added meanwhile. */
struct id_slot *id_table_any(const struct id_table *t, size_t *at);
void id_table_fini(struct id_table *t);

#endif
