#include "backend/backend_config.h"

#include "backend/sentinel_watch.h"
#include "io/tls.h"
#include "util/alloc.h"
#include "util/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { DB_MAX = 1000000, PORT_MAX = 65535 };

/* A copy with %xx replaced; NULL: one is malformed, or there is a NUL. */
static char *decode_percent(struct span text)
{
    char *copy = xmemdup0(text.ptr, text.len);

    if (memchr(text.ptr, '\0', text.len) != NULL || !parse_percent(copy)) {
        free(copy);
        return NULL;
    }
    return copy;
}

static bool parse_db(struct span text, struct backend_url *url)
{
    uint64_t db;

    if (!parse_u64(text, DB_MAX, &db)) {
        return false;
    }
    url->db = (unsigned)db;
    return true;
}

static const char *parse_user(struct span text, struct backend_url *url)
{
    struct span user;

    bool has_password = span_cut(&text, ':', &user);

    if (has_password) {
        url->password = decode_percent(text);
    } else {
        user = text;
    }
    if (user.len != 0) {
        url->user = decode_percent(user);
    }
    if ((has_password && url->password == NULL) ||
        (user.len != 0 && url->user == NULL)) {
        return "a % in user or password is followed by two hex digits, not 00";
    }
    if (has_password && url->password[0] == '\0') {
        return "the password is empty";
    }
    return has_password || user.len != 0 ? NULL : "before the @ comes a user";
}

static const char *parse_host(struct span text, struct backend_url *url)
{
    struct span host;
    struct span port = SPAN("6379");
    uint64_t number;

    if (span_starts(text, SPAN("["))) {
        if (!span_cut(&text, ']', &host)) {
            return "an IPv6 address needs a closing ]";
        }
        host = span_of(host.ptr + 1, host.len - 1);
        if (text.len != 0 && text.ptr[0] != ':') {
            return "after ] comes :port";
        }
        if (text.len != 0) {
            port = span_of(text.ptr + 1, text.len - 1);
        }
    } else if (span_cut(&text, ':', &host)) {
        port = text;
    } else {
        host = text;
    }
    if (host.len == 0) {
        return "the host is missing";
    }
    if (memchr(host.ptr, '\0', host.len) != NULL) {
        return "the host is malformed";
    }
    if (!parse_u64(port, PORT_MAX, &number) || number == 0) {
        return "the port is a number from 1 to 65535";
    }
    url->host = xmemdup0(host.ptr, host.len);
    url->port = xmemdup0(port.ptr, port.len);
    return NULL;
}

static const char *parse_tcp(struct span rest, struct backend_url *url)
{
    struct span part;
    const char *err = NULL;

    if (span_cut_last(&rest, '@', &part)) {
        err = parse_user(part, url);
    }
    if (err == NULL && span_cut(&rest, '/', &part)) {
        if (rest.len != 0 && !parse_db(rest, url)) {
            return "the database is a number: redis://host:port/db";
        }
        rest = part;
    }
    return err == NULL ? parse_host(rest, url) : err;
}

static const char *parse_unix(struct span rest, struct backend_url *url)
{
    struct span path = rest, login;
    const char *err = NULL;

    if (!span_starts(rest, SPAN("/")) && span_cut(&rest, '@', &login)) {
        err = parse_user(login, url);
        path = rest;
    }
    if (err != NULL) {
        return err;
    }
    if (span_cut(&rest, '?', &path) &&
        (!span_starts(rest, SPAN("db=")) ||
         !parse_db(span_of(rest.ptr + 3, rest.len - 3), url))) {
        return "after ? only db=number is known";
    }
    if (path.len < 2 || path.ptr[0] != '/') {
        return "the path is absolute: unix:///path, unix://user:password@/path";
    }
    url->unix_path = xmemdup0(path.ptr, path.len);
    return NULL;
}

