/* config_conflicts: values that are valid by themselves, but not together.
 *
 * A start, a reload, --check-config and CONFIG SET refuse them, with the same words.
 * Files are not read here. */
#ifndef LATCHD_DAEMON_CONFIG_CONFIG_CONFLICTS_H
#define LATCHD_DAEMON_CONFIG_CONFIG_CONFLICTS_H

#include "daemon/config/config.h"

struct config_conflict {
    const char *key; /* which one is to be corrected */
    const char *why;
    bool (*is_in)(const struct config *c);
};

extern const struct config_conflict CONFIG_CONFLICTS[];
extern const size_t CONFIG_CONFLICT_COUNT;

/* The first one; NULL: the values fit. */
const struct config_conflict *config_find_conflict(const struct config *c);

#endif
