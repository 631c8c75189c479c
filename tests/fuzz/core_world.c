/* Turns and time. */
#include "core_world.h"
#include "cmd/slowlog.h"
#include "cmd/stats.h"

#include "engine/op.h"
#include "resp/parser.h"
#include "util/alloc.h"
#include "util/log.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    ROUNDS_MAX = 2000,  /* of one turn: more is an engine that spins */
    SPINS_MAX = 2000,   /* ticks of one moment */
    ENDING_MAX = 20000, /* ticks until nothing is left */
};

struct world world;

void world_fail(const char *what)
{
    (void)fprintf(stderr, "%s\n", what);
    abort();
}

/* --- what the daemon is to commands ------------------------------------------------
 */

static uint64_t env_now(void *ctx)
{
    return world.now;
}

static void env_config_each(void *ctx, struct span pattern, config_pair_fn *fn,
                            void *arg)
{
    fn(arg, "port", "5625");
}

static bool env_config_set(void *ctx, const struct span *pairs, size_t count,
                           char *reterr, size_t room)
{
    (void)snprintf(reterr, room, "%zu pairs refused", count);
    return count == 1;
}

static bool env_config_rewrite(void *ctx, char *reterr, size_t room)
{
    (void)snprintf(reterr, room, "there is no file");
    return false;
}

static void env_reset_stats(void *ctx)
{
}

static const char *env_password(void *ctx)
{
    return NULL;
}

static void env_info(void *ctx, const char *section, struct buf *out)
{
    buf_printf(out, "section:%s\r\n", section);
}

static void env_hear(void *ctx, bool is_pattern, struct span name, bool wanted)
{
}

/* Redis sends nothing back, and takes no message. */
static bool env_hears(void *ctx, bool is_pattern, struct span name)
{
    return false;
}

static bool env_publish(void *ctx, struct span channel, struct span text)
{
    return false;
}

static void env_shutdown(void *ctx)
{
    engine_stop(world.engine);
    cmd_stop(world.cmd);
}

static uint32_t group_of(struct span name)
{
    return name.len == 0 ? 0 : (unsigned char)name.ptr[0] % 2;
}

void world_begin(unsigned kind)
{
    static const struct cmd_limits LIMITS = { .local_names = "l*",
                                              .max_name = 512,
                                              .max_lease_ms = WORLD_LEASE_MAX,
                                              .max_keep_ms = 30000,
                                              .slowlog_us = 10000,
                                              .slowlog_len = 8,
                                              .latency_ms = 100 };
    struct engine_setup setup = {
        .config = { .watchdog_ms = 30000,
                    .redis_timeout_ms = 3000,
                    .recheck_ms = 5000,
                    .fair_wait_ms = 30000,
                    .fair_window = 2,
                    .handover_limit = 3,
                    .handover_pause_ms = 2,
                    .local_window_ms = 100,
                    .priority_aging_ms = 500,
                    .grace_ms = -1,
                    .long_wait_ms = 1000,
                    .max_waiters = 100,
                    .max_holds = 100,
                    .quarantine_ms = 30000 },
        .instance = "aaaaaaaaaaaaaaaa",
        .now_ms = 1000000,
        .seed = 1,
        .group_of = (kind & 1) != 0 ? group_of : NULL,
        .group_count = (kind & 1) != 0 ? 2 : 0,
        .quorum = (kind & 2) != 0,
    };
    struct cmd_env env = {
        .now_ms = env_now,
        .config_each = env_config_each,
        .config_set = env_config_set,
        .config_rewrite = env_config_rewrite,
        .reset_stats = env_reset_stats,
        .password = env_password,
        .info = env_info,
        .shutdown = env_shutdown,
        .hear = env_hear,
        .hears = env_hears,
        .publish = env_publish,
        .run_id = "0123456789012345678901234567890123456789",
    };
    struct resp_parser *parser = world.parser;

    world = (struct world){ .now = setup.now_ms, .token = 1000, .up = true };
    world.grouped = (kind & 1) != 0;
    world.parser = parser != NULL ? parser : resp_parser_new();
    list_init(&world.asked);
    log_set_level(LOG_ERROR);
    world.engine = env.engine = engine_new(&setup);
    world.cmd = cmd_new(&env, &LIMITS);
    world_turn_begin();
    engine_on_store_up(world.engine, true);
    world_turn_end();
}

/* --- turns ------------------------------------------------------------------------ */

void world_turn_begin(void)
{
    engine_tick(world.engine, world.now);
    cmd_tick(world.cmd, world.now);
}

static void ask(const struct op *op)
{
    struct asked *asked = xcalloc(1, sizeof(*asked));

    if (!world.up) {
        world_fail("an op while Redis is down");
    }
    asked->op = op_clone(op);
    list_append(&world.asked, &asked->in_world);
    world.asked_count++;
}

