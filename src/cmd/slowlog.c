#include "cmd/slowlog.h"

#include "cmd/cmd_priv.h"

static const char *const EVENTS[LATENCY_EVENT_COUNT] = {
    [LATENCY_COMMAND] = "command",
    [LATENCY_LOOP] = "loop",
    [LATENCY_REDIS] = "redis",
    [LATENCY_RENEWAL] = "renewal",
};

void latency_add(struct latency_series *s, uint64_t at_s, uint64_t ms)
{
    struct latency_sample *last =
        &s->samples[(s->next + LATENCY_SAMPLES - 1) % LATENCY_SAMPLES];

    s->max_ms = ms > s->max_ms ? ms : s->max_ms;
    if (s->count > 0 && last->at_s == at_s) {
        last->ms = ms > last->ms ? ms : last->ms;
        return;
    }
    s->samples[s->next] = (struct latency_sample){ at_s, ms };
    s->next = (s->next + 1) % LATENCY_SAMPLES;
    s->count += s->count < LATENCY_SAMPLES;
}

const struct latency_sample *latency_sample(const struct latency_series *s, size_t i)
{
    return &s->samples[(s->next + LATENCY_SAMPLES - s->count + i) % LATENCY_SAMPLES];
}

void cmd_latency(struct cmd *c, enum latency_event event, uint64_t ms)
{
    if (c->limits.latency_ms != 0 && ms >= c->limits.latency_ms) {
        latency_add(&c->latency->of[event], clock_wall_us() / 1000000, ms);
    }
}

/* --- LATENCY ----------------------------------------------------------- */

/* Finds an event by name; LATENCY_EVENT_COUNT: there is none. */
static enum latency_event find_event(const struct command_ctx *ctx, size_t at)
{
    int i = 0;

    while (i < LATENCY_EVENT_COUNT && !ctx_arg_is(ctx, at, EVENTS[i])) {
        i++;
    }
    return (enum latency_event)i;
}

static struct latency_series *series_of(const struct command_ctx *ctx, int event)
{
    return &ctx->cmd->latency->of[event];
}

void cmd_latency_latest(struct command_ctx *ctx)
{
    size_t count = 0;

    for (int i = 0; i < LATENCY_EVENT_COUNT; i++) {
        count += series_of(ctx, i)->count > 0;
    }
    resp_array(ctx->out, count);
    for (int i = 0; i < LATENCY_EVENT_COUNT; i++) {
        const struct latency_series *s = series_of(ctx, i);
        const struct latency_sample *last;

        if (s->count == 0) {
            continue;
        }
        last = latency_sample(s, s->count - 1);
        resp_array(ctx->out, 4);
        resp_bulk_str(ctx->out, EVENTS[i]);
        resp_int(ctx->out, (int64_t)last->at_s);
        resp_int(ctx->out, (int64_t)last->ms);
        resp_int(ctx->out, (int64_t)s->max_ms);
    }
}

void cmd_latency_history(struct command_ctx *ctx)
{
    enum latency_event event = find_event(ctx, 2);
    const struct latency_series *s;

    if (event == LATENCY_EVENT_COUNT) {
        resp_array(ctx->out, 0);
        return;
    }
    s = series_of(ctx, event);
    resp_array(ctx->out, s->count);
    for (size_t i = 0; i < s->count; i++) {
        const struct latency_sample *sample = latency_sample(s, i);

        resp_array(ctx->out, 2);
        resp_int(ctx->out, (int64_t)sample->at_s);
        resp_int(ctx->out, (int64_t)sample->ms);
    }
}

static int64_t reset_event(struct latency_series *s)
{
    bool any = s->count > 0;

    memset(s, 0, sizeof(*s));
    return any;
}

void cmd_latency_reset(struct command_ctx *ctx)
{
    int64_t count = 0;

    for (int i = 0; i < LATENCY_EVENT_COUNT && ctx->argc == 2; i++) {
        count += reset_event(series_of(ctx, i));
    }
    for (size_t at = 2; at < ctx->argc; at++) {
        enum latency_event event = find_event(ctx, at);

        if (event != LATENCY_EVENT_COUNT) {
            count += reset_event(series_of(ctx, event));
        }
    }
    resp_int(ctx->out, count);
}

enum {
    LOGGED_ARGS = 32,       /* arguments of a command that are stored */
    LOGGED_ARG_BYTES = 128, /* bytes of each */
    COUNT_DEFAULT = 10,     /* entries, when no count is given */
};

struct entry {
    struct list all;
    struct buf text;
};

void slowlog_init(struct slowlog *log)
{
    *log = (struct slowlog){ .count = 0 };
    list_init(&log->entries);
}

void slowlog_fini(struct slowlog *log)
{
    slowlog_trim(log, 0);
}

void slowlog_trim(struct slowlog *log, size_t max)
{
    while (log->count > max) {
        struct entry *e = container_of(log->entries.prev, struct entry, all);

        list_del(&e->all);
        buf_reset(&e->text);
        free(e);
        log->count--;
    }
}

/* Adds entry number *ret_id, and drops the oldest so that `max`, which must not be 0,
 * are left. The caller writes the text into the returned buffer. */
static struct buf *slowlog_add(struct slowlog *log, size_t max, uint64_t *ret_id)
{
    struct entry *e = xcalloc(1, sizeof(*e));

    slowlog_trim(log, max - 1);
    list_prepend(&log->entries, &e->all);
    log->count++;
    *ret_id = log->next_id++;
    return &e->text;
}

