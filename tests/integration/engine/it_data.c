/* DATA: what a holder wants others to know stays with its hold, whatever becomes of
 * Redis and of the daemons. */
#include "support/runner.h"
#include "support/stand.h"

#include "latchd/protocol.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_1 "11111111-1111-1111-1111-111111111111"
#define ID_2 "22222222-2222-2222-2222-222222222222"

enum { SOON_MS = 10000 };

/* Bytes that could be taken for ends of something. */
static const char BYTES[] = "host\0 1\n{\"a\":\r\n2}\n";
enum { BYTES_LEN = sizeof(BYTES) - 1, WORDS_MAX = 12 };

/* Sends `words`, with DATA of these bytes behind the name. */
static void send_data(struct client *c, const char *words, const char *data, size_t len)
{
    const char *args[WORDS_MAX];
    size_t lens[WORDS_MAX];
    char *copy = strdup(words), *rest = copy;
    size_t count = 0;

    for (char *word = strtok_r(copy, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        ck_assert_uint_lt(count, WORDS_MAX - 2);
        args[count] = word;
        lens[count++] = strlen(word);
    }
    args[count] = "DATA";
    lens[count++] = 4;
    args[count] = data;
    lens[count++] = len;
    client_send_args(c, count, args, lens);
    free(copy);
}

static int64_t lock_data(struct client *c, const char *words)
{
    send_data(c, words, BYTES, BYTES_LEN);
    return client_read_int(c);
}

/* The data that LOCKINFO tells of the only hold; to be freed. False: nobody holds. */
static bool read_data(struct client *c, char **ret, size_t *ret_len)
{
    struct value info = ask(c, "LOCKINFO job");
    const struct value *holds = value_get(&info, "holds");
    const struct value *data;
    bool held;

    ck_assert_ptr_nonnull(holds);
    held = holds->count == 1;
    if (held) {
        data = value_get(&holds->items[0], "data");
        ck_assert_ptr_nonnull(data);
        *ret = malloc(data->len + 1);
        memcpy(*ret, data->text, data->len + 1);
        *ret_len = data->len;
    }
    value_fini(&info);
    return held;
}

static bool shows(struct client *c, const char *want, size_t want_len)
{
    size_t len = 0;
    char *data = NULL;
    bool same = read_data(c, &data, &len) && len == want_len &&
                memcmp(data, want, want_len) == 0;

    free(data);
    return same;
}

static void await_data(struct client *c, const char *want, size_t len)
{
    uint64_t end = test_now_ms() + SOON_MS;

    while (!shows(c, want, len)) {
        ck_assert_uint_lt(test_now_ms(), end);
        test_sleep_ms(5);
    }
}

static const char *const FORMS[] = {
    "LOCK job",           "LOCK job FAIR",           "LOCK job WRITE",
    "LOCK job ID " ID_1,  "LOCK job FAIR ID " ID_1,  "LOCK job WRITE ID " ID_1,
    "LOCK job OWNER ann", "LOCK job FAIR OWNER ann", "LOCK job WRITE OWNER ann",
};
enum { FORM_COUNT = sizeof(FORMS) / sizeof(FORMS[0]) };

static struct test_daemon *second;
static struct client *holder, *far;

static void stand_up_two(void)
{
    stand_up(NULL);
    second = stand_second();
    holder = open_client();
    far = client_open(second);
}

static void stand_down_two(void)
{
    client_close(holder);
    client_close(far);
    daemon_stop(second);
    stand_down();
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(data_shows_through_any_daemon_until_the_hold_ends, FORM_COUNT)
{
    int64_t token;

    stand_up_two();
    token = lock_data(holder, FORMS[_i]);
    ck_assert(shows(stand.admin, BYTES, BYTES_LEN));
    ck_assert(shows(far, BYTES, BYTES_LEN));
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    ck_assert_int_gt(ask_int(holder, "LOCK job%s", _i % 3 == 2 ? " WRITE" : ""), token);
    ck_assert(shows(far, "", 0));
    stand_down_two();
}

START_TEST(a_waiter_brings_its_own_data, FORM_COUNT)
{
    const char *kind = _i % 3 == 2 ? " WRITE" : _i % 3 == 1 ? " FAIR" : "";
    struct client *waiter;

    stand_up_two();
    waiter = open_client();
    send_data(holder, _i % 3 == 2 ? "LOCK job WRITE" : "LOCK job", "first", 5);
    ck_assert_int_gt(client_read_int(holder), 0);
    send_data(waiter, FORMS[_i], BYTES, BYTES_LEN);
    await_waiting(stand.admin, "job", 1);
    ck_assert(shows(far, "first", 5));
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    ck_assert_int_gt(client_read_int(waiter), 0);
    ck_assert(shows(far, BYTES, BYTES_LEN));
    send_data(holder, "LOCK job WAIT 5000", "third", 5);
    if (*kind == '\0' || strcmp(kind, " FAIR") == 0) {
        await_waiting(stand.admin, "job", 1);
        ck_assert_int_eq(ask_int(waiter, "UNLOCK job"), 0);
        ck_assert_int_gt(client_read_int(holder), 0);
        ck_assert(shows(far, "third", 5));
    } else {
        expect_error(holder, "WRONGTYPE");
    }
    client_close(waiter);
    stand_down_two();
}

START_TEST(a_lock_that_is_sent_again_has_to_have_the_same_data, 3)
{
    static const char *const KINDS[] = { "", " FAIR", " WRITE" };
    static const char OTHER[] = "ERR that owner or ID has it with other DATA";
    char lock[96];
    int64_t token;

    stand_up_two();
    (void)snprintf(lock, sizeof lock, "LOCK job%s ID " ID_1, KINDS[_i]);
    token = lock_data(holder, lock);
    send_data(holder, lock, "other", 5);
    expect_error(holder, OTHER);
    ask_error(holder, OTHER, "%s", lock);
    send_data(far, lock, "other", 5);
    expect_error(far, OTHER);
    ask_error(far, OTHER, "%s", lock);
    ck_assert_int_eq(lock_data(holder, lock), token);
    ck_assert_int_eq(lock_data(far, lock), token);
    ck_assert(shows(far, BYTES, BYTES_LEN));
    ck_assert_int_eq(ask_int(far, "UNLOCK job ID " ID_1), 0);
    stand_down_two();
}

START_TEST(a_waiting_lock_that_is_sent_again_has_to_have_the_same_data)
{
    struct client *waiter;

    stand_up_two();
    waiter = open_client();
    (void)ask_int(far, "LOCK job");
    send_data(waiter, "LOCK job ID " ID_1, BYTES, BYTES_LEN);
    await_waiting(stand.admin, "job", 1);
    send_data(holder, "LOCK job ID " ID_1, "other", 5);
    expect_error(holder, "ERR that owner or ID has it with other DATA");
    send_data(holder, "LOCK job ID " ID_1, BYTES, BYTES_LEN);
    expect_nil(waiter);
    ck_assert_int_eq(ask_int(far, "UNLOCK job"), 0);
    ck_assert_int_gt(client_read_int(holder), 0);
    ck_assert(shows(far, BYTES, BYTES_LEN));
    client_close(waiter);
    stand_down_two();
}

START_TEST(an_owner_who_enters_again_need_not_repeat_the_data, 3)
{
    int64_t token;

    stand_up_two();
    token = lock_data(holder, FORMS[6 + _i]);
    ck_assert_int_eq(ask_int(far, "%s", FORMS[6 + _i]), token);
    send_data(far, FORMS[6 + _i], "other", 5);
    expect_error(far, "ERR that owner or ID has it with other DATA");
    ck_assert_int_eq(lock_data(far, FORMS[6 + _i]), token);
    ck_assert(shows(far, BYTES, BYTES_LEN));
    ck_assert_int_eq(ask_int(far, "UNLOCK job OWNER ann"), 2);
    ck_assert_int_eq(ask_int(far, "UNLOCK job OWNER ann"), 1);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job OWNER ann"), 0);
    stand_down_two();
}

START_TEST(what_redis_loses_is_put_back_with_its_data, FORM_COUNT)
{
    stand_up_two();
    (void)lock_data(holder, FORMS[_i]);
    redis_kill(stand.redis);
    redis_restart(stand.redis);
    await_data(far, BYTES, BYTES_LEN);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    stand_down_two();
}

/* Also by a daemon that was told of it only by Redis. */
START_TEST(who_comes_back_elsewhere_keeps_the_data, FORM_COUNT)
{
    int64_t token;

    stand_up_two();
    token = lock_data(holder, FORMS[_i]);
    if (_i < 6) {
        ck_assert_int_gt(ask_int(far, "RENEW job TOKEN %" PRId64, token), 0);
    } else {
        ck_assert_int_gt(ask_int(far, "RENEW job OWNER ann"), 0);
    }
    daemon_kill(stand.daemon);
    redis_kill(stand.redis);
    redis_restart(stand.redis);
    await_data(far, BYTES, BYTES_LEN);
    ck_assert_int_eq(ask_int(far, "UNLOCK job"), 0);
    daemon_restart(stand.daemon);
    stand_down_two();
}

START_TEST(data_has_a_limit_and_needs_a_lock_that_one_alone_holds)
{
    static char most[LATCHD_DATA_MAX + 1];

    stand_up_two();
    memset(most, '\n', sizeof most);
    send_data(holder, "LOCK job", most, sizeof most);
    expect_error(holder, "ERR DATA must be 0..4096 bytes");
    send_data(holder, "LOCK job", most, LATCHD_DATA_MAX);
    ck_assert_int_gt(client_read_int(holder), 0);
    ck_assert(shows(far, most, LATCHD_DATA_MAX));
    ask_error(far, "ERR DATA does not go with READ", "LOCK b READ DATA x");
    ask_error(far, "ERR DATA does not go with PERMITS", "LOCK b PERMITS 1 OF 2 DATA x");
    ask_error(far, "ERR LOCAL does not go with DATA", "LOCK b LOCAL DATA x");
    ask_error(far, "ERR unknown option 'DATA' for MLOCK", "MLOCK 1 b DATA x");
    ask_error(far, "ERR option DATA needs a value", "LOCK b DATA");
    stand_down_two();
}

/* Requests sent together are granted together, but not without their data. */
START_TEST(locks_in_one_pipeline_have_their_data)
{
    static const char SEND[] = "LOCK a\r\nLOCK job DATA one\r\nLOCK b\r\n";

    stand_up_two();
    client_send_raw(holder, SEND, strlen(SEND));
    for (int i = 0; i < 3; i++) {
        ck_assert_int_gt(client_read_int(holder), 0);
    }
    ck_assert(shows(far, "one", 3));
    stand_down_two();
}
