#include "store/place_priv.h"
#include "util/buf.h"
#include "util/span.h"

#include <string.h>

bool store_place_is_cluster(const char *text)
{
    struct span all = span_str(text);

    return span_starts(all, SPAN("cluster://")) ||
           span_starts(all, SPAN("clusters://"));
}

/* As redis:// has it: what may stand in a part is the same there. */
static const char *add_server(struct store_place *place, bool tls, struct span login,
                              struct span host)
{
    const char *err = "a server is missing: cluster://host:6379,host:6379";
    struct buf text = { 0 };
    struct store_url url;

    if (host.len == 0) {
        return err;
    }
    if (memchr(host.ptr, '/', host.len) != NULL) {
        return "a cluster has no databases: cluster://host:6379,host:6379";
    }
    if (place->url_count == STORE_URLS_MAX) {
        return "so many servers are not needed: a few of them know the others";
    }
    buf_add_str(&text, tls ? "rediss://" : "redis://");
    buf_add_span(&text, login);
    buf_add_span(&text, host);
    buf_add(&text, "", 1);
    if (store_url_parse(buf_ptr(&text), &url, &err)) {
        err = NULL;
        store_place_add(place, &url);
    }
    buf_reset(&text);
    return err;
}

/* Behind the last host, if there are any. */
static const char *take_options(struct span *text, struct store_place *place)
{
    const char *at = text->len == 0 ? NULL : memchr(text->ptr, '?', text->len);
    struct span options;

    place->cluster.publish = PUBLISH_BOTH;
    if (at == NULL) {
        return NULL;
    }
    options = span_after(*text, (size_t)(at + 1 - text->ptr));
    text->len = (size_t)(at - text->ptr);
    if (span_eq(options, SPAN("publish=sharded"))) {
        place->cluster.publish = PUBLISH_SHARDED;
    } else if (!span_eq(options, SPAN("publish=both"))) {
        return "after ? only publish=both and publish=sharded are known";
    }
    return NULL;
}

bool place_cluster_parse(const char *text, struct store_place *ret, const char **reterr)
{
    struct store_place place = { .topology = STORE_CLUSTER };
    bool tls = span_starts(span_str(text), SPAN("clusters"));
    struct span rest = span_str(strstr(text, "://") + 3), login = SPAN_NONE;
    const char *at = rest.len == 0 ? NULL : memrchr(rest.ptr, '@', rest.len);
    const char *err = NULL;
    bool more = true;

    if (at != NULL) {
        login = span_of(rest.ptr, (size_t)(at + 1 - rest.ptr));
        rest = span_after(rest, login.len);
        if (memchr(login.ptr, '@', login.len - 1) != NULL) {
            err =
                "user and password stand once, before the first host; @ in them is %40";
        }
    }
    err = err == NULL ? take_options(&rest, &place) : err;
    while (more && err == NULL) {
        const char *comma = rest.len == 0 ? NULL : memchr(rest.ptr, ',', rest.len);
        struct span host = rest;

        more = comma != NULL;
        if (more) {
            host.len = (size_t)(comma - host.ptr);
            rest = span_after(rest, host.len + 1);
        }
        err = add_server(&place, tls, login, host);
    }
    if (err != NULL) {
        store_place_fini(&place);
        *reterr = err;
        return false;
    }
    *ret = place;
    return true;
}