bool backend_url_parse(const char *text, struct backend_url *ret, const char **reterr)
{
    struct backend_url url = { 0 };
    struct span all = span_str(text);
    const char *err = "it begins with redis://, rediss:// or unix://";

    if (span_starts(all, SPAN("redis://"))) {
        err = parse_tcp(span_of(text + 8, all.len - 8), &url);
    } else if (span_starts(all, SPAN("unix://"))) {
        err = parse_unix(span_of(text + 7, all.len - 7), &url);
    } else if (span_starts(all, SPAN("rediss://"))) {
        url.wants_tls = true;
        err = parse_tcp(span_of(text + 9, all.len - 9), &url);
    }
    if (err != NULL) {
        backend_url_fini(&url);
        *reterr = err;
        return false;
    }
    *ret = url;
    return true;
}

void backend_url_fini(struct backend_url *url)
{
    free(url->unix_path);
    free(url->host);
    free(url->port);
    free(url->user);
    free(url->password);
    tls_unref(url->tls);
    *url = (struct backend_url){ 0 };
}

static char *copy_string(const char *text)
{
    return text == NULL ? NULL : xstrdup(text);
}

void backend_url_copy(struct backend_url *ret, const struct backend_url *url)
{
    *ret = (struct backend_url){
        .unix_path = copy_string(url->unix_path),
        .host = copy_string(url->host),
        .port = copy_string(url->port),
        .user = copy_string(url->user),
        .password = copy_string(url->password),
        .db = url->db,
        .wants_tls = url->wants_tls,
        .tls = url->tls == NULL ? NULL : tls_ref(url->tls),
    };
}

void backend_url_set_server(struct backend_url *url, struct span host, struct span port)
{
    char *new_host = xmemdup0(host.ptr, host.len);
    char *new_port = xmemdup0(port.ptr, port.len);

    free(url->host);
    free(url->port);
    url->host = new_host;
    url->port = new_port;
}

static bool is_same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

bool backend_url_set_login(struct backend_url *url, const struct backend_url *from)
{
    if (is_same_text(url->user, from->user) &&
        is_same_text(url->password, from->password)) {
        return false;
    }
    free(url->user);
    free(url->password);
    url->user = copy_string(from->user);
    url->password = copy_string(from->password);
    return true;
}

void backend_url_set_tls(struct backend_url *url, struct tls *tls)
{
    if (url->wants_tls) {
        tls_unref(url->tls);
        url->tls = tls_ref(tls);
    }
}

static const char STARS[] = "***";

static bool backend_config_is_sentinel(const char *text);

/* Where a login ends, at the last @ that can be its end; NULL: there is none. Of a
 * socket a path follows, which may have an @ as well. */
static const char *find_login_end(struct span url)
{
    const char *at = memrchr(url.ptr, '@', url.len), *last = at;
    const char *end = url.ptr + url.len;

    while (span_starts(url, SPAN("unix://")) && at != NULL &&
           (end - at < 3 || at[1] != '/' || at[2] == '?')) {
        at = memrchr(url.ptr, '@', (size_t)(at - url.ptr));
    }
    return at == NULL ? last : at;
}

/* scheme://user:password@... */
static void show_login(struct span url, struct buf *out)
{
    const char *begin, *at, *colon = NULL;

    if (url.ptr == NULL || url.len == 0) {
        return;
    }
    begin = memmem(url.ptr, url.len, "://", 3);
    at = find_login_end(url);
    if (begin != NULL && at != NULL && at > begin + 3) {
        colon = memchr(begin + 3, ':', (size_t)(at - begin - 3));
    }
    if (colon == NULL) {
        buf_add_span(out, url);
        return;
    }
    buf_add(out, url.ptr, (size_t)(colon + 1 - url.ptr));
    buf_add_str(out, STARS);
    buf_add(out, at, (size_t)(url.ptr + url.len - at));
}

/* ?name=value&name=value */
static void show_options(struct span text, struct buf *out)
{
    while (text.len != 0) {
        const char *end = memchr(text.ptr + 1, '&', text.len - 1);
        size_t len = end == NULL ? text.len : (size_t)(end - text.ptr);
        const char *equals = memchr(text.ptr, '=', len);

        if (equals != NULL && memmem(text.ptr, len, "password=", 9) != NULL) {
            buf_add(out, text.ptr, (size_t)(equals + 1 - text.ptr));
            buf_add_str(out, STARS);
        } else {
            buf_add(out, text.ptr, len);
        }
        text = span_after(text, len);
    }
}

