/* The common part of the tests of leaders: two daemons, a holder, and a follower of
 * each daemon. */
#ifndef LATCHD_TESTS_LEADER_STAND_H
#define LATCHD_TESTS_LEADER_STAND_H

#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdio.h>

enum { ROUNDS = 200, FOREVER_MS = 8000 };

static struct test_daemon *second;
static struct client *holder, *near, *far;

static MAYBE_UNUSED void stand_up_two(void)
{
    stand_up("--watchdog-timeout", "3s", NULL);
    second = stand_second();
    holder = open_client();
    near = open_client();
    far = client_open(second);
}

static MAYBE_UNUSED void stand_down_two(void)
{
    client_close(holder);
    client_close(near);
    client_close(far);
    daemon_stop(second);
    stand_down();
}

/* Of a reply: the token; the owner and the data have to be these. */
static MAYBE_UNUSED int64_t check_leader(struct value v, const char *owner,
                                         const char *data)
{
    int64_t token;

    ck_assert_int_eq(v.type, VALUE_LIST);
    ck_assert_uint_eq(v.count, 3);
    ck_assert_int_eq(v.items[0].type, VALUE_INT);
    token = v.items[0].integer;
    if (owner != NULL) {
        ck_assert_str_eq(v.items[1].text, owner);
    }
    ck_assert_str_eq(v.items[2].text, data);
    value_fini(&v);
    return token;
}

static MAYBE_UNUSED void nobody_leads(struct value v)
{
    ck_assert_int_eq(check_leader(v, "", ""), 0);
}

static MAYBE_UNUSED void send_after(struct client *c, int64_t token, int wait_ms)
{
    client_send(c, "LEADER job AFTER %" PRId64 " WAIT %d", token, wait_ms);
}

#endif
