#include "backend/config/backend_config_priv.h"
#include "util/buf.h"
#include "util/span.h"

#include <string.h>

bool backend_config_is_cluster(const char *text)
{
    struct span all = span_str(text);

    return span_starts(all, SPAN("cluster://")) ||
           span_starts(all, SPAN("clusters://"));
}

/* As redis:// has it: what may stand in a part is the same there. */
static const char *add_server(struct backend_config *config, bool tls,
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

bool backend_config_cluster_parse(const char *text, struct backend_config *ret,
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
        err = add_server(&config, tls, login, more ? host : rest);
    }
    if (err != NULL) {
        backend_config_fini(&config);
        *reterr = err;
        return false;
    }
    *ret = config;
    return true;
}
