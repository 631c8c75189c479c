#include "unit/cmd/cmd_fake.h"

#include "engine/survey.h"
#include "support/value.h"

#include <check.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake fake;
struct conn *const me = &fake.conns[0];

/* --- locks -------------------------------------------------------------------------
 */

static void asked(const char *what)
{
    (void)snprintf(fake.asked, sizeof(fake.asked), "%s", what);
}

void engine_lock(struct engine *l, const struct lock_req *req)
{
    asked("lock");
    fake.lock = *req;
    fake.hold.from = req->from;
}

bool engine_has_room(const struct engine *l)
{
    return !fake.full;
}

size_t engine_lock_batch(struct engine *l, const struct lock_req *reqs, size_t count)
{
    ck_assert_uint_le(count, FAKE_RUN_MAX);
    asked("run");
    fake.run_asked = count;
    for (size_t i = 0; i < count; i++) {
        fake.run[i] = reqs[i];
    }
    fake.hold.from = reqs[0].from;
    return fake.run_max != 0 && fake.run_max < count ? fake.run_max : count;
}

void engine_mlock(struct engine *l, const struct mlock_req *req)
{
    asked("mlock");
    fake.mlock = *req;
    fake.first = req->names[0];
    fake.hold.from = req->from;
}

void engine_unlock(struct engine *l, const struct hold_req *req)
{
    asked("unlock");
    fake.hold = *req;
}

void engine_renew(struct engine *l, const struct hold_req *req)
{
    asked("renew");
    fake.hold = *req;
}

void engine_force_unlock(struct engine *l, const struct hold_req *req)
{
    asked("forceunlock");
    fake.hold = *req;
}

void engine_lock_info(struct engine *l, struct call_ref from, struct span name)
{
    asked("lockinfo");
    fake.hold = (struct hold_req){ .from = from, .name = name };
}

void engine_leader(struct engine *l, const struct leader_req *req)
{
    asked("leader");
    fake.leader = *req;
}

void engine_latch(struct engine *l, const struct latch_req *req)
{
    asked("latch");
    fake.hold.from = req->from;
}

void engine_follow(struct engine *l, struct span name, bool heard)
{
    asked(heard ? "follow" : "follow no more");
}

void engine_semaphore_info(struct engine *l, struct call_ref from, struct span name)
{
    asked("semaphore info");
    fake.hold = (struct hold_req){ .from = from, .name = name };
}

void engine_semaphore_limit(struct engine *l, struct call_ref from, struct span name,
                            uint32_t limit)
{
    asked("semaphore limit");
    fake.hold = (struct hold_req){ .from = from, .name = name, .token = limit };
}

size_t engine_cancel(struct engine *l, const struct hold_req *req, bool *ret_others)
{
    asked("cancel");
    *ret_others = false;
    return 3;
}

void engine_on_conn_closed(struct engine *l, uint64_t conn)
{
    fake.closed_conn = conn;
}

void engine_on_undelivered(struct engine *l, uint64_t conn, uint64_t grant)
{
    if (fake.closed_conn != conn) {
        fake.undelivered[fake.undelivered_count++] = grant;
    }
}

struct effects *engine_effects(struct engine *l)
{
    static struct effects none;

    return &none;
}

uint32_t engine_conn_heartbeat(const struct engine *l, uint64_t conn)
{
    return 0;
}

bool engine_conn_busy(const struct engine *l, uint64_t conn)
{
    return false;
}

bool engine_knows_conn(const struct engine *l, uint64_t conn)
{
    return false;
}

enum grant_state engine_grant_state(const struct engine *l, uint64_t conn,
                                    uint64_t grant)
{
    return fake.grant_state;
}

void engine_end_wait(struct engine *l, struct call_ref from)
{
    ck_assert(from.call == fake.lock.from.call);
    asked("end wait");
}

bool engine_unblock(struct engine *l, uint64_t conn, bool with_error)
{
    asked(with_error ? "unblock with error" : "unblock");
    return conn == 2;
}

/* The waiting client waits for that name. */
void engine_refuse_waits(struct engine *l, uint64_t conn, engine_refuses_fn *refuses,
                         void *ctx)
{
    if (fake.lock.from.conn == conn &&
        refuses(ctx, fake.lock.from.call, SPAN("take:1"))) {
        asked("refuse");
    }
}

void engine_stats(const struct engine *l, struct engine_stats *ret)
{
    *ret = (struct engine_stats){ .locks = 5,
                                  .store_up = true,
                                  .lent = 1,
                                  .yields = 4,
                                  .loans = 6,
                                  .settled = 2,
                                  .returned = 3,
                                  .loan_renewals = 4,
                                  .local_grants = 70 };
}

size_t engine_memory(const struct engine *l, struct span name, size_t samples)
{
    return span_eq(name, SPAN("job")) ? 500 + (samples == SIZE_MAX) : 0;
}

const struct engine_timings *engine_timings(const struct engine *l)
{
    static struct engine_timings none;

    return &none;
}

