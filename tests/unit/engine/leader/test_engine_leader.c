/* The leader, as far as a daemon can know, and when it looks. */
#include "unit/engine/engine_cases.h"

#include "engine/followed_names.h"
#include "engine/leader_watch.h"

#include <inttypes.h>
#include <stdio.h>

#define OTHER "00000000000000bb"
#define NOBODY                                                                         \
    ((struct op_result){                                                               \
        .status = OP_OK, .lock_kind = KIND_PLAIN, .ttl_ms = TTL_ABSENT })

static uint64_t calls = 1000;
static char text[128];

static void ask_leader(uint64_t conn, struct leader_req req)
{
    req.from = (struct call_ref){ conn, ++calls };
    req.name = SPAN("job");
    engine_leader(e.engine, &req);
    fixture_collect(&e);
}

static void follow_after(uint64_t conn, uint64_t token)
{
    ask_leader(conn, (struct leader_req){ .has_after = true, .after = token });
}

/* Answers the oldest look: `owner` holds, under that token. */
static void look_finds(const char *owner, uint64_t token)
{
    struct op_field field = { .owner = span_str(owner), .count = 1 };
    char who[64];

    (void)snprintf(who, sizeof who, "f" OTHER "%s", owner);
    fixture_gives(&e, OP_INSPECT,
                  (struct op_result){ .status = OP_OK,
                                      .lock_kind = KIND_PLAIN,
                                      .ttl_ms = 30000,
                                      .token = token,
                                      .inspect = { .who = span_str(who),
                                                   .data = SPAN("d"),
                                                   .fields = &field,
                                                   .field_count = 1 } });
}

static void hears_leader(uint64_t conn, uint64_t token)
{
    ck_assert_uint_eq(fixture_hears(&e, conn, REPLY_LEADER).token, token);
}

static void hears_error(uint64_t conn, enum lock_error error)
{
    ck_assert_int_eq(fixture_hears(&e, conn, REPLY_ERROR).error, error);
}

static void announced(const char *word, const char *name)
{
    (void)snprintf(text, sizeof text, "%s " OTHER " 1 %s", word, name);
    e.announced[0] = '\0';
    engine_announced(e.engine, span_str(text));
    fixture_collect(&e);
}

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(one_look_answers_all_who_came_before_it)
{
    ask_leader(1, (struct leader_req){ 0 });
    follow_after(2, 5);
    ask_leader(3, (struct leader_req){ 0 }); /* the look is on its way */
    look_finds("ann", 7);
    hears_leader(1, 7);
    fixture_hears_nothing(&e);
    look_finds("ann", 7);
    hears_leader(2, 7);
    hears_leader(3, 7);
    fixture_no_op(&e);
    fixture_pass(&e, 5000);
    fixture_is_empty(&e);
}

/* A known leader may be over: a newcomer is told what Redis says from then on. */
START_TEST(nobody_is_told_without_another_look)
{
    follow_after(1, 0);
    look_finds("ann", 7);
    hears_leader(1, 7);
    follow_after(2, 7);
    look_finds("ann", 7);
    follow_after(3, 5);
    fixture_hears_nothing(&e);
    look_finds("bob", 8);
    hears_leader(2, 8);
    hears_leader(3, 8);
    follow_after(4, 9);
    fixture_hears_nothing(&e);
    look_finds("ann", 7);
    fixture_hears_nothing(&e); /* 9 led after that one */
    fixture_pass(&e, LEADER_LOOK_MS);
    look_finds("cid", 10);
    hears_leader(4, 10);
}

START_TEST(a_watch_looks_each_second_and_when_the_lease_is_over)
{
    struct op_field field = { .owner = SPAN("ann"), .count = 1 };

    follow_after(1, 0);
    fixture_gives(&e, OP_INSPECT, NOBODY);
    fixture_pass(&e, LEADER_LOOK_MS - 1);
    fixture_no_op(&e);
    fixture_pass(&e, 1);
    fixture_gives(&e, OP_INSPECT, NOBODY);
    fixture_pass(&e, LEADER_LOOK_MS);
    fixture_gives(
        &e, OP_INSPECT,
        (struct op_result){ .status = OP_OK,
                            .ttl_ms = 40,
                            .inspect = { .fields = &field, .field_count = 1 } });
    fixture_hears_nothing(&e); /* Redisson's, without a token: as if nobody led */
    fixture_pass(&e, 41);
    fixture_gives(&e, OP_INSPECT, NOBODY);
    fixture_close(&e, 1);
}

