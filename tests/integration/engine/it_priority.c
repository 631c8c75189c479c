/* LOCK with QUEUE and PRIORITY: who waits, and in what order. */
#include "support/runner.h"
#include "support/stand.h"

#include <stdio.h>
#include <string.h>

#define ID_TEXT "11111111-1111-1111-1111-111111111111"
#define CLIENTS_MAX 16

static struct client *holder, *waiters[CLIENTS_MAX];
static size_t waiter_count;

/* A client waits, as so many do then. */
static struct client *queue_up(const char *words)
{
    struct client *c = open_client();

    waiters[waiter_count++] = c;
    send_lock(c, "job", words, (int64_t)waiter_count);
    return c;
}

static void set_up(const char *words)
{
    waiter_count = 0;
    holder = open_client();
    (void)ask_int(holder, "LOCK job%s", words);
}

static void clear_away(void)
{
    close_clients(waiters, waiter_count);
    client_close(holder);
    stand_down();
}

/* The waiters with these numbers have it, one after the other, as each gives it on. */
static void are_granted(const char *words, const size_t *numbers, size_t count)
{
    struct client *c = holder;

    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
        c = waiters[numbers[i]];
        ck_assert_msg(client_read_int(c) > 0, "%s", words);
    }
    ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
}

static int64_t number_in(const struct value *map, const char *field)
{
    return value_get(map, field)->integer;
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

/* Kinds of which one client has all at a time. */
static const char *const KINDS[] = { "", " WRITE", " LOCAL", " PERMITS 2 OF 2" };

START_TEST(who_has_a_higher_priority_is_first_and_equals_in_order_of_arrival,
           TEST_ROWS(KINDS))
{
    static const char *const PRIORITIES[] = { "", " PRIORITY 5", " PRIORITY 9",
                                              " PRIORITY 5", " PRIORITY 0" };
    char words[64];

    stand_up(NULL);
    set_up(KINDS[_i]);
    for (size_t i = 0; i < 5; i++) {
        (void)snprintf(words, sizeof(words), "%s%s", KINDS[_i], PRIORITIES[i]);
        (void)queue_up(words + strspn(words, " "));
    }
    are_granted(KINDS[_i], (const size_t[]){ 2, 1, 3, 0, 4 }, 5);
    clear_away();
}

START_TEST(WAITERS_tells_the_order_and_the_priorities)
{
    static const int64_t WANT[] = { 9, 1, 0 };
    struct value v;

    stand_up(NULL);
    set_up("");
    (void)queue_up("");
    (void)queue_up("PRIORITY 1");
    (void)queue_up("PRIORITY 9");
    v = ask(stand.admin, "WAITERS job");
    ck_assert_uint_eq(v.count, 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(number_in(&v.items[i], "priority"), WANT[i]);
    }
    value_fini(&v);
    clear_away();
}

START_TEST(a_reader_with_a_priority_passes_a_writer_who_waits)
{
    struct client *reader, *later;

    stand_up(NULL);
    set_up(" READ");
    (void)queue_up("WRITE");
    later = queue_up("READ");
    reader = open_client();
    ck_assert_int_gt(ask_int(reader, "LOCK job READ PRIORITY 1"), 0);
    ck_assert(!client_has_reply(waiters[0]));
    ck_assert(!client_has_reply(later));
    ck_assert_int_eq(ask_int(reader, "UNLOCK job"), 0);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    ck_assert_int_gt(client_read_int(waiters[0]), 0);
    client_close(reader);
    clear_away();
}

/* The holder is another daemon's client: the head hears of the UNLOCK from Redis. */
START_TEST(it_holds_for_what_another_daemon_releases)
{
    struct test_daemon *second;
    struct client *far;

    stand_up(NULL);
    second = stand_second();
    far = client_open(second);
    (void)ask_int(far, "LOCK job");
    waiter_count = 0;
    holder = NULL;
    (void)queue_up("");
    (void)queue_up("PRIORITY 9");
    ck_assert_int_eq(ask_int(far, "UNLOCK job"), 0);
    ck_assert_int_gt(client_read_int(waiters[1]), 0);
    ck_assert(!client_has_reply(waiters[0]));
    client_close(far);
    daemon_stop(second);
    clear_away();
}

START_TEST(behind_a_fair_queue_a_priority_counts_for_nothing)
{
    stand_up(NULL);
    set_up(" FAIR");
    (void)queue_up("FAIR");
    (void)queue_up("PRIORITY 9");
    are_granted("", (const size_t[]){ 0, 1 }, 2);
    ask_error(stand.admin, "ERR PRIORITY does not go with FAIR",
              "LOCK job FAIR PRIORITY 1");
    clear_away();
}

START_TEST(priority_aging_can_be_changed_and_0_means_arrival)
{
    struct value v;

    stand_up("--priority-aging", "5s", NULL);
    v = ask(stand.admin, "CONFIG GET priority-aging");
    ck_assert(value_is_text(value_get(&v, "priority-aging"), "5s"));
    value_fini(&v);
    ask_error(stand.admin, "ERR", "CONFIG SET priority-aging 25h");
    set_up("");
    (void)queue_up("");
    (void)queue_up("PRIORITY 1");
    ask_ok(stand.admin, "CONFIG SET priority-aging 0");
    (void)queue_up("PRIORITY 9");
    are_granted("", (const size_t[]){ 1, 0, 2 }, 3);
    clear_away();
}

START_TEST(an_ID_has_its_place_whoever_sends_it_again)
{
    struct client *again;

    stand_up(NULL);
    set_up("");
    (void)queue_up("ID " ID_TEXT " PRIORITY 3 QUEUE 1 KEEP 30000");
    (void)queue_up("PRIORITY 2");
    client_close(waiters[0]);
    ask_error(stand.admin, "ERR that ID waits with another PRIORITY",
              "LOCK job ID " ID_TEXT " PRIORITY 4");
    again = open_client();
    client_send(again, "LOCK job ID " ID_TEXT " PRIORITY 3 QUEUE 1");
    waiters[0] = again;
    await_waiting(stand.admin, "job", 2);
    are_granted("", (const size_t[]){ 0, 1 }, 2);
    clear_away();
}

START_TEST(an_MLOCK_has_its_priority)
{
    struct value v;

    stand_up(NULL);
    set_up("");
    (void)queue_up("");
    waiters[waiter_count++] = open_client();
    client_send(waiters[1], "MLOCK 2 job other PRIORITY 1");
    await_waiting(stand.admin, "job", 2);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    v = client_read(waiters[1]);
    ck_assert_uint_eq(v.count, 2);
    value_fini(&v);
    ck_assert(!client_has_reply(waiters[0]));
    clear_away();
}

/* --- QUEUE ------------------------------------------------------------------------ */

START_TEST(where_as_many_wait_a_LOCK_is_refused_at_once)
{
    struct client *c;
    struct value v;

    stand_up(NULL);
    c = open_client();
    set_up("");
    (void)queue_up("QUEUE 2");
    (void)queue_up("QUEUE 2");
    ask_error(c, "LIMIT as many wait already as QUEUE allows", "LOCK job QUEUE 2");
    ask_error(c, "LIMIT", "LOCK job QUEUE 2 PRIORITY 9 WAIT 60000");
    ask_error(c, "LIMIT", "LOCK job ID " ID_TEXT " QUEUE 1");
    v = ask(stand.admin, "INFO locks");
    ck_assert_ptr_nonnull(strstr(v.text, "\r\nqueue_refusals:3\r\n"));
    value_fini(&v);
    (void)queue_up("QUEUE 3");
    are_granted("", (const size_t[]){ 0, 1, 2 }, 3);
    client_close(c);
    clear_away();
}

START_TEST(QUEUE_0_takes_what_is_free_and_never_waits)
{
    struct client *c;

    stand_up(NULL);
    c = open_client();
    ck_assert_int_gt(ask_int(c, "LOCK job QUEUE 0"), 0);
    ask_error(stand.admin, "LIMIT", "LOCK job QUEUE 0");
    ask_nil(stand.admin, "LOCK job QUEUE 0 WAIT 0");
    ck_assert_int_gt(ask_int(c, "LOCK pool PERMITS 2 OF 3 QUEUE 0"), 0);
    ask_error(stand.admin, "LIMIT", "LOCK pool PERMITS 2 QUEUE 0");
    ck_assert_int_gt(ask_int(stand.admin, "LOCK pool PERMITS 1 QUEUE 0"), 0);
    ck_assert_int_gt(ask_int(c, "LOCK doc READ QUEUE 0"), 0);
    ck_assert_int_gt(ask_int(stand.admin, "LOCK doc READ QUEUE 0"), 0);
    ask_error(stand.admin, "LIMIT", "LOCK doc WRITE QUEUE 0");
    client_close(c);
    stand_down();
}

START_TEST(what_an_owner_or_an_ID_holds_already_is_not_refused)
{
    struct test_daemon *second;
    struct client *far;
    int64_t token;

    stand_up(NULL);
    second = stand_second();
    far = client_open(second);
    token = ask_int(far, "LOCK job ID " ID_TEXT);
    waiter_count = 0;
    holder = NULL;
    (void)queue_up("");
    ck_assert_int_eq(ask_int(stand.admin, "LOCK job ID " ID_TEXT " QUEUE 1"), token);
    token = ask_int(far, "LOCK own OWNER ann");
    ck_assert_int_eq(ask_int(stand.admin, "LOCK own OWNER ann QUEUE 0"), token);
    client_close(far);
    daemon_stop(second);
    clear_away();
}

START_TEST(both_go_into_a_transaction_and_a_pipeline)
{
    static const char LOCKS[] =
        "LOCK a QUEUE 0\r\nLOCK job QUEUE 0\r\nLOCK b QUEUE 0\r\n";
    struct client *c;
    struct value v;

    stand_up(NULL);
    c = open_client();
    set_up("");
    ask_ok(c, "MULTI");
    client_send(c, "LOCK a WAIT 0 QUEUE 0 PRIORITY 9");
    expect_status(c, "QUEUED");
    v = ask(c, "EXEC");
    ck_assert_int_eq(v.items[0].type, VALUE_INT);
    value_fini(&v);
    ck_assert_int_eq(ask_int(c, "UNLOCK a"), 0);
    client_send_raw(c, LOCKS, strlen(LOCKS));
    ck_assert_int_gt(client_read_int(c), 0);
    expect_error(c, "LIMIT");
    ck_assert_int_gt(client_read_int(c), 0);
    client_close(c);
    clear_away();
}
