#include "backend/redis/redis_link.h"

#include "backend/redis/redis_command.h"
#include "backend/script/scripts.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/fifo.h"
#include "util/log.h"
#include "util/text.h"
#include "util/transition.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    JUMP_US = 500000,
    GOOD_TRIP_US = 20000, /* the middle of such a trip is good enough */
    SMOOTH = 8,
};

bool redis_clock_sample(struct redis_clock *c, uint64_t sent_us, uint64_t received_us,
                        uint64_t redis_us)
{
    uint64_t trip = received_us - sent_us;
    int64_t low = (int64_t)(redis_us - received_us);
    int64_t high = (int64_t)(redis_us - sent_us);
    int64_t slack = JUMP_US + c->error_us;
    bool jumped =
        c->known && (c->offset_us < low - slack || c->offset_us > high + slack);

    if (!c->known || jumped || trip <= GOOD_TRIP_US ||
        (int64_t)(trip / 2) < c->error_us) {
        c->offset_us = low + (int64_t)(trip / 2);
        c->error_us = trip <= GOOD_TRIP_US ? 0 : (int64_t)(trip / 2);
    } else if (c->offset_us < low) {
        c->offset_us = low;
    } else if (c->offset_us > high) {
        c->offset_us = high;
    }
    c->round_trip_us =
        c->known ? (c->round_trip_us * (SMOOTH - 1) + trip) / SMOOTH : trip;
    c->known = true;
    return jumped;
}

uint64_t redis_clock_if_behind(const struct redis_clock *c, uint64_t sent_us,
                               uint64_t received_us, uint64_t redis_us)
{
    if (!c->known ||
        redis_clock_at(c, sent_us) <= redis_us + JUMP_US + (uint64_t)c->error_us) {
        return 0;
    }
    return redis_clock_at(c, received_us);
}

uint64_t redis_clock_at(const struct redis_clock *c, uint64_t now_us)
{
    return now_us + (uint64_t)c->offset_us;
}

enum { REFUSAL_ROOM = 256 };

/*   DOWN --connected--> GREETING --> PREPARING --> READY
 *     ^                                  '-> WAITING --^
 *     '------- lost, failed: from everywhere ----------'
 *
 * CLOSED comes from everywhere, and stays. */
enum link_state {
    LINK_DOWN,
    LINK_GREETING,  /* asks the server who it is */
    LINK_PREPARING, /* old link killed, scripts loaded */
    LINK_WAITING,   /* the old link could not be killed: until its ops are late */
    LINK_READY,
    LINK_CLOSED, /* no event comes any more */
};

static const struct transitions LINK_TRANSITIONS = {
    .subject = "link to Redis",
    .states = {
        [LINK_DOWN] = { "down", INTO(LINK_GREETING) | INTO(LINK_CLOSED) },
        [LINK_GREETING] = { "greeting", INTO(LINK_PREPARING) | INTO(LINK_DOWN) | INTO(LINK_CLOSED) },
        [LINK_PREPARING] = { "preparing", INTO(LINK_WAITING) | INTO(LINK_READY) | INTO(LINK_DOWN) | INTO(LINK_CLOSED) },
        [LINK_WAITING] = { "waiting", INTO(LINK_READY) | INTO(LINK_DOWN) | INTO(LINK_CLOSED) },
        [LINK_READY] = { "ready", INTO(LINK_DOWN) | INTO(LINK_CLOSED) },
        [LINK_CLOSED] = { "closed", 0 },
    },
};

/* A question that is asked from time to time, one at a time. */
enum asking { ASK_IDLE, ASK_SENT, ASK_REFUSED /* and not asked again */ };

struct server_id {
    char run_id[48];
    const char *product; /* Redis, or Valkey */
    char version[32];
    char uptime_s[24];
    struct redis_history history;
    unsigned replicas; /* connected to it */
    /* it refuses writes if too few replicas are connected, .. */
    bool counts_replicas;
    uint64_t good_replicas; /* ..and has this many */
};

struct redis_link {
    struct redis_conn *conn;
    const struct backend_url *url;
    const struct redis_link_events *events;
    struct store_events told_to; /* of clock jumps */
    void *ctx;
    uint64_t timeout_ms;
    enum link_state state;
    bool is_replicated;       /* see redis_link.h */
    bool is_second;           /* the same */
    enum publish_way wanted;  /* redis_link_setup's */
    enum publish_way publish; /* of this server */
    struct fifo open;         /* struct redis_call: on this connection */
    struct fifo orphans;      /* the same: of connections before */
    struct redis_clock clock;
    struct server_id server; /* of this connection, as far as known */
    struct server_id before; /* of the last one that was ready */
    uint64_t client_before;  /* of the last one that was ready, until it is killed */
    uint64_t ready_count;
    uint64_t alive_us;     /* the server was the one of `before` then, at the least */
    enum link_change seen; /* since the link was ready */
    unsigned look_tag;     /* of a cluster: the tag whose slot is this node's, as far as
                              known */
    char refusal[REFUSAL_ROOM]; /* why the server takes no grants; empty: it does */
    bool refusal_told;          /* the log has it */
    struct log_recent told;     /* lately */
    bool announce_refused;      /* the last announcement was */
    bool publish_refused;       /* the last PUBLISH for a lock library was */
    bool replicas_counted;
    char audited[48];      /* run id of the server that was */
    bool has_aof;          /* by its audit */
    uint64_t min_replicas; /* by its audit; 0: not known, or none */
    char policy[32];       /* maxmemory-policy; empty: not known */
    uint64_t policy_us;    /* when it was last asked for */
    redis_error_fn *on_touch_failed;
    /* Of this connection; zeroed when it is lost: */
    struct {
        enum asking clock, fitness, look, probe, policy, wait;
        uint64_t client_id; /* 0: not known */
        uint64_t probed_us; /* when the last probe was sent */
        unsigned loading;   /* SCRIPT LOADs open */
        bool kill_failed;
        bool in_doubt;      /* something was refused: the next look is by the script */
        bool batch_refused; /* one call for several ops was refused */
        bool has_written;   /* a mark, which a WAIT is to follow */
        bool clock_due;     /* the next WAIT is to have a heartbeat before it */
    } now;
    struct histogram *round_trips;
};

/* The handshake of a link, its heartbeat, and the audit of a server that is new. */

/* As in fitness.lua: no lock has it. */
#define LOOK_KEY "latchd:probe:{latchd:probe}:rwlock_timeout:0"
#define LOOK_KEY_TAGGED "latchd:probe:{latchd:probe%u}:rwlock_timeout:0"