START_TEST(messages_and_holds_of_this_daemon_make_it_look)
{
    follow_after(1, 0);
    fixture_gives(&e, OP_INSPECT, NOBODY);
    ck_assert_str_eq(e.subs, "+job");
    engine_on_subscribed(e.engine, SPAN("job"), CLASS_PLAIN);
    fixture_collect(&e);
    fixture_gives(&e, OP_INSPECT, NOBODY);
    engine_on_message(e.engine, SPAN("job"), CLASS_PLAIN, SPAN("0"));
    fixture_collect(&e);
    fixture_gives(&e, OP_INSPECT, NOBODY);
    fixture_no_op(&e);
    fixture_lock(&e, 2, "job", FOREVER);
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_OK, .token = 9, .count = 1 });
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
    look_finds("latchd:9", 9);
    hears_leader(1, 9);
}

START_TEST(redis_out_of_reach_is_no_vacancy)
{
    ask_leader(1,
               (struct leader_req){
                   .has_after = true, .after = 3, .wait_ms = 100, .has_wait = true });
    engine_on_store_down(e.engine);
    fixture_gives(&e, OP_INSPECT, UNKNOWN);
    fixture_no_op(&e);
    for (int i = 0; i < 60; i++) {
        fixture_hears_nothing(&e);
        fixture_pass(&e, 50);
    }
    hears_error(1, LOCK_BACKEND);
    follow_after(2, 3);
    ask_leader(3, (struct leader_req){ 0 });
    for (int i = 0; i < 60; i++) {
        fixture_pass(&e, 50);
    }
    hears_error(3, LOCK_BACKEND);
    engine_on_store_up(e.engine, true);
    fixture_collect(&e);
    look_finds("ann", 7);
    hears_leader(2, 7);
}

/* Another daemon may have the hold of a leader to put back. */
START_TEST(after_a_failover_nobody_leads_only_once_that_is_sure)
{
    engine_configure(e.engine, &(struct engine_config){ .watchdog_ms = 30000,
                                                        .redis_timeout_ms = 3000,
                                                        .recheck_ms = 5000,
                                                        .max_waiters = 100,
                                                        .quarantine_ms = 2500 });
    follow_after(1, 7);
    look_finds("ann", 7);
    engine_on_failover(e.engine, NULL, NULL);
    fixture_collect(&e);
    for (int i = 0; i < 3; i++) {
        fixture_gives(&e, OP_INSPECT, NOBODY);
        fixture_hears_nothing(&e);
        fixture_pass(&e, LEADER_LOOK_MS);
    }
    fixture_gives(&e, OP_INSPECT, NOBODY);
    hears_leader(1, 0);
}

START_TEST(what_redis_refuses_is_told_to_who_does_not_wait)
{
    static const struct op_result REFUSED = { .status = OP_ERROR,
                                              .text = SPAN("NOPERM no") };

    ask_leader(1, (struct leader_req){ 0 });
    follow_after(2, 0);
    fixture_gives(&e, OP_INSPECT, REFUSED);
    hears_error(1, LOCK_BACKEND);
    fixture_hears_nothing(&e);
    fixture_no_op(&e);
    fixture_pass(&e, 200);
    look_finds("ann", 7);
    hears_leader(2, 7);
}

START_TEST(a_stop_ends_the_waits)
{
    follow_after(1, 0);
    fixture_gives(&e, OP_INSPECT, NOBODY);
    engine_stop(e.engine);
    fixture_collect(&e);
    hears_error(1, LOCK_GOAWAY);
    ask_leader(2, (struct leader_req){ 0 });
    hears_error(2, LOCK_GOAWAY);
    ck_assert(engine_stopped(e.engine));
}

START_TEST(changes_are_told_to_who_listens_but_not_the_beginning)
{
    engine_follow(e.engine, SPAN("job"), true);
    fixture_collect(&e);
    look_finds("ann", 7);
    ck_assert_str_eq(e.leaders, "");
    announced("leader", "job");
    look_finds("bob", 8);
    announced("leader", "job");
    look_finds("bob", 8);
    announced("leader", "job");
    fixture_gives(&e, OP_INSPECT, NOBODY);
    ck_assert_str_eq(e.leaders, "job>8,bob,d job>0,, ");
    engine_follow(e.engine, SPAN("job"), false);
    fixture_pass(&e, 5000);
    fixture_is_empty(&e);
}