static void show_word(struct span word, bool has_options, struct buf *out)
{
    const char *options =
        has_options && word.len != 0 ? memchr(word.ptr, '?', word.len) : NULL;
    size_t len = options == NULL ? word.len : (size_t)(options - word.ptr);

    show_login(span_of(word.ptr, len), out);
    show_options(span_after(word, len), out);
}

void backend_config_show(const char *text, struct buf *out)
{
    /* A password may have spaces in it, but not there. */
    const char *ends = backend_config_is_quorum(text) ? " " : "";
    bool has_options = backend_config_is_sentinel(text);

    for (;;) {
        size_t len = strcspn(text, ends);

        show_word(span_of(text, len), has_options, out);
        if (text[len] == '\0') {
            return;
        }
        buf_add_str(out, " ");
        text += len + 1;
    }
}

bool backend_config_is_cluster(const char *text)
{
    struct span all = span_str(text);

    return span_starts(all, SPAN("cluster://")) ||
           span_starts(all, SPAN("clusters://"));
}

/* As redis:// has it: what may stand in a part is the same there. */
static const char *add_cluster_server(struct backend_config *config, bool tls,
                                      struct span login, struct span host)
{
    const char *err = "a server is missing: cluster://host:6379,host:6379";
    struct buf text = { 0 };
    struct backend_url url;

    if (host.len == 0) {
        return err;
    }
    if (memchr(host.ptr, '/', host.len) != NULL) {
        return "a cluster has no databases: cluster://host:6379,host:6379";
    }
    if (config->url_count == BACKEND_URLS_MAX) {
        return "so many servers are not needed: a few of them know the others";
    }
    buf_add_str(&text, tls ? "rediss://" : "redis://");
    if (login.ptr != NULL) {
        buf_add_span(&text, login);
        buf_add_str(&text, "@");
    }
    buf_add_span(&text, host);
    buf_add(&text, "", 1);
    if (backend_url_parse(buf_ptr(&text), &url, &err)) {
        err = NULL;
        backend_config_add(config, &url);
    }
    buf_reset(&text);
    return err;
}

/* Behind the last host, if there are any. */
static const char *take_options(struct span *text, struct backend_config *config)
{
    struct span options = *text;

    config->cluster.publish = PUBLISH_BOTH;
    if (!span_cut(&options, '?', text)) {
        return NULL;
    }
    if (span_eq(options, SPAN("publish=sharded"))) {
        config->cluster.publish = PUBLISH_SHARDED;
    } else if (!span_eq(options, SPAN("publish=both"))) {
        return "after ? only publish=both and publish=sharded are known";
    }
    return NULL;
}

/* cluster[s]://[user:password@]host[:6379][,host...][?publish=both|sharded]: some of
 * its nodes. Percent-decoding in user and password. With an s: TLS to all of them. */
static bool backend_config_cluster_parse(const char *text, struct backend_config *ret,
                                         const char **reterr)
{
    struct backend_config config = { .topology = BACKEND_CLUSTER };
    bool tls = span_starts(span_str(text), SPAN("clusters"));
    struct span rest = span_str(strstr(text, "://") + 3), login = SPAN_NONE;
    struct span host = SPAN_NONE;
    const char *err = NULL;
    bool more = true;

    if (span_cut_last(&rest, '@', &login) && login.len != 0 &&
        memchr(login.ptr, '@', login.len) != NULL) {
        err = "user and password stand once, before the first host; @ in them is %40";
    }
    err = err == NULL ? take_options(&rest, &config) : err;
    while (more && err == NULL) {
        more = span_cut(&rest, ',', &host);
        err = add_cluster_server(&config, tls, login, more ? host : rest);
    }
    if (err != NULL) {
        backend_config_fini(&config);
        *reterr = err;
        return false;
    }
    *ret = config;
    return true;
}

bool backend_config_is_quorum(const char *text)
{
    return strncmp(text, "quorum ", 7) == 0;
}

/* As far as the text tells: two names may be one server. */
static bool same_server(const struct backend_url *a, const struct backend_url *b)
{
    return is_same_text(a->unix_path, b->unix_path) && is_same_text(a->host, b->host) &&
           is_same_text(a->port, b->port);
}

