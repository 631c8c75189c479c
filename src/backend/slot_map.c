#include "backend/slot_map.h"

#include "util/alloc.h"
#include "util/text.h"

#include <stdlib.h>

/* CRC16/XMODEM, four bits at a time. */
static const uint16_t CRC_OF_NIBBLE[16] = {
    0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
    0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef,
};

static uint16_t compute_crc16(struct span s)
{
    uint16_t crc = 0;

    for (size_t i = 0; i < s.len; i++) {
        unsigned byte = (unsigned char)s.ptr[i];

        crc = (uint16_t)(crc << 4 ^ CRC_OF_NIBBLE[(crc >> 12 ^ byte >> 4) & 15]);
        crc = (uint16_t)(crc << 4 ^ CRC_OF_NIBBLE[(crc >> 12 ^ byte) & 15]);
    }
    return crc;
}

uint32_t slot_of(struct span key)
{
    const char *open = key.len == 0 ? NULL : memchr(key.ptr, '{', key.len);
    const char *close = NULL;

    if (open != NULL) {
        open++;
        close = memchr(open, '}', (size_t)(key.ptr + key.len - open));
    }
    if (close != NULL && close != open) {
        key = span_of(open, (size_t)(close - open));
    }
    return compute_crc16(key) % SLOT_COUNT;
}

enum { NOBODY = SLOT_NODES_MAX };

/* Words of a line of CLUSTER NODES, in this order; the slots follow. */
enum field {
    FIELD_ID,
    FIELD_ADDRESS,
    FIELD_FLAGS,
    FIELD_MASTER,
    FIELD_PING,
    FIELD_PONG,
    FIELD_EPOCH,
    FIELD_LINK,
    FIELD_COUNT,
};

static bool copy_text(char *to, size_t room, struct span text)
{
    if (text.len >= room) {
        return false;
    }
    memcpy(to, text.ptr, text.len);
    to[text.len] = '\0';
    return true;
}

/* host:port[@bus port][,host name]; an IPv6 host has colons of its own. */
static bool parse_address(struct span text, const char *asked, struct slot_node *node)
{
    struct span address = span_next(&text, ',');
    const char *colon;
    struct span host;

    address = span_next(&address, '@');
    colon = address.len == 0 ? NULL : memrchr(address.ptr, ':', address.len);
    if (colon == NULL) {
        return false;
    }
    host = span_of(address.ptr, (size_t)(colon - address.ptr));
    if (host.len == 0) {
        host = span_str(asked);
    }
    return host.len <= SLOT_HOST_MAX &&
           copy_text(node->host, sizeof(node->host), host) &&
           copy_text(node->port, sizeof(node->port),
                     span_after(address, (size_t)(colon - address.ptr) + 1));
}

static void parse_flags(struct span flags, struct slot_node *node)
{
    while (flags.len != 0) {
        struct span flag = span_next(&flags, ',');

        if (span_eq(flag, SPAN("master"))) {
            node->is_master = true;
        } else if (span_starts(flag, SPAN("fail")) || span_eq(flag, SPAN("noaddr")) ||
                   span_eq(flag, SPAN("handshake"))) {
            node->is_failing = true;
        }
    }
}

/* Parses `slot` or `first-last`. Slots that are being moved stand in brackets, and do
 * not count. */
static bool parse_slots(struct slot_map *map, struct span text, uint16_t owner)
{
    struct span rest = text, first = span_next(&rest, '-');
    uint64_t from, to;

    if (text.ptr[0] == '[') {
        return true;
    }
    if (!parse_u64(first, SLOT_COUNT - 1, &from)) {
        return false;
    }
    to = from;
    if (rest.len != 0 && !parse_u64(rest, SLOT_COUNT - 1, &to)) {
        return false;
    }
    for (uint64_t slot = from; slot <= to; slot++) {
        map->owners[slot] = owner;
    }
    return true;
}

