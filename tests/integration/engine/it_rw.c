/* READ and WRITE: who excludes whom, who wakes whom, upgrades and downgrades, and how a
 * hold is named. */
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdlib.h>

#define R1 "11111111-1111-1111-1111-111111111111"
#define R2 "22222222-2222-2222-2222-222222222222"

enum { FEW = 5, READERS = 20, PROMPT = 1000 };

static void unlock(struct client *c)
{
    ck_assert_int_eq(ask_int(c, "UNLOCK doc"), 0);
}

static void expect_field(const char *field, const char *want)
{
    char *value = peek_text("HGET doc %s", field);

    if (want == NULL) {
        ck_assert_ptr_null(value);
    } else {
        ck_assert_ptr_nonnull(value);
        ck_assert_str_eq(value, want);
    }
    free(value);
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(readers_share_and_writers_wait_for_the_last)
{
    struct test_daemon *second;
    struct client *c[FEW], *writer, *far;
    int64_t token[FEW];

    stand_up(NULL);
    second = stand_second();
    writer = open_client();
    far = client_open(second);
    for (int i = 0; i < FEW; i++) {
        c[i] = i % 2 == 0 ? open_client() : client_open(second);
        token[i] = ask_int(c[i], "LOCK doc READ");
        ck_assert_int_gt(token[i], i == 0 ? 0 : token[i - 1]);
    }
    ck_assert_int_eq(peek_int("HLEN doc"), FEW + 1);
    ask_nil(writer, "LOCK doc WRITE WAIT 0");
    ask_nil(far, "LOCK doc WRITE WAIT 50");
    send_lock(writer, "doc", "WRITE", 1);
    for (int i = 0; i < FEW; i++) {
        expect_silence(writer);
        unlock(c[i]);
    }
    ck_assert_int_gt(client_read_int(writer), token[FEW - 1]);
    ask_nil(c[0], "LOCK doc READ WAIT 0");
    ask_nil(far, "LOCK doc READ WAIT 0");
    unlock(writer);
    await_no_locks(0);
    client_close(writer);
    client_close(far);
    close_clients(c, FEW);
    daemon_stop(second);
    stand_down();
}

START_TEST(readers_who_wait_for_a_writer_come_in_together)
{
    struct client *writer, *c[READERS];
    uint64_t start;

    stand_up(NULL);
    writer = open_client();
    (void)ask_int(writer, "LOCK doc WRITE");
    for (int i = 0; i < READERS; i++) {
        c[i] = open_client();
        send_lock(c[i], "doc", "READ", i + 1);
    }
    start = test_now_ms();
    unlock(writer);
    for (int i = 0; i < READERS; i++) { /* none of them unlocks */
        (void)client_read_int(c[i]);
    }
    expect_elapsed(start, 0, PROMPT);
    ck_assert_int_eq(peek_int("HLEN doc"), READERS + 1);
    for (int i = 0; i < READERS; i++) {
        unlock(c[i]);
    }
    await_no_locks(0);
    client_close(writer);
    close_clients(c, READERS);
    stand_down();
}

START_TEST(a_writer_that_waits_is_not_passed_by_later_readers_W4)
{
    struct client *reader, *writer, *late;

    stand_up(NULL);
    reader = open_client();
    writer = open_client();
    late = open_client();
    (void)ask_int(reader, "LOCK doc READ");
    send_lock(writer, "doc", "WRITE", 1);
    ask_nil(late, "LOCK doc READ WAIT 0");
    send_lock(late, "doc", "READ", 2);
    expect_silence(late);
    unlock(reader);
    (void)client_read_int(writer);
    expect_silence(late);
    unlock(writer);
    (void)client_read_int(late);
    client_close(reader);
    client_close(writer);
    client_close(late);
    stand_down();
}

START_TEST(a_writer_that_gives_up_lets_the_readers_behind_it_in)
{
    struct client *reader, *writer, *late;
    uint64_t start;

    stand_up(NULL);
    reader = open_client();
    writer = open_client();
    late = open_client();
    (void)ask_int(reader, "LOCK doc READ");
    send_lock(writer, "doc", "WRITE", 1);
    send_lock(late, "doc", "READ", 2);
    start = test_now_ms();
    client_close(writer);
    (void)client_read_int(late);
    expect_elapsed(start, 0, PROMPT);
    client_close(reader);
    client_close(late);
    stand_down();
}

START_TEST(a_reader_who_wants_to_write_is_told_that_it_would_wait_for_itself)
{
    struct client *c;

    stand_up(NULL);
    c = open_client();
    (void)ask_int(c, "LOCK doc READ OWNER o");
    ask_error(c, "DEADLOCK", "LOCK doc WRITE OWNER o");
    ask_error(c, "DEADLOCK", "LOCK doc WRITE OWNER o WAIT 0");
    expect_field("o", "1");
    ck_assert_int_eq(ask_int(c, "UNLOCK doc OWNER o"), 0);
    (void)ask_int(c, "LOCK doc WRITE OWNER o WAIT 0");
    client_close(c);
    stand_down();
}

START_TEST(a_writer_may_read_and_keep_reading_and_others_come_in_at_once_W3)
{
    struct test_daemon *second;
    struct client *c, *near, *far, *writer, *look;
    uint64_t start;

    stand_up(NULL);
    second = stand_second();
    c = open_client();
    near = open_client();
    far = client_open(second);
    writer = open_client();
    (void)ask_int(c, "LOCK doc WRITE OWNER o");
    (void)ask_int(c, "LOCK doc READ OWNER o WAIT 0");
    ask_nil(near, "LOCK doc READ WAIT 0");
    send_lock(near, "doc", "READ", 1);
    look = client_open(second);
    client_send(far, "LOCK doc READ");
    await_waiting(look, "doc", 1);
    client_close(look);
    start = test_now_ms();
    ck_assert_int_eq(ask_int(c, "UNLOCK doc WRITE OWNER o"), 0);
    (void)client_read_int(near);
    (void)client_read_int(far);
    expect_elapsed(start, 0, PROMPT);
    expect_field("mode", "read");
    expect_field("o:write", NULL);
    expect_field("o", "1");
    ask_nil(writer, "LOCK doc WRITE WAIT 0");
    ck_assert_int_eq(ask_int(c, "UNLOCK doc OWNER o"), 0);
    unlock(near);
    unlock(far);
    await_no_locks(0);
    client_close(c);
    client_close(near);
    client_close(far);
    client_close(writer);
    daemon_stop(second);
    stand_down();
}

START_TEST(who_both_reads_and_writes_has_to_say_which)
{
    struct client *c;

    stand_up(NULL);
    c = open_client();
    (void)ask_int(c, "LOCK doc WRITE OWNER o");
    (void)ask_int(c, "LOCK doc READ OWNER o");
    ask_error(c, "ERR", "UNLOCK doc OWNER o");
    ask_error(c, "ERR", "RENEW doc OWNER o");
    expect_field("o", "1");
    expect_field("o:write", "1");
    ck_assert_int_gt(ask_int(c, "RENEW doc READ OWNER o"), 25000);
    ck_assert_int_gt(ask_int(c, "RENEW doc WRITE OWNER o"), 25000);
    ck_assert_int_eq(ask_int(c, "UNLOCK doc READ OWNER o"), 0);
    expect_field("o", NULL);
    ask_error(c, "NOTHELD", "UNLOCK doc READ OWNER o");
    ck_assert_int_eq(ask_int(c, "UNLOCK doc OWNER o"), 0);
    expect_no_locks();
    client_close(c);
    stand_down();
}

START_TEST(READ_is_no_name_for_a_write_nor_WRITE_for_a_read)
{
    static const char *const KINDS[] = { "READ", "WRITE" };
    struct client *c;

    stand_up(NULL);
    c = open_client();
    for (int i = 0; i < 2; i++) {
        const char *has = KINDS[i], *other = KINDS[1 - i];
        int64_t token = ask_int(c, "LOCK doc %s", has);

        ask_error(c, "NOTHELD", "UNLOCK doc %s", other);
        ask_error(c, "NOTHELD", "RENEW doc %s LEASE 100", other);
        ask_error(c, "NOTHELD", "UNLOCK doc %s TOKEN %" PRId64, other, token);
        ck_assert_int_gt(ask_int(c, "RENEW doc %s", has), 25000);
        ck_assert_int_eq(ask_int(c, "UNLOCK doc %s", has), 0);
    }
    expect_no_locks();
    client_close(c);
    stand_down();
}

START_TEST(entries_of_readers_and_writers_are_counted)
{
    struct client *c;
    int64_t token;

    stand_up(NULL);
    c = open_client();
    token = ask_int(c, "LOCK doc READ OWNER o ID " R1);
    ck_assert_int_eq(ask_int(c, "LOCK doc READ OWNER o ID " R2), token);
    ck_assert_int_eq(ask_int(c, "LOCK doc READ OWNER o ID " R2), token);
    expect_field("o", "2");
    ck_assert_int_eq(peek_int("EXISTS {doc}:o:rwlock_timeout:1 "
                              "{doc}:o:rwlock_timeout:2 {doc}:o:rwlock_timeout:3"),
                     2);
    ck_assert_int_eq(ask_int(c, "UNLOCK doc ID " R1), 1);
    ck_assert_int_eq(ask_int(c, "UNLOCK doc ID " R1), 1);
    ck_assert_int_eq(ask_int(c, "UNLOCK doc ID " R2), 0);
    expect_no_locks();
    token = ask_int(c, "LOCK doc WRITE OWNER o");
    ck_assert_int_eq(ask_int(c, "LOCK doc WRITE OWNER o"), token);
    expect_field("o:write", "2");
    ck_assert_int_eq(ask_int(c, "UNLOCK doc WRITE OWNER o"), 1);
    ck_assert_int_eq(ask_int(c, "UNLOCK doc OWNER o"), 0);
    expect_no_locks();
    client_close(c);
    stand_down();
}

START_TEST(an_id_finds_its_reader_and_its_writer_again_H7)
{
    struct test_daemon *second;
    struct client *a, *b;
    int64_t token;

    stand_up(NULL);
    second = stand_second();
    a = open_client();
    b = client_open(second);
    token = ask_int(a, "LOCK doc READ ID " R1);
    ck_assert_int_eq(ask_int(b, "LOCK doc READ ID " R1), token);
    ck_assert_int_eq(ask_int(a, "LOCK doc READ ID " R1), token);
    ck_assert_int_eq(peek_int("HLEN doc"), 2);
    ck_assert_int_eq(ask_int(b, "UNLOCK doc ID " R1), 0);
    expect_no_locks();
    token = ask_int(a, "LOCK doc WRITE ID " R2);
    ck_assert_int_eq(ask_int(b, "LOCK doc WRITE ID " R2), token);
    ask_error(a, "ERR", "LOCK doc READ ID " R2);
    ck_assert_int_eq(ask_int(b, "UNLOCK doc ID " R2), 0);
    expect_no_locks();
    client_close(a);
    client_close(b);
    daemon_stop(second);
    stand_down();
}

START_TEST(a_token_frees_a_reader_from_anywhere_and_after_a_restart)
{
    struct test_daemon *second;
    struct client *a, *far;
    int64_t one, two, three;

    stand_up(NULL);
    second = stand_second();
    a = open_client();
    far = client_open(second);
    one = ask_int(a, "LOCK doc READ");
    two = ask_int(a, "LOCK doc READ");
    three = ask_int(a, "LOCK doc READ");
    ck_assert_int_eq(ask_int(far, "UNLOCK doc TOKEN %" PRId64, two), 0);
    ck_assert_int_eq(ask_int(far, "UNLOCK doc TOKEN %" PRId64, two), 0); /* again */
    ck_assert_int_gt(ask_int(far, "RENEW doc TOKEN %" PRId64, three), 25000);
    client_close(a);
    client_close(stand.admin);
    daemon_kill(stand.daemon);
    daemon_restart(stand.daemon);
    a = open_client();
    stand.admin = open_client();
    ck_assert_int_eq(ask_int(a, "UNLOCK doc READ TOKEN %" PRId64, one), 0);
    ck_assert_int_eq(ask_int(a, "UNLOCK doc TOKEN %" PRId64, three), 0);
    expect_no_locks();
    ask_error(a, "NOTHELD", "UNLOCK doc TOKEN %" PRId64, one + 1000000000);
    client_close(a);
    client_close(far);
    daemon_stop(second);
    stand_down();
}

START_TEST(force_frees_one_reader_or_the_writer_and_says_so)
{
    struct client *a, *b, *ear;
    int64_t token;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    ear = open_client();
    subscribe(ear, "lost:doc");
    token = ask_int(a, "LOCK doc READ");
    (void)ask_int(b, "LOCK doc READ OWNER b");
    ck_assert_int_eq(ask_int(stand.admin, "FORCEUNLOCK doc TOKEN %" PRId64, token), 1);
    ck_assert_int_eq(ask_int(stand.admin, "FORCEUNLOCK doc TOKEN %" PRId64, token), 0);
    expect_message(ear, "lost:doc", "");
    ck_assert_int_eq(peek_int("HLEN doc"), 2);
    ask_error(a, "NOTHELD", "UNLOCK doc TOKEN %" PRId64, token);
    ck_assert_int_eq(ask_int(stand.admin, "FORCEUNLOCK doc OWNER b"), 1);
    expect_no_locks();
    (void)ask_int(a, "LOCK doc WRITE OWNER a");
    send_lock(b, "doc", "READ", 1);
    ck_assert_int_eq(ask_int(stand.admin, "FORCEUNLOCK doc ANY"), 1);
    (void)client_read_int(b);
    ask_error(a, "NOTHELD", "UNLOCK doc OWNER a");
    client_close(a);
    client_close(b);
    client_close(ear);
    stand_down();
}

START_TEST(lockinfo_tells_readers_and_writers)
{
    struct client *a, *b;
    const struct value *holds;
    struct value v;
    int64_t token;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    token = ask_int(a, "LOCK doc WRITE OWNER ann");
    v = ask(stand.admin, "LOCKINFO doc");
    holds = value_get(&v, "holds");
    ck_assert(value_is_text(value_get(&v, "kind"), "write"));
    ck_assert_uint_eq(holds->count, 1);
    ck_assert(value_is_text(value_get(&holds->items[0], "owner"), "ann"));
    ck_assert(value_is_text(value_get(&holds->items[0], "kind"), "write"));
    ck_assert_int_eq(value_get(&holds->items[0], "token")->integer, token);
    value_fini(&v);
    (void)ask_int(a, "LOCK doc READ OWNER ann");
    ck_assert_int_eq(ask_int(a, "UNLOCK doc WRITE OWNER ann"), 0);
    token = ask_int(b, "LOCK doc READ");
    v = ask(stand.admin, "LOCKINFO doc");
    holds = value_get(&v, "holds");
    ck_assert(value_is_text(value_get(&v, "kind"), "read"));
    ck_assert_uint_eq(holds->count, 2);
    for (size_t i = 0; i < 2; i++) {
        bool is_ann = value_is_text(value_get(&holds->items[i], "owner"), "ann");

        ck_assert(value_is_text(value_get(&holds->items[i], "kind"), "read"));
        ck_assert(is_ann || value_get(&holds->items[i], "token")->integer == token);
        ck_assert_int_eq(value_get(&holds->items[i], "client")->type, VALUE_INT);
    }
    value_fini(&v);
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(grace_0_frees_readers_and_writers_with_their_connection)
{
    struct client *a, *b;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    (void)ask_int(a, "LOCK doc READ GRACE 0");
    send_lock(b, "doc", "WRITE GRACE 0", 1);
    client_close(a);
    (void)client_read_int(b);
    client_close(b);
    await_no_locks(0);
    stand_down();
}