enum {
    OLDEST_MAJOR = 5,
    SHARDED_MAJOR = 7,   /* has sharded channels */
    LOOKS_AT_ONCE = 128, /* tags that are tried before the next tick */
    PROBE_MS = 700,      /* at the least between two probes, which ticks send */
    POLICY_MS = 5000,    /* the same, between two looks at maxmemory-policy */
};

/* The questions of the audit, in this order. */
enum audit { AUDIT_AOF, AUDIT_SAVE, AUDIT_REPLICAS, AUDIT_COUNT };

static const char *const AUDIT_NAMES[AUDIT_COUNT] = {
    [AUDIT_AOF] = "appendonly",
    [AUDIT_SAVE] = "save",
    [AUDIT_REPLICAS] = "min-replicas-to-write",
};

static enum link_change link_change_of(const struct redis_link *l);
static void link_become_ready(struct redis_link *l);
static redis_reply_fn on_time, on_probe, on_policy, on_fitness, on_look, on_login,
    on_history, on_info_server, on_info_replication, on_client_id, on_killed, on_loaded,
    on_audit, on_announced, on_published;

static void set_state(struct redis_link *l, enum link_state state)
{
    transition_check(&LINK_TRANSITIONS, l->state, state);
    l->state = state;
}

static void on_ignored(void *ctx, void *of, const redisReply *reply)
{
}

static void link_ask_clock(struct redis_link *l)
{
    l->now.clock = ASK_SENT;
    redis_conn_ask(l->conn, 1, (const char *const[]){ "TIME" }, on_time, NULL);
}

/* Asks whether the server is the same master still, unless that was asked lately. In a
 * cluster the map tells who is a master. The first link probes for the second. */
static void link_probe(struct redis_link *l)
{
    uint64_t now_us = clock_boot_us();

    if (l->state == LINK_READY && l->now.probe == ASK_IDLE && !l->is_second &&
        l->wanted == PUBLISH_PLAIN &&
        now_us - l->now.probed_us >= PROBE_MS * UINT64_C(1000)) {
        l->now.probe = ASK_SENT;
        l->now.probed_us = now_us;
        redis_conn_ask(l->conn, 2, (const char *const[]){ "INFO", "replication" },
                       on_probe, NULL);
    }
}

/* Asks whether the server may throw locks away: its operator can change that at any
 * time. INFO is allowed more often than CONFIG. */
static void ask_policy(struct redis_link *l)
{
    uint64_t now_us = clock_boot_us();

    if (l->now.policy != ASK_IDLE || l->is_second ||
        (l->state == LINK_READY &&
         now_us - l->policy_us < POLICY_MS * UINT64_C(1000))) {
        return;
    }
    l->now.policy = ASK_SENT;
    l->policy_us = now_us;
    if (l->server.run_id[0] != '\0') {
        redis_conn_ask(l->conn, 2, (const char *const[]){ "INFO", "memory" }, on_policy,
                       NULL);
    } else {
        redis_conn_ask(l->conn, 3,
                       (const char *const[]){ "CONFIG", "GET", "maxmemory-policy" },
                       on_policy, NULL);
    }
}

static void ask_fitness(struct redis_link *l)
{
    const char *const words[] = { "EVALSHA", LUA_SCRIPTS[l->publish][LUA_FITNESS].sha1,
                                  "0" };

    if (!l->is_second && l->now.fitness == ASK_IDLE) {
        l->now.fitness = ASK_SENT;
        redis_conn_ask(l->conn, 3, words, on_fitness, NULL);
    }
}

/* Asks whether the server takes grants, by a write that changes nothing, or by the
 * script if there is a doubt. In a cluster it tries tags until the key is this node's,
 * as other keys are refused for another reason. */
static void link_look(struct redis_link *l)
{
    char key[sizeof(LOOK_KEY) + 16] = LOOK_KEY;

    if (l->state != LINK_READY || l->is_second) {
        return;
    }
    if (l->now.in_doubt) {
        ask_fitness(l);
    } else if (l->now.look == ASK_IDLE) {
        if (l->look_tag != 0) {
            (void)snprintf(key, sizeof(key), LOOK_KEY_TAGGED, l->look_tag);
        }
        l->now.look = ASK_SENT;
        redis_conn_ask(l->conn, 4, (const char *const[]){ "SET", key, "", "XX" },
                       on_look, NULL);
    }
}

void redis_link_log_in(struct redis_link *l)
{
    if (l->state == LINK_READY && redis_conn_auth(l->conn, on_login)) {
        l->now.in_doubt = true; /* another user may lack rights */
        link_look(l);
        redis_conn_flush(l->conn);
    }
}

void redis_link_ask_history(struct redis_link *l)
{
    redis_conn_ask(l->conn, 2, (const char *const[]){ "INFO", "replication" },
                   on_history, NULL);
    redis_conn_flush(l->conn);
}

/* The handshake begins. */
static void on_open(void *ctx)
{
    struct redis_link *l = ctx;
    char db[16];

    set_state(l, LINK_GREETING);
    l->server = (struct server_id){ 0 };
    if (l->url->db != 0) {
        (void)snprintf(db, sizeof(db), "%u", l->url->db);
        redis_conn_ask(l->conn, 2, (const char *const[]){ "SELECT", db }, NULL, NULL);
    }
    redis_conn_ask(l->conn, 3, (const char *const[]){ "CLIENT", "SETNAME", "latchd" },
                   on_ignored, NULL);
    redis_conn_ask(l->conn, 2, (const char *const[]){ "INFO", "server" },
                   on_info_server, NULL);
    redis_conn_ask(l->conn, 2, (const char *const[]){ "INFO", "replication" },
                   on_info_replication, NULL);
    redis_conn_ask(l->conn, 2, (const char *const[]){ "CLIENT", "ID" }, on_client_id,
                   NULL);
    link_ask_clock(l);
}

static void link_load_scripts(struct redis_link *l)
{
    const struct lua_script *scripts = LUA_SCRIPTS[l->publish];

    if (l->now.loading != 0) {
        return;
    }
    for (int i = 0; i < LUA_COUNT; i++) {
        struct buf *out = redis_conn_out(l->conn);

        command_begin(out, 3);
        command_word(out, SPAN("SCRIPT"));
        command_word(out, SPAN("LOAD"));
        command_word(out, span_of(scripts[i].text, scripts[i].len));
        redis_conn_expect(l->conn, 1, on_loaded, NULL);
        l->now.loading++;
    }
}

