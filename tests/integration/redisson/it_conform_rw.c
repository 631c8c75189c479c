/* Redisson's own checks of RReadWriteLock that no other test of ours makes.
 * tests/REDISSON.md says which is which. Times are theirs, shortened. */
#include "support/redisson.h"
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdlib.h>

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(a_writer_gets_in_when_the_longer_reader_unlocks)
{
    struct client *a, *b, *w;

    stand_up(NO_RECHECK, NULL);
    a = open_client();
    b = open_client();
    w = open_client();
    (void)ask_int(a, "LOCK doc READ LEASE 60000");
    (void)ask_int(b, "LOCK doc READ LEASE 300"); /* ends by itself */
    send_lock(w, "doc", "WRITE", 1);
    STAYS(900, !client_has_reply(w));
    ck_assert_int_eq(ask_int(a, "UNLOCK doc"), 0);
    (void)client_read_int(w);
    ask_error(b, "NOTHELD", "UNLOCK doc READ OWNER b");
    client_close(a);
    client_close(b);
    client_close(w);
    stand_down();
}

START_TEST(a_writers_second_entry_never_shortens_its_lease)
{
    struct client *a, *b;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    (void)ask_int(a, "LOCK doc WRITE OWNER o LEASE 60000");
    (void)ask_int(a, "LOCK doc WRITE OWNER o LEASE 200");
    ask_nil(b, "LOCK doc READ WAIT 600");
    /* The short entry has ended by itself, and alone. */
    ck_assert_int_eq(ask_int(a, "UNLOCK doc OWNER o"), 0);
    (void)ask_int(b, "LOCK doc WRITE WAIT 0");
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(a_writers_lease_that_ends_lets_two_readers_in)
{
    struct client *w, *a, *b;
    uint64_t start;

    stand_up(NO_RECHECK, NULL);
    w = open_client();
    a = open_client();
    b = open_client();
    start = test_now_ms();
    (void)ask_int(w, "LOCK doc WRITE LEASE 700");
    send_lock(a, "doc", "READ", 1);
    send_lock(b, "doc", "READ", 2);
    (void)client_read_int(a);
    (void)client_read_int(b);
    expect_not_before(start, 600);
    client_close(w);
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(a_second_hold_that_was_given_back_prolongs_nothing)
{
    struct client *a, *w;
    uint64_t start;

    stand_up(NO_RECHECK, NULL);
    a = open_client();
    w = open_client();
    start = test_now_ms();
    (void)ask_int(a, "LOCK doc READ LEASE 1000");
    (void)ask_int(a, "LOCK doc READ OWNER b LEASE 60000");
    ck_assert_int_eq(ask_int(a, "UNLOCK doc OWNER b"), 0);
    (void)ask_int(w, "LOCK doc WRITE");
    expect_not_before(start, 900);
    client_close(a);
    client_close(w);
    stand_down();
}

START_TEST(a_late_unlock_of_what_expired_is_refused)
{
    struct client *a, *b;
    int64_t token;
    uint64_t start;

    stand_up(NO_RECHECK, NULL);
    a = open_client();
    b = open_client();
    start = test_now_ms();
    token = ask_int(a, "LOCK doc WRITE LEASE 300");
    (void)ask_int(b, "LOCK doc WRITE OWNER b");
    expect_not_before(start, 200);
    ask_error(a, "NOTHELD", "UNLOCK doc TOKEN %" PRId64, token);
    ck_assert_int_eq(ask_int(b, "UNLOCK doc OWNER b"), 0);
    token = ask_int(a, "LOCK doc READ OWNER a LEASE 300");
    (void)ask_int(b, "LOCK doc READ OWNER b WAIT 0");
    AWAIT(peek_int("EXISTS {doc}:a:rwlock_timeout:1") == 0);
    ask_error(a, "NOTHELD", "UNLOCK doc TOKEN %" PRId64, token);
    ck_assert_int_eq(ask_int(b, "UNLOCK doc OWNER b"), 0);
    await_no_locks(0);
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(what_a_writer_still_reads_is_renewed_after_it_wrote)
{
    struct client *a, *w;

    stand_up(SHORT_LEASES, NULL);
    a = open_client();
    w = open_client();
    (void)ask_int(a, "LOCK doc WRITE OWNER o");
    (void)ask_int(a, "LOCK doc READ OWNER o");
    ck_assert_int_eq(ask_int(a, "UNLOCK doc WRITE OWNER o"), 0);
    await_renewals("doc", 2);
    await_renewals("{doc}:o:rwlock_timeout:1", 2);
    ask_nil(w, "LOCK doc WRITE WAIT 0");
    ck_assert_int_eq(ask_int(a, "UNLOCK doc OWNER o"), 0);
    (void)ask_int(w, "LOCK doc WRITE WAIT 0");
    client_close(a);
    client_close(w);
    stand_down();
}

/* A daemon dies with a reader; another daemon's reader goes on being renewed. */
START_TEST(a_dead_daemons_reader_is_not_kept_by_others_renewals)
{
    struct test_daemon *second;
    struct client *dead, *live, *w;

    stand_up(SHORT_LEASES, NO_RECHECK, NULL);
    second = daemon_start(redis_path(stand.redis), SHORT_LEASES, NULL);
    dead = client_open(second);
    live = open_client();
    w = open_client();
    (void)ask_int(dead, "LOCK doc READ OWNER dead");
    (void)ask_int(live, "LOCK doc READ OWNER live");
    daemon_kill(second);
    send_lock(w, "doc", "WRITE", 1);
    AWAIT_FOR(SHORT_LEASE_MS, peek_int("EXISTS {doc}:dead:rwlock_timeout:1") == 0);
    expect_silence(w);
    ck_assert_int_eq(ask_int(live, "UNLOCK doc OWNER live"), 0);
    (void)client_read_int(w);
    client_close(dead);
    client_close(live);
    client_close(w);
    daemon_free(second);
    stand_down();
}

START_TEST(names_with_tags_and_colons_are_read_and_written)
{
    static const char *const NAMES[] = { "{a:b}:c", "a:b:c", "x{y}z", "a b" };
    static const char *words[] = { "LOCK", NULL, "READ", "GRACE", "0" };
    struct client *a, *b;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        const char *unlock[] = { "UNLOCK", NAMES[i] };
        const char *attempt[] = { "LOCK", NAMES[i], "WRITE", "WAIT", "0" };

        words[1] = NAMES[i];
        client_send_args(a, 5, words, NULL);
        (void)client_read_int(a);
        client_send_args(b, 5, attempt, NULL);
        expect_nil(b);
        client_send_args(a, 2, unlock, NULL);
        expect_int(a, 0);
        client_send_args(b, 5, attempt, NULL);
        (void)client_read_int(b);
        client_send_args(b, 2, unlock, NULL);
        expect_int(b, 0);
    }
    expect_no_locks();
    client_close(a);
    client_close(b);
    stand_down();
}
