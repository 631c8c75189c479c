/* backend_config_priv: how the servers of each topology are written. For
 * backend_config*.c only. */
#ifndef LATCHD_BACKEND_CONFIG_BACKEND_CONFIG_PRIV_H
#define LATCHD_BACKEND_CONFIG_BACKEND_CONFIG_PRIV_H

#include "backend/config/backend_config.h"

/* sentinel[s]://[user:password@]host[:26379][,host...]/master[/db][?option&option]
 *
 * User and password are those of Redis; the options sentinel-user and sentinel-password
 * those of the Sentinels. Percent-decoding in all four, for `?` and `@`, and `&` in
 * options. With an s: TLS to all of them. */
bool backend_config_is_sentinel(const char *text);
bool backend_config_sentinel_parse(const char *text, struct backend_config *ret,
                                   const char **reterr);

/* cluster[s]://[user:password@]host[:6379][,host...][?publish=both|sharded]: some of
 * its nodes. Percent-decoding in user and password. With an s: TLS to all of them. */
bool backend_config_cluster_parse(const char *text, struct backend_config *ret,
                                  const char **reterr);
/* quorum <url> <url> <url> [<url> <url>]: as redis://, rediss:// and unix:// are. */
bool backend_config_quorum_parse(const char *text, struct backend_config *ret,
                                 const char **reterr);

#endif
