#include "cmd/pubsub.h"
#include "support/runner.h"

#include <stdio.h>

static struct pubsub *registry;
static struct subscriber ann, bob;
static char seen[256];

static char heard[256];

static void note_channel(void *ctx, enum pubsub_kind kind, struct span name,
                         bool is_heard)
{
    size_t len = strlen(heard);

    ck_assert_ptr_eq(ctx, heard);
    (void)snprintf(heard + len, sizeof(heard) - len, "%c%s%.*s ", is_heard ? '+' : '-',
                   kind == PUBSUB_PATTERN ? "p:" : "", (int)name.len, name.ptr);
}

static void setup(void)
{
    registry = pubsub_new(note_channel, heard);
    heard[0] = '\0';
    subscriber_init(&ann);
    subscriber_init(&bob);
    seen[0] = '\0';
}

static void teardown(void)
{
    pubsub_remove_all(registry, &ann);
    pubsub_remove_all(registry, &bob);
    ck_assert_uint_eq(pubsub_total(registry, PUBSUB_CHANNEL), 0);
    ck_assert_uint_eq(pubsub_total(registry, PUBSUB_PATTERN), 0);
    pubsub_free(registry);
}

static void note(void *ctx, struct subscriber *s, struct span pattern)
{
    size_t len = strlen(seen);

    (void)snprintf(seen + len, sizeof(seen) - len, "%s(%.*s) ",
                   s == &ann ? "ann" : "bob", (int)pattern.len,
                   pattern.ptr == NULL ? "" : pattern.ptr);
}

static void note_name(void *ctx, struct span name)
{
    size_t len = strlen(seen);

    (void)snprintf(seen + len, sizeof(seen) - len, "%.*s ", (int)name.len, name.ptr);
}

TEST_GROUP(.setup = setup, .teardown = teardown);

START_TEST(an_event_reaches_channels_then_patterns)
{
    ck_assert(pubsub_add(registry, &ann, PUBSUB_PATTERN, SPAN("lost:*")));
    ck_assert(pubsub_add(registry, &ann, PUBSUB_CHANNEL, SPAN("lost:a")));
    ck_assert(pubsub_add(registry, &bob, PUBSUB_CHANNEL, SPAN("lost:a")));
    ck_assert(pubsub_add(registry, &bob, PUBSUB_PATTERN, SPAN("granted:*")));
    pubsub_publish(registry, SPAN("lost:a"), note, NULL);
    ck_assert_str_eq(seen, "ann() bob() ann(lost:*) ");
    seen[0] = '\0';
    pubsub_publish(registry, SPAN("lost:ab"), note, NULL);
    ck_assert_str_eq(seen, "ann(lost:*) ");
}

/* A subscriber that subscribes twice is heard of once. */
START_TEST(the_first_and_the_last_subscriber_of_a_channel_are_told)
{
    ck_assert(pubsub_add(registry, &ann, PUBSUB_PATTERN, SPAN("leader:*")));
    ck_assert(pubsub_add(registry, &ann, PUBSUB_CHANNEL, SPAN("leader:a")));
    ck_assert(!pubsub_add(registry, &ann, PUBSUB_CHANNEL, SPAN("leader:a")));
    ck_assert(pubsub_add(registry, &bob, PUBSUB_CHANNEL, SPAN("leader:a")));
    ck_assert(pubsub_add(registry, &bob, PUBSUB_CHANNEL, SPAN("leader:b")));
    ck_assert(pubsub_remove(registry, &ann, PUBSUB_CHANNEL, SPAN("leader:a")));
    ck_assert_str_eq(heard, "+p:leader:* +leader:a +leader:b ");
    pubsub_remove_all(registry, &bob);
    ck_assert(strstr(heard, "-leader:a ") != NULL);
    ck_assert(strstr(heard, "-leader:b ") != NULL);
}