uint64_t engine_scan(struct engine *l, uint64_t cursor, size_t count, lock_name_fn *fn,
                     void *ctx)
{
    fake.scanned = count;
    fn(ctx, SPAN("job:1"));
    fn(ctx, SPAN("other"));
    return cursor == 0 ? 17 : 0;
}

void engine_waiters(struct engine *l, struct span name, size_t count,
                    waiter_info_fn *fn, void *ctx)
{
    struct waiter_info first = { SPAN("ann"), 20,    UINT64_MAX,
                                 1,           false, { .priority = 9 } };
    struct waiter_info second = {
        SPAN(""), 10, 90, 0, true, { .lock_kind = KIND_LATCH }
    };

    fn(ctx, &first);
    if (count > 1) {
        fn(ctx, &second);
    }
}

static const struct name_view NAMES[] = {
    { .name = { "cold", 4 },
      .holds = 1,
      .newest = { .owner = { "ann", 3 },
                  .token = 7,
                  .here = true,
                  .held_ms = 9,
                  .left_ms = 8,
                  .conn = 4,
                  .lease = LEASE_FIXED,
                  .terms = { .data = { "d", 1 }, .atleast_ms = 60 } } },
    { .name = { "free", 4 } },
    { .name = { "hot", 3 }, .waiting = 2, .longest_wait_ms = 5, .is_latch = true },
};

void survey_waits(const struct engine *l, size_t count, wait_view_fn *fn, void *ctx)
{
    const struct wait_view view = { .name = NAMES[2].name };

    fn(ctx, &view);
    fn(ctx, &view);
}

uint64_t survey_names(struct engine *l, uint64_t cursor, size_t count, name_view_fn *fn,
                      void *ctx)
{
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
        fn(ctx, &NAMES[i]);
    }
    return 0;
}

bool survey_name(const struct engine *l, struct span name, struct name_view *ret)
{
    *ret = NAMES[2];
    return true;
}

/* --- env ---------------------------------------------------------------------------
 */

static uint64_t env_now(void *ctx)
{
    return fake.now_ms == 0 ? 1000 : fake.now_ms;
}

static const char *env_password(void *ctx)
{
    return fake.password;
}

static void env_config_each(void *ctx, struct span pattern, config_pair_fn *fn,
                            void *arg)
{
    if (span_eq(pattern, SPAN("*")) || span_eq(pattern, SPAN("port"))) {
        fn(arg, "port", "5625");
    }
    if (span_eq(pattern, SPAN("*"))) {
        fn(arg, "bind", "::1");
    }
}

static bool env_config_set(void *ctx, const struct span *pairs, size_t count,
                           char *reterr, size_t room)
{
    (void)snprintf(reterr, room, "%zu pairs refused", count);
    return count == 1;
}

static void env_hear(void *ctx, bool is_pattern, struct span name, bool wanted)
{
    (void)snprintf(fake.heard, sizeof(fake.heard), "%c%s%.*s", wanted ? '+' : '-',
                   is_pattern ? "p:" : "", (int)name.len, name.ptr);
}

static bool env_hears(void *ctx, bool is_pattern, struct span name)
{
    return fake.hears;
}

static bool env_publish(void *ctx, struct span channel, struct span text)
{
    (void)snprintf(fake.published, sizeof(fake.published), "%.*s %.*s",
                   (int)channel.len, channel.ptr, (int)text.len, text.ptr);
    return !fake.publish_fails;
}

static void env_shutdown(void *ctx)
{
    fake.shut_down = true;
}

static const char *env_acl_file(void *ctx)
{
    return fake.acl_text == NULL ? "" : "users.acl";
}

static bool env_acl_read(void *ctx, struct buf *out, struct buf *reterr)
{
    buf_add_str(out, fake.acl_text);
    return true;
}

static bool env_acl_write(void *ctx, struct span text)
{
    buf_clear(&fake.acl_saved);
    buf_add_span(&fake.acl_saved, text);
    return true;
}

/* --- for tests ---------------------------------------------------------------------
 */

void fake_password(const char *text)
{
    fake.password = text;
    cmd_password_changed(fake.cmd);
}

struct conn *fake_open(size_t at)
{
    struct conn *c = &fake.conns[at];

    c->id = at + 1;
    ck_assert(cmd_on_open(fake.cmd, c));
    return c;
}

void fake_close(struct conn *c, bool unread)
{
    if (c->id != 0) {
        cmd_on_close(fake.cmd, c, unread);
        buf_reset(&c->out);
        *c = (struct conn){ 0 };
    }
}

void fake_setup(void)
{
    static const struct cmd_limits LIMITS = { .max_name = 512,
                                              .max_lease_ms = 86400000,
                                              .max_keep_ms = 30000 };
    struct cmd_env env = {
        .now_ms = env_now,
        .config_each = env_config_each,
        .config_set = env_config_set,
        .password = env_password,
        .acl_file = env_acl_file,
        .acl_read = env_acl_read,
        .acl_write = env_acl_write,
        .shutdown = env_shutdown,
        .hear = env_hear,
        .hears = env_hears,
        .publish = env_publish,
    };

    fake = (struct fake){ .output_limit = 1 << 20 };
    fake.cmd = cmd_new(&env, &LIMITS);
    (void)fake_open(0);
}

