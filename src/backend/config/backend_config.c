#include "backend/config/backend_config.h"

#include "backend/config/backend_config_priv.h"
#include "util/alloc.h"

#include <stdlib.h>

bool backend_config_parse(const char *text, struct backend_config *ret,
                          const char **reterr)
{
    struct backend_config place = { .topology = BACKEND_SINGLE };
    struct backend_url url;

    if (place_is_sentinel(text)) {
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
    backend_config_add(&place, &url);
    *ret = place;
    return true;
}

void backend_config_add(struct backend_config *place, struct backend_url *url)
{
    place->urls =
        xrealloc(place->urls, (place->url_count + 1) * sizeof(place->urls[0]));
    place->urls[place->url_count++] = *url;
    *url = (struct backend_url){ 0 };
}

void backend_config_copy(struct backend_config *ret, const struct backend_config *place)
{
    struct backend_url url;

    *ret = *place;
    ret->urls = NULL;
    ret->url_count = 0;
    for (size_t i = 0; i < place->url_count; i++) {
        backend_url_copy(&url, &place->urls[i]);
        backend_config_add(ret, &url);
    }
    if (place->topology == BACKEND_SENTINEL) {
        ret->sentinel.master = xstrdup(place->sentinel.master);
        backend_url_copy(&ret->sentinel.redis, &place->sentinel.redis);
    }
}

void backend_config_fini(struct backend_config *place)
{
    for (size_t i = 0; i < place->url_count; i++) {
        backend_url_fini(&place->urls[i]);
    }
    free(place->urls);
    free(place->sentinel.master);
    backend_url_fini(&place->sentinel.redis);
    *place = (struct backend_config){ 0 };
}

bool backend_config_wants_tls(const struct backend_config *place)
{
    return place->url_count != 0 && place->urls[0].wants_tls;
}

void backend_config_set_tls(struct backend_config *place, struct tls *tls)
{
    for (size_t i = 0; i < place->url_count; i++) {
        backend_url_set_tls(&place->urls[i], tls);
    }
    backend_url_set_tls(&place->sentinel.redis, tls);
}
