#include "util/heap.h"

#include "util/alloc.h"

#include <stdlib.h>

enum { ROOM_MIN = 64 };

void heap_init(struct heap *h)
{
    *h = (struct heap){ 0 };
}

void heap_fini(struct heap *h)
{
    free(h->nodes);
    *h = (struct heap){ 0 };
}

static void place_node(struct heap *h, size_t slot, struct heap_node *node)
{
    h->nodes[slot] = node;
    node->slot = (uint32_t)slot;
}

static void sift_up(struct heap *h, size_t slot, struct heap_node *node)
{
    while (slot > 1 && h->nodes[slot / 2]->at > node->at) {
        place_node(h, slot, h->nodes[slot / 2]);
        slot /= 2;
    }
    place_node(h, slot, node);
}

static void sift_down(struct heap *h, size_t slot, struct heap_node *node)
{
    for (;;) {
        size_t child = slot * 2;

        if (child > h->count) {
            break;
        }
        if (child < h->count && h->nodes[child + 1]->at < h->nodes[child]->at) {
            child++;
        }
        if (h->nodes[child]->at >= node->at) {
            break;
        }
        place_node(h, slot, h->nodes[child]);
        slot = child;
    }
    place_node(h, slot, node);
}

/* Puts a node into an empty slot, then moves it up or down as its key demands. */
static void settle_node(struct heap *h, size_t slot, struct heap_node *node)
{
    if (slot > 1 && h->nodes[slot / 2]->at > node->at) {
        sift_up(h, slot, node);
    } else {
        sift_down(h, slot, node);
    }
}

static void set_room(struct heap *h, size_t room)
{
    h->room = room;
    h->nodes = xrealloc(h->nodes, room * sizeof(*h->nodes));
}

void heap_set(struct heap *h, struct heap_node *node, uint64_t at)
{
    node->at = at;
    if (node->slot != 0) {
        settle_node(h, node->slot, node);
        return;
    }
    if (h->count + 1 >= h->room) {
        set_room(h, h->room == 0 ? ROOM_MIN : h->room * 2);
    }
    h->count++;
    sift_up(h, h->count, node);
}

void heap_remove(struct heap *h, struct heap_node *node)
{
    size_t slot = node->slot;
    struct heap_node *last;

    if (slot == 0) {
        return;
    }
    node->slot = 0;
    last = h->nodes[h->count--];
    if (last != node) {
        settle_node(h, slot, last);
    }
    if (h->room > ROOM_MIN && h->count < h->room / 4) {
        set_room(h, h->room / 2);
    }
}

struct heap_node *heap_min(const struct heap *h)
{
    return h->count == 0 ? NULL : h->nodes[1];
}