static bool send_publish(struct redis_link *l, struct span channel, struct span text,
                         redis_reply_fn *on_reply)
{
    struct buf *out = redis_conn_out(l->conn);

    if (l->state != LINK_READY) {
        return false;
    }
    command_begin(out, 3);
    command_word(out, SPAN("PUBLISH"));
    command_word(out, channel);
    command_word(out, text);
    redis_conn_expect(l->conn, 1, on_reply, NULL);
    return true;
}

bool redis_link_announce(struct redis_link *l, struct span text)
{
    char channel[CHANNEL_DAEMONS_MAX];

    return send_publish(l, channel_daemons(channel, l->url->db), text, on_announced);
}

bool redis_link_publish(struct redis_link *l, struct span channel, struct span text)
{
    return send_publish(l, channel, text, on_published) && !l->publish_refused;
}

/* --- the audit ------------------------------------------------------------------- */

static void audit_settings(struct redis_link *l)
{
    int major = atoi(l->server.version);

    if (l->is_second) {
        return; /* the first one has asked */
    }
    if (l->server.run_id[0] != '\0' && strcmp(l->audited, l->server.run_id) == 0) {
        return;
    }
    (void)snprintf(l->audited, sizeof(l->audited), "%s", l->server.run_id);
    l->policy[0] = '\0'; /* another server's */
    if (major != 0 && major < OLDEST_MAJOR) {
        log_warning("redis", "version %s is too old: upgrade Redis to %d or newer",
                    l->server.version, OLDEST_MAJOR);
    }
    if (l->wanted == PUBLISH_SHARDED && l->publish == PUBLISH_PLAIN) {
        log_warning("redis",
                    "publish=sharded: version %s has no sharded channels, releases are "
                    "told on plain ones",
                    l->server.version);
    }
    for (int i = 0; i < AUDIT_COUNT; i++) {
        const char *const words[] = { "CONFIG", "GET", AUDIT_NAMES[i] };

        redis_conn_ask(l->conn, 3, words, on_audit, NULL);
    }
}

static void on_min_replicas(struct redis_link *l, const char *value)
{
    l->min_replicas = 0;
    (void)parse_u64(span_str(value), INT32_MAX, &l->min_replicas);
    if (l->min_replicas == 0 && l->is_replicated) {
        log_warning("redis",
                    "min-replicas-to-write is 0 at %s: when it is cut off from the "
                    "others it goes on granting locks that its successor grants as "
                    "well; set min-replicas-to-write to 1 and min-replicas-max-lag to "
                    "a few seconds, on all of them",
                    redis_conn_address(l->conn));
    }
}

static bool is_setting(const redisReply *reply, enum audit question)
{
    return strcmp(reply->element[0]->str, AUDIT_NAMES[question]) == 0;
}

static void on_audit(void *ctx, void *of, const redisReply *reply)
{
    struct redis_link *l = ctx;
    const char *value;

    if (reply->type == REDIS_REPLY_ERROR && log_is_news(&l->told, "CONFIG")) {
        log_warning("redis",
                    "%s refuses CONFIG GET (%s): latchd cannot check that Redis keeps "
                    "locks over a restart (appendonly yes); let latchd's user run "
                    "CONFIG GET, or check it yourself",
                    redis_conn_address(l->conn), reply->str);
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[0]->type != REDIS_REPLY_STRING ||
        reply->element[1]->type != REDIS_REPLY_STRING) {
        return;
    }
    value = reply->element[1]->str;
    if (is_setting(reply, AUDIT_AOF)) {
        l->has_aof = strcmp(value, "yes") == 0;
    } else if (is_setting(reply, AUDIT_SAVE) && value[0] == '\0' && !l->has_aof) {
        log_warning("redis", "neither append-only file nor snapshots: a restart of "
                             "Redis loses all locks; set appendonly to yes");
    } else if (is_setting(reply, AUDIT_REPLICAS)) {
        on_min_replicas(l, value);
    }
}

static bool is_evicting(const struct redis_link *l)
{
    return l->policy[0] != '\0' && strcmp(l->policy, "noeviction") != 0;
}

static void on_policy(void *ctx, void *of, const redisReply *reply)
{
    struct redis_link *l = ctx;
    bool was_evicting = is_evicting(l);
    char policy[sizeof(l->policy)];

    l->now.policy = reply->type == REDIS_REPLY_ERROR ? ASK_REFUSED : ASK_IDLE;
    if (reply->type == REDIS_REPLY_ERROR && log_is_news(&l->told, "maxmemory-policy")) {
        log_warning(
            "redis",
            "%s does not tell its maxmemory-policy (%s): latchd cannot check "
            "that Redis evicts no locks; let latchd's user run INFO, or see that "
            "it is noeviction",
            redis_conn_address(l->conn), reply->str);
    }
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
        reply->element[1]->type == REDIS_REPLY_STRING) {
        (void)snprintf(policy, sizeof(policy), "%s", reply->element[1]->str);
    } else {
        redis_info_value(reply, "maxmemory_policy", policy, sizeof(policy));
    }
    if (strcmp(policy, l->policy) == 0) {
        return;
    }
    (void)snprintf(l->policy, sizeof(l->policy), "%s", policy);
    if (is_evicting(l)) {
        log_warning("redis",
                    "maxmemory-policy is %s at %s: Redis may throw locks away; set it "
                    "to noeviction",
                    policy, redis_conn_address(l->conn));
    } else if (was_evicting && policy[0] != '\0') {
        log_notice("redis",
                   "maxmemory-policy is noeviction at %s: no lock is thrown away",
                   redis_conn_address(l->conn));
    }
}

/* --- fitness ------------------------------------------------------------------- */

/* Sets the reason why the server must not grant, for the log and /healthz; empty:
 * none. */
static void set_refusal(struct redis_link *l, const char *text)
{
    if (strcmp(l->refusal, text) != 0) {
        bool was_told = l->refusal_told;

        (void)snprintf(l->refusal, sizeof(l->refusal), "%s", text);
        l->refusal_told = false;
        if (text[0] == '\0' && was_told) {
            log_notice("redis", "%s takes grants again", redis_conn_address(l->conn));
        }
    }
    if (l->refusal[0] != '\0' && !l->refusal_told &&
        log_is_news(&l->told, l->refusal)) {
        l->refusal_told = true;
        log_warning("redis", "nothing is granted by %s: %s",
                    redis_conn_address(l->conn), l->refusal);
    }
}

/* Appends the rights of the reply that are, or are not, needed to free a plain lock. */
static void list_rights(const redisReply *reply, bool needed, struct buf *out)
{
    for (size_t i = 1; i < (size_t)reply->elements; i++) {
        struct span right =
            span_of(reply->element[i]->str, (size_t)reply->element[i]->len);
        bool is_needed = right.ptr[0] != '&' ||
                         span_starts(span_after(right, 1), channel_prefix(CLASS_PLAIN));

        if (is_needed == needed) {
            buf_printf(out, " %.*s", (int)right.len, right.ptr);
        }
    }
    buf_add(out, "", 1);
}

