/* conn_table: conns by id. Chains through the conns themselves: 8 bytes each, where a
 * general hash table wants 56. Ids are counted up by us, so they need no hashing. */
#ifndef LATCHD_NET_CONN_TABLE_H
#define LATCHD_NET_CONN_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct conn_slot {
    uint64_t id;
    struct conn_slot *next;
};

struct conn_table {
    struct conn_slot **heads;
    size_t room; /* a power of two, or 0 */
    size_t count;
};

void conn_table_add(struct conn_table *t, struct conn_slot *slot);
void conn_table_remove(struct conn_table *t, struct conn_slot *slot);
struct conn_slot *conn_table_find(const struct conn_table *t, uint64_t id);
void conn_table_fini(struct conn_table *t);

#endif