START_TEST(what_all_patterns_cost_is_limited)
{
    enum { MANY = PUBSUB_ALL_WORK_MAX / PUBSUB_WORK_MAX + 1 };
    struct subscriber all[MANY];
    char text[66] = { 0 };
    struct span pattern = span_of(text, sizeof text);
    int added = 0;

    memset(text, '?', sizeof text);
    text[0] = text[65] = '*';
    for (int i = 0; i < MANY; i++) {
        subscriber_init(&all[i]);
        text[2] = (char)('a' + i);
        for (text[3] = 'a'; pubsub_affords(registry, &all[i], &pattern, 1); text[3]++) {
            ck_assert(pubsub_add(registry, &all[i], PUBSUB_PATTERN, pattern));
            added++;
        }
        ck_assert_uint_le(all[i].work, PUBSUB_WORK_MAX);
    }
    ck_assert_int_eq(added, PUBSUB_ALL_WORK_MAX / 64);
    ck_assert_uint_eq(all[MANY - 1].work, 0);
    text[2] = text[3] = 'a'; /* what somebody has is matched anyway */
    ck_assert(pubsub_affords(registry, &all[MANY - 1], &pattern, 1));
    for (int i = 0; i < MANY; i++) {
        pubsub_remove_all(registry, &all[i]);
        ck_assert_uint_eq(all[i].work, 0);
    }
    ck_assert(pubsub_affords(registry, &ann, &pattern, 1));
}

START_TEST(subscribing_twice_counts_once)
{
    ck_assert(pubsub_add(registry, &ann, PUBSUB_CHANNEL, SPAN("x")));
    ck_assert(!pubsub_add(registry, &ann, PUBSUB_CHANNEL, SPAN("x")));
    ck_assert(pubsub_add(registry, &ann, PUBSUB_PATTERN, SPAN("x")));
    ck_assert(pubsub_add(registry, &bob, PUBSUB_CHANNEL, SPAN("x")));
    ck_assert_uint_eq(ann.channels, 1);
    ck_assert_uint_eq(ann.patterns, 1);
    ck_assert_uint_eq(pubsub_count(registry, SPAN("x")), 2);
    ck_assert_uint_eq(pubsub_count(registry, SPAN("y")), 0);
    ck_assert(pubsub_remove(registry, &ann, PUBSUB_CHANNEL, SPAN("x")));
    ck_assert(!pubsub_remove(registry, &ann, PUBSUB_CHANNEL, SPAN("x")));
    ck_assert_uint_eq(pubsub_count(registry, SPAN("x")), 1);
    ck_assert_uint_eq(ann.patterns, 1);
}

START_TEST(names_are_bytes)
{
    ck_assert(pubsub_add(registry, &ann, PUBSUB_CHANNEL, span_of("a\0b", 3)));
    ck_assert(pubsub_add(registry, &ann, PUBSUB_CHANNEL, span_of("a", 1)));
    ck_assert(pubsub_add(registry, &ann, PUBSUB_CHANNEL, span_of("", 0)));
    ck_assert_uint_eq(pubsub_total(registry, PUBSUB_CHANNEL), 3);
    pubsub_publish(registry, span_of("a\0b", 3), note, NULL);
    ck_assert_str_eq(seen, "ann() ");
}

START_TEST(leaving_one_by_one_names_each)
{
    ck_assert(pubsub_add(registry, &ann, PUBSUB_CHANNEL, SPAN("x")));
    ck_assert(pubsub_add(registry, &ann, PUBSUB_PATTERN, SPAN("p")));
    ck_assert(pubsub_add(registry, &ann, PUBSUB_CHANNEL, SPAN("y")));
    while (pubsub_remove_one(registry, &ann, PUBSUB_CHANNEL, note_name, NULL)) {
    }
    ck_assert_str_eq(seen, "x y ");
    ck_assert_uint_eq(ann.channels, 0);
    ck_assert_uint_eq(ann.patterns, 1);
}

START_TEST(many_subscribers_and_subscriptions_find_each_other)
{
    enum { MANY = 500 };
    struct subscriber subs[MANY];
    char name[16];

    for (int i = 0; i < MANY; i++) {
        subscriber_init(&subs[i]);
        (void)snprintf(name, sizeof(name), "c%d", i);
        ck_assert(pubsub_add(registry, &subs[i], PUBSUB_CHANNEL, SPAN("all")));
        ck_assert(pubsub_add(registry, &ann, PUBSUB_CHANNEL, span_str(name)));
    }
    ck_assert_uint_eq(pubsub_count(registry, SPAN("all")), MANY);
    ck_assert(!pubsub_add(registry, &subs[MANY - 1], PUBSUB_CHANNEL, SPAN("all")));
    ck_assert(!pubsub_add(registry, &ann, PUBSUB_CHANNEL, SPAN("c250")));
    for (int i = 0; i < MANY; i++) {
        pubsub_remove_all(registry, &subs[i]);
    }
    ck_assert_uint_eq(pubsub_count(registry, SPAN("all")), 0);
}