static bool is_fitness_result(const redisReply *reply)
{
    bool fits = reply->type == REDIS_REPLY_ARRAY && reply->elements > 0;

    for (size_t i = 0; fits && i < (size_t)reply->elements; i++) {
        fits = reply->element[i]->type == REDIS_REPLY_STRING &&
               (i == 0 || reply->element[i]->len > 0);
    }
    return fits;
}

/* Nobody who waits there hears of a release: slow, not wrong. */
static void warn_of_deaf_classes(struct redis_link *l, const redisReply *reply)
{
    struct buf rights = { 0 };

    list_rights(reply, false, &rights);
    if (buf_len(&rights) > 1 && log_is_news(&l->told, buf_ptr(&rights))) {
        log_warning("redis",
                    "latchd's user at %s lacks the rights%s: clients that wait for "
                    "such locks are woken late; latchd.conf(5) lists the rights",
                    redis_conn_address(l->conn), buf_ptr(&rights));
    }
    buf_reset(&rights);
}

/* Before the link is ready, what is missing keeps it from being used: so nothing is
 * granted that could not be released. Later it is told only, as holds are renewed as
 * long as that works. */
static void on_fitness(void *ctx, void *of, const redisReply *reply)
{
    struct redis_link *l = ctx;
    char text[REFUSAL_ROOM] = "";
    struct buf rights = { 0 };

    l->now.fitness = ASK_IDLE;
    if (reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOSCRIPT", 8) == 0) {
        link_load_scripts(l);
        return;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        (void)snprintf(text, sizeof(text), "it refuses EVALSHA: %s", reply->str);
    } else if (!is_fitness_result(reply)) {
        (void)snprintf(text, sizeof(text), "it does not run scripts");
    } else {
        list_rights(reply, true, &rights);
        if (buf_len(&rights) > 1) {
            (void)snprintf(
                text, sizeof(text),
                "latchd's user lacks the rights%s%s; latchd.conf(5) lists what "
                "the user needs",
                buf_ptr(&rights),
                strchr(buf_ptr(&rights), '+') == NULL
                    ? ""
                    : ", or the server has no such command");
        }
        buf_reset(&rights);
        warn_of_deaf_classes(l, reply);
    }
    if (text[0] != '\0' && l->state == LINK_PREPARING) {
        redis_conn_fail(l->conn, "it cannot keep locks: %s", text);
        return;
    }
    set_refusal(l, text[0] == '\0' ? reply->element[0]->str : text);
    l->now.in_doubt = l->refusal[0] != '\0';
}

static void on_look(void *ctx, void *of, const redisReply *reply)
{
    struct redis_link *l = ctx;

    l->now.look = ASK_IDLE;
    if (reply->type == REDIS_REPLY_ERROR &&
        script_reply_is_redirected(span_str(reply->str))) {
        l->look_tag++;
        if (l->look_tag % LOOKS_AT_ONCE != 0) {
            link_look(l);
        }
    } else if (reply->type == REDIS_REPLY_ERROR) {
        l->now.look = strncmp(reply->str, "NOPERM", 6) == 0 ? ASK_REFUSED : ASK_IDLE;
        l->now.in_doubt = true;
        ask_fitness(l);
    }
}

/* --- the states ------------------------------------------------------------------ */

static bool has_deadline_after(const struct redis_link *l, uint64_t redis_us)
{
    for (size_t i = 0; i < l->orphans.count; i++) {
        const struct redis_call *call = fifo_at(&l->orphans, i);

        if (call->deadline_us >= redis_us) {
            return true;
        }
    }
    return false;
}

static bool is_same_process(const struct redis_link *l)
{
    return l->server.run_id[0] != '\0' &&
           strcmp(l->server.run_id, l->before.run_id) == 0;
}

/* A new Redis process cannot run the ops that its predecessor was sent. */
static bool may_be_same_process(const struct redis_link *l)
{
    return l->server.run_id[0] == '\0' || l->before.run_id[0] == '\0' ||
           is_same_process(l);
}

/* False: the link was dropped. */
static bool may_be_used(struct redis_link *l)
{
    const char *why_not = NULL;

    if (l->is_replicated && !l->server.history.is_master) {
        why_not = "it does not tell whether it is a master: let latchd's user run INFO";
    } else if (l->events->why_not != NULL) {
        why_not = l->events->why_not(l->ctx, link_change_of(l) == LINK_SAME);
    }
    if (why_not == NULL && l->server.counts_replicas &&
        (l->server.good_replicas == 0 || l->server.good_replicas < l->min_replicas)) {
        why_not = "too few replicas follow it, so it refuses to write "
                  "(min-replicas-to-write)";
    }
    if (why_not != NULL) {
        redis_conn_fail(l->conn, "%s", why_not);
    }
    return why_not == NULL;
}

static void prepare_link(struct redis_link *l)
{
    char id[24];

    set_state(l, LINK_PREPARING);
    l->publish = atoi(l->server.version) >= SHARDED_MAJOR ? l->wanted : PUBLISH_PLAIN;
    if (is_same_process(l) && l->client_before != 0) {
        (void)snprintf(id, sizeof(id), "%llu", (unsigned long long)l->client_before);
        redis_conn_ask(l->conn, 4, (const char *const[]){ "CLIENT", "KILL", "ID", id },
                       on_killed, NULL);
    } else {
        l->now.kill_failed = may_be_same_process(l);
    }
    link_load_scripts(l);
    ask_fitness(l);
    link_ask_clock(l);
}

/* A state of the handshake ends with the answer to its TIME. */
static void end_state(struct redis_link *l, uint64_t redis_us)
{
    switch (l->state) {
    case LINK_GREETING:
        if (l->server.history.is_replica) {
            l->seen = LINK_FAILED_OVER;
            redis_conn_fail(l->conn, "it is a replica: latchd needs its master");
        } else if (may_be_used(l)) {
            prepare_link(l);
        }
        break;
    case LINK_PREPARING:
    case LINK_WAITING:
        if (!l->now.kill_failed || !has_deadline_after(l, redis_us)) {
            audit_settings(l);
            ask_policy(l);
            link_become_ready(l);
        } else if (l->state == LINK_PREPARING) {
            set_state(l, LINK_WAITING);
        }
        break;
    case LINK_DOWN:
    case LINK_READY:
    case LINK_CLOSED:
        break;
    }
}

