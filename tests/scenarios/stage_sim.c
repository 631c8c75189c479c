/* The stage `sim`: engines, clients and a Redis in virtual time, with nothing left to
 * chance: tests/sim/scenario.h. The checks of tests/sim/check/ look on.
 *
 * A client is connected when it is first named. `a: LOCK job -> token` says that and
 * lets the answer come; without `->` no time passes. A token that client `a` was given
 * is $a; of an MLOCK, $a.0 and so on. */
#include "scenarios/engine_fields.h"
#include "sim/redis/sim_redisson.h"
#include "sim/scenario.h"
#include "support/scenario.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS_MAX = 1200 };

static struct sim *s;
static bool over; /* the scenario has ended its world itself */

static struct sim_client {
    char name[SCN_NAME_MAX];
    size_t daemon, index;
    uint64_t id; /* of its connection; 0: it was never connected */
    uint64_t tokens[ASK_NAMES_MAX];
} clients[CLIENTS_MAX];
static size_t client_count;

static struct sim_foreign *redissons[SIM_FOREIGNS_MAX];
static size_t redisson_count;

/* --- the world ------------------------------------------------------------------ */

#define WORLD(name, member) SCN_MEMBER(struct sim, name, member)
static const struct scn_field WORLD_FIELDS[] = {
    WORLD("calm", calm),
    WORLD("orderly", orderly),
    WORLD("rtt_ms", profile.rtt_ms),
    WORLD("foreign_ms", profile.foreign_ms),
    WORLD("undelivered", profile.undelivered),
    WORLD("min_replicas", profile.min_replicas),
    WORLD("unheeded", profile.unheeded),
    WORLD("mixed", profile.mixed),
    WORLD("rw", profile.rw[0]),
    WORLD("resurrected", check.resurrected),
    WORLD("fences_lost", check.fences_lost),
    WORLD("clock_set_back", check.clock_set_back),
    WORLD("isolated", daemons[0].isolated),
    WORLD("replicas_gone_until", replicas_gone_until),
    WORLD("redis_ahead_ms", redis_ahead_ms),
    WORLD("set_back_ms", set_back_ms),
    /* These are only looked at: */
    WORLD("now", now),
    WORLD("redis_now", redis.now_ms),
    WORLD("scripts", redis.scripts),
    WORLD("lost", check.lost),
    WORLD("uncertain", check.uncertain),
    WORLD("expired", check.expired),
    WORLD("thrown_out", check.thrown_out),
    WORLD("loans", check.loan_count),
    WORLD("grants", check.grants),
    WORLD("deadlocks", check.deadlocks),
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void make_world(size_t daemons, const struct scn_words *words)
{
    struct engine_config config = scenario_config();

    ck_assert_ptr_null(s);
    for (size_t i = 1; words != NULL && i < words->count; i++) {
        set_engine_config(&config, words->at[i]);
    }
    s = scenario_with(daemons, &config);
}

/* One daemon, unless `daemons` has said otherwise. */
static struct sim *world(void)
{
    if (s == NULL) {
        make_world(1, NULL);
    }
    return s;
}

static void begin(void)
{
    s = NULL;
    over = false;
    client_count = redisson_count = 0;
}

static void end(void)
{
    if (!over) {
        scenario_end(world());
    }
}

static void pass_1_ms(void)
{
    sim_run(world(), 1);
}

static uint64_t now(void)
{
    return world()->now;
}

static void do_daemons(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    make_world((size_t)scn_number(words, 0), words);
}

static void do_set(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    for (size_t i = 0; i < words->count; i++) {
        scn_set_field(world(), WORLD_FIELDS, COUNT(WORLD_FIELDS), words->at[i]);
    }
}

static void do_world(const struct scn_words *words, struct value *ret)
{
    (void)words;
    scn_put_fields(ret, world(), WORLD_FIELDS, COUNT(WORLD_FIELDS));
}

static struct sim_daemon *daemon_of(const struct scn_words *words)
{
    int64_t index = scn_number(words, 0);

    if (index < 0 || index >= (int64_t)world()->daemon_count) {
        scn_fail("there is no daemon %d", (int)index);
    }
    return &s->daemons[index];
}

static void do_stats(const struct scn_words *words, struct value *ret)
{
    put_engine_stats(ret, daemon_of(words)->engine);
}

static void do_names(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    for (size_t i = 0; i < words->count; i++) {
        size_t at = world()->profile.names++;

        s->names[at] = sim_redis_name(sim_redis_now(s), span_str(words->at[i]));
    }
}

static void do_latches(const struct scn_words *words, struct value *ret)
{
    (void)words;
    (void)ret;
    latches_begin(world());
}

static void do_after(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    sim_run(world(), (uint64_t)scn_number(words, 0));
}

/* Until that time, of `world -> now=$t`. */
static void do_at(const struct scn_words *words, struct value *ret)
{
    uint64_t at = (uint64_t)scn_number(words, 0);

    (void)ret;
    ck_assert_uint_ge(at, world()->now);
    sim_run(s, at - s->now);
}

static void do_abandon(const struct scn_words *words, struct value *ret)
{
    (void)words;
    (void)ret;
    ck_assert_msg(!s->failed, "%s", s->failure);
    sim_free(s);
    over = true;
}

/* The checks have found that: a rule was taken out on purpose. */
static void do_fails(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    ck_assert(s->failed);
    if (strstr(s->failure, scn_word(words, 0)) == NULL) {
        scn_fail("it fails with: %s", s->failure);
    }
    sim_free(s);
    over = true;
}

/* --- clients -------------------------------------------------------------------- */

static void note_tokens(struct sim_client *c)
{
    const struct sim_conn *conn = &s->clients.conns[c->index];

    if (c->id == 0 || conn->id != c->id || conn->asking) {
        return;
    }
    if (conn->answer.kind == REPLY_TOKEN) {
        c->tokens[0] = (uint64_t)conn->answer.value;
    } else if (conn->answer.kind == REPLY_TOKENS) {
        memcpy(c->tokens, conn->answer.tokens, sizeof c->tokens);
    }
}

static struct sim_client *find_client(const char *name, bool make)
{
    struct sim_client *c;

    for (size_t i = 0; i < client_count; i++) {
        if (strcmp(clients[i].name, name) == 0) {
            return &clients[i];
        }
    }
    if (!make) {
        return NULL;
    }
    ck_assert_uint_lt(client_count, CLIENTS_MAX);
    c = &clients[client_count++];
    *c = (struct sim_client){ 0 };
    (void)snprintf(c->name, sizeof c->name, "%s", name);
    return c;
}

static bool is_client(const char *name)
{
    return find_client(name, false) != NULL;
}

/* Connections are numbered anew: their tokens are noted before. */
static void connect_client(struct sim_client *c)
{
    (void)world();
    for (size_t i = 0; i < client_count; i++) {
        note_tokens(&clients[i]);
    }
    c->index = sim_connect(s, c->daemon);
    c->id = s->clients.conns[c->index].id;
}

static bool is_open(const struct sim_client *c)
{
    const struct sim_conn *conn = &world()->clients.conns[c->index];

    return c->id != 0 && conn->id == c->id && conn->open;
}

/* `connect a b @1` */
static void do_connect(const struct scn_words *words, struct value *ret)
{
    const char *last = scn_word(words, words->count - 1);
    size_t daemon = *last == '@' ? (size_t)strtoul(last + 1, NULL, 10) : 0;

    (void)ret;
    for (size_t i = 0; i < words->count - (*last == '@' ? 1 : 0); i++) {
        struct sim_client *c = find_client(words->at[i], true);

        c->daemon = daemon;
        connect_client(c);
    }
}

static struct sim_client *client_of(const char *name)
{
    struct sim_client *c = find_client(name, false);

    if (c == NULL) {
        scn_fail("there is no client '%s'", name);
    }
    note_tokens(c);
    return c;
}

static void do_close(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    for (size_t i = 0; i < words->count; i++) {
        sim_close(s, client_of(words->at[i])->index);
    }
}

static void hear(const struct sim_client *c, struct value *ret)
{
    const struct sim_conn *conn = &s->clients.conns[c->index];
    const char *heard = sim_heard(s, c->index);

    if (strcmp(heard, "...") == 0) {
        scn_text(ret, "...");
        return;
    }
    switch (conn->answer.kind) {
    case REPLY_TOKEN:
    case REPLY_INT:
        scn_int(ret, conn->answer.value);
        break;
    case REPLY_NULL:
        break;
    case REPLY_TOKENS:
        for (size_t i = 0; i < conn->ask.name_count; i++) {
            scn_add_int(ret, (int64_t)conn->answer.tokens[i]);
        }
        break;
    case REPLY_LEADER:
        scn_put_text(ret, "", "%s", heard);
        scn_put_int(ret, "token", conn->answer.value);
        scn_put_text(ret, "text", "%s", conn->answer.text.s);
        break;
    default:
        scn_text(ret, "%s", heard + (*heard == '-'));
        ret->type = *heard == '-' ? VALUE_ERROR : VALUE_TEXT;
        break;
    }
}

static void say(const struct scn_saying *saying, struct value *ret)
{
    struct sim_client *c = find_client(saying->who, true);
    char text[400] = "";
    size_t at = 0;

    (void)world();
    if (c->id == 0 || (saying->words->count > 0 && !is_open(c))) {
        connect_client(c);
    }
    for (size_t i = 0; i < saying->words->count && at < sizeof text; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i == 0 ? "" : " ",
                               saying->words->at[i]);
    }
    if (at >= sizeof text) {
        scn_fail("too long: %.100s", text);
    }
    if (saying->words->count > 0) {
        note_tokens(c);
        sim_say(s, c->index, "%s", text);
        if (saying->want != SCN_NOTHING) {
            sim_run(s, SCENARIO_RTT_MS);
        }
    }
    note_tokens(c);
    if (saying->want != SCN_NOTHING) {
        hear(c, ret);
    }
}