START_TEST(other_daemons_are_told_who_is_followed_here)
{
    e.announced[0] = '\0';
    follow_after(1, 0);
    ck_assert_str_eq(e.announced, "follow 00000000000000aa 2 job");
    for (int i = 0; i < FOLLOWED_AGAIN_MS / LEADER_LOOK_MS; i++) {
        e.announced[0] = '\0';
        fixture_gives(&e, OP_INSPECT, NOBODY);
        ck_assert_str_eq(e.announced, "");
        fixture_pass(&e, LEADER_LOOK_MS);
    }
    ck_assert_str_eq(e.announced, "follow 00000000000000aa 3 job");
}

START_TEST(what_is_followed_elsewhere_is_told_when_it_changes)
{
    announced("follow", "job");
    ck_assert_str_eq(e.announced, "");
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    ck_assert_str_eq(e.announced, "leader 00000000000000aa 2 job");
    e.announced[0] = '\0';
    (void)fixture_grant(&e, 1, "other", FOREVER, 101);
    for (fixture_pass(&e, 11000); e.op_count > 0;) {
        fixture_renews(&e, RENEW_OK);
    }
    ck_assert_str_eq(e.announced, "");
    fixture_unlock(&e, 1, "job", BARE);
    fixture_gives(&e, OP_RELEASE, FREED);
    (void)fixture_hears(&e, 1, REPLY_INT);
    ck_assert_str_eq(e.announced, "leader 00000000000000aa 3 job");
    e.announced[0] = '\0';
    for (int i = 0; i < 3; i++) {
        for (fixture_pass(&e, FOLLOWED_MS / 3); e.op_count > 0;) {
            fixture_renews(&e, RENEW_OK);
        }
    }
    (void)fixture_grant(&e, 1, "job", FOREVER, 102);
    ck_assert_str_eq(e.announced, "");
}

/* A text that is no announcement, or is from this daemon, does nothing. */
START_TEST(strange_announcements_are_ignored)
{
    static const char *const STRANGE[] = {
        "",
        "follow",
        "follow " OTHER,
        "follow " OTHER " 1",
        "follow " OTHER " 1 ",
        "leader " OTHER " 1 nowhere",
        "follow 00000000000000aa 1 job",
        "followed " OTHER " 1 job",
    };

    for (size_t i = 0; i < sizeof(STRANGE) / sizeof(STRANGE[0]); i++) {
        engine_announced(e.engine, span_str(STRANGE[i]));
        fixture_collect(&e);
    }
    e.announced[0] = '\0';
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    ck_assert_str_eq(e.announced, "");
}

START_TEST(so_many_names_are_followed_and_no_more)
{
    char name[32];

    for (int i = 0; i <= FOLLOWED_MAX; i++) {
        (void)snprintf(name, sizeof name, "%d", i);
        announced("follow", name);
    }
    (void)snprintf(name, sizeof name, "%d", FOLLOWED_MAX - 1);
    (void)fixture_grant(&e, 1, name, FOREVER, 100);
    ck_assert_str_ne(e.announced, "");
    e.announced[0] = '\0';
    (void)snprintf(name, sizeof name, "%d", FOLLOWED_MAX);
    (void)fixture_grant(&e, 1, name, FOREVER, 101);
    ck_assert_str_eq(e.announced, "");
    fixture_unlock(&e, 1, name, BARE);
    fixture_gives(&e, OP_RELEASE, FREED);
    (void)fixture_hears(&e, 1, REPLY_INT);
    for (int i = 0; i < 3; i++) {
        fixture_pass(&e, FOLLOWED_MS / 3);
        while (e.op_count > 0) {
            fixture_renews(&e, RENEW_OK);
        }
    }
    announced("follow", name); /* the others are outdated */
    (void)fixture_grant(&e, 1, name, FOREVER, 102);
    ck_assert_str_ne(e.announced, "");
}

