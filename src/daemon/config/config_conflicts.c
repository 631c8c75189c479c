#include "daemon/config/config_conflicts.h"

#include "backend/config/backend_config.h"

#include <string.h>

static bool wants_replicas_of_embedded(const struct config *c)
{
    return c->min_replicas > 0 && strcmp(c->redis, "embedded") == 0;
}

static bool has_password_for_embedded(const struct config *c)
{
    return c->redis_password_file[0] != '\0' && strcmp(c->redis, "embedded") == 0;
}

static bool wants_replicas_of_quorum(const struct config *c)
{
    return c->min_replicas > 0 && backend_config_is_quorum(c->redis);
}

const struct config_conflict CONFIG_CONFLICTS[] = {
    { "min-replicas", "the embedded Redis has no replicas",
      wants_replicas_of_embedded },
    { "redis-password-file", "the embedded Redis needs no password",
      has_password_for_embedded },
    { "min-replicas", "on a quorum a majority is what acknowledges",
      wants_replicas_of_quorum },
};

const size_t CONFIG_CONFLICT_COUNT =
    sizeof(CONFIG_CONFLICTS) / sizeof(CONFIG_CONFLICTS[0]);

const struct config_conflict *config_find_conflict(const struct config *c)
{
    for (size_t i = 0; i < CONFIG_CONFLICT_COUNT; i++) {
        if (CONFIG_CONFLICTS[i].is_in(c)) {
            return &CONFIG_CONFLICTS[i];
        }
    }
    return NULL;
}