static const char *add_quorum_server(struct backend_config *config, const char *word,
                                     size_t len)
{
    char *text = xmemdup0(word, len);
    const char *err = NULL;
    struct backend_url url;
    bool parsed = backend_url_parse(text, &url, &err);

    free(text);
    if (!parsed) {
        return err;
    }
    for (size_t i = 0; i < config->url_count; i++) {
        if (same_server(&config->urls[i], &url)) {
            backend_url_fini(&url);
            return "a server is named twice: a quorum is of independent ones";
        }
    }
    if (config->url_count != 0 && config->urls[0].wants_tls != url.wants_tls) {
        backend_url_fini(&url);
        return "all servers of a quorum are rediss://, or none";
    }
    backend_config_add(config, &url);
    return NULL;
}

/* quorum <url> <url> <url> [<url> <url>]: as redis://, rediss:// and unix:// are. */
static bool backend_config_quorum_parse(const char *text, struct backend_config *ret,
                                        const char **reterr)
{
    struct backend_config config = { .topology = BACKEND_QUORUM };
    const char *err = NULL;

    text += strlen("quorum ");
    while (*text != '\0' && err == NULL && config.url_count < BACKEND_URLS_MAX) {
        size_t len = strcspn(text, " ");

        if (len != 0) {
            err = add_quorum_server(&config, text, len);
        }
        text += len + (text[len] == ' ' ? 1 : 0);
    }
    if (err == NULL && config.url_count != 3 && config.url_count != 5) {
        err = "a quorum is of 3 or 5 servers: quorum redis://a redis://b redis://c";
    }
    if (err != NULL) {
        backend_config_fini(&config);
        *reterr = err;
        return false;
    }
    *ret = config;
    return true;
}

enum { MASTER_MAX = 128 };

static const char DEFAULT_PORT[] = ":26379";

struct parts {
    struct span login, hosts, master, db, user, password;
};

/* sentinel[s]://[user:password@]host[:26379][,host...]/master[/db][?option&option]
 *
 * User and password are those of Redis; the options sentinel-user and sentinel-password
 * those of the Sentinels. Percent-decoding in all four, for `?` and `@`, and `&` in
 * options. With an s: TLS to all of them. */
static bool backend_config_is_sentinel(const char *text)
{
    struct span all = span_str(text);

    return span_starts(all, SPAN("sentinel://")) ||
           span_starts(all, SPAN("sentinels://"));
}

static const char *parse_options(struct span text, struct parts *ret)
{
    struct span key, value;

    while (text.len != 0) {
        value = span_next(&text, '&');
        if (!span_cut(&value, '=', &key) || value.len == 0) {
            return "after ? come options: name=value&name=value";
        }
        if (span_eq(key, SPAN("sentinel-user"))) {
            ret->user = value;
        } else if (span_eq(key, SPAN("sentinel-password"))) {
            ret->password = value;
        } else {
            return "after ? only sentinel-user and sentinel-password are known";
        }
    }
    if (ret->user.len != 0 && ret->password.len == 0) {
        return "sentinel-user needs sentinel-password";
    }
    if (ret->user.len != 0 && memchr(ret->user.ptr, ':', ret->user.len) != NULL) {
        return "a : in sentinel-user is written %3A";
    }
    return NULL;
}

static bool is_master_name(struct span name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (!isalnum((unsigned char)c) && c != '.' && c != '-' && c != '_') {
            return false;
        }
    }
    return name.len != 0 && name.len <= MASTER_MAX;
}

static const char *take_apart(struct span text, struct parts *ret)
{
    struct span rest = text;
    const char *err = NULL;

    if (span_cut(&rest, '?', &text)) {
        err = parse_options(rest, ret);
    }
    if (err != NULL) {
        return err;
    }
    if (span_cut_last(&text, '@', &ret->login) && ret->login.len != 0 &&
        memchr(ret->login.ptr, '@', ret->login.len) != NULL) {
        return "user and password stand once, before the first host; @ in them is %40";
    }
    if (!span_cut(&text, '/', &ret->hosts)) {
        return "the name of the master is missing: sentinel://host,host/master";
    }
    ret->master = text;
    if (span_cut(&text, '/', &ret->master)) {
        ret->db = text;
    }
    return is_master_name(ret->master)
               ? NULL
               : "the name of the master has letters, digits and . - _ only";
}