static void add_arg(struct buf *out, struct span arg)
{
    struct buf cut = { 0 };

    if (arg.len <= LOGGED_ARG_BYTES) {
        resp_bulk(out, arg);
        return;
    }
    buf_add(&cut, arg.ptr, LOGGED_ARG_BYTES);
    buf_printf(&cut, "... (%zu more bytes)", arg.len - LOGGED_ARG_BYTES);
    resp_bulk(out, buf_span(&cut));
    buf_reset(&cut);
}

static void add_args(struct buf *out, const struct command_ctx *ctx)
{
    size_t logged = ctx->argc <= LOGGED_ARGS ? ctx->argc : LOGGED_ARGS - 1;
    char rest[64];

    resp_array(out, logged + (logged < ctx->argc));
    for (size_t i = 0; i < logged; i++) {
        add_arg(out, redacted_arg(ctx, i));
    }
    if (logged < ctx->argc) {
        (void)snprintf(rest, sizeof(rest), "... (%zu more arguments)",
                       ctx->argc - logged);
        resp_bulk_str(out, rest);
    }
}

void slowlog_note(const struct command_ctx *ctx, uint64_t us)
{
    struct cmd *c = ctx->cmd;
    int64_t slow_us = c->limits.slowlog_us;
    char peer[REDACTED_PEER_ROOM];
    struct buf *out;
    uint64_t id;

    if (c->limits.slowlog_len == 0 || slow_us < 0 || us < (uint64_t)slow_us) {
        return;
    }
    out = slowlog_add(&c->slow, c->limits.slowlog_len, &id);
    redacted_peer(ctx->conn, peer);
    resp_array(out, 6);
    resp_int(out, (int64_t)id);
    resp_int(out, (int64_t)(clock_wall_us() / 1000000));
    resp_int(out, (int64_t)us);
    add_args(out, ctx);
    resp_bulk_str(out, peer);
    resp_bulk_str(out, client_text(ctx->client, CLIENT_NAME));
}

enum { WAIT_PAIRS = 9 };

const char *wait_outcome(const struct effect_waited *w)
{
    static const char *const WORDS[] = {
        [WAIT_GRANTED] = "granted", [WAIT_NULL] = "null", [WAIT_GONE] = "gone"
    };

    return w->end == WAIT_REFUSED ? lock_error_word(w->error) : WORDS[w->end];
}

static void add_pair(struct buf *out, const char *key, struct span value)
{
    resp_bulk_str(out, key);
    resp_bulk(out, value);
}

static void add_number(struct buf *out, const char *key, uint64_t value)
{
    resp_bulk_str(out, key);
    resp_int(out, (int64_t)value);
}

void cmd_waited(struct cmd *c, const struct effect_waited *w)
{
    char peer[REDACTED_PEER_ROOM];
    struct buf *out;
    uint64_t id;

    if (c->limits.slowlog_len == 0) {
        return;
    }
    out = slowlog_add(&c->waits, c->limits.slowlog_len, &id);
    add_number(out, "id", id);
    add_number(out, "time", clock_wall_us() / 1000000);
    add_pair(out, "name", w->name);
    add_pair(out, "kind", span_str(lock_kind_name(w->lock_kind)));
    add_pair(out, "owner", w->owner);
    add_number(out, "waited", w->waited_ms);
    add_pair(out, "outcome", span_str(wait_outcome(w)));
    add_number(out, "client", w->conn);
    add_pair(out, "address", span_str(client_address(c, w->conn, peer)));
}

/* --- SLOWLOG ---------------------------------------------------------- */

/* Reads the count of SLOWLOG GET; -1: all. False: an error reply was written. */
static bool read_count(struct command_ctx *ctx, size_t *ret)
{
    int64_t count = COUNT_DEFAULT;

    if (ctx->argc > 3) {
        ctx_subcommand_error(ctx);
        return false;
    }
    if (ctx->argc == 3 && (!parse_i64(ctx->argv[2], &count) || count < -1)) {
        ctx_error(ctx, LATCHD_ERR, "count should be greater than or equal to -1");
        return false;
    }
    *ret = count < 0 ? SIZE_MAX : (size_t)count;
    return true;
}

/* `pairs`: of the map that an entry is; 0: it is an array, and has its head. */
static void write_entries(struct command_ctx *ctx, const struct slowlog *log,
                          size_t pairs)
{
    struct entry *e;
    size_t count;

    if (!read_count(ctx, &count)) {
        return;
    }
    resp_array(ctx->out, count < log->count ? count : log->count);
    LIST_EACH(e, &log->entries, all) {
        if (count-- == 0) {
            return;
        }
        if (pairs != 0) {
            resp_map(ctx->out, ctx->proto, pairs);
        }
        buf_add_span(ctx->out, buf_span(&e->text));
    }
}

void cmd_slowlog_get(struct command_ctx *ctx)
{
    write_entries(ctx, &ctx->cmd->slow, 0);
}

void cmd_slowlog_waits(struct command_ctx *ctx)
{
    write_entries(ctx, &ctx->cmd->waits, WAIT_PAIRS);
}

void cmd_slowlog_len(struct command_ctx *ctx)
{
    resp_int(ctx->out, (int64_t)ctx->cmd->slow.count);
}

void cmd_slowlog_reset(struct command_ctx *ctx)
{
    slowlog_trim(&ctx->cmd->slow, 0);
    slowlog_trim(&ctx->cmd->waits, 0);
    resp_simple(ctx->out, "OK");
}