/* --- replies --------------------------------------------------------------------- */

/* True: the reply is an error, and the link was dropped. */
static bool is_failure(struct redis_link *l, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR) {
        redis_conn_fail(l->conn, "%s", reply->str);
    }
    return reply->type == REDIS_REPLY_ERROR;
}

/* The user lacks the right to the command, or the server does not have it: by
 * rename-command, for instance. */
static bool is_forbidden(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR &&
           (strncmp(reply->str, "NOPERM", 6) == 0 ||
            strncasecmp(reply->str, "ERR unknown ", 12) == 0);
}

/* The same, but the command may be forbidden. */
static bool is_failure_despite_rights(struct redis_link *l, const redisReply *reply)
{
    return !is_forbidden(reply) && is_failure(l, reply);
}

static void on_time(void *ctx, void *of, const redisReply *reply)
{
    struct redis_link *l = ctx;
    const uint64_t now_us = clock_boot_us(), sent_us = redis_conn_asked_us(l->conn);
    uint64_t seconds, us, before_us;

    l->now.clock = ASK_IDLE;
    if (is_forbidden(reply)) {
        redis_conn_fail(l->conn, "it cannot keep locks: it refuses TIME: %s",
                        reply->str);
        return;
    }
    if (is_failure(l, reply)) {
        return;
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        !parse_u64(span_str(reply->element[0]->str), UINT32_MAX, &seconds) ||
        !parse_u64(span_str(reply->element[1]->str), 999999, &us)) {
        redis_conn_fail(l->conn, "it does not tell the time");
        return;
    }
    us += seconds * 1000000;
    before_us = redis_clock_if_behind(&l->clock, sent_us, now_us, us);
    if (before_us != 0 && !l->is_second) {
        store_tell(&l->told_to, &(struct store_event){ .kind = STORE_CLOCK_BEHIND,
                                                       .clock_us = before_us });
    }
    /* Another server, another clock, and nothing rests on it before the link is ready:
     * a server that is busy with its start may tell an old time. */
    if (l->state != LINK_READY && !is_same_process(l)) {
        l->clock = (struct redis_clock){ 0 };
    }
    if (redis_clock_sample(&l->clock, sent_us, now_us, us)) {
        log_warning("redis",
                    "the clock of %s jumped: holds are uncertain until they are "
                    "confirmed; let NTP slew it, not step it",
                    redis_conn_address(l->conn));
        if (!l->is_second) { /* the first link sees it as well */
            store_tell(&l->told_to,
                       &(struct store_event){ .kind = STORE_CLOCK_JUMPED });
        }
    }
    end_state(l, us);
}

/* All are loaded at once, so the answers come in their order. */
static void on_loaded(void *ctx, void *of, const redisReply *reply)
{
    struct redis_link *l = ctx;
    unsigned script = LUA_COUNT - l->now.loading;

    l->now.loading--;
    if (!is_failure_despite_rights(l, reply) &&
        (reply->type != REDIS_REPLY_STRING ||
         strcmp(reply->str, LUA_SCRIPTS[l->publish][script].sha1) != 0)) {
        redis_conn_fail(l->conn, "it cannot keep locks: it does not load scripts: %s",
                        reply->str == NULL ? "" : reply->str);
    }
}

/* Without rights to ask who it is, all is taken for another server. */
static void read_history(struct redis_history *h, const redisReply *reply)
{
    char role[16], end[24];

    redis_info_value(reply, "role", role, sizeof(role));
    h->is_replica = strcmp(role, "slave") == 0;
    h->is_master = strcmp(role, "master") == 0;
    redis_info_value(reply, "master_replid", h->id, sizeof(h->id));
    redis_info_value(reply, "master_replid2", h->before, sizeof(h->before));
    redis_info_value(reply, "second_repl_offset", end, sizeof(end));
    if (!parse_u64(span_str(end), INT64_MAX, &h->before_end)) {
        h->before_end = 0;
    }
}

static void on_history(void *ctx, void *of, const redisReply *reply)
{
    struct redis_link *l = ctx;

    read_history(&l->server.history, reply);
}

static void count_replicas(struct redis_link *l, const redisReply *reply)
{
    char replicas[16];

    redis_info_value(reply, "connected_slaves", replicas, sizeof(replicas));
    l->server.replicas = (unsigned)atoi(replicas);
    l->replicas_counted = replicas[0] != '\0';
}

/* Another history is one of another master, or shows that the server was a replica: the
 * handshake finds out. */
static void on_probe(void *ctx, void *of, const redisReply *reply)
{
    struct redis_link *l = ctx;
    struct redis_history seen = { 0 };

    l->now.probe = reply->type == REDIS_REPLY_ERROR ? ASK_REFUSED : ASK_IDLE;
    read_history(&seen, reply);
    if (seen.is_replica) {
        l->seen = LINK_FAILED_OVER;
        redis_conn_fail(l->conn, "it has become a replica: latchd needs its master");
        return;
    }
    if (seen.id[0] != '\0' && strcmp(seen.id, l->server.history.id) != 0) {
        redis_conn_fail(l->conn, "its data has another history now (replication ID): "
                                 "latchd asks anew what it is");
        return;
    }
    count_replicas(l, reply);
}

/* Valkey says in redis_version which Redis it is compatible with. */
static void on_version(struct server_id *s, const redisReply *reply)
{
    redis_info_value(reply, "valkey_version", s->version, sizeof(s->version));
    s->product = s->version[0] == '\0' ? "Redis" : "Valkey";
    if (s->version[0] == '\0') {
        redis_info_value(reply, "redis_version", s->version, sizeof(s->version));
    }
}

static void log_info_refused(struct redis_link *l, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR && !l->is_second &&
        log_is_news(&l->told, "INFO")) {
        log_warning("redis",
                    "%s refuses INFO (%s): latchd cannot tell whether it is the Redis "
                    "from before, how old it is, or whether it is a master; after each "
                    "reconnect it is taken for one that lost its data; let latchd's "
                    "user run INFO",
                    redis_conn_address(l->conn), reply->str);
    }
}

static void on_info_server(void *ctx, void *of, const redisReply *reply)
{
    struct redis_link *l = ctx;
    struct server_id *s = &l->server;

    if (!is_failure_despite_rights(l, reply)) {
        log_info_refused(l, reply);
        redis_info_value(reply, "run_id", s->run_id, sizeof(s->run_id));
        on_version(s, reply);
        redis_info_value(reply, "uptime_in_seconds", s->uptime_s, sizeof(s->uptime_s));
    }
}

