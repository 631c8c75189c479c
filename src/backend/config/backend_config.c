#include "backend/config/backend_config.h"

#include "backend/config/backend_config_priv.h"
#include "util/alloc.h"

#include <stdlib.h>

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

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool same_place(const struct backend_url *a, const struct backend_url *b)
{
    return same_text(a->unix_path, b->unix_path) && same_text(a->host, b->host) &&
           same_text(a->port, b->port) && a->db == b->db &&
           a->wants_tls == b->wants_tls;
}

bool backend_config_same_places(const struct backend_config *a,
                                const struct backend_config *b)
{
    bool same = a->topology == b->topology && a->url_count == b->url_count &&
                a->cluster.publish == b->cluster.publish &&
                same_text(a->sentinel.master, b->sentinel.master) &&
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