/* The one master of a cluster that has the name does not answer. */
START_TEST(what_was_known_before_a_look_that_had_no_answer_is_not_told)
{
    ask_leader(1,
               (struct leader_req){
                   .has_after = true, .after = 7, .wait_ms = 5000, .has_wait = true });
    look_finds("ann", 7);
    fixture_pass(&e, LEADER_LOOK_MS);
    for (uint64_t ms = LEADER_LOOK_MS; ms < 5000; ms += 100) {
        while (e.op_count > 0) {
            fixture_gives(&e, OP_INSPECT, UNKNOWN);
        }
        fixture_hears_nothing(&e);
        fixture_pass(&e, 100);
    }
    hears_error(1, LOCK_BACKEND);
}

/* A failover has brought the hold of ann back, who has been followed by another one. */
START_TEST(who_was_followed_by_another_one_is_not_told_again)
{
    const uint64_t old = 1000000, new = 2000000;

    engine_follow(e.engine, SPAN("job"), true);
    ask_leader(
        1, (struct leader_req){
               .has_after = true, .after = new, .wait_ms = 5000, .has_wait = true });
    follow_after(2, old);
    look_finds("bob", new);
    look_finds("bob", new);
    hears_leader(2, new);
    announced("leader", "job");
    look_finds("ann", old);
    fixture_hears_nothing(&e);
    ask_leader(3, (struct leader_req){ 0 });
    look_finds("ann", old);
    hears_leader(3, old); /* so Redis says */
    for (uint64_t ms = 0; ms < 5000; ms += LEADER_LOOK_MS) {
        fixture_hears_nothing(&e);
        fixture_pass(&e, LEADER_LOOK_MS);
        look_finds("ann", old);
    }
    hears_error(1, LOCK_BACKEND);
    follow_after(4, new);
    fixture_gives(&e, OP_INSPECT, NOBODY);
    hears_leader(4, 0);
    ck_assert_str_eq(e.leaders, "job>0,, ");
    engine_follow(e.engine, SPAN("job"), false);
    fixture_collect(&e);
}

/* The fence key is ahead of a hold that a failover has brought back. */
START_TEST(a_hold_without_an_owner_has_the_token_of_its_field)
{
    struct op_field field = { .owner = SPAN("latchd:5"), .count = 1 };

    ask_leader(1, (struct leader_req){ 0 });
    fixture_gives(&e, OP_INSPECT,
                  (struct op_result){ .status = OP_OK,
                                      .ttl_ms = 30000,
                                      .token = 7,
                                      .inspect = { .who = SPAN("a" OTHER ":1"),
                                                   .data = SPAN("d"),
                                                   .fields = &field,
                                                   .field_count = 1 } });
    ck_assert_str_eq(fixture_hears(&e, 1, REPLY_LEADER).text, "5,latchd:5,");
}

START_TEST(whoever_asks_once_costs_one_look)
{
    e.announced[0] = '\0';
    ask_leader(1, (struct leader_req){ 0 });
    fixture_gives(&e, OP_INSPECT, NOBODY);
    hears_leader(1, 0);
    ck_assert_str_eq(e.announced, "");
    ck_assert_str_eq(e.subs, "");
    fixture_is_empty(&e);
}

START_TEST(a_daemon_that_comes_is_told_what_is_followed)
{
    follow_after(1, 0);
    fixture_gives(&e, OP_INSPECT, NOBODY);
    e.announced[0] = '\0';
    engine_announced(e.engine, SPAN("hello " OTHER " 7 0"));
    fixture_collect(&e);
    e.announced[0] = '\0';
    fixture_pass(&e, LEADER_LOOK_MS);
    ck_assert_str_eq(e.announced, "follow 00000000000000aa 4 job");
    fixture_gives(&e, OP_INSPECT, NOBODY);
    fixture_close(&e, 1);
}

/* Another daemon has released that hold of the owner, and granted a later one. */
START_TEST(a_later_hold_of_the_same_owner_is_not_taken_for_the_one_that_is_known)
{
    struct said info;

    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ .owner = SPAN("ann") }, 5);
    ask_leader(2, (struct leader_req){ 0 });
    look_finds("ann", 7);
    ck_assert_str_eq(fixture_hears(&e, 2, REPLY_LEADER).text, "7,ann,d");
    engine_lock_info(e.engine, (struct call_ref){ 2, ++calls }, SPAN("job"));
    fixture_collect(&e);
    look_finds("ann", 7);
    info = fixture_hears(&e, 2, REPLY_INFO);
    ck_assert_uint_eq(info.hold.token, 7);
    ck_assert_uint_eq(info.hold.conn, 0);
}
