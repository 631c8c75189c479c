/* UNLOCK TO: a lock goes to the waiter that its holder names. */
#include "support/runner.h"
#include "support/stand.h"

#include <stdio.h>

#define ID_OF "11111111-1111-1111-1111-00000000000%d"
#define NOBODY "99999999-9999-9999-9999-999999999999"

enum { FEW = 4, ROUNDS = 60 };

static struct client *holder, *waiters[FEW];

/* Number i waits, behind those before it; they are told from each other by their IDs.
 */
static void queue_up(int i, const char *words)
{
    char lock[96];

    waiters[i] = open_client();
    (void)snprintf(lock, sizeof(lock), "ID " ID_OF "%s", i, words);
    send_lock(waiters[i], "job", lock, i + 1);
}

/* `words`: of each LOCK, with a space before each. */
static void set_up(const char *words)
{
    holder = open_client();
    (void)ask_int(holder, "LOCK job%s", words);
    for (int i = 0; i < FEW; i++) {
        queue_up(i, words);
    }
}

static void clear_away(void)
{
    close_clients(waiters, FEW);
    client_close(holder);
}

static void is_granted_next(int i)
{
    ck_assert_int_gt(client_read_int(waiters[i]), 0);
    for (int k = 0; k < FEW; k++) {
        ck_assert(k == i || !client_has_reply(waiters[k]));
    }
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(the_waiter_that_is_named_is_next_and_the_others_keep_their_places, 2)
{
    const char *words = _i == 0 ? "" : " WRITE";

    stand_up(NULL);
    set_up(words);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job TO " ID_OF, 2), 0);
    is_granted_next(2);
    ck_assert_int_eq(ask_int(waiters[2], "UNLOCK job ID " ID_OF " TO " ID_OF, 2, 3), 0);
    is_granted_next(3);
    ck_assert_int_eq(ask_int(waiters[3], "UNLOCK job"), 0);
    is_granted_next(0);
    ck_assert_int_eq(ask_int(waiters[0], "UNLOCK job"), 0);
    is_granted_next(1);
    clear_away();
    stand_down();
}

START_TEST(a_waiter_that_is_not_there_leaves_the_lock_held)
{
    struct client *far;
    struct test_daemon *second;

    stand_up(NULL);
    second = stand_second();
    set_up("");
    far = client_open(second);
    ask_error(holder, "ERR no such waiter", "UNLOCK job TO " NOBODY);
    await_waiting(stand.admin, "job", FEW);
    ask_error(far, "ERR no such waiter", "UNLOCK job TOKEN 1 TO " ID_OF, 1);
    for (int k = 0; k < FEW; k++) {
        ck_assert(!client_has_reply(waiters[k]));
    }
    ask_error(stand.admin, "NOTHELD", "UNLOCK job TOKEN 1 TO " ID_OF, 1);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    is_granted_next(0);
    client_close(far);
    clear_away();
    daemon_stop(second);
    stand_down();
}

START_TEST(an_unlock_by_id_that_is_sent_again_has_the_same_answer)
{
    stand_up(NULL);
    set_up("");
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    is_granted_next(0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(
            ask_int(stand.admin, "UNLOCK job ID " ID_OF " TO " ID_OF, 0, 3), 0);
    }
    is_granted_next(3);
    ck_assert_int_eq(ask_int(waiters[3], "UNLOCK job"), 0);
    ck_assert_int_eq(ask_int(stand.admin, "UNLOCK job ID " ID_OF " TO " ID_OF, 0, 3),
                     0);
    clear_away();
    stand_down();
}

START_TEST(an_unlock_by_token_that_is_sent_again_has_the_same_answer)
{
    int64_t token;

    stand_up(NULL);
    holder = open_client();
    token = ask_int(holder, "LOCK job");
    for (int i = 0; i < FEW; i++) {
        queue_up(i, "");
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ask_int(stand.admin, "UNLOCK job TOKEN %lld TO " ID_OF,
                                 (long long)token, 3),
                         0);
    }
    is_granted_next(3);
    clear_away();
    stand_down();
}

/* The hold was taken through another daemon; the token says that it may be given up. */
START_TEST(another_daemon_hands_over_to_its_own_waiter)
{
    struct test_daemon *second;
    struct client *far;
    int64_t token;

    stand_up(NULL);
    second = stand_second();
    far = client_open(second);
    token = ask_int(far, "LOCK job");
    holder = open_client();
    for (int i = 0; i < FEW; i++) {
        queue_up(i, "");
    }
    ck_assert_int_eq(
        ask_int(holder, "UNLOCK job TOKEN %lld TO " ID_OF, (long long)token, 1), 0);
    is_granted_next(1);
    client_close(far);
    clear_away();
    daemon_stop(second);
    stand_down();
}

