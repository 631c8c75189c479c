/* Where Redis is: what a Cluster's node says of its slots, and what the user writes.
 *
 * Input: `m` and two views of a Cluster with a NUL between, or `u` and the key `redis`.
 */
#include "fuzz.h"

#include "store/place.h"
#include "store/slot_map.h"
#include "util/alloc.h"
#include "util/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what)
{
    (void)fprintf(stderr, "%s\n", what);
    abort();
}

static void check_map(const struct slot_map *map)
{
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        const struct slot_node *node = slot_map_owner(map, slot);

        if (node != NULL &&
            (node < map->nodes || node >= map->nodes + map->node_count)) {
            fail("an owner that is no node");
        }
        if (node != NULL && slot_map_fate(map, map, slot) != SLOT_STAYS) {
            fail("a slot moves while nothing happens");
        }
    }
    for (size_t i = 0; i < map->node_count; i++) {
        if (slot_map_find(map, map->nodes[i].id) == NULL) {
            fail("a node that is not found");
        }
    }
    if (slot_map_is_older(map, map)) {
        fail("older than itself");
    }
}

static void views(struct span text)
{
    const char *end = memchr(text.ptr, '\0', text.len);
    size_t len = end == NULL ? text.len : (size_t)(end - text.ptr);
    struct slot_map was = { 0 }, now = { 0 };
    bool knew = slot_map_parse(span_of(text.ptr, len), "here", &was);

    if (knew) {
        check_map(&was);
    }
    if (knew && end != NULL &&
        slot_map_parse(span_of(end + 1, text.len - len - 1), "there", &now)) {
        check_map(&now);
        (void)slot_map_is_older(&now, &was);
        for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
            if (slot_map_owner(&was, slot) != NULL) {
                (void)slot_map_fate(&was, &now, slot);
            }
        }
    }
    slot_map_fini(&was);
    slot_map_fini(&now);
}

static void places(struct span text)
{
    char *url = xmemdup0(text.ptr, text.len);
    struct store_place place = { 0 };
    const char *err = NULL;
    struct buf shown = { 0 };

    if (store_place_parse(url, &place, &err)) {
        struct store_place copy;

        store_place_copy(&copy, &place);
        store_place_fini(&copy);
        store_place_fini(&place);
    } else if (err == NULL) {
        fail("a mistake without a reason");
    }
    store_place_show(url, &shown);
    buf_reset(&shown);
    free(url);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0) {
        struct span text = span_of((const char *)data + 1, size - 1);

        (data[0] == 'm' ? views : places)(text);
    }
    return 0;
}