const struct cmd_limits FAKE_LIBRARY_LIMITS = { .max_name = 512,
                                                .max_lease_ms = 86400000,
                                                .lock_libraries = true,
                                                .endless_lease_ms = 86400000 };

void fake_setup_libraries(void)
{
    fake_setup();
    cmd_set_limits(fake.cmd, &FAKE_LIBRARY_LIMITS);
}

void fake_teardown(void)
{
    for (size_t i = 0; i < FAKE_CONNS; i++) {
        fake_close(&fake.conns[i], false);
    }
    cmd_free(fake.cmd);
    buf_reset(&fake.acl_saved);
}

/* As net/ does it. */
static void go_on(struct conn *c)
{
    while (c->again && !c->suspended) {
        c->again = false;
        cmd_on_again(fake.cmd, c);
    }
}

const char *fake_output(struct conn *c)
{
    buf_add(&c->out, "", 1);
    c->out.tail--; /* the NUL is not output */
    return buf_ptr(&c->out);
}

const char *fake_run(struct conn *c, const char *line)
{
    struct span argv[32];
    struct resp_request req = { argv, 0 };
    const char *at = line;

    buf_clear(&c->out);
    while (*at != '\0') {
        size_t len = strcspn(at, " ");

        argv[req.argc++] = span_of(at, len);
        at += len + (at[len] == ' ');
    }
    c->input++;
    fake.asked[0] = '\0';
    cmd_on_request(fake.cmd, c, &req);
    go_on(c);
    return fake_output(c);
}

const char *fake_send(struct conn *c, const char *line, bool more)
{
    const char *got;

    c->more = more;
    got = fake_run(c, line);
    if (!more && c->id != 0) {
        cmd_on_ran(fake.cmd, c);
    }
    return got;
}

const char *fake_hear(struct conn *c, struct call_ref to, struct effect_reply reply)
{
    buf_clear(&c->out);
    reply.to = to;
    cmd_reply(fake.cmd, &reply);
    fake_settle();
    if (c->id != 0) {
        cmd_on_ran(fake.cmd, c);
    }
    return fake_output(c);
}

void fake_settle(void)
{
    for (size_t i = 0; i < FAKE_CONNS; i++) {
        go_on(&fake.conns[i]);
    }
}

void fake_answer(enum reply_kind kind, int64_t value, uint64_t grant)
{
    struct effect_reply reply = { .to = fake.hold.from,
                                  .kind = kind,
                                  .value = value,
                                  .grant = grant,
                                  .error = LOCK_NOTHELD,
                                  .text = SPAN("not held") };

    for (size_t i = 0; i < FAKE_CONNS; i++) {
        buf_clear(&fake.conns[i].out);
    }
    cmd_reply(fake.cmd, &reply);
    fake_settle();
}

/* --- replies by key --------------------------------------------------------------- */

static const struct value *value_at(const struct value *v, const char *path)
{
    char text[128];
    char *rest = text, *step;

    (void)snprintf(text, sizeof(text), "%s", path);
    while (v != NULL && (step = strsep(&rest, ".")) != NULL && *step != '\0') {
        size_t place = strtoul(step, NULL, 10);

        if (*step < '0' || *step > '9') {
            v = value_get(v, step);
        } else {
            v = place < v->count ? &v->items[place] : NULL;
        }
    }
    return v;
}

static struct value parse_reply(const char *reply)
{
    struct value v;

    ck_assert_msg(value_parse(reply, strlen(reply), &v) == (long)strlen(reply),
                  "not one reply: %s", reply);
    return v;
}

static void print_field(const struct value *v, char *ret, size_t room)
{
    if (v == NULL) {
        (void)snprintf(ret, room, "nothing");
    } else if (v->type == VALUE_TEXT) {
        (void)snprintf(ret, room, "%s", v->text);
    } else if (v->type == VALUE_INT) {
        (void)snprintf(ret, room, ":%" PRId64, v->integer);
    } else {
        value_print(v, ret, room);
    }
}

void expect_fields(const char *reply, ...)
{
    struct value v = parse_reply(reply);
    const char *path;
    char got[1024];
    va_list ap;

    va_start(ap, reply);
    while ((path = va_arg(ap, const char *)) != NULL) {
        const char *wanted = va_arg(ap, const char *);

        print_field(value_at(&v, path), got, sizeof(got));
        ck_assert_msg(strcmp(got, wanted) == 0, "%s is %s, not %s", path, got, wanted);
    }
    va_end(ap);
    value_fini(&v);
}

void expect_keys(const char *reply, const char *path, const char *keys)
{
    struct value v = parse_reply(reply);
    const struct value *map = value_at(&v, path);
    char got[1024] = "";
    size_t len = 0;

    for (size_t i = 0; map != NULL && i + 1 < map->count; i += 2) {
        len +=
            (size_t)snprintf(got + len, sizeof(got) - len, "%s ", map->items[i].text);
    }
    ck_assert_msg(starts(got, keys), "%s: %s", path, got);
    value_fini(&v);
}