static bool look_up(const char *name, char ret[SCN_VALUE_MAX])
{
    char stem[SCN_NAME_MAX];
    const char *dot = strchr(name, '.');
    size_t i = dot == NULL ? 0 : strtoul(dot + 1, NULL, 10);
    struct sim_client *c;

    (void)snprintf(stem, sizeof stem, "%.*s",
                   dot == NULL ? (int)strlen(name) : (int)(dot - name), name);
    c = find_client(stem, false);
    if (c == NULL || i >= ASK_NAMES_MAX) {
        return false;
    }
    note_tokens(c);
    (void)snprintf(ret, SCN_VALUE_MAX, "%" PRIu64, c->tokens[i]);
    return c->tokens[i] != 0;
}

/* `served a b c 100`: one after the other, each within so many ms; each unlocks. */
static void do_served(const struct scn_words *words, struct value *ret)
{
    size_t conns[CLIENTS_MAX], count = words->count - 1;

    (void)ret;
    for (size_t i = 0; i < count; i++) {
        conns[i] = client_of(words->at[i])->index;
    }
    scenario_served_in_order(s, conns, count, (uint64_t)scn_number(words, count));
}

/* Of these clients, the first one that was given a token gives it back: 1; 0: none. */
static void do_unlock_one(const struct scn_words *words, struct value *ret)
{
    size_t conns[CLIENTS_MAX];

    for (size_t i = 0; i < words->count; i++) {
        conns[i] = client_of(words->at[i])->index;
    }
    scn_int(ret, scenario_unlocks(world(), conns, words->count) ? 1 : 0);
}

