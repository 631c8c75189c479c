/* The handshake of a link, its heartbeat, and the audit of a server that is new. */
#include "backend/redis/channel_name.h"
#include "backend/redis/redis_command.h"
#include "backend/redis/redis_link_priv.h"
#include "backend/script/scripts.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/parse.h"

#include <stdio.h>
#include <stdlib.h>

/* As in fitness.lua: no lock has it. */
#define LOOK_KEY "latchd:probe:{latchd:probe}:rwlock_timeout:0"
#define LOOK_KEY_TAGGED "latchd:probe:{latchd:probe%u}:rwlock_timeout:0"

enum {
    OLDEST_MAJOR = 5,
    SHARDED_MAJOR = 7,   /* has sharded channels */
    LOOKS_AT_ONCE = 128, /* tags that are tried before the next tick */
    PROBE_MS = 700,      /* at the least between two probes, which ticks send */
};

/* The questions of the audit, in this order. */
enum audit { AUDIT_EVICTION, AUDIT_AOF, AUDIT_SAVE, AUDIT_REPLICAS, AUDIT_COUNT };

static const char *const AUDIT_NAMES[AUDIT_COUNT] = {
    [AUDIT_EVICTION] = "maxmemory-policy",
    [AUDIT_AOF] = "appendonly",
    [AUDIT_SAVE] = "save",
    [AUDIT_REPLICAS] = "min-replicas-to-write",
};

static struct redis_call *link_send(struct redis_link *l, enum call_what what,
                                    size_t count, const char *const *words)
{
    command_words(redis_conn_out(l->conn), count, words);
    return link_push(l, what);
}

void link_ask_clock(struct redis_link *l)
{
    l->clock_asked = true;
    (void)link_send(l, CALL_TIME, 1, (const char *const[]){ "TIME" });
}

/* In a cluster the map tells who is a master. The first link probes for the second. */
void link_probe(struct redis_link *l)
{
    uint64_t now_us = clock_boot_us();

    if (l->stage == LINK_READY && !l->is_probed && !l->probe_refused && !l->is_second &&
        l->wanted == PUBLISH_PLAIN && now_us - l->probed_us >= PROBE_MS * 1000) {
        l->is_probed = true;
        l->probed_us = now_us;
        (void)link_send(l, CALL_PROBE, 2,
                        (const char *const[]){ "INFO", "replication" });
    }
}

static void ask_fitness(struct redis_link *l)
{
    const char *const words[] = { "EVALSHA", LUA_SCRIPTS[l->publish][LUA_FITNESS].sha1,
                                  "0" };

    if (!l->is_second && !l->fitness_asked) {
        l->fitness_asked = true;
        (void)link_send(l, CALL_FITNESS, 3, words);
    }
}

void link_look(struct redis_link *l)
{
    char key[sizeof(LOOK_KEY) + 16] = LOOK_KEY;

    if (l->stage != LINK_READY || l->is_second) {
        return;
    }
    if (l->in_doubt) {
        ask_fitness(l);
    } else if (!l->look_asked && !l->look_refused) {
        if (l->look_tag != 0) {
            (void)snprintf(key, sizeof(key), LOOK_KEY_TAGGED, l->look_tag);
        }
        l->look_asked = true;
        (void)link_send(l, CALL_LOOK, 4, (const char *const[]){ "SET", key, "", "XX" });
    }
}

void redis_link_log_in(struct redis_link *l)
{
    if (l->stage == LINK_READY && redis_conn_auth(l->conn)) {
        (void)link_push(l, CALL_LOGIN);
        l->in_doubt = true; /* another user may lack rights */
        link_look(l);
        redis_conn_flush(l->conn);
    }
}

void redis_link_ask_history(struct redis_link *l)
{
    (void)link_send(l, CALL_HISTORY, 2, (const char *const[]){ "INFO", "replication" });
    redis_conn_flush(l->conn);
}

