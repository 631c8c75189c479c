/* cmd_fake: connections and a lock engine that do nothing but remember, so that
 * commands can be run without sockets. Linked in place of net/ and engine/. */
#ifndef LATCHD_TESTS_CMD_FAKE_H
#define LATCHD_TESTS_CMD_FAKE_H

#include "cmd/cmd.h"
#include "cmd/events.h"
#include "cmd/users.h"
#include "support/buffer_conn.h"

#include <string.h>

enum { FAKE_CONNS = 4, FAKE_RUN_MAX = 32 };

struct fake {
    struct conn conns[FAKE_CONNS];
    struct cmd *cmd;
    const char *password;
    const char *acl_text; /* what the ACL file has; NULL: there is none */
    struct buf acl_saved;
    uint64_t now_ms;  /* 0: 1000 */
    const char *cert; /* the common name of its certificate; NULL: none */
    char peer[64];    /* of all conns; empty: one each */
    size_t output_limit;
    bool shut_down;
    char heard[64];      /* the channel that is heard at Redis, or no more, last */
    char published[128]; /* there: channel and message */
    bool hears;          /* what is published there comes back */
    bool publish_fails;
    /* The last requests to the engine. */
    struct lock_req lock;
    struct lock_req run[FAKE_RUN_MAX]; /* of engine_lock_batch(), with live words */
    size_t run_asked;
    size_t run_max;         /* so many of a run begin; 0: all */
    bool full;              /* there is no room for another LOCK */
    struct mlock_req mlock; /* its names are gone by now */
    struct span first;      /* of them */
    struct hold_req hold;
    struct leader_req leader;
    size_t scanned; /* COUNT of a scan */
    char asked[32]; /* "lock", "unlock", ... or empty */
    uint64_t undelivered[8];
    size_t undelivered_count;
    uint64_t closed_conn;
    enum grant_state grant_state; /* of all grants */
};

extern struct fake fake;
extern struct conn *const me; /* number 0, which is open from the start */

/* One conn, number 0 with id 1, is open. */
void fake_setup(void);
/* The same, and the plain commands of lock libraries are served. */
extern const struct cmd_limits FAKE_LIBRARY_LIMITS;
void fake_setup_libraries(void);
void fake_teardown(void);

/* CONFIG SET requirepass */
void fake_password(const char *text);

struct conn *fake_open(size_t at);
void fake_close(struct conn *c, bool unread);

/* Runs one command, words with spaces between; returns what was written since. The text
 * is NUL-terminated and lives until the next call for that conn. */
const char *fake_run(struct conn *c, const char *line);
const char *fake_output(struct conn *c);
/* The same in a read that more follows it in, or that it is the last of. */
const char *fake_send(struct conn *c, const char *line, bool more);
/* The engine's answer to that call; what is written then. */
const char *fake_hear(struct conn *c, struct call_ref to, struct effect_reply reply);
/* Conns for which conn_again() was called go on. */
void fake_settle(void);
/* The engine answers the last request. */
void fake_answer(enum reply_kind kind, int64_t value, uint64_t grant);

#define INT(n) ((struct effect_reply){ .kind = REPLY_INT, .value = (n) })
#define NIL ((struct effect_reply){ .kind = REPLY_NULL })
#define TOKEN(n)                                                                       \
    ((struct effect_reply){ .kind = REPLY_TOKEN, .value = (n), .grant = (n) + 100 })
#define UNREACHED ((struct effect_reply){ .kind = REPLY_UNREACHED })

#define expect_text(got, wanted) ck_assert_str_eq(got, wanted)

/* Pairs of a path of keys and places in a reply, such as "holds.0.owner", and of what
 * is there: a text as it is, a number with `:` before it, `nil`, or `[...]`; then NULL.
 * So a new field is no other test's matter. */
void expect_fields(const char *reply, ...) __attribute__((sentinel));
/* The reply's keys at that path ("" is all of it) begin with these, in this order:
 * RESP2 clients may count. */
void expect_keys(const char *reply, const char *path, const char *keys);

static inline bool starts(const char *text, const char *head)
{
    return strncmp(text, head, strlen(head)) == 0;
}

static inline bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

#endif