/* Of these clients, the first one whose MLOCK was granted gives its names back: 1. */
static void do_unlock_mlock(const struct scn_words *words, struct value *ret)
{
    scn_int(ret, 0);
    for (size_t i = 0; i < words->count && ret->integer == 0; i++) {
        const struct sim_client *c = client_of(words->at[i]);
        const struct sim_conn *conn = &s->clients.conns[c->index];
        const struct ask ask = conn->ask;

        if (conn->asking || conn->answer.kind != REPLY_TOKENS) {
            continue;
        }
        for (size_t k = 0; k < ask.name_count; k++) {
            sim_say(s, c->index, "UNLOCK %s TOKEN %" PRIu64, ask.names[k].s,
                    c->tokens[k]);
            sim_run(s, SCENARIO_RTT_MS);
            heard(s, c->index, "0");
        }
        scn_int(ret, 1);
    }
}

/* `ask-again "LOCK job" a b`: those of them whose UNLOCK was answered say that. */
static void do_ask_again(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    for (size_t i = 1; i < words->count; i++) {
        size_t index = client_of(words->at[i])->index;

        if (sim_heard(s, index)[0] == '0') {
            sim_say(s, index, "%s", words->at[0]);
        }
    }
}

/* The last loan that the checks have seen. */
static void do_loan(const struct scn_words *words, struct value *ret)
{
    const struct sim_loan *loan =
        &world()->check.loans[(s->check.loan_count - 1) % LOANS_KEPT];

    (void)words;
    ck_assert_uint_gt(s->check.loan_count, 0);
    scn_put_int(ret, "token", (int64_t)loan->token);
    scn_put_int(ret, "first", (int64_t)loan->first);
}