/* As redis:// has it: what may stand in a part is the same there. */
static const char *parse_as_redis(bool tls, struct span login, struct span host,
                                  struct span db, struct backend_url *ret)
{
    struct buf text = { 0 };
    const char *err = NULL;

    buf_add_str(&text, tls ? "rediss://" : "redis://");
    if (login.ptr != NULL) {
        buf_add_span(&text, login);
        buf_add_str(&text, "@");
    }
    buf_add_span(&text, host);
    if (db.len != 0) {
        buf_add_str(&text, "/");
        buf_add_span(&text, db);
    }
    buf_add(&text, "", 1);
    (void)backend_url_parse(buf_ptr(&text), ret, &err);
    buf_reset(&text);
    return err;
}

static bool has_port(struct span host)
{
    struct span inside;

    if (span_starts(host, SPAN("["))) {
        (void)span_cut_last(&host, ']', &inside);
    }
    return host.len != 0 && memchr(host.ptr, ':', host.len) != NULL;
}

static const char *add_sentinel(struct backend_config *config, bool tls,
                                struct span login, struct span host)
{
    struct buf text = { 0 };
    struct backend_url url;
    const char *err;

    if (host.len == 0 || memchr(host.ptr, '/', host.len) != NULL) {
        return "a Sentinel is missing: sentinel://host:26379,host:26379/master";
    }
    if (config->url_count == SENTINELS_MAX) {
        return "so many Sentinels are not needed: a few of them know the others";
    }
    buf_add_span(&text, host);
    if (!has_port(host)) {
        buf_add_str(&text, DEFAULT_PORT);
    }
    err = parse_as_redis(tls, login, buf_span(&text), SPAN_NONE, &url);
    if (err == NULL) {
        backend_config_add(config, &url);
    }
    buf_reset(&text);
    return err;
}

static const char *add_sentinels(struct backend_config *config, bool tls,
                                 const struct parts *parts)
{
    struct span rest = parts->hosts, host = SPAN_NONE;
    struct buf login = { 0 };
    const char *err = NULL;
    bool more = true;

    if (parts->password.len != 0) {
        buf_add_span(&login, parts->user);
        buf_add_str(&login, ":");
        buf_add_span(&login, parts->password);
    }
    while (more && err == NULL) {
        more = span_cut(&rest, ',', &host);
        err = add_sentinel(config, tls,
                           parts->password.len == 0 ? SPAN_NONE : buf_span(&login),
                           more ? host : rest);
    }
    buf_reset(&login);
    return err;
}

static bool backend_config_sentinel_parse(const char *text, struct backend_config *ret,
                                          const char **reterr)
{
    struct backend_config config = { .topology = BACKEND_SENTINEL };
    bool tls = span_starts(span_str(text), SPAN("sentinels"));
    struct span rest = span_str(strstr(text, "://") + 3);
    struct parts parts = { 0 };
    const char *err = take_apart(rest, &parts);

    if (err == NULL) {
        err = parse_as_redis(tls, parts.login, SPAN("master"), parts.db,
                             &config.sentinel.redis);
    }
    if (err == NULL) {
        err = add_sentinels(&config, tls, &parts);
    }
    if (err != NULL) {
        backend_config_fini(&config);
        *reterr = err;
        return false;
    }
    config.sentinel.master = xmemdup0(parts.master.ptr, parts.master.len);
    *ret = config;
    return true;
}

bool backend_config_parse(const char *text, struct backend_config *ret,
                          const char **reterr)
{
    struct backend_config config = { .topology = BACKEND_SINGLE };
    struct backend_url url;

    if (backend_config_is_sentinel(text)) {
        return backend_config_sentinel_parse(text, ret, reterr);
    }
    if (backend_config_is_cluster(text)) {
        return backend_config_cluster_parse(text, ret, reterr);
    }
    if (backend_config_is_quorum(text)) {
        return backend_config_quorum_parse(text, ret, reterr);
    }
    if (!backend_url_parse(text, &url, reterr)) {
        return false;
    }
    backend_config_add(&config, &url);
    *ret = config;
    return true;
}