static bool parse_line(struct slot_map *map, struct span line, const char *host)
{
    struct slot_node *node = &map->nodes[map->node_count];
    struct span words[FIELD_COUNT] = { SPAN_NONE };

    for (int i = 0; i < FIELD_COUNT; i++) {
        words[i] = span_next(&line, ' ');
    }
    *node = (struct slot_node){ 0 };
    if (words[FIELD_ID].len != SLOT_ID_LEN || words[FIELD_MASTER].len == 0 ||
        !copy_text(node->id, sizeof(node->id), words[FIELD_ID]) ||
        !parse_address(words[FIELD_ADDRESS], host, node) ||
        !parse_u64(words[FIELD_EPOCH], INT64_MAX, &node->epoch)) {
        return false;
    }
    parse_flags(words[FIELD_FLAGS], node);
    if (words[FIELD_MASTER].len == SLOT_ID_LEN) {
        (void)copy_text(node->master_id, sizeof(node->master_id), words[FIELD_MASTER]);
    }
    while (line.len != 0) {
        struct span slots = span_next(&line, ' ');

        if (slots.len != 0 &&
            (!node->is_master || !parse_slots(map, slots, (uint16_t)map->node_count))) {
            return false;
        }
    }
    map->node_count++;
    return true;
}

static size_t count_lines(struct span text)
{
    size_t count = 1;

    for (size_t i = 0; i < text.len; i++) {
        count += text.ptr[i] == '\n';
    }
    return count;
}

bool slot_map_parse(struct span text, const char *host, struct slot_map *ret)
{
    size_t lines = count_lines(text);
    struct slot_map map = { 0 };

    if (lines > SLOT_NODES_MAX) {
        return false;
    }
    map.nodes = xcalloc(lines, sizeof(map.nodes[0]));
    map.owners = xcalloc(SLOT_COUNT, sizeof(map.owners[0]));
    for (size_t i = 0; i < SLOT_COUNT; i++) {
        map.owners[i] = NOBODY;
    }
    while (text.len != 0) {
        struct span line = span_next(&text, '\n');

        if (line.len != 0 && line.ptr[line.len - 1] == '\r') {
            line.len--;
        }
        if (line.len != 0 && !parse_line(&map, line, host)) {
            slot_map_fini(&map);
            return false;
        }
    }
    *ret = map;
    return true;
}

void slot_map_fini(struct slot_map *map)
{
    free(map->nodes);
    free(map->owners);
    *map = (struct slot_map){ 0 };
}

const struct slot_node *slot_map_owner(const struct slot_map *map, uint32_t slot)
{
    if (map->owners == NULL || map->owners[slot] == NOBODY) {
        return NULL;
    }
    return &map->nodes[map->owners[slot]];
}

const struct slot_node *slot_map_find(const struct slot_map *map, const char *id)
{
    for (size_t i = 0; i < map->node_count; i++) {
        if (strcmp(map->nodes[i].id, id) == 0) {
            return &map->nodes[i];
        }
    }
    return NULL;
}

bool slot_map_is_older(const struct slot_map *now, const struct slot_map *was)
{
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        const struct slot_node *before = slot_map_owner(was, slot);
        const struct slot_node *after = slot_map_owner(now, slot);

        if (before != NULL && after != NULL && after->epoch < before->epoch) {
            return true;
        }
    }
    return false;
}

enum slot_fate slot_map_fate(const struct slot_map *was, const struct slot_map *now,
                             uint32_t slot)
{
    const struct slot_node *before = slot_map_owner(was, slot);
    const struct slot_node *after = slot_map_owner(now, slot);
    const struct slot_node *successor, *old;

    if (before == NULL || after == NULL || strcmp(before->id, after->id) == 0) {
        return SLOT_STAYS;
    }
    successor = slot_map_find(was, after->id);
    old = slot_map_find(now, before->id);
    if (successor != NULL && !successor->is_master) {
        return SLOT_FAILED_OVER;
    }
    return old != NULL && old->is_master && !old->is_failing ? SLOT_MOVED
                                                             : SLOT_FAILED_OVER;
}
