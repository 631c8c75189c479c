#include "net/conn_table.h"

#include "util/alloc.h"

#include <stdlib.h>

enum { FIRST_ROOM = 64 };

static struct conn_slot **head_of(const struct conn_table *t, uint64_t id)
{
    return &t->heads[id & (t->room - 1)];
}

static void grow(struct conn_table *t)
{
    struct conn_table bigger = { .room = t->room == 0 ? FIRST_ROOM : t->room * 2 };

    bigger.heads = xcalloc(bigger.room, sizeof(struct conn_slot *));
    for (size_t i = 0; i < t->room; i++) {
        struct conn_slot *next;

        for (struct conn_slot *slot = t->heads[i]; slot != NULL; slot = next) {
            next = slot->next;
            conn_table_add(&bigger, slot);
        }
    }
    free(t->heads);
    *t = bigger;
}

void conn_table_add(struct conn_table *t, struct conn_slot *slot)
{
    struct conn_slot **head;

    if (t->count == t->room) {
        grow(t);
    }
    head = head_of(t, slot->id);
    slot->next = *head;
    *head = slot;
    t->count++;
}

void conn_table_remove(struct conn_table *t, struct conn_slot *slot)
{
    struct conn_slot **at = head_of(t, slot->id);

    while (*at != slot) {
        at = &(*at)->next;
    }
    *at = slot->next;
    t->count--;
}

struct conn_slot *conn_table_find(const struct conn_table *t, uint64_t id)
{
    struct conn_slot *slot;

    if (t->room == 0) {
        return NULL;
    }
    slot = *head_of(t, id);
    while (slot != NULL && slot->id != id) {
        slot = slot->next;
    }
    return slot;
}

void conn_table_fini(struct conn_table *t)
{
    free(t->heads);
    *t = (struct conn_table){ 0 };
}
