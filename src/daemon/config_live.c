#include "daemon/config_live.h"

#include "acl/acl.h"
#include "cmd/users.h"
#include "daemon/files.h"
#include "daemon/process.h"
#include "daemon/server.h"
#include "daemon/tls_certs.h"
#include "daemon/traces.h"
#include "http/host.h"
#include "http/http.h"
#include "util/alloc.h"
#include "util/glob.h"
#include "util/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

/* --- which Redis, and the passwords there ----------------------------- */

enum { PASSWORD_MAX = 512, FILE_MAX = 4096 };

static bool refuse_file(char *reterr, size_t room, const char *path, const char *why)
{
    (void)snprintf(reterr, room, "redis-password-file %s: %s", path, why);
    return false;
}

/* The first line; to be freed. */
static bool read_password(const char *path, char **ret, char *reterr, size_t room)
{
    struct buf text = { 0 };
    int err = file_read(path, FILE_MAX, &text, NULL);
    struct span rest = buf_span(&text), line = span_next(&rest, '\n');
    const char *why = NULL;

    if (line.len != 0 && line.ptr[line.len - 1] == '\r') {
        line.len--;
    }
    if (err != 0) {
        why = strerror(err);
    } else if (line.len == 0) {
        why = "the first line has to be the password, and is empty";
    } else if (line.len > PASSWORD_MAX) {
        why = "the first line has to be the password, and has more than 512 bytes";
    } else if (memchr(line.ptr, '\0', line.len) != NULL) {
        why = "there is a NUL in the password";
    } else {
        *ret = xmemdup0(line.ptr, line.len);
    }
    buf_reset(&text);
    return why == NULL || refuse_file(reterr, room, path, why);
}

bool redis_places_read(const struct config *c, struct backend_config *ret, char *reterr,
                       size_t room)
{
    const char *path = c->redis_password_file, *mistake = NULL;
    char *password = NULL;
    bool ok;

    if (path[0] != '\0' && !read_password(path, &password, reterr, room)) {
        return false;
    }
    ok = backend_config_parse(c->redis, ret, &mistake);
    if (ok && !backend_config_set_password(ret, password, &mistake)) {
        backend_config_fini(ret);
        ok = false;
    }
    if (!ok) {
        (void)snprintf(reterr, room, "redis: %s", mistake);
    }
    free(password);
    return ok;
}

/* Whether two values of `redis` differ in users and passwords only. */
static bool redis_places_same(const char *a, const char *b)
{
    struct backend_config one = { 0 }, other = { 0 };
    const char *mistake;
    bool same = backend_config_parse(a, &one, &mistake) &&
                backend_config_parse(b, &other, &mistake) &&
                backend_config_same_places(&one, &other);

    backend_config_fini(&one);
    backend_config_fini(&other);
    return same;
}

/* Reads the users and passwords again, for the store. A mistake is logged. */
static void redis_places_log_in(struct server *s)
{
    char err[CONFIG_ERROR_MAX];
    struct backend_config places;

    if (s->embedded != NULL) {
        return;
    }
    if (!redis_places_read(&s->config, &places, err, sizeof(err))) {
        log_error("server", "%s: the passwords stay as they are", err);
        return;
    }
    store_set_login(s->store, &places);
    backend_config_fini(&places);
}

/* --- aclfile ---------------------------------------------------------- */

enum { ACL_FILE_MODE = 0600 };

const char *acl_file(void *ctx)
{
    const struct server *s = ctx;

    return s->config.aclfile;
}

static bool read_file(const char *path, struct buf *out, struct buf *reterr)
{
    int err = file_read(path, ACL_FILE_MAX, out, NULL);

    if (err != 0) {
        buf_printf(reterr, "Error loading ACLs, opening file '%s': %s", path,
                   strerror(err));
    }
    return err == 0;
}

bool acl_file_read(void *ctx, struct buf *out, struct buf *reterr)
{
    return read_file(acl_file(ctx), out, reterr);
}

bool acl_file_write(void *ctx, struct span text)
{
    const char *path = acl_file(ctx);
    int err = file_replace(path, text, ACL_FILE_MODE);

    if (err != 0) {
        log_error("acl", "cannot write %s: %s", path, strerror(err));
    }
    return err == 0;
}

bool acl_file_load(struct server *s)
{
    struct buf text = { 0 }, reason = { 0 };
    const char *path = acl_file(s);
    bool ok = path[0] == '\0' ||
              (read_file(path, &text, &reason) &&
               cmd_load_users(s->cmd, path, buf_span(&text), NULL, &reason));

    if (!ok) {
        log_error("acl", "%.*s", (int)buf_len(&reason), buf_ptr(&reason));
    }
    buf_reset(&text);
    buf_reset(&reason);
    return ok;
}