static void on_info_replication(void *ctx, void *of, const redisReply *reply)
{
    struct redis_link *l = ctx;
    struct server_id *s = &l->server;
    char replicas[16];

    if (!is_failure_despite_rights(l, reply)) {
        log_info_refused(l, reply);
        read_history(&s->history, reply);
        count_replicas(l, reply);
        redis_info_value(reply, "min_slaves_good_slaves", replicas, sizeof(replicas));
        s->counts_replicas =
            parse_u64(span_str(replicas), UINT32_MAX, &s->good_replicas);
    }
}

/* Without it other daemons do not wait for this one when Redis has lost its data. */
static void on_announced(void *ctx, void *of, const redisReply *reply)
{
    struct redis_link *l = ctx;
    bool mute = reply->type == REDIS_REPLY_ERROR;

    if (mute && !l->announce_refused && log_is_news(&l->told, "PUBLISH")) {
        log_warning("redis",
                    "%s refuses PUBLISH (%s): other daemons do not wait for this one "
                    "when Redis has lost its data; latchd's user needs +publish and "
                    "allchannels",
                    redis_conn_address(l->conn), reply->str);
    }
    l->announce_refused = mute;
}

static void on_published(void *ctx, void *of, const redisReply *reply)
{
    struct redis_link *l = ctx;

    l->publish_refused = reply->type == REDIS_REPLY_ERROR;
    if (l->publish_refused && log_is_news(&l->told, "PUBLISH for a library")) {
        log_warning("redis",
                    "%s refuses PUBLISH for a lock library (%s): only clients of this "
                    "latchd hear of its releases; latchd's user needs +publish and the "
                    "channels of its libraries",
                    redis_conn_address(l->conn), reply->str);
    }
}

/* The server goes on with the user from before if it refuses the new one. */
static void on_login(void *ctx, void *of, const redisReply *reply)
{
    const struct redis_link *l = ctx;

    if (reply->type == REDIS_REPLY_ERROR) {
        log_warning("redis",
                    "%s refuses the new user or password (%s): this link goes on as it "
                    "was, and the next one needs them; correct redis or "
                    "redis-password-file and reload, or let Redis know them",
                    redis_conn_address(l->conn), reply->str);
    } else if (!l->is_second) {
        log_notice("redis", "logged in at %s again", redis_conn_address(l->conn));
    }
}

static void on_client_id(void *ctx, void *of, const redisReply *reply)
{
    struct redis_link *l = ctx;

    if (is_failure_despite_rights(l, reply)) {
        return;
    }
    l->now.client_id =
        reply->type == REDIS_REPLY_INTEGER ? (uint64_t)reply->integer : 0;
    if (reply->type == REDIS_REPLY_ERROR && !l->is_second &&
        log_is_news(&l->told, "CLIENT ID")) {
        log_warning("redis",
                    "%s refuses CLIENT ID (%s): after a broken link latchd cannot end "
                    "the old one, and waits for redis-timeout; let latchd's user run "
                    "CLIENT ID and CLIENT KILL",
                    redis_conn_address(l->conn), reply->str);
    }
}

static void on_killed(void *ctx, void *of, const redisReply *reply)
{
    struct redis_link *l = ctx;

    l->now.kill_failed = reply->type != REDIS_REPLY_INTEGER;
}

/* Errors of a server that cannot do what a link is for: the ops were not run, and the
 * handshake finds out when it can again. The first REPLICA_ERRORS are those of a
 * replica. */
static const char *const USELESS[] = { "READONLY ", "MASTERDOWN ", "LOADING ",
                                       "NOAUTH ", "NOREPLICAS " };

enum { REPLICA_ERRORS = 2 };

/* --- ready, and lost ------------------------------------------------------------- */

/* Whether the server began to run while the one before still answered. Redis tells its
 * age in whole seconds, so a second may be missing. */
static bool ran_beside_the_last(const struct redis_link *l)
{
    uint64_t age_s = strtoull(l->server.uptime_s, NULL, 10);

    return age_s > 1 && (age_s - 1) * 1000000 > clock_boot_us() - l->alive_us;
}

/* A master that gets its first replica, or has had none for long, begins another
 * history, too; but only one that was a replica knows which history came before. */
static bool was_promoted(const struct redis_link *l)
{
    return strcmp(l->before.history.id, l->server.history.id) != 0 &&
           l->server.history.before_end != 0;
}

static enum link_change link_change_of(const struct redis_link *l)
{
    if (l->ready_count == 0) {
        return LINK_RESTARTED;
    }
    if (l->seen == LINK_FAILED_OVER) {
        return LINK_FAILED_OVER;
    }
    if (l->before.run_id[0] == '\0' || l->server.run_id[0] == '\0') {
        return LINK_RESTARTED;
    }
    if (strcmp(l->before.run_id, l->server.run_id) == 0) {
        return was_promoted(l) ? LINK_FAILED_OVER : LINK_SAME;
    }
    return ran_beside_the_last(l) ? LINK_FAILED_OVER : LINK_RESTARTED;
}

/* Where Sentinels or a map tell of failovers, their line in the log says more. */
static void log_change(const struct redis_link *l, enum link_change change)
{
    if (change != LINK_FAILED_OVER || l->is_replicated || l->is_second) {
        return;
    }
    log_warning("redis",
                "failover: %s at %s; what the last master had not passed on is lost",
                strcmp(l->before.run_id, l->server.run_id) == 0
                    ? "a server that was a replica for a while answers"
                    : "another server answers",
                redis_conn_address(l->conn));
}

/* The last step of the handshake. */
static void link_become_ready(struct redis_link *l)
{
    struct fifo orphans = l->orphans;
    enum link_change change = link_change_of(l);
    struct redis_call call;
    char about[96];

    (void)snprintf(about, sizeof(about), "%s %s%s", l->server.product,
                   l->server.version,
                   l->is_second ? ", for what replicas acknowledge" : "");
    redis_conn_ready(l->conn, l->server.version[0] == '\0' ? "" : about);
    log_change(l, change);
    set_state(l, LINK_READY);
    l->seen = LINK_SAME;
    l->alive_us = clock_boot_us();
    l->before = l->server;
    l->client_before = l->now.client_id;
    l->orphans = (struct fifo){ 0 };
    l->ready_count++;
    l->events->on_up(l->ctx, change);
    while (l->state != LINK_CLOSED && fifo_pop(&orphans, &call)) {
        l->events->on_reply(l->ctx, &call, NULL);
    }
    fifo_fini(&orphans);
}

static void push_call(struct fifo *calls, const struct redis_call *call)
{
    *(struct redis_call *)fifo_push(calls, sizeof(*call)) = *call;
}