/* --- Redis ---------------------------------------------------------------------- */

static struct redis_name *name_of(const struct scn_words *words)
{
    const char *name = words->count > 0 ? words->at[0] : "job";

    return sim_redis_name(sim_redis_now(world()), span_str(name));
}

static void do_name(const struct scn_words *words, struct value *ret)
{
    const struct redis_name *n = name_of(words);
    int64_t due = 0;

    for (size_t i = 0; i < n->score_count; i++) {
        due = n->scores[i].score > due ? n->scores[i].score : due;
    }
    scn_put_int(ret, "due", due); /* the last deadline in the fair queue */
    scn_put_text(ret, "", "%s", n->field_count == 0 ? "free" : n->fields[0].owner.s);
    scn_put_int(ret, "fields", (int64_t)n->field_count);
    scn_put_int(ret, "entries", n->field_count == 0 ? 0 : n->fields[0].count);
    scn_put_int(ret, "ttl", redis_pttl(&s->redis, n));
    scn_put_int(ret, "fence", (int64_t)n->fence_token);
    scn_put_int(ret, "queue", (int64_t)n->queue_count);
    scn_put_int(ret, "scores", (int64_t)n->score_count);
    scn_put_int(ret, "out", (int64_t)n->out);
    scn_put_int(ret, "free", n->free);
}

static void do_queue(const struct scn_words *words, struct value *ret)
{
    (void)words;
    scn_text(ret, "%s", scenario_queue(world()));
}

static void from_reply(const struct key_reply *r, struct value *ret)
{
    switch (r->type) {
    case KEY_REPLY_NIL:
        break;
    case KEY_REPLY_INTEGER:
        scn_int(ret, r->integer);
        break;
    case KEY_REPLY_ARRAY:
        ret->type = VALUE_LIST;
        ret->count = r->count;
        ret->items = calloc(r->count + 1, sizeof *ret->items);
        for (size_t i = 0; i < r->count; i++) {
            from_reply(&r->items[i], &ret->items[i]);
        }
        break;
    default:
        scn_text(ret, "%.*s", S(r->text));
        ret->type = r->type == KEY_REPLY_ERROR ? VALUE_ERROR : VALUE_TEXT;
        break;
    }
}

/* A command, as somebody with redis-cli sends it. */
static void do_redis(const struct scn_words *words, struct value *ret)
{
    struct span argv[SCN_WORDS_MAX];
    struct key_reply reply;

    (void)scn_word(words, 0);
    for (size_t i = 0; i < words->count; i++) {
        argv[i] = span_str(words->at[i]);
    }
    reply = keyspace_call(redis_begin(sim_redis_now(world())), words->count, argv);
    from_reply(&reply, ret);
    redis_read_all(&s->redis);
    redis_end(&s->redis);
}

