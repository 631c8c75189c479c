#include "daemon/server.h"
#include "daemon/state.h"

#include "daemon/secure.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>
#include <uv.h>

/* Calls with each word; stops when it says false. */
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

static bool starts(const char *text, const char *head)
{
    return strncmp(text, head, strlen(head)) == 0;
}

static const char *redis_mistake(const char *redis)
{
    const char *mistake = NULL;
    struct store_place place;

    if (strcmp(redis, "embedded") == 0) {
        return NULL;
    }
    if (!starts(redis, "redis://") && !starts(redis, "rediss://") &&
        !starts(redis, "unix://") && !starts(redis, "sentinel://") &&
        !starts(redis, "sentinels://") && !store_place_is_cluster(redis) &&
        !store_place_is_quorum(redis)) {
        return "must be embedded, redis://host, rediss://host, unix:///path, "
               "sentinel://host,host/master, cluster://host,host or quorum and 3 or 5 "
               "servers";
    }
    if (strchr(redis, ' ') != NULL && !store_place_is_quorum(redis)) {
        return "only one server is wanted";
    }
    if (!store_place_parse(redis, &place, &mistake)) {
        return mistake;
    }
    store_place_fini(&place);
    return NULL;
}

bool server_check_config(const struct config *c, char *reterr, size_t room)
{
    const char *mistake = redis_mistake(c->redis);
    struct secure sec;

    if (!each_word(c->bind, is_address)) {
        (void)snprintf(reterr, room, "bind: must be IPv4 or IPv6 addresses");
        return false;
    }
    if (mistake != NULL) {
        (void)snprintf(reterr, room, "redis: %s", mistake);
        return false;
    }
    if (c->min_replicas > 0 && strcmp(c->redis, "embedded") == 0) {
        (void)snprintf(reterr, room,
                       "min-replicas: the embedded Redis has no replicas");
        return false;
    }
    if (c->min_replicas > 0 && store_place_is_quorum(c->redis)) {
        (void)snprintf(reterr, room,
                       "min-replicas: on a quorum a majority is what acknowledges");
        return false;
    }
    if (!secure_read(c, &sec, reterr, room)) {
        return false;
    }
    secure_fini(&sec);
    return acl_file_check(c->aclfile, reterr, room);
}
