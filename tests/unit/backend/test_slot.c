#include "backend/slot_map.h"

#include "support/runner.h"
#include "util/buf.h"

#include <stdio.h>

static const struct {
    const char *key;
    uint32_t slot;
} KNOWN[] = {
    { "", 0 },
    { "123456789", 0x31c3 },
    { "foo", 12182 },
    { "bar", 5061 },
    { "foo{bar}{zap}", 5061 },
    { "{user1000}.following", 3443 },
    { "user1000", 3443 },
    { "foo{}{bar}", 8363 },
    { "foo{{bar}}zap", 4015 },
    { "{bar", 4015 },
    { "job", 2906 },
};

START_TEST(slots_are_redis_clusters, TEST_ROWS(KNOWN))
{
    ck_assert_msg(slot_of(span_str(KNOWN[_i].key)) == KNOWN[_i].slot, "%s: %u",
                  KNOWN[_i].key, slot_of(span_str(KNOWN[_i].key)));
}

START_TEST(the_keys_beside_a_lock_are_in_its_slot)
{
    static const char *const NAMES[] = { "job", "{t}", "a{t}b", "\xff\x01 ", "a:b" };
    struct buf key = { 0 };

    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
        struct span name = span_str(NAMES[i]);
        bool tagged = memchr(name.ptr, '{', name.len) != NULL;

        buf_clear(&key);
        buf_add_str(&key, tagged ? "latchd:keeper:" : "latchd:keeper:{");
        buf_add_span(&key, name);
        buf_add_str(&key, tagged ? ":o{w}{ner" : "}:o{w}{ner");
        ck_assert_uint_eq(slot_of(buf_span(&key)), slot_of(name));
    }
    buf_reset(&key);
}
