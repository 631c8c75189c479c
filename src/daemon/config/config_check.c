/* What a start, a reload and --check-config refuse besides what config_set() does.
 * CONFIG SET does not come here: the keys that have checks of their own need a restart,
 * and it looks for conflicts itself. */
#include "daemon/server.h"
#include "daemon/server_state.h"

#include "backend/store.h"
#include "daemon/config/config_conflicts.h"
#include "daemon/tls_certs.h"

#include <stdio.h>
#include <string.h>
#include <uv.h>

/* Calls `fn` with each word, until it returns false. */
static bool each_word(const char *text, bool (*fn)(const char *word))
{
    char word[CONFIG_VALUE_MAX + 1];

    while (*text != '\0') {
        size_t len = strcspn(text, " ");

        (void)snprintf(word, sizeof(word), "%.*s", (int)len, text);
        if (len > 0 && !fn(word)) {
            return false;
        }
        text += len + (text[len] == ' ' ? 1 : 0);
    }
    return true;
}

static bool is_address(const char *word)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    return uv_ip4_addr(word, 0, &v4) == 0 || uv_ip6_addr(word, 0, &v6) == 0;
}

static bool starts_with(const char *text, const char *head)
{
    return strncmp(text, head, strlen(head)) == 0;
}

static const char *redis_mistake(const char *redis)
{
    const char *mistake = NULL;
    struct backend_config place;

    if (strcmp(redis, "embedded") == 0) {
        return NULL;
    }
    if (!starts_with(redis, "redis://") && !starts_with(redis, "rediss://") &&
        !starts_with(redis, "unix://") && !starts_with(redis, "sentinel://") &&
        !starts_with(redis, "sentinels://") && !backend_config_is_cluster(redis) &&
        !backend_config_is_quorum(redis)) {
        return "must be embedded, redis://host, rediss://host, unix:///path, "
               "sentinel://host,host/master, cluster://host,host or quorum and 3 or 5 "
               "servers";
    }
    if (strchr(redis, ' ') != NULL && !backend_config_is_quorum(redis)) {
        return "only one server is wanted";
    }
    if (!backend_config_parse(redis, &place, &mistake)) {
        return mistake;
    }
    backend_config_fini(&place);
    return NULL;
}

static void check_values(const struct config *c, struct buf *mistakes)
{
    const char *mistake = redis_mistake(c->redis);

    if (!each_word(c->bind, is_address)) {
        buf_add_str(mistakes, "bind: must be IPv4 or IPv6 addresses\n");
    }
    if (mistake != NULL) {
        buf_printf(mistakes, "redis: %s\n", mistake);
    }
}

/* Checks values against each other, only if each is valid by itself: otherwise the
 * wrong one would be blamed. */
static void check_together(const struct config *c, struct buf *mistakes)
{
    char err[CONFIG_ERROR_MAX];
    struct tls_certs sec;
    struct backend_config places;

    for (size_t i = 0; i < CONFIG_CONFLICT_COUNT; i++) {
        const struct config_conflict *conflict = &CONFIG_CONFLICTS[i];

        if (conflict->is_in(c)) {
            buf_printf(mistakes, "%s: %s\n", conflict->key, conflict->why);
        }
    }
    if (strcmp(c->redis, "embedded") != 0) {
        if (redis_places_read(c, &places, err, sizeof(err))) {
            backend_config_fini(&places);
        } else {
            buf_printf(mistakes, "%s\n", err);
        }
    }
    if (tls_certs_read(c, &sec, err, sizeof(err))) {
        tls_certs_fini(&sec);
    } else {
        buf_printf(mistakes, "%s\n", err);
    }
    if (!acl_file_check(c->aclfile, err, sizeof(err))) {
        buf_printf(mistakes, "%s\n", err);
    }
}

bool server_read_config(const struct options *options, struct config *ret,
                        struct buf *mistakes)
{
    bool ok = options_config(options, ret, mistakes);

    check_values(ret, mistakes);
    if (ok && buf_len(mistakes) == 0) {
        check_together(ret, mistakes);
    }
    if (buf_len(mistakes) == 0) {
        return true;
    }
    config_fini(ret);
    return false;
}
