/* DEADLOCK: a wait that would close a cycle of named owners is refused, and told. */
#include "support/runner.h"
#include "support/stand.h"

#include <stdlib.h>
#include <string.h>

/* The error to that LOCK begins with DEADLOCK and has all these words, ended by NULL.
 */
static void expect_cycle(struct client *c, const char *const *words)
{
    struct value v = client_read(c);

    ck_assert_int_eq(v.type, VALUE_ERROR);
    ck_assert_msg(strncmp(v.text, "DEADLOCK ", 9) == 0, "%s", v.text);
    for (; *words != NULL; words++) {
        ck_assert_msg(strstr(v.text, *words) != NULL, "no %s in: %s", *words, v.text);
    }
    value_fini(&v);
}

#define CYCLE(c, ...) expect_cycle(c, (const char *const[]){ __VA_ARGS__, NULL })

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(two_owners_that_want_each_others_names_are_told_at_once)
{
    struct client *a, *b;
    uint64_t start;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    (void)ask_int(a, "LOCK one OWNER ann");
    (void)ask_int(b, "LOCK two OWNER bob");
    send_lock(a, "two", "OWNER ann", 1);
    start = test_now_ms();
    client_send(b, "LOCK one OWNER bob");
    CYCLE(b, "ann", "bob", "one", "two");
    expect_elapsed(start, 0, 0);
    expect_silence(a); /* only the wait that closed it is refused */
    ck_assert_int_eq(ask_int(stand.admin, "UNLOCK two OWNER bob"), 0);
    (void)client_read_int(a);
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(a_long_cycle_is_told_with_everybody_in_it)
{
    enum { MANY = 5 };
    struct client *c[MANY];
    char words[48], name[16];

    stand_up(NULL);
    for (int i = 0; i < MANY; i++) {
        c[i] = open_client();
        (void)ask_int(c[i], "LOCK n%d OWNER o%d", i, i);
    }
    for (int i = 0; i + 1 < MANY; i++) {
        (void)snprintf(words, sizeof words, "OWNER o%d", i);
        (void)snprintf(name, sizeof name, "n%d", i + 1);
        send_lock(c[i], name, words, 1);
    }
    client_send(c[MANY - 1], "LOCK n0 OWNER o%d", MANY - 1);
    CYCLE(c[MANY - 1], "o0", "o1", "o2", "o3", "o4", "n0", "n4");
    close_clients(c, MANY);
    stand_down();
}

START_TEST(waits_that_end_before_the_leases_are_no_cycle)
{
    struct client *a, *b;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    (void)ask_int(a, "LOCK one OWNER ann");
    (void)ask_int(b, "LOCK two OWNER bob");
    send_lock(a, "two", "OWNER ann", 1);
    ask_nil(b, "LOCK one OWNER bob WAIT 0");
    ask_nil(b, "LOCK one OWNER bob WAIT 200");
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(who_is_anonymous_or_waits_for_nobody_is_in_no_cycle)
{
    struct client *a, *b, *c;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    c = open_client();
    (void)ask_int(a, "LOCK one");
    (void)ask_int(b, "LOCK two OWNER bob");
    send_lock(a, "two", "", 1);
    send_lock(b, "one", "OWNER bob", 1);
    expect_silence(b); /* nobody can know who the other one is */
    send_lock(c, "two", "OWNER carol", 2);
    expect_silence(c);
    client_close(a);
    client_close(b);
    client_close(c);
    stand_down();
}

START_TEST(a_cycle_that_was_opened_is_no_cycle)
{
    struct client *a, *b;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    (void)ask_int(a, "LOCK one OWNER ann");
    (void)ask_int(b, "LOCK two OWNER bob");
    send_lock(a, "two", "OWNER ann", 1);
    client_close(a);
    await_waiting(stand.admin, "two", 0);
    send_lock(b, "one", "OWNER bob", 1);
    ck_assert_int_eq(ask_int(stand.admin, "UNLOCK one OWNER ann"), 0);
    (void)client_read_int(b);
    client_close(b);
    stand_down();
}

START_TEST(readers_and_writers_are_in_cycles_too)
{
    struct client *a, *b, *c;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    c = open_client();
    (void)ask_int(a, "LOCK doc READ OWNER ann");
    (void)ask_int(c, "LOCK doc READ OWNER carol");
    (void)ask_int(b, "LOCK two OWNER bob");
    send_lock(a, "two", "OWNER ann", 1);
    client_send(b, "LOCK doc WRITE OWNER bob");
    CYCLE(b, "ann", "bob", "doc", "two");
    (void)ask_int(b, "LOCK doc READ OWNER bob"); /* does not wait at all */
    client_close(a);
    client_close(b);
    client_close(c);
    stand_down();
}

START_TEST(a_fair_wait_is_refused_as_well)
{
    struct client *a, *b;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    (void)ask_int(a, "LOCK one FAIR OWNER ann");
    (void)ask_int(b, "LOCK two OWNER bob");
    client_send(a, "LOCK two FAIR OWNER ann");
    await_queue("two", 1);
    client_send(b, "LOCK one FAIR OWNER bob");
    CYCLE(b, "ann", "bob");
    await_queue("one", 0);
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(an_mlock_that_would_close_a_cycle_is_refused_and_has_nothing)
{
    struct client *a, *b;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    (void)ask_int(a, "LOCK one OWNER ann");
    (void)ask_int(b, "LOCK two OWNER bob");
    send_lock(a, "two", "OWNER ann", 1);
    client_send(b, "MLOCK 2 free one OWNER bob");
    CYCLE(b, "ann", "bob");
    (void)ask_int(stand.admin, "LOCK free WAIT 1000");
    client_close(a);
    client_close(b);
    stand_down();
}
