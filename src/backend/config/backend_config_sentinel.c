#include "backend/config/backend_config_priv.h"
#include "backend/sentinel/sentinel_vote.h"
#include "util/alloc.h"
#include "util/buf.h"
#include "util/span.h"

#include <ctype.h>
#include <stdlib.h>

enum { MASTER_MAX = 128 };

static const char DEFAULT_PORT[] = ":26379";

struct parts {
    struct span login, hosts, master, db, user, password;
};

bool backend_config_is_sentinel(const char *text)
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

bool backend_config_sentinel_parse(const char *text, struct backend_config *ret,
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
