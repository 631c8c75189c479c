#include "backend/config/backend_config_priv.h"
#include "util/alloc.h"

#include <stdlib.h>
#include <string.h>

bool backend_config_is_quorum(const char *text)
{
    return strncmp(text, "quorum ", 7) == 0;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* As far as the text tells: two names may be one server. */
static bool same_server(const struct backend_url *a, const struct backend_url *b)
{
    return same_text(a->unix_path, b->unix_path) && same_text(a->host, b->host) &&
           same_text(a->port, b->port);
}

static const char *add_server(struct backend_config *config, const char *word,
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

bool backend_config_quorum_parse(const char *text, struct backend_config *ret,
                                 const char **reterr)
{
    struct backend_config config = { .topology = BACKEND_QUORUM };
    const char *err = NULL;

    text += strlen("quorum ");
    while (*text != '\0' && err == NULL && config.url_count < BACKEND_URLS_MAX) {
        size_t len = strcspn(text, " ");

        if (len != 0) {
            err = add_server(&config, text, len);
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