/* After so many hand-overs others would have their chance. */
START_TEST(who_is_named_has_it_although_others_wait_elsewhere)
{
    struct test_daemon *second;
    struct client *far, *beside, *two[2];

    stand_up("--handoff-limit", "1", NULL);
    second = stand_second();
    far = client_open(second);
    two[0] = open_client();
    two[1] = open_client();
    (void)ask_int(two[0], "LOCK job ID " ID_OF, 0);
    client_send(far, "LOCK job");
    beside = client_open(second);
    await_waiting(beside, "job", 1);
    client_close(beside);
    for (int i = 0; i < ROUNDS; i++) {
        struct client *from = two[i % 2], *to = two[(i + 1) % 2];
        char words[80];

        (void)snprintf(words, sizeof(words), "ID 22222222-2222-2222-2222-%012d", i);
        send_lock(to, "job", words, 1);
        ck_assert_int_eq(
            ask_int(from, "UNLOCK job TO 22222222-2222-2222-2222-%012d", i), 0);
        ck_assert_int_gt(client_read_int(to), 0);
        ck_assert(!client_has_reply(far));
    }
    close_clients(two, 2);
    client_close(far);
    daemon_stop(second);
    stand_down();
}

START_TEST(a_hold_from_memory_is_handed_over_as_well)
{
    struct client *c;

    stand_up("--local-window", "50ms", NULL);
    c = open_client();
    for (int i = 0; i < ROUNDS; i++) { /* until the name is lent */
        (void)ask_int(c, "LOCK job LOCAL");
        (void)ask_int(c, "UNLOCK job");
    }
    (void)ask_int(c, "LOCK job LOCAL");
    holder = open_client();
    for (int i = 0; i < FEW; i++) {
        queue_up(i, "");
    }
    ck_assert_int_eq(ask_int(c, "UNLOCK job TO " ID_OF, 2), 0);
    is_granted_next(2);
    client_close(c);
    clear_away();
    stand_down();
}

static const struct {
    const char *held, *waits, *unlock;
} REFUSED[] = {
    { "LOCK job READ", "WRITE", "UNLOCK job" },
    { "LOCK job WRITE", "READ", "UNLOCK job" },
    { "LOCK job PERMITS 1 OF 1", "PERMITS 1", "UNLOCK job" },
    { "LOCK job FAIR", "FAIR", "UNLOCK job" },
};

START_TEST(readers_permits_and_fair_queues_have_no_named_successor, TEST_ROWS(REFUSED))
{
    struct client *other;
    char words[80];

    stand_up(NULL);
    holder = open_client();
    other = open_client();
    (void)ask_int(holder, "%s", REFUSED[_i].held);
    (void)snprintf(words, sizeof(words), "%s ID " ID_OF, REFUSED[_i].waits, 1);
    send_lock(other, "job", words, 1);
    ask_error(holder, "ERR TO hands over plain and write locks", "%s TO " ID_OF,
              REFUSED[_i].unlock, 1);
    ck_assert_int_eq(ask_int(holder, "%s", REFUSED[_i].unlock), 0);
    ck_assert_int_gt(client_read_int(other), 0);
    client_close(other);
    client_close(holder);
    stand_down();
}

/* It waits for one name at a time, in the order of their bytes. */
START_TEST(an_mlock_is_named_for_the_name_that_it_waits_for)
{
    struct client *other, *many;
    struct value tokens;

    stand_up(NULL);
    holder = open_client();
    other = open_client();
    many = open_client();
    (void)ask_int(holder, "LOCK a");
    (void)ask_int(other, "LOCK b");
    client_send(many, "MLOCK 2 b a ID " ID_OF, 1);
    await_waiting(stand.admin, "a", 1);
    ask_error(other, "ERR no such waiter", "UNLOCK b TO " ID_OF, 1);
    ck_assert_int_eq(ask_int(holder, "UNLOCK a TO " ID_OF, 1), 0);
    await_waiting(stand.admin, "b", 1);
    ck_assert_int_eq(ask_int(other, "UNLOCK b TO " ID_OF, 1), 0);
    tokens = client_read(many);
    ck_assert_uint_eq(tokens.count, 2);
    value_fini(&tokens);
    client_close(other);
    client_close(many);
    client_close(holder);
    stand_down();
}

/* The lock is not free before the last entry ends. */
START_TEST(an_owner_who_entered_twice_hands_over_with_the_last_entry)
{
    struct client *next;

    stand_up(NULL);
    holder = open_client();
    next = open_client();
    (void)ask_int(holder, "LOCK job OWNER ann");
    (void)ask_int(holder, "LOCK job OWNER ann");
    send_lock(next, "job", "ID " NOBODY, 1);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job OWNER ann TO " NOBODY), 1);
    ck_assert(!client_has_reply(next));
    ck_assert_int_eq(ask_int(holder, "UNLOCK job OWNER ann TO " NOBODY), 0);
    ck_assert_int_gt(client_read_int(next), 0);
    client_close(next);
    client_close(holder);
    stand_down();
}