/* The checks cannot know this: somebody else touched the name, or all names. */
static void do_external(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    check_external(world(),
                   strcmp(scn_word(words, 0), "all") == 0 ? NULL : name_of(words));
}

static void do_publish(const struct scn_words *words, struct value *ret)
{
    struct redis_name *n = name_of(words);

    (void)ret;
    redis_publish(&s->redis, n);
}

static void do_save(const struct scn_words *words, struct value *ret)
{
    (void)words;
    (void)ret;
    sim_redis_save(sim_redis_now(world()), &s->backup);
}

static void do_restore(const struct scn_words *words, struct value *ret)
{
    (void)words;
    (void)ret;
    check_external(s, NULL);
    sim_redis_restore(sim_redis_now(s), s->backup);
    s->check.resurrected = true;
}

/* --- faults --------------------------------------------------------------------- */

static void do_pause(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    fault_pause(world(), (uint64_t)scn_number(words, 0));
}

static void do_stall(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    fault_stall(s, daemon_of(words)->index, (uint64_t)scn_number(words, 1));
}

static void do_clock(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    fault_clock(world(), scn_number(words, 0));
}

static void do_flush(const struct scn_words *words, struct value *ret)
{
    (void)words;
    (void)ret;
    fault_flush(world());
}

/* Redis tells the daemons of changes from now on. */
static void do_watch(const struct scn_words *words, struct value *ret)
{
    (void)words;
    (void)ret;
    watch_begin(world());
}

/* A false alarm, of a name; of all names, as FLUSHDB of another database gives it. */
static void do_touch(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    watch_touch(world(), name_of(words));
}

static void do_flush_elsewhere(const struct scn_words *words, struct value *ret)
{
    (void)words;
    (void)ret;
    watch_flushed(world());
}

static void do_cut_watch(const struct scn_words *words, struct value *ret)
{
    (void)words;
    (void)ret;
    watch_break(world(), &world()->daemons[0]);
}

/* `restart 200` keeps everything, `restart 200 empty` nothing. */
static void do_restart(const struct scn_words *words, struct value *ret)
{
    bool known = peers_know_each_other(world());

    (void)ret;
    fault_restart(s, (uint64_t)scn_number(words, 0));
    if (words->count > 1) {
        check_lost(s, known);
        redis_flushall(sim_redis_now(s));
    }
}

static void do_mark(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    fault_replica_at(world(), (uint64_t)scn_number_or(words, 0, UINT32_MAX));
}

static void do_lose(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    fault_failover(world(), (uint64_t)scn_number_or(words, 0, SCENARIO_GONE_MS));
}

static void do_demote(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    fault_demote(s, daemon_of(words)->index, (uint64_t)scn_number(words, 1));
}

/* `replicas-gone 500`: they acknowledge nothing for so long; 0: they are there. */
static void do_replicas_gone(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    world()->replicas_gone_until = s->now + (uint64_t)scn_number(words, 0);
}

/* What a master that was isolated has of the first name. */
static void do_isolated(const struct scn_words *words, struct value *ret)
{
    (void)words;
    scn_put_int(ret, "fields", (int64_t)s->isolated->names[0].field_count);
}

static void do_isolate(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    fault_isolate(s, daemon_of(words)->index);
}

/* `break 0 5 500`: the link of daemon 0 dies, which it notices in 5 ms; back in 500, at
 * the same server unless `other` follows. */
static void do_break(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    link_break(s, daemon_of(words), (uint64_t)scn_number(words, 1),
               (uint64_t)scn_number(words, 2), words->count < 4);
}

static void do_break_sub(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    sub_break(s, daemon_of(words), (uint64_t)scn_number(words, 1),
              (uint64_t)scn_number(words, 2));
}