static void want(const struct effect_channel *c)
{
    struct wanted *w = &world.wanted[world.wanted_count % WORLD_SUBS];

    if (c->name.len <= WORLD_NAME_MAX) {
        w->len = c->name.len;
        w->lock_class = c->lock_class;
        memcpy(w->name, c->name.ptr, c->name.len);
        world.wanted_count++;
    }
}

static void do_effects(void)
{
    struct effects *list = engine_effects(world.engine);

    for (size_t i = 0; i < list->count; i++) {
        struct effect fx = *list->list[i];

        switch (fx.kind) {
        case EFFECT_OP:
            ask(&fx.op);
            break;
        case EFFECT_REPLY:
            cmd_reply(world.cmd, &fx.reply);
            break;
        case EFFECT_NOTICE:
            cmd_notice(world.cmd, &fx.notice);
            break;
        case EFFECT_WAITED:
            cmd_waited(world.cmd, &fx.waited);
            break;
        case EFFECT_SUBSCRIBE:
            want(&fx.channel);
            break;
        case EFFECT_LEADER:
            cmd_leader_changed(world.cmd, &fx.leader);
            break;
        case EFFECT_HELD:
        case EFFECT_UNSUBSCRIBE:
        case EFFECT_HEARTBEAT:
        case EFFECT_ANNOUNCE:
        case EFFECT_WATCH:
            break;
        }
    }
    cmd_push(world.cmd);
    effects_reset(list);
}

void world_turn_end(void)
{
    int rounds = 0;

    do {
        do_effects();
        if (++rounds > ROUNDS_MAX) {
            world_fail("a turn without an end");
        }
    } while (world_run_conns() || engine_effects(world.engine)->count > 0);
    world_flush_conns();
    do_effects(); /* of those that were closed */
}

static uint64_t next_deadline(void)
{
    uint64_t locks = engine_next_deadline(world.engine);
    uint64_t cmd = cmd_next_deadline(world.cmd);

    return locks < cmd ? locks : cmd;
}

static void tick(void)
{
    world_turn_begin();
    world_turn_end();
}

void world_pass(uint64_t ms)
{
    uint64_t end = world.now + ms;
    int spins = 0;

    for (uint64_t at = next_deadline(); at <= end; at = next_deadline()) {
        spins = at > world.now ? 0 : spins + 1;
        world.now = at > world.now ? at : world.now;
        tick();
        if (spins > SPINS_MAX) {
            world_fail("it is always late");
        }
    }
    world.now = end;
    tick();
    cmd_second(world.cmd, world.now);
}

void world_jump(uint64_t ms)
{
    world.now += ms;
    tick();
}

/* --- Redis ------------------------------------------------------------------------ */

void world_down(void)
{
    if (world.up) {
        world_turn_begin();
        world.up = false;
        engine_on_store_down(world.engine);
        world_turn_end();
    }
}

void world_up(bool same)
{
    if (!world.up) {
        size_t old = world.asked_count;

        world_turn_begin();
        world.up = true;
        engine_on_store_up(world.engine, same);
        world_turn_end();
        while (old-- > 0) {
            world_answer(false, 'k', 0);
        }
    }
}

/* --- the end ---------------------------------------------------------------------- */

static void check_empty(void)
{
    struct engine_stats stats;

    engine_stats(world.engine, &stats);
    if (stats.locks + stats.holds + stats.waiters + stats.ops_in_flight +
            stats.restoring + stats.entries + stats.uncertain !=
        0) {
        world_fail("nobody is there any more, but something is left");
    }
}

/* Grants that nobody has any use for any more are refused, and holds given back. */
static void answer_all(void)
{
    while (!list_empty(&world.asked)) {
        struct op *op =
            container_of(list_first(&world.asked), struct asked, in_world)->op;
        bool takes = op->kind == OP_ACQUIRE || op->kind == OP_ACQUIRE_BATCH;
        bool asks = op->kind == OP_ATTACH || op->kind == OP_RESTORE;

        world_answer(false, takes ? 'b' : asks ? 'n' : 'o', takes ? 100 : 0);
    }
}

void world_end(void)
{
    world_up(true);
    world.over = true;
    world_turn_begin();
    for (size_t i = 0; i < WORLD_CONNS; i++) {
        world_close(i, false);
    }
    world_turn_end();
    answer_all();
    for (int n = 0; next_deadline() != UINT64_MAX; n++) {
        uint64_t at = next_deadline();

        world.now = at > world.now ? at : world.now;
        tick();
        answer_all();
        if (n > ENDING_MAX) {
            world_fail("it does not come to rest");
        }
    }
    check_empty();
    cmd_free(world.cmd);
    engine_free(world.engine);
    world_forget_ops();
    world_free_conns();
}