void backend_config_add(struct backend_config *config, struct backend_url *url)
{
    config->urls =
        xrealloc(config->urls, (config->url_count + 1) * sizeof(config->urls[0]));
    config->urls[config->url_count++] = *url;
    *url = (struct backend_url){ 0 };
}

unsigned backend_config_database(const char *text)
{
    struct backend_config config;
    const char *mistake;
    unsigned db;

    if (!backend_config_parse(text, &config, &mistake)) {
        return 0;
    }
    db = config.topology == BACKEND_SENTINEL ? config.sentinel.redis.db
         : config.url_count == 0             ? 0
                                             : config.urls[0].db;
    backend_config_fini(&config);
    return db;
}

void backend_config_copy(struct backend_config *ret,
                         const struct backend_config *config)
{
    struct backend_url url;

    *ret = *config;
    ret->urls = NULL;
    ret->url_count = 0;
    for (size_t i = 0; i < config->url_count; i++) {
        backend_url_copy(&url, &config->urls[i]);
        backend_config_add(ret, &url);
    }
    if (config->topology == BACKEND_SENTINEL) {
        ret->sentinel.master = xstrdup(config->sentinel.master);
        backend_url_copy(&ret->sentinel.redis, &config->sentinel.redis);
    }
}

void backend_config_fini(struct backend_config *config)
{
    for (size_t i = 0; i < config->url_count; i++) {
        backend_url_fini(&config->urls[i]);
    }
    free(config->urls);
    free(config->sentinel.master);
    backend_url_fini(&config->sentinel.redis);
    *config = (struct backend_config){ 0 };
}

static bool give_password(struct backend_url *url, const char *password)
{
    if (url->password == NULL && password != NULL) {
        url->password = xstrdup(password);
    }
    return url->user == NULL || url->password != NULL;
}

bool backend_config_set_password(struct backend_config *config, const char *password,
                                 const char **reterr)
{
    bool is_sentinel = config->topology == BACKEND_SENTINEL;
    bool ok = true;

    *reterr = "a user needs a password: redis://user:password@host, or "
              "redis-password-file";
    /* The urls are Sentinels, whose passwords are others. */
    for (size_t i = 0; i < config->url_count && !is_sentinel; i++) {
        ok = give_password(&config->urls[i], password) && ok;
    }
    return (!is_sentinel || give_password(&config->sentinel.redis, password)) && ok;
}

static bool same_place(const struct backend_url *a, const struct backend_url *b)
{
    return is_same_text(a->unix_path, b->unix_path) && is_same_text(a->host, b->host) &&
           is_same_text(a->port, b->port) && a->db == b->db &&
           a->wants_tls == b->wants_tls;
}

bool backend_config_same_places(const struct backend_config *a,
                                const struct backend_config *b)
{
    bool same = a->topology == b->topology && a->url_count == b->url_count &&
                a->cluster.publish == b->cluster.publish &&
                is_same_text(a->sentinel.master, b->sentinel.master) &&
                same_place(&a->sentinel.redis, &b->sentinel.redis);

    for (size_t i = 0; same && i < a->url_count; i++) {
        same = same_place(&a->urls[i], &b->urls[i]);
    }
    return same;
}

void backend_config_set_login(struct backend_config *config,
                              const struct backend_config *from)
{
    for (size_t i = 0; i < config->url_count && i < from->url_count; i++) {
        (void)backend_url_set_login(&config->urls[i], &from->urls[i]);
    }
    (void)backend_url_set_login(&config->sentinel.redis, &from->sentinel.redis);
}

bool backend_config_wants_tls(const struct backend_config *config)
{
    return config->url_count != 0 && config->urls[0].wants_tls;
}

void backend_config_set_tls(struct backend_config *config, struct tls *tls)
{
    for (size_t i = 0; i < config->url_count; i++) {
        backend_url_set_tls(&config->urls[i], tls);
    }
    backend_url_set_tls(&config->sentinel.redis, tls);
}