void link_greet(struct redis_link *l)
{
    char db[16];

    l->stage = LINK_GREETING;
    l->server = (struct server_id){ 0 };
    l->client_id = 0;
    l->kill_failed = false;
    l->probe_refused = false;
    if (redis_conn_auth(l->conn)) {
        (void)link_push(l, CALL_AUTH);
    }
    if (l->url->db != 0) {
        (void)snprintf(db, sizeof(db), "%u", l->url->db);
        (void)link_send(l, CALL_SELECT, 2, (const char *const[]){ "SELECT", db });
    }
    (void)link_send(l, CALL_SET_NAME, 3,
                    (const char *const[]){ "CLIENT", "SETNAME", "latchd" });
    (void)link_send(l, CALL_INFO_SERVER, 2, (const char *const[]){ "INFO", "server" });
    (void)link_send(l, CALL_INFO_REPLICATION, 2,
                    (const char *const[]){ "INFO", "replication" });
    (void)link_send(l, CALL_CLIENT_ID, 2, (const char *const[]){ "CLIENT", "ID" });
    link_ask_clock(l);
}

void link_load_scripts(struct redis_link *l)
{
    const struct lua_script *scripts = LUA_SCRIPTS[l->publish];

    if (l->loading != 0) {
        return;
    }
    for (int i = 0; i < LUA_COUNT; i++) {
        struct buf *out = redis_conn_out(l->conn);

        link_push(l, CALL_LOAD)->item_count = (uint8_t)i;
        command_begin(out, 3);
        command_word(out, SPAN("SCRIPT"));
        command_word(out, SPAN("LOAD"));
        command_word(out, span_of(scripts[i].text, scripts[i].len));
        l->loading++;
    }
}

void redis_link_announce(struct redis_link *l, struct span text)
{
    struct buf *out = redis_conn_out(l->conn);
    char channel[CHANNEL_DAEMONS_MAX];

    if (l->stage != LINK_READY) {
        return;
    }
    command_begin(out, 3);
    command_word(out, SPAN("PUBLISH"));
    command_word(out, channel_daemons(channel, l->url->db));
    command_word(out, text);
    (void)link_push(l, CALL_ANNOUNCE);
}

bool redis_link_publish(struct redis_link *l, struct span channel, struct span text)
{
    struct buf *out = redis_conn_out(l->conn);

    if (l->stage != LINK_READY) {
        return false;
    }
    command_begin(out, 3);
    command_word(out, SPAN("PUBLISH"));
    command_word(out, channel);
    command_word(out, text);
    (void)link_push(l, CALL_PUBLISH);
    return !l->publish_refused;
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

        link_send(l, CALL_AUDIT, 3, words)->item_count = (uint8_t)i;
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

static void on_audit(struct redis_link *l, enum audit question, const redisReply *reply)
{
    const char *value;

    if (reply->type == REDIS_REPLY_ERROR && log_is_news(&l->told, "CONFIG")) {
        log_warning("redis",
                    "%s refuses CONFIG GET (%s): latchd cannot check that Redis evicts "
                    "no locks (maxmemory-policy noeviction), and keeps them over a "
                    "restart (appendonly yes); let latchd's user run CONFIG GET, or "
                    "check them yourself",
                    redis_conn_address(l->conn), reply->str);
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[1]->type != REDIS_REPLY_STRING) {
        return;
    }
    value = reply->element[1]->str;
    if (question == AUDIT_EVICTION && strcmp(value, "noeviction") != 0) {
        log_warning("redis",
                    "maxmemory-policy is %s: Redis may throw locks away; set it to "
                    "noeviction",
                    value);
    } else if (question == AUDIT_AOF) {
        l->has_aof = strcmp(value, "yes") == 0;
    } else if (question == AUDIT_SAVE && value[0] == '\0' && !l->has_aof) {
        log_warning("redis", "neither append-only file nor snapshots: a restart of "
                             "Redis loses all locks; set appendonly to yes");
    } else if (question == AUDIT_REPLICAS) {
        on_min_replicas(l, value);
    }
}

/* --- fitness ------------------------------------------------------------------- */

/* What keeps the server from granting, as the log and /healthz tell it; empty: nothing
 * does. */
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
static bool on_fitness(struct redis_link *l, const redisReply *reply)
{
    char text[REFUSAL_ROOM] = "";
    struct buf rights = { 0 };

    l->fitness_asked = false;
    if (reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOSCRIPT", 8) == 0) {
        link_load_scripts(l);
        return true;
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
                "latchd's user lacks the rights%s; latchd.conf(5) lists what "
                "the user needs",
                buf_ptr(&rights));
        }
        buf_reset(&rights);
        warn_of_deaf_classes(l, reply);
    }
    if (text[0] != '\0' && l->stage == LINK_PREPARING) {
        redis_conn_fail(l->conn, "it cannot keep locks: %s", text);
        return false;
    }
    set_refusal(l, text[0] == '\0' ? reply->element[0]->str : text);
    l->in_doubt = l->refusal[0] != '\0';
    return true;
}

