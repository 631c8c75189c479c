#include "util/id_table.h"

#include "util/alloc.h"

#include <stdlib.h>

enum { FIRST_ROOM = 64 };

static struct id_slot **head_of(const struct id_table *t, uint64_t id)
{
    return &t->heads[id & (t->room - 1)];
}

static void grow(struct id_table *t)
{
    struct id_table bigger = { .room = t->room == 0 ? FIRST_ROOM : t->room * 2 };

    bigger.heads = xcalloc(bigger.room, sizeof(struct id_slot *));
    for (size_t i = 0; i < t->room; i++) {
        struct id_slot *next;

        for (struct id_slot *slot = t->heads[i]; slot != NULL; slot = next) {
            next = slot->next;
            id_table_add(&bigger, slot);
        }
    }
    free(t->heads);
    *t = bigger;
}

void id_table_add(struct id_table *t, struct id_slot *slot)
{
    struct id_slot **head;

    if (t->count == t->room) {
        grow(t);
    }
    head = head_of(t, slot->id);
    slot->next = *head;
    *head = slot;
    t->count++;
}

void id_table_remove(struct id_table *t, struct id_slot *slot)
{
    struct id_slot **at = head_of(t, slot->id);

    while (*at != slot) {
        at = &(*at)->next;
    }
    *at = slot->next;
    t->count--;
}

struct id_slot *id_table_find(const struct id_table *t, uint64_t id)
{
    struct id_slot *slot;

    if (t->room == 0) {
        return NULL;
    }
    slot = *head_of(t, id);
    while (slot != NULL && slot->id != id) {
        slot = slot->next;
    }
    return slot;
}

struct id_slot *id_table_any(const struct id_table *t, size_t *at)
{
    while (*at < t->room && t->heads[*at] == NULL) {
        ++*at;
    }
    return *at < t->room ? t->heads[*at] : NULL;
}

void id_table_fini(struct id_table *t)
{
    free(t->heads);
    *t = (struct id_table){ 0 };
}
