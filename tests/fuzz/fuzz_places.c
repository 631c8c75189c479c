/* Where Redis is: what a Cluster's node says of its slots, and what the user writes,
 * which is shown as the same place, but for the passwords.
 *
 * Input: `m` and two views of a Cluster with a NUL between, or `u` and the key `redis`.
 */
#include "fuzz.h"

#include "backend/backend_config.h"
#include "backend/slot_map.h"
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
    const struct slot_node *last = NULL;

    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        const struct slot_node *node = slot_map_owner(map, slot);

        if (node == last) {
            continue;
        }
        last = node;
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

/* Slots one after the other that have the same owners have the same fate. */
static void compare_maps(const struct slot_map *was, const struct slot_map *now)
{
    const struct slot_node *before = NULL, *after = NULL;

    (void)slot_map_is_older(now, was);
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        const struct slot_node *old = slot_map_owner(was, slot);
        const struct slot_node *new = slot_map_owner(now, slot);

        if (old != NULL && (old != before || new != after) &&
            slot_map_fate(was, now, slot) != SLOT_STAYS && new == NULL) {
            fail("a slot went to nobody");
        }
        before = old;
        after = new;
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
        compare_maps(&was, &now);
    }
    slot_map_fini(&was);
    slot_map_fini(&now);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* `hidden`: b has stars for a password. */
static void check_url(const struct backend_url *a, const struct backend_url *b,
                      bool hidden)
{
    const char *password = hidden && a->password != NULL ? "***" : a->password;

    /* A text like a password in a path is hidden, too. */
    bool paths = !hidden || a->unix_path == NULL || strchr(a->unix_path, '@') == NULL;

    if ((paths && !same_text(a->unix_path, b->unix_path)) ||
        !same_text(a->host, b->host) || !same_text(a->port, b->port) ||
        !same_text(a->user, b->user) || a->db != b->db ||
        a->wants_tls != b->wants_tls) {
        fail("another server");
    }
    if (!same_text(password, b->password)) {
        fail(hidden ? "a password is shown" : "another password");
    }
}

static void check_place(const struct backend_config *a, const struct backend_config *b,
                        bool hidden)
{
    if (a->topology != b->topology || a->url_count != b->url_count ||
        a->cluster.publish != b->cluster.publish ||
        !same_text(a->sentinel.master, b->sentinel.master)) {
        fail("another place");
    }
    for (size_t i = 0; i < a->url_count; i++) {
        check_url(&a->urls[i], &b->urls[i], hidden);
    }
    check_url(&a->sentinel.redis, &b->sentinel.redis, hidden);
}

static void check_shown(const struct backend_config *place, const char *text)
{
    struct buf shown = { 0 };
    struct backend_config again = { 0 };
    const char *err = NULL;

    backend_config_show(text, &shown);
    buf_add(&shown, "", 1);
    if (!backend_config_parse(buf_ptr(&shown), &again, &err)) {
        fail("what is shown is no place");
    }
    check_place(place, &again, true);
    backend_config_fini(&again);
    buf_reset(&shown);
}

static void places(struct span text)
{
    char *url = xmemdup0(text.ptr, text.len);
    struct backend_config place = { 0 }, copy;
    const char *err = NULL;
    struct buf shown = { 0 };

    if (backend_config_parse(url, &place, &err)) {
        backend_config_copy(&copy, &place);
        check_place(&place, &copy, false);
        backend_config_fini(&copy);
        check_shown(&place, url);
        backend_config_fini(&place);
    } else if (err == NULL) {
        fail("a mistake without a reason");
    }
    backend_config_show(url, &shown);
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