static bool acl_file_check(const char *path, char *reterr, size_t room)
{
    struct buf text = { 0 }, reason = { 0 };
    bool ok = path[0] == '\0' || (read_file(path, &text, &reason) &&
                                  cmd_check_users(path, buf_span(&text), &reason));

    if (!ok) {
        (void)snprintf(reterr, room, "aclfile: %.*s", (int)buf_len(&reason),
                       buf_ptr(&reason));
    }
    buf_reset(&text);
    buf_reset(&reason);
    return ok;
}

/* --- reading ---------------------------------------------------------- */

/* The checks of a start, a reload and --check-config besides those of config_set().
 * CONFIG SET does not come here: the keys that have checks of their own need a restart,
 * and it looks for conflicts itself. */

/* Calls `fn` with each word, until it returns false. */
static bool each_word(const char *text, bool (*fn)(const char *word))
{
    char word[CONFIG_VALUE_MAX + 1];

    while (*text != '\0') {
        size_t len = strcspn(text, " ");

        (void)snprintf(word, sizeof(word), "%.*s", (int)len, text);
        if (len > 0 && !fn(word)) {
            return false;
        }
        text += len + (text[len] == ' ' ? 1 : 0);
    }
    return true;
}

static bool is_address(const char *word)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    return uv_ip4_addr(word, 0, &v4) == 0 || uv_ip6_addr(word, 0, &v6) == 0;
}

static bool starts_with(const char *text, const char *head)
{
    return strncmp(text, head, strlen(head)) == 0;
}

static const char *redis_mistake(const char *redis)
{
    const char *mistake = NULL;
    struct backend_config place;

    if (strcmp(redis, "embedded") == 0) {
        return NULL;
    }
    if (!starts_with(redis, "redis://") && !starts_with(redis, "rediss://") &&
        !starts_with(redis, "unix://") && !starts_with(redis, "sentinel://") &&
        !starts_with(redis, "sentinels://") && !backend_config_is_cluster(redis) &&
        !backend_config_is_quorum(redis)) {
        return "must be embedded, redis://host, rediss://host, unix:///path, "
               "sentinel://host,host/master, cluster://host,host or quorum and 3 or 5 "
               "servers";
    }
    if (strchr(redis, ' ') != NULL && !backend_config_is_quorum(redis)) {
        return "only one server is wanted";
    }
    if (!backend_config_parse(redis, &place, &mistake)) {
        return mistake;
    }
    backend_config_fini(&place);
    return NULL;
}

static void check_values(const struct config *c, struct buf *mistakes)
{
    const char *mistake = redis_mistake(c->redis);

    if (!each_word(c->bind, is_address)) {
        buf_add_str(mistakes, "bind: must be IPv4 or IPv6 addresses\n");
    }
    if (mistake != NULL) {
        buf_printf(mistakes, "redis: %s\n", mistake);
    }
}

/* Checks values against each other, only if each is valid by itself: otherwise the
 * wrong one would be blamed. */
static void check_together(const struct config *c, struct buf *mistakes)
{
    char err[CONFIG_ERROR_MAX];
    struct tls_certs sec;
    struct backend_config places;

    for (size_t i = 0; i < CONFIG_CONFLICT_COUNT; i++) {
        const struct config_conflict *conflict = &CONFIG_CONFLICTS[i];

        if (conflict->is_in(c)) {
            buf_printf(mistakes, "%s: %s\n", conflict->key, conflict->why);
        }
    }
    if (strcmp(c->redis, "embedded") != 0) {
        if (redis_places_read(c, &places, err, sizeof(err))) {
            backend_config_fini(&places);
        } else {
            buf_printf(mistakes, "%s\n", err);
        }
    }
    if (tls_certs_read(c, &sec, err, sizeof(err))) {
        tls_certs_fini(&sec);
    } else {
        buf_printf(mistakes, "%s\n", err);
    }
    if (!acl_file_check(c->aclfile, err, sizeof(err))) {
        buf_printf(mistakes, "%s\n", err);
    }
}

bool config_live_read(const struct options *options, struct config *ret,
                      struct buf *mistakes)
{
    bool ok = options_config(options, ret, mistakes);

    check_values(ret, mistakes);
    if (ok && buf_len(mistakes) == 0) {
        check_together(ret, mistakes);
    }
    if (buf_len(mistakes) == 0) {
        return true;
    }
    config_fini(ret);
    return false;
}

