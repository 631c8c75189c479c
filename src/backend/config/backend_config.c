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