static void do_lose_scripts(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    link_lose_scripts(s, daemon_of(words));
}

static void do_kill(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    sim_kill_daemon(s, daemon_of(words)->index);
}

static void do_start(const struct scn_words *words, struct value *ret)
{
    struct sim_daemon *d = daemon_of(words);
    struct engine_config config = d->config;

    (void)ret;
    sim_start_daemon(s, d->index, &config);
}

static void do_stop(const struct scn_words *words, struct value *ret)
{
    struct sim_daemon *d = daemon_of(words);

    (void)ret;
    d->stopping = true;
    engine_stop(sim_turn_begin(s, d));
    sim_turn_end(s, d);
}

static void do_stopped(const struct scn_words *words, struct value *ret)
{
    scn_int(ret, engine_stopped(daemon_of(words)->engine) ? 1 : 0);
}

/* --- Redisson ------------------------------------------------------------------- */

static const struct scn_field REDISSON[] = {
    SCN_FIELD(struct sim_foreign, holds),   SCN_FIELD(struct sim_foreign, waits),
    SCN_FIELD(struct sim_foreign, watched), SCN_FIELD(struct sim_foreign, dies),
    SCN_FIELD(struct sim_foreign, end_at),  SCN_FIELD(struct sim_foreign, lease_ms),
    SCN_FIELD(struct sim_foreign, wait_ms), SCN_FIELD(struct sim_foreign, skew_ms),
};

/* `redisson starts fair wait_ms=5000`: a client that wants the lock, and waits for it.
 * The first is number 0. */
static void start_redisson(const struct scn_words *words)
{
    static const char *const KINDS[] = { "plain", "spin", "fair", "read", "write" };
    struct sim_foreign *f = NULL;

    for (size_t i = 0; i < COUNT(KINDS); i++) {
        if (strcmp(scn_word(words, 1), KINDS[i]) == 0) {
            f = foreign_start(world(), scenario_job(world()), (enum foreign_kind)i,
                              true);
        }
    }
    ck_assert_ptr_nonnull(f);
    for (size_t i = 2; i < words->count; i++) {
        scn_set_field(f, REDISSON, COUNT(REDISSON), words->at[i]);
    }
    foreign_act_now(s, f);
    redissons[redisson_count++] = f;
}

static void one_redisson(const struct scn_words *words, struct value *ret)
{
    struct sim_foreign *f = redissons[scn_number(words, 0)];
    const char *verb = words->count > 1 ? words->at[1] : "";

    for (size_t i = 1; i < words->count; i++) {
        if (strchr(words->at[i], '=') != NULL) {
            scn_set_field(f, REDISSON, COUNT(REDISSON), words->at[i]);
        } else if (i > 1) {
            scn_fail("a word too much: %s", words->at[i]);
        }
    }
    if (strcmp(verb, "releases") == 0) {
        foreign_release(s, f);
    } else if (strcmp(verb, "dies") == 0) {
        foreign_die(s, f);
    } else if (strcmp(verb, "acts") == 0) {
        foreign_act_now(s, f);
    }
    scn_put_fields(ret, f, REDISSON, COUNT(REDISSON));
    scn_put_int(ret, "in_redis",
                redis_field(scenario_job(s), rtext_span(&f->owner)) != NULL);
}

#define REDISSON_OWNER "7d1f6bd4-83a1-4ce0-9b43-0f6a1d7b2a10:42"