static void on_look(struct redis_link *l, const redisReply *reply)
{
    l->look_asked = false;
    if (reply->type == REDIS_REPLY_ERROR &&
        script_reply_is_redirected(span_str(reply->str))) {
        l->look_tag++;
        if (l->look_tag % LOOKS_AT_ONCE != 0) {
            link_look(l);
        }
    } else if (reply->type == REDIS_REPLY_ERROR) {
        l->look_refused = strncmp(reply->str, "NOPERM", 6) == 0;
        l->in_doubt = true;
        ask_fitness(l);
    }
}

/* --- the stages ------------------------------------------------------------------ */

static bool has_deadline_after(const struct redis_link *l, uint64_t redis_us)
{
    for (size_t i = 0; i < l->orphans.count; i++) {
        size_t at = (l->orphans.first + i) & (l->orphans.room - 1);

        if (l->orphans.ring[at].deadline_us >= redis_us) {
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

static bool prepare_link(struct redis_link *l)
{
    char id[24];

    l->stage = LINK_PREPARING;
    l->publish = atoi(l->server.version) >= SHARDED_MAJOR ? l->wanted : PUBLISH_PLAIN;
    if (is_same_process(l) && l->client_before != 0) {
        (void)snprintf(id, sizeof(id), "%llu", (unsigned long long)l->client_before);
        (void)link_send(l, CALL_KILL, 4,
                        (const char *const[]){ "CLIENT", "KILL", "ID", id });
    } else {
        l->kill_failed = may_be_same_process(l);
    }
    link_load_scripts(l);
    ask_fitness(l);
    link_ask_clock(l);
    return true;
}

/* A stage ends with the answer to its TIME. */
static bool end_stage(struct redis_link *l, uint64_t redis_us)
{
    switch (l->stage) {
    case LINK_GREETING:
        if (l->server.history.is_replica) {
            l->was_replica = true;
            redis_conn_fail(l->conn, "it is a replica: latchd needs its master");
            return false;
        }
        return may_be_used(l) && prepare_link(l);
    case LINK_PREPARING:
    case LINK_WAITING:
        if (l->kill_failed && has_deadline_after(l, redis_us)) {
            l->stage = LINK_WAITING;
            return true;
        }
        audit_settings(l);
        link_become_ready(l);
        return l->stage == LINK_READY;
    case LINK_DOWN:
    case LINK_READY:
        break;
    }
    return true;
}

/* --- replies --------------------------------------------------------------------- */

/* Copies the value of `key:` in an INFO reply; empty if it is not there. */
static void info_value(const redisReply *reply, const char *key, char *ret, size_t room)
{
    size_t key_len = strlen(key);

    ret[0] = '\0';
    if (reply->type != REDIS_REPLY_STRING) {
        return;
    }
    for (const char *line = reply->str; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n' ? 1 : 0;
        if (strncmp(line, key, key_len) == 0 && line[key_len] == ':') {
            size_t len = strcspn(line + key_len + 1, "\r\n");

            len = len < room ? len : room - 1;
            memcpy(ret, line + key_len + 1, len);
            ret[len] = '\0';
            return;
        }
    }
}

static bool on_time(struct redis_link *l, const struct redis_call *call,
                    const redisReply *reply)
{
    const uint64_t now_us = clock_boot_us();
    uint64_t seconds, us, before_us;

    l->clock_asked = false;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        !parse_u64(span_str(reply->element[0]->str), UINT32_MAX, &seconds) ||
        !parse_u64(span_str(reply->element[1]->str), 999999, &us)) {
        redis_conn_fail(l->conn, "it does not tell the time");
        return false;
    }
    us += seconds * 1000000;
    before_us = redis_clock_if_behind(&l->clock, call->sent_us, now_us, us);
    if (before_us != 0 && l->listener != NULL && l->listener->on_clock_behind != NULL) {
        l->listener->on_clock_behind(l->listener->ctx, before_us);
    }
    /* Another server, another clock, and nothing rests on it before the link is ready:
     * a server that is busy with its start may tell an old time. */
    if (l->stage != LINK_READY && !is_same_process(l)) {
        l->clock = (struct redis_clock){ 0 };
    }
    if (redis_clock_sample(&l->clock, call->sent_us, now_us, us)) {
        log_warning("redis",
                    "the clock of %s jumped: holds are uncertain until they are "
                    "confirmed; let NTP slew it, not step it",
                    redis_conn_address(l->conn));
        if (l->listener != NULL) {
            l->listener->on_clock_jumped(l->listener->ctx);
        }
    }
    return !l->closed && end_stage(l, us);
}

static bool on_loaded(struct redis_link *l, int script, const redisReply *reply)
{
    l->loading--;
    if (reply->type != REDIS_REPLY_STRING ||
        strcmp(reply->str, LUA_SCRIPTS[l->publish][script].sha1) != 0) {
        redis_conn_fail(l->conn, "it does not load scripts: %s",
                        reply->str == NULL ? "" : reply->str);
        return false;
    }
    return true;
}

/* Without rights to ask who it is, all is taken for another server. */
static void on_history(struct redis_history *h, const redisReply *reply)
{
    char role[16], end[24];

    info_value(reply, "role", role, sizeof(role));
    h->is_replica = strcmp(role, "slave") == 0;
    h->is_master = strcmp(role, "master") == 0;
    info_value(reply, "master_replid", h->id, sizeof(h->id));
    info_value(reply, "master_replid2", h->before, sizeof(h->before));
    info_value(reply, "second_repl_offset", end, sizeof(end));
    if (!parse_u64(span_str(end), INT64_MAX, &h->before_end)) {
        h->before_end = 0;
    }
}

static void count_replicas(struct redis_link *l, const redisReply *reply)
{
    char replicas[16];

    info_value(reply, "connected_slaves", replicas, sizeof(replicas));
    l->server.replicas = (unsigned)atoi(replicas);
    l->replicas_counted = replicas[0] != '\0';
}

/* Another history is one of another master, or shows that the server was a replica: the
 * handshake finds out. */
static bool on_probe(struct redis_link *l, const redisReply *reply)
{
    struct redis_history seen = { 0 };

    l->is_probed = false;
    l->probe_refused = reply->type == REDIS_REPLY_ERROR;
    on_history(&seen, reply);
    if (seen.is_replica) {
        l->was_replica = true;
        redis_conn_fail(l->conn, "it has become a replica: latchd needs its master");
        return false;
    }
    if (seen.id[0] != '\0' && strcmp(seen.id, l->server.history.id) != 0) {
        redis_conn_fail(l->conn, "its data has another history now (replication ID): "
                                 "latchd asks anew what it is");
        return false;
    }
    count_replicas(l, reply);
    return true;
}

/* Valkey says in redis_version which Redis it is compatible with. */
static void on_version(struct server_id *s, const redisReply *reply)
{
    info_value(reply, "valkey_version", s->version, sizeof(s->version));
    s->product = s->version[0] == '\0' ? "Redis" : "Valkey";
    if (s->version[0] == '\0') {
        info_value(reply, "redis_version", s->version, sizeof(s->version));
    }
}

static void on_info(struct redis_link *l, enum call_what what, const redisReply *reply)
{
    struct server_id *s = &l->server;
    char replicas[16];

    if (reply->type == REDIS_REPLY_ERROR && !l->is_second &&
        log_is_news(&l->told, "INFO")) {
        log_warning("redis",
                    "%s refuses INFO (%s): latchd cannot tell whether it is the Redis "
                    "from before, how old it is, or whether it is a master; after each "
                    "reconnect it is taken for one that lost its data; let latchd's "
                    "user run INFO",
                    redis_conn_address(l->conn), reply->str);
    }
    if (what == CALL_INFO_SERVER) {
        info_value(reply, "run_id", s->run_id, sizeof(s->run_id));
        on_version(s, reply);
        info_value(reply, "uptime_in_seconds", s->uptime_s, sizeof(s->uptime_s));
    } else {
        on_history(&s->history, reply);
        count_replicas(l, reply);
        info_value(reply, "min_slaves_good_slaves", replicas, sizeof(replicas));
        s->counts_replicas =
            parse_u64(span_str(replicas), UINT32_MAX, &s->good_replicas);
    }
}

/* Without it other daemons do not wait for this one when Redis has lost its data. */
static void on_announced(struct redis_link *l, const redisReply *reply)
{
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

static void on_published(struct redis_link *l, const redisReply *reply)
{
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
static void on_login(const struct redis_link *l, const redisReply *reply)
{
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

static void on_client_id(struct redis_link *l, const redisReply *reply)
{
    l->client_id = reply->type == REDIS_REPLY_INTEGER ? (uint64_t)reply->integer : 0;
    if (reply->type == REDIS_REPLY_ERROR && !l->is_second &&
        log_is_news(&l->told, "CLIENT ID")) {
        log_warning("redis",
                    "%s refuses CLIENT ID (%s): after a broken link latchd cannot end "
                    "the old one, and waits for redis-timeout; let latchd's user run "
                    "CLIENT ID and CLIENT KILL",
                    redis_conn_address(l->conn), reply->str);
    }
}

static bool is_forgivable(const redisReply *reply, enum call_what what)
{
    switch (what) {
    case CALL_SET_NAME:
    case CALL_KILL:
    case CALL_AUDIT:
    case CALL_HISTORY:
    case CALL_PROBE:
    case CALL_ANNOUNCE:
    case CALL_FITNESS:
    case CALL_LOOK:
    case CALL_PUBLISH:
    case CALL_LOGIN:
        return true;
    case CALL_INFO_SERVER:
    case CALL_INFO_REPLICATION:
    case CALL_CLIENT_ID:
    case CALL_LOAD:
        return strncmp(reply->str, "NOPERM", 6) == 0;
    default:
        return false;
    }
}

bool link_on_own_reply(struct redis_link *l, const struct redis_call *call,
                       const redisReply *reply)
{
    enum call_what what = (enum call_what)call->what;

    if (reply->type == REDIS_REPLY_ERROR && !is_forgivable(reply, what)) {
        redis_conn_fail(l->conn, "%s", reply->str);
        return false;
    }
    switch (what) {
    case CALL_INFO_SERVER:
    case CALL_INFO_REPLICATION:
        on_info(l, what, reply);
        return true;
    case CALL_HISTORY:
        on_history(&l->server.history, reply);
        return true;
    case CALL_PROBE:
        return on_probe(l, reply);
    case CALL_CLIENT_ID:
        on_client_id(l, reply);
        return true;
    case CALL_KILL:
        l->kill_failed = reply->type != REDIS_REPLY_INTEGER;
        return true;
    case CALL_LOAD:
        return on_loaded(l, call->item_count, reply);
    case CALL_TIME:
        return on_time(l, call, reply);
    case CALL_AUDIT:
        on_audit(l, (enum audit)call->item_count, reply);
        return true;
    case CALL_ANNOUNCE:
        on_announced(l, reply);
        return true;
    case CALL_LOGIN:
        on_login(l, reply);
        return true;
    case CALL_LOOK:
        on_look(l, reply);
        return true;
    case CALL_FITNESS:
        return on_fitness(l, reply);
    case CALL_PUBLISH:
        on_published(l, reply);
        return true;
    default:
        return true;
    }
}