/* Gives each part its values. */
static void config_live_apply(struct server *s)
{
    struct config *c = &s->config;

    config_derive(c);
    log_set_level(c->log_level);
    engine_configure(s->engine, &c->engine);
    cmd_set_limits(s->cmd, &c->cmd);
    net_set_limits(s->net, &c->net);
    store_configure(s->store, &c->store);
    traces_configure(s->traces, &c->traces);
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

uint64_t clients_possible(const struct config *config)
{
    uint64_t others = config->http_api ? HTTP_CALLS_MAX * HTTP_CALL_FILES : 0;
    uint64_t files = process_raise_limit(config->net.max_clients + others);
    uint64_t possible = files > others ? files - others : 1;

    return possible < config->net.max_clients ? possible : config->net.max_clients;
}

static bool enough_files(struct server *s, struct config *c, char *reterr, size_t room)
{
    uint64_t possible = clients_possible(c);
    char why[160];

    if (possible >= c->net.max_clients) {
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
    if (ok && next.net.max_clients != s->config.net.max_clients) {
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

    wanted->net.max_clients = clients_possible(wanted);
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
    if (!config_live_read(s->options, &wanted, &mistakes)) {
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

/* --- unsafe settings -------------------------------------------------- */

/* Whether other machines can connect by TCP without TLS. */
static bool others_can_reach(const struct config *c)
{
    bool listens = c->port != 0 || (c->unixsocket[0] == '\0' && c->tls_port == 0);

    return listens && !each_word(c->bind, host_is_loopback);
}

static bool has_password(const struct config *c)
{
    return c->requirepass[0] != '\0' || c->aclfile[0] != '\0';
}

/* Whether the URL has a password: config_show() puts stars in its place. */
static bool url_has_password(const struct config *c)
{
    const struct config_key *key = config_key_find(SPAN("redis"));
    struct buf whole = { 0 }, shown = { 0 };
    bool has;

    config_format(c, key, &whole);
    config_show(c, key, &shown);
    has = !span_eq(buf_span(&whole), buf_span(&shown));
    buf_reset(&whole);
    buf_reset(&shown);
    return has;
}

static void warn_of_open_access(const struct config *c)
{
    bool others = others_can_reach(c);

    if (!has_password(c) && others && !c->cmd.protected_mode) {
        log_warning("server",
                    "there is no password, and protected-mode is no: each client that "
                    "reaches %s can take and free every lock: set requirepass or "
                    "aclfile",
                    c->bind);
    }
    if (has_password(c) && others) {
        log_warning("server",
                    "passwords of clients from other machines cross the network in "
                    "plain text: set tls-port and port 0");
    }
    if (!has_password(c) && c->unixsocket[0] != '\0' &&
        (c->unixsocketperm & S_IWOTH) != 0) {
        log_warning("server",
                    "there is no password, and every user of this machine can write to "
                    "%s: take permissions from unixsocketperm",
                    c->unixsocket);
    }
}

static void warn_of_file(const char *key, const char *path)
{
    struct stat st;

    if (path[0] != '\0' && stat(path, &st) == 0 && (st.st_mode & S_IROTH) != 0) {
        log_warning("server",
                    "every user of this machine can read the secrets in %s%s%s: take "
                    "that permission away (chmod o=)",
                    key, key[0] == '\0' ? "" : " ", path);
    }
}

/* Whether the word sets this key: `--key` or `--key=value`. */
static bool is_key(const char *word, const char *key)
{
    size_t len = strlen(key);

    return strncmp(word, "--", 2) == 0 && strncmp(word + 2, key, len) == 0 &&
           (word[2 + len] == '\0' || word[2 + len] == '=');
}

static bool is_in_arguments(const struct options *o, const char *key)
{
    for (int i = 0; i < o->argc; i++) {
        if (is_key(o->argv[i], key)) {
            return true;
        }
    }
    return false;
}

static void warn_of_secrets(const struct options *o, const struct config *c)
{
    static const char *const KEYS[] = { "requirepass", "redis" };
    const bool secret[] = { c->requirepass[0] != '\0', url_has_password(c) };
    bool in_file = false;

    for (size_t i = 0; i < sizeof(KEYS) / sizeof(KEYS[0]); i++) {
        bool in_arguments = secret[i] && is_in_arguments(o, KEYS[i]);

        if (in_arguments) {
            log_warning(
                "server",
                "every user of this machine can see the password of --%s in the "
                "list of processes: put it into a file, and name that with "
                "--config",
                KEYS[i]);
        }
        in_file =
            in_file || (secret[i] && !in_arguments &&
                        !config_is_in_environment(config_key_find(span_str(KEYS[i]))));
    }
    if (in_file && o->config_path != NULL) {
        warn_of_file("", o->config_path);
    }
    warn_of_file("redis-password-file", c->redis_password_file);
    warn_of_file("tls-key-file", c->tls_key_file);
    warn_of_file("redis-tls-key-file", c->redis_tls_key_file);
}

void unsafe_warn(const struct options *options, const struct config *c)
{
    if (geteuid() == 0) {
        log_warning("server",
                    "latchd runs as root, and needs no privileges at all: start "
                    "it as another user");
    }
    warn_of_open_access(c);
    warn_of_secrets(options, c);
}