/* Without a number: one owner that only takes and releases. */
static void do_redisson(const struct scn_words *words, struct value *ret)
{
    const char *verb = scn_word(words, 0);
    bool takes_more = strcmp(verb, "starts") == 0 || (*verb >= '0' && *verb <= '9');

    if (words->count > 2 && !takes_more) {
        scn_fail("a word too much: %s", words->at[2]);
    }
    (void)world();
    if (strcmp(verb, "starts") == 0) {
        start_redisson(words);
    } else if (strcmp(verb, "takes") == 0) {
        scenario_foreign_takes(s, (uint64_t)scn_number(words, 1));
    } else if (strcmp(verb, "tries") == 0) {
        scn_int(ret,
                redis_foreign_take(&s->redis, scenario_job(s), SPAN(REDISSON_OWNER),
                                   (uint64_t)scn_number(words, 1)));
    } else if (strcmp(verb, "waits") == 0) {
        scenario_foreign_waits(s);
    } else if (strcmp(verb, "releases") == 0) {
        scenario_foreign_releases(s, words->count == 1); /* else `silently` */
    } else if (strcmp(verb, "holds") == 0) {
        scn_int(ret, scenario_foreign_holds(s) ? 1 : 0);
    } else if (strcmp(verb, "writes") == 0) {
        ck_assert(redis_foreign_write(&s->redis, scenario_job(s), SPAN(REDISSON_OWNER),
                                      (uint64_t)scn_number(words, 1))
                      .taken);
    } else if (strcmp(verb, "reads") == 0) {
        ck_assert(redis_foreign_read(&s->redis, scenario_job(s), SPAN(REDISSON_OWNER),
                                     (uint64_t)scn_number(words, 1))
                      .taken);
    } else if (strcmp(verb, "unwrites") == 0) {
        (void)redis_foreign_unwrite(sim_redis_now(s), scenario_job(s),
                                    SPAN(REDISSON_OWNER));
    } else if (strcmp(verb, "stops") == 0) {
        foreign_stop(s); /* nobody waits any more */
    } else {
        one_redisson(words, ret);
    }
}

static const struct scn_verb VERBS[] = {
    { "daemons", SCN_WORDS_MAX, do_daemons },
    { "set", SCN_WORDS_MAX, do_set },
    { "world", 0, do_world },
    { "stats", 1, do_stats },
    { "names", SCN_WORDS_MAX, do_names },
    { "latches", 0, do_latches },
    { "after", 1, do_after },
    { "at", 1, do_at },
    { "abandon", 0, do_abandon },
    { "fails", 1, do_fails },
    { "connect", SCN_WORDS_MAX, do_connect },
    { "close", SCN_WORDS_MAX, do_close },
    { "served", SCN_WORDS_MAX, do_served },
    { "unlock-one", SCN_WORDS_MAX, do_unlock_one },
    { "unlock-mlock", SCN_WORDS_MAX, do_unlock_mlock },
    { "ask-again", SCN_WORDS_MAX, do_ask_again },
    { "loan", 0, do_loan },
    { "name", 1, do_name },
    { "queue", 0, do_queue },
    { "redis", SCN_WORDS_MAX, do_redis },
    { "external", 1, do_external },
    { "publish", 1, do_publish },
    { "save", 0, do_save },
    { "restore", 0, do_restore },
    { "pause", 1, do_pause },
    { "stall", 2, do_stall },
    { "clock", 1, do_clock },
    { "flush", 0, do_flush },
    { "watch", 0, do_watch },
    { "touch", 1, do_touch },
    { "flush-elsewhere", 0, do_flush_elsewhere },
    { "cut-watch", 0, do_cut_watch },
    { "restart", 2, do_restart },
    { "mark", 1, do_mark },
    { "lose", 1, do_lose },
    { "demote", 2, do_demote },
    { "isolate", 1, do_isolate },
    { "isolated", 0, do_isolated },
    { "replicas-gone", 1, do_replicas_gone },
    { "break", 4, do_break },
    { "break-sub", 3, do_break_sub },
    { "lose-scripts", 1, do_lose_scripts },
    { "kill", 1, do_kill },
    { "start", 1, do_start },
    { "stop", 1, do_stop },
    { "stopped", 1, do_stopped },
    { "redisson", SCN_WORDS_MAX, do_redisson },
    { NULL, 0, NULL },
};

const struct scn_stage scn_stage = {
    .begin = begin,
    .end = end,
    .wait = pass_1_ms,
    .now = now,
    .say = say,
    .look_up = look_up,
    .is_client = is_client,
    .verbs = VERBS,
};
