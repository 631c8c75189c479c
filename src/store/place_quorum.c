#include "store/place_priv.h"
#include "util/alloc.h"

#include <stdlib.h>
#include <string.h>

bool store_place_is_quorum(const char *text)
{
    return strncmp(text, "quorum ", 7) == 0;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* As far as the text tells: two names may be one server. */
static bool same_server(const struct store_url *a, const struct store_url *b)
{
    return same_text(a->unix_path, b->unix_path) && same_text(a->host, b->host) &&
           same_text(a->port, b->port);
}

static const char *add(struct store_place *place, const char *word, size_t len)
{
    char *text = xmemdup0(word, len);
    const char *err = NULL;
    struct store_url url;
    bool parsed = store_url_parse(text, &url, &err);

    free(text);
    if (!parsed) {
        return err;
    }
    for (size_t i = 0; i < place->url_count; i++) {
        if (same_server(&place->urls[i], &url)) {
            store_url_fini(&url);
            return "a server is named twice: a quorum is of independent ones";
        }
    }
    if (place->url_count != 0 && place->urls[0].wants_tls != url.wants_tls) {
        store_url_fini(&url);
        return "all servers of a quorum are rediss://, or none";
    }
    store_place_add(place, &url);
    return NULL;
}

bool place_quorum_parse(const char *text, struct store_place *ret, const char **reterr)
{
    struct store_place place = { .topology = STORE_QUORUM };
    const char *err = NULL;

    text += strlen("quorum ");
    while (*text != '\0' && err == NULL && place.url_count < STORE_URLS_MAX) {
        size_t len = strcspn(text, " ");

        if (len != 0) {
            err = add(&place, text, len);
        }
        text += len + (text[len] == ' ' ? 1 : 0);
    }
    if (err == NULL && place.url_count != 3 && place.url_count != 5) {
        err = "a quorum is of 3 or 5 servers: quorum redis://a redis://b redis://c";
    }
    if (err != NULL) {
        store_place_fini(&place);
        *reterr = err;
        return false;
    }
    *ret = place;
    return true;
}
