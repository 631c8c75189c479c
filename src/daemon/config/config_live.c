#include "daemon/server_state.h"

#include "backend/config/backend_config.h"
#include "daemon/config/config.h"
#include "daemon/server.h"
#include "daemon/tls_certs.h"
#include "util/glob.h"
#include "util/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct engine_config config_live_locks_config(const struct config *c)
{
    return (struct engine_config){
        .watchdog_ms = c->watchdog_timeout_ms,
        /* The answer that extends a lease waits for replicas, too. */
        .redis_timeout_ms =
            c->redis_timeout_ms + (c->min_replicas > 0 ? c->replica_timeout_ms : 0),
        .recheck_ms = c->recheck_ms,
        .fair_wait_ms = c->fair_wait_ms,
        .fair_window = c->fair_window,
        .fence_ttl_ms = c->fence_ttl_ms,
        .handover_limit = c->handover_limit,
        .handover_pause_ms = c->handover_pause_ms,
        .local_window_ms = c->local_window_ms,
        .priority_aging_ms = c->priority_aging_ms,
        .grace_ms = c->grace_ms,
        .max_keep_ms = c->max_keep_ms,
        .max_lease_ms = c->max_lease_ms,
        .endless_lease_ms = c->endless_lease_ms,
        .max_wait_ms = c->max_wait_ms,
        .long_wait_ms = c->long_wait_ms < 0 ? 0 : (uint64_t)c->long_wait_ms,
        .max_waiters = c->max_waiters,
        .max_holds = c->max_holds,
        .quarantine_ms = c->failover_quarantine_ms < 0
                             ? c->watchdog_timeout_ms
                             : (uint64_t)c->failover_quarantine_ms,
    };
}

struct cmd_limits config_live_cmd_limits(const struct config *c)
{
    return (struct cmd_limits){
        .local_names = c->local_names == NULL ? "" : c->local_names,
        .max_name = c->max_name_length,
        .one_tag = config_is_cluster(c),
        .database = backend_config_database(c->redis),
        .max_lease_ms = c->max_lease_ms,
        .max_keep_ms = c->max_keep_ms,
        .watchdog_ms = c->watchdog_timeout_ms,
        .max_wait_ms = c->max_wait_ms,
        .slowlog_us = c->slowlog_us,
        .slowlog_len = c->slowlog_len,
        .protected_mode = c->protected_mode != 0,
        .cert_users = c->tls_auth_clients_user != 0,
        .latency_ms = c->latency_ms,
        .lock_libraries = c->lock_libraries != 0,
        .endless_lease_ms = c->endless_lease_ms,
        .library_park_ms = c->library_park_ms,
    };
}

struct net_limits config_live_net_limits(const struct server *s)
{
    const struct config *c = &s->config;
    uint64_t keepalive_s = (c->tcp_keepalive_ms + 999) / 1000;

    return (struct net_limits){
        .max_clients = c->maxclients,
        .query_buffer = c->query_buffer_limit,
        .output_buffer = c->output_buffer_limit,
        .memory = c->maxmemory_clients,
        .idle_ms = c->timeout_ms,
        .login_ms = c->auth_timeout_ms,
        .stream = {
            .keepalive_s = keepalive_s,
            /* As long as the probes take, so that unacknowledged data ends the
             * connection at the same time. */
            .user_timeout_ms = keepalive_s == 0 ? 0 : (keepalive_s + 9) * 1000,
        },
    };
}

struct store_options config_live_store_options(const struct config *c)
{
    return (struct store_options){
        .timeout_ms = c->redis_timeout_ms,
        .quarantine_ms = config_live_locks_config(c).quarantine_ms,
        .min_replicas = (unsigned)c->min_replicas,
        .replica_timeout_ms = c->replica_timeout_ms,
    };
}

void config_live_apply(struct server *s)
{
    struct engine_config locks = config_live_locks_config(&s->config);
    struct cmd_limits cmd = config_live_cmd_limits(&s->config);
    struct net_limits net = config_live_net_limits(s);
    struct store_options store = config_live_store_options(&s->config);

    log_set_level((enum log_level)s->config.log_level);
    engine_configure(s->engine, &locks);
    cmd_set_limits(s->cmd, &cmd);
    net_set_limits(s->net, &net);
    store_configure(s->store, &store);
}

