#include "store/place.h"

#include "store/place_priv.h"
#include "util/alloc.h"

#include <stdlib.h>

bool store_place_parse(const char *text, struct store_place *ret, const char **reterr)
{
    struct store_place place = { .topology = STORE_SINGLE };
    struct store_url url;

    if (place_is_sentinel(text)) {
        return place_sentinel_parse(text, ret, reterr);
    }
    if (store_place_is_cluster(text)) {
        return place_cluster_parse(text, ret, reterr);
    }
    if (store_place_is_quorum(text)) {
        return place_quorum_parse(text, ret, reterr);
    }
    if (!store_url_parse(text, &url, reterr)) {
        return false;
    }
    store_place_add(&place, &url);
    *ret = place;
    return true;
}

void store_place_add(struct store_place *place, struct store_url *url)
{
    place->urls =
        xrealloc(place->urls, (place->url_count + 1) * sizeof(place->urls[0]));
    place->urls[place->url_count++] = *url;
    *url = (struct store_url){ 0 };
}

void store_place_copy(struct store_place *ret, const struct store_place *place)
{
    struct store_url url;

    *ret = *place;
    ret->urls = NULL;
    ret->url_count = 0;
    for (size_t i = 0; i < place->url_count; i++) {
        store_url_copy(&url, &place->urls[i]);
        store_place_add(ret, &url);
    }
    if (place->topology == STORE_SENTINEL) {
        ret->sentinel.master = xstrdup(place->sentinel.master);
        store_url_copy(&ret->sentinel.redis, &place->sentinel.redis);
    }
}

void store_place_fini(struct store_place *place)
{
    for (size_t i = 0; i < place->url_count; i++) {
        store_url_fini(&place->urls[i]);
    }
    free(place->urls);
    free(place->sentinel.master);
    store_url_fini(&place->sentinel.redis);
    *place = (struct store_place){ 0 };
}

bool store_place_wants_tls(const struct store_place *place)
{
    return place->url_count != 0 && place->urls[0].wants_tls;
}

void store_place_set_tls(struct store_place *place, struct tls *tls)
{
    for (size_t i = 0; i < place->url_count; i++) {
        store_url_set_tls(&place->urls[i], tls);
    }
    store_url_set_tls(&place->sentinel.redis, tls);
}