static void on_lost(void *ctx)
{
    struct redis_link *l = ctx;
    bool was_ready = l->state == LINK_READY;
    struct redis_call call;

    while (fifo_pop(&l->open, &call)) {
        if (!call.abandoned) {
            push_call(&l->orphans, &call);
        }
    }
    set_state(l, LINK_DOWN);
    memset(&l->now, 0, sizeof(l->now));
    if (was_ready) {
        if (redis_conn_asked_us(l->conn) > l->alive_us) {
            l->alive_us = redis_conn_asked_us(l->conn);
        }
        l->events->on_down(l->ctx);
    }
}

/* --- ops ------------------------------------------------------------------------- */

/* The error that a script met stands at the beginning of the text, before Redis 7
 * inside a sentence. */
static bool is_useless(const redisReply *reply, size_t errors)
{
    if (reply == NULL || reply->type != REDIS_REPLY_ERROR) {
        return false;
    }
    for (size_t i = 0; i < errors; i++) {
        if (strstr(reply->str, USELESS[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* The part of the reply to `count` ops that says so. NULL: none does. */
static const redisReply *find_useless(const redisReply *reply, size_t count)
{
    const size_t errors = sizeof(USELESS) / sizeof(USELESS[0]);

    if (is_useless(reply, errors)) {
        return reply;
    }
    for (size_t i = 0; count > 1 && i < count; i++) {
        const redisReply *part = script_reply_part(reply, i, count);

        if (is_useless(part, errors)) {
            return part;
        }
    }
    return NULL;
}

/* The clock was read when the bytes came: once, however many answers they hold. */
static void count_round_trip(struct redis_link *l, const struct redis_call *call)
{
    uint64_t now_us = redis_conn_heard_us(l->conn);

    histogram_add(l->round_trips, now_us > call->sent_us ? now_us - call->sent_us : 0);
}

static void on_op_reply(void *ctx, void *of, const redisReply *reply)
{
    struct redis_link *l = ctx;
    struct redis_call calls[SCRIPT_BATCH_MAX];
    const struct redis_call *first = fifo_at(&l->open, 0); /* it was asked */
    size_t count = 1U + first->more;
    const redisReply *useless = find_useless(reply, count);

    if (useless != NULL && !(first->abandoned && count == 1)) {
        if (is_useless(useless, REPLICA_ERRORS)) {
            l->seen = LINK_FAILED_OVER;
        }
        redis_conn_fail(l->conn, "%s", useless->str); /* the ops become orphans */
        return;
    }
    for (size_t i = 0; i < count; i++) {
        (void)fifo_pop(&l->open, &calls[i]);
        count_round_trip(l, &calls[i]);
    }
    if (reply->type == REDIS_REPLY_ERROR && strcasestr(reply->str, "evalsha") != NULL) {
        l->now.in_doubt = true;
    }
    if (reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOSCRIPT", 8) == 0) {
        /* The script did not run. An op that is sent again comes after SCRIPT LOAD. */
        link_load_scripts(l);
        reply = NULL;
    } else if (script_reply_part(reply, 0, count) == NULL) {
        log_write(log_is_news(&l->told, "batch") ? LOG_NOTICE : LOG_DEBUG, "redis",
                  "each lock is asked for by a call of its own now: %s",
                  reply->type == REDIS_REPLY_ERROR ? reply->str : "odd answer");
        l->now.batch_refused = true;
    }
    for (size_t i = 0; i < count && l->state != LINK_CLOSED; i++) {
        if (!calls[i].abandoned) {
            l->events->on_reply(l->ctx, &calls[i], script_reply_part(reply, i, count));
        }
    }
}

static void on_marked(void *ctx, void *of, const redisReply *reply)
{
    struct redis_link *l = ctx;

    l->now.has_written = reply->type == REDIS_REPLY_STATUS;
}

/* The mark comes first: without it what is acknowledged may be of nobody's writing. */
static void on_acked(void *ctx, void *of, const redisReply *reply)
{
    struct redis_link *l = ctx;
    bool told = reply->type == REDIS_REPLY_INTEGER && l->now.has_written;

    l->now.wait = ASK_IDLE;
    l->events->on_acked(l->ctx, told ? reply->integer : -1,
                        reply->type == REDIS_REPLY_ERROR ? reply->str : "");
}

static void on_tick(void *ctx)
{
    struct redis_link *l = ctx;

    if (l->now.wait == ASK_SENT) {
        l->now.clock_due = true; /* an answer from behind a WAIT tells little */
    } else if (l->now.clock == ASK_IDLE &&
               (l->state == LINK_READY || l->state == LINK_WAITING)) {
        link_ask_clock(l);
        link_look(l);
    }
    link_probe(l);
    if (l->state == LINK_READY) {
        ask_policy(l);
    }
}

static const struct redis_conn_events CONN_EVENTS = {
    .on_open = on_open,
    .on_lost = on_lost,
    .on_tick = on_tick,
};

/* --- for the store --------------------------------------------------------------- */

struct redis_link *redis_link_new(const struct redis_link_setup *setup)
{
    struct redis_link *l = xcalloc(1, sizeof(*l));
    struct redis_conn_setup conn = setup->conn;

    conn.module = "redis";
    conn.events = &CONN_EVENTS;
    conn.ctx = l;
    l->url = conn.url;
    l->events = setup->events;
    l->told_to = setup->told;
    l->ctx = setup->ctx;
    l->timeout_ms = conn.timeout_ms;
    l->is_replicated = setup->is_replicated;
    l->is_second = setup->is_second;
    l->wanted = setup->publish;
    l->round_trips = setup->round_trips;
    l->conn = redis_conn_new(&conn);
    return l;
}

void redis_link_start(struct redis_link *l)
{
    redis_conn_start(l->conn);
}

void redis_link_move(struct redis_link *l)
{
    redis_conn_move(l->conn);
}

void redis_link_set_timeout(struct redis_link *l, uint64_t timeout_ms)
{
    l->timeout_ms = timeout_ms;
    redis_conn_set_timeout(l->conn, timeout_ms);
}

struct buf *redis_link_call(struct redis_link *l, const struct op *ops, size_t count,
                            struct op_times *ret)
{
    bool ready = l->state == LINK_READY;
    uint64_t now_us = clock_boot_us();

    ret->asked_us = redis_clock_at(&l->clock, now_us);
    ret->deadline_us = ret->asked_us + l->timeout_ms * 1000;
    ret->publish = l->publish;
    for (size_t i = 0; i < count; i++) {
        push_call(ready ? &l->open : &l->orphans,
                  &(struct redis_call){
                      .sent_us = now_us,
                      .op_id = ops[i].id,
                      .op_kind = (uint8_t)ops[i].kind,
                      .item_count = (uint8_t)op_item_count(&ops[i]),
                      .group = ops[i].group,
                      .more = i == 0 ? (uint8_t)(count - 1) : 0,
                      .deadline_us = ready ? ret->deadline_us : 0,
                  });
    }
    if (!ready) {
        return NULL;
    }
    redis_conn_expect(l->conn, 1, on_op_reply, NULL);
    return redis_conn_out(l->conn);
}

bool redis_link_takes_batch(const struct redis_link *l)
{
    return !l->now.batch_refused;
}

void redis_link_wait(struct redis_link *l, struct span name, unsigned replicas,
                     uint64_t ms)
{
    struct buf *out = redis_conn_out(l->conn);

    if (!l->now.has_written) {
        command_begin(out, 5);
        command_word(out, SPAN("SET"));
        command_key(out, SPAN("latchd:acked:"), name, SPAN_NONE);
        command_word(out, SPAN("1"));
        command_word(out, SPAN("PX"));
        command_word(out, SPAN("1"));
        redis_conn_expect(l->conn, 1, on_marked, NULL);
    }
    if (l->now.clock_due && l->now.clock == ASK_IDLE) {
        link_ask_clock(l);
    }
    l->now.clock_due = false;
    command_begin(out, 3);
    command_word(out, SPAN("WAIT"));
    command_uint(out, replicas);
    command_uint(out, ms);
    redis_conn_expect(l->conn, 1, on_acked, NULL);
    redis_conn_be_patient(l->conn, ms);
    l->now.wait = ASK_SENT;
}

void redis_link_take_reply(struct redis_link *l)
{
    redis_conn_take_reply(l->conn);
}

bool redis_link_is_ready(const struct redis_link *l)
{
    return l->state == LINK_READY;
}

bool redis_link_same_server(const struct redis_link *a, const struct redis_link *b)
{
    return strcmp(a->server.run_id, b->server.run_id) == 0 &&
           strcmp(a->server.history.id, b->server.history.id) == 0;
}

const struct redis_history *redis_link_history(const struct redis_link *l)
{
    return &l->server.history;
}

void redis_link_drop(struct redis_link *l, const char *why)
{
    redis_conn_fail(l->conn, "%s", why);
}

unsigned redis_link_replicas(const struct redis_link *l)
{
    return l->server.replicas;
}

/* Why nothing is granted there; NULL: nothing is known against it. Valid for this turn
 * of the loop. */
static const char *redis_link_why_not(const struct redis_link *l)
{
    if (l->state != LINK_READY) {
        return redis_conn_trouble(l->conn);
    }
    return l->refusal[0] == '\0' ? NULL : l->refusal;
}

bool redis_link_lacks_replicas(const struct redis_link *l, unsigned wanted)
{
    return l->state == LINK_READY && l->wanted == PUBLISH_PLAIN &&
           l->replicas_counted && l->server.replicas < wanted;
}

size_t redis_link_in_flight(const struct redis_link *l)
{
    size_t ops = l->orphans.count;

    for (size_t i = 0; i < l->open.count; i++) {
        ops += !((const struct redis_call *)fifo_at(&l->open, i))->abandoned;
    }
    return ops;
}

uint64_t redis_link_reconnects(const struct redis_link *l)
{
    return l->ready_count == 0 ? 0 : l->ready_count - 1;
}

void redis_link_abandon(struct redis_link *l, redis_group_fn *concerns, void *ctx,
                        bool sent_too)
{
    struct fifo gone = { 0 };
    struct redis_call call;

    for (size_t i = 0; sent_too && i < l->open.count; i++) {
        struct redis_call *at = fifo_at(&l->open, i);

        if (!at->abandoned && concerns(ctx, at->group)) {
            push_call(&gone, at);
            at->abandoned = true;
        }
    }
    for (size_t i = l->orphans.count; i > 0; i--) {
        (void)fifo_pop(&l->orphans, &call);
        push_call(concerns(ctx, call.group) ? &gone : &l->orphans, &call);
    }
    while (l->state != LINK_CLOSED && fifo_pop(&gone, &call)) {
        l->events->on_reply(l->ctx, &call, NULL);
    }
    fifo_fini(&gone);
}

const char *redis_link_run_id(const struct redis_link *l)
{
    return l->server.run_id;
}

unsigned redis_link_look_tag(const struct redis_link *l)
{
    return l->look_tag;
}

static void on_touched(void *ctx, void *of, const redisReply *reply)
{
    struct redis_link *l = ctx;

    if (reply->type == REDIS_REPLY_ERROR) {
        l->on_touch_failed(of, reply->str);
    }
}

bool redis_link_touch(struct redis_link *l, const char *key, redis_error_fn *on_error,
                      void *ctx)
{
    if (l->state != LINK_READY) {
        return false;
    }
    l->on_touch_failed = on_error;
    redis_conn_ask(l->conn, 5, (const char *const[]){ "SET", key, "1", "PX", "3000" },
                   on_touched, ctx);
    redis_conn_ask(l->conn, 2, (const char *const[]){ "DEL", key }, on_ignored, NULL);
    redis_conn_flush(l->conn);
    return true;
}

void redis_link_flush(struct redis_link *l)
{
    redis_conn_flush(l->conn);
}

void redis_link_info(const struct redis_link *l, struct store_info *ret)
{
    ret->up = l->state == LINK_READY;
    ret->why_not = redis_link_why_not(l);
    (void)snprintf(ret->version, sizeof(ret->version), "%s", l->before.version);
    (void)snprintf(ret->product, sizeof(ret->product), "%s",
                   l->before.product == NULL ? "" : l->before.product);
    (void)snprintf(ret->run_id, sizeof(ret->run_id), "%s", l->before.run_id);
    (void)snprintf(ret->address, sizeof(ret->address), "%s",
                   redis_conn_address(l->conn));
    ret->running_ms = strtoull(l->before.uptime_s, NULL, 10) * 1000;
    ret->evicting += l->state == LINK_READY && is_evicting(l);
    ret->reconnects += redis_link_reconnects(l);
    ret->in_flight += l->open.count + l->orphans.count;
    ret->clock_offset_us = l->clock.offset_us;
    ret->round_trip_us = l->clock.round_trip_us;
}

void redis_link_close(struct redis_link *l)
{
    set_state(l, LINK_CLOSED);
    redis_conn_close(l->conn);
}

void redis_link_free(struct redis_link *l)
{
    if (l == NULL) {
        return;
    }
    fifo_fini(&l->open);
    fifo_fini(&l->orphans);
    free(l);
}