static void replace_config(struct server *s, struct config *with)
{
    bool password = strcmp(s->config.requirepass, with->requirepass) != 0;

    config_fini(&s->config);
    s->config = *with;
    config_live_apply(s);
    if (password) {
        cmd_password_changed(s->cmd);
    }
}

/* --- CONFIG ----------------------------------------------------------- */

void config_live_each(void *ctx, struct span pattern, config_pair_fn *fn, void *arg)
{
    struct server *s = ctx;
    struct buf value = { 0 };

    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        const struct config_key *key = &CONFIG_KEYS[i];

        if ((key->flags & KEY_SECRET) != 0 ||
            !glob_match(pattern, span_str(key->name))) {
            continue;
        }
        buf_clear(&value);
        config_show(&s->config, key, &value);
        buf_add(&value, "", 1);
        fn(arg, key->name, buf_ptr(&value));
    }
    buf_reset(&value);
}

/* The error text is Redis's. */
static bool refuse_setting(const char *name, const char *why, char *reterr, size_t room)
{
    (void)snprintf(reterr, room,
                   "CONFIG SET failed (possibly related to argument '%s') - %s", name,
                   why);
    return false;
}

static bool set_pair(struct config *c, struct span name, struct span value, bool *seen,
                     char *reterr, size_t room)
{
    const struct config_key *key = config_key_find(name);
    char why[CONFIG_ERROR_MAX];

    if (key == NULL) {
        (void)snprintf(reterr, room,
                       "Unknown option or number of arguments for CONFIG SET - '%.*s'",
                       name.len < 128 ? (int)name.len : 128, name.ptr);
        return false;
    }
    if ((key->flags & KEY_LIVE) == 0) {
        return refuse_setting(key->name, "can't set immutable config", reterr, room);
    }
    if (seen[config_key_index(key)]) {
        return refuse_setting(key->name, "duplicate parameter", reterr, room);
    }
    seen[config_key_index(key)] = true;
    if (!config_set(c, key, value, why, sizeof(why))) {
        return refuse_setting(key->name, why, reterr, room);
    }
    return true;
}

static bool fit_together(const struct config *c, char *reterr, size_t room)
{
    const struct config_conflict *conflict = config_find_conflict(c);

    return conflict == NULL ||
           refuse_setting(conflict->key, conflict->why, reterr, room);
}

static bool enough_files(struct server *s, struct config *c, char *reterr, size_t room)
{
    uint64_t possible = listen_raise_limit(c->maxclients);
    char why[160];

    if (possible >= c->maxclients) {
        return true;
    }
    (void)snprintf(why, sizeof(why),
                   "The operating system is not able to handle the specified number of "
                   "clients, try with %" PRIu64,
                   possible);
    return refuse_setting("maxclients", why, reterr, room);
}

/* Whether CONFIG SET names a TLS key, even with an unchanged value: then the files are
 * read again. */
static bool names_tls(const bool *seen)
{
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        if (seen[i] && strstr(CONFIG_KEYS[i].name, "tls-") != NULL) {
            return true;
        }
    }
    return false;
}

/* Whether CONFIG SET names the key, even with an unchanged value: then the file is read
 * again. */
static bool names_password_file(const bool *seen)
{
    return seen[config_key_index(config_key_find(SPAN("redis-password-file")))];
}

static bool read_places(const struct config *c, char *reterr, size_t room)
{
    char why[CONFIG_ERROR_MAX];
    struct backend_config places;

    if (strcmp(c->redis, "embedded") == 0) {
        return true;
    }
    if (!redis_places_read(c, &places, why, sizeof(why))) {
        return refuse_setting("redis-password-file", why, reterr, room);
    }
    backend_config_fini(&places);
    return true;
}

static bool read_tls(const struct config *c, struct tls_certs *ret, char *reterr,
                     size_t room)
{
    char why[CONFIG_ERROR_MAX];

    return tls_certs_read(c, ret, why, sizeof(why)) ||
           refuse_setting("tls-cert-file", why, reterr, room);
}

bool config_live_set(void *ctx, const struct span *pairs, size_t count, char *reterr,
                     size_t room)
{
    bool seen[CONFIG_KEYS_MAX] = { false };
    struct server *s = ctx;
    struct config next;
    bool ok = true;

    struct tls_certs sec = { 0 };

    config_copy(&next, &s->config);
    for (size_t i = 0; i < count && ok; i++) {
        ok = set_pair(&next, pairs[2 * i], pairs[2 * i + 1], seen, reterr, room);
    }
    ok = ok && fit_together(&next, reterr, room);
    if (ok && next.maxclients != s->config.maxclients) {
        ok = enough_files(s, &next, reterr, room);
    }
    ok = ok && (!names_password_file(seen) || read_places(&next, reterr, room));
    if (ok && names_tls(seen)) {
        ok = read_tls(&next, &sec, reterr, room);
    }
    if (!ok) {
        config_fini(&next);
        return false;
    }
    replace_config(s, &next);
    tls_certs_use(s, &sec);
    if (names_password_file(seen)) {
        redis_places_log_in(s);
    }
    return true;
}

bool config_live_rewrite(void *ctx, char *reterr, size_t room)
{
    struct server *s = ctx;

    if (s->options->config_path == NULL) {
        (void)snprintf(reterr, room, "The server is running without a config file");
        return false;
    }
    return config_rewrite(&s->config, s->options->config_path, reterr, room);
}

const char *config_live_password(void *ctx)
{
    struct server *s = ctx;

    return s->config.requirepass;
}

/* --- SIGHUP ----------------------------------------------------------- */

/* Applies the keys that may change at run time, and logs the others. True: something
 * changed. */
static bool take_over(struct config *now, const struct config *wanted,
                      const struct config_key *key)
{
    char err[CONFIG_ERROR_MAX];
    struct buf value = { 0 };
    bool secret = (key->flags & KEY_SECRET) != 0;
    bool live =
        (key->flags & KEY_LIVE) != 0 ||
        ((key->flags & KEY_URLS) != 0 && redis_places_same(now->redis, wanted->redis));

    if (config_same(now, wanted, key)) {
        return false;
    }
    config_format(wanted, key, &value);
    if (live && !config_set(now, key, buf_span(&value), err, sizeof(err))) {
        abort(); /* cannot fail: the value was parsed before */
    }
    buf_clear(&value);
    config_show(wanted, key, &value);
    buf_add(&value, "", 1);
    log_notice("server",
               live ? "reload: %s is now %s" : "reload: %s %s needs a restart",
               key->name, secret ? "(not shown)" : buf_ptr(&value));
    buf_reset(&value);
    return live;
}

/* Applies all of a new configuration, or nothing if anything is wrong. */
static void take_over_all(struct server *s, struct config *wanted,
                          struct tls_certs *sec)
{
    struct config next;
    unsigned changed = 0;

    wanted->maxclients = listen_raise_limit(wanted->maxclients);
    config_copy(&next, &s->config);
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        changed += take_over(&next, wanted, &CONFIG_KEYS[i]) ? 1 : 0;
    }
    replace_config(s, &next);
    tls_certs_use(s, sec);
    redis_places_log_in(s);
    log_notice("server", "reload: %u key%s changed", changed, changed == 1 ? "" : "s");
    if (!acl_file_load(s)) {
        log_error("server", "reload: the users stay as they are");
    }
}

static void refuse_reload(struct span mistakes)
{
    while (mistakes.len > 0) {
        struct span line = span_next(&mistakes, '\n');

        log_error("server", "reload: nothing is changed, correct this first: %.*s",
                  (int)line.len, line.ptr);
    }
}

void config_live_reload(struct server *s)
{
    char err[CONFIG_ERROR_MAX];
    struct buf mistakes = { 0 };
    struct config wanted;
    struct tls_certs sec;

    if (s->phase != SERVER_RUNNING && s->phase != SERVER_STARTING) {
        return;
    }
    if (s->phase == SERVER_RUNNING) {
        notify_reloading(&s->notify);
    }
    if (!server_read_config(s->options, &wanted, &mistakes)) {
        refuse_reload(buf_span(&mistakes));
    } else {
        if (tls_certs_read(&wanted, &sec, err, sizeof(err))) {
            take_over_all(s, &wanted, &sec);
        } else {
            refuse_reload(span_str(err));
        }
        config_fini(&wanted);
    }
    buf_reset(&mistakes);
    if (s->phase == SERVER_RUNNING) {
        notify_send(&s->notify, "READY=1");
    }
}
