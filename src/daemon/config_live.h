/* config_live: the configuration of a daemon that starts or runs: its files are read
 * and checked, its values go to the parts, and CONFIG and SIGHUP change it. The file of
 * users and the password of Redis are here as well. */
#ifndef LATCHD_DAEMON_CONFIG_LIVE_H
#define LATCHD_DAEMON_CONFIG_LIVE_H

#include "backend/backend_config.h"
#include "cmd/cmd.h"
#include "daemon/config.h"

struct server;

/* Reads and checks the configuration, including values that must fit each other, and
 * the files that they name. False: `mistakes` has a line for each mistake. Otherwise
 * *ret must be freed by config_fini(). */
bool config_live_read(const struct options *options, struct config *ret,
                      struct buf *mistakes) __attribute__((warn_unused_result));
/* SIGHUP. */
void config_live_reload(struct server *s);
/* CONFIG, as struct cmd_env has it; `ctx` is the server. */
void config_live_each(void *ctx, struct span pattern, config_pair_fn *fn, void *arg);
bool config_live_set(void *ctx, const struct span *pairs, size_t count, char *reterr,
                     size_t room);
bool config_live_rewrite(void *ctx, char *reterr, size_t room);
const char *config_live_password(void *ctx);

/* aclfile, for ACL LOAD and SAVE; empty: none. */
const char *acl_file(void *ctx);
bool acl_file_read(void *ctx, struct buf *out, struct buf *reterr);
bool acl_file_write(void *ctx, struct span text);
/* Loads the users of aclfile. False: the log says why. */
bool acl_file_load(struct server *s);

/* Reads which servers keep the locks, and with which passwords, from `redis` and
 * redis-password-file. False: *reterr says why not. The embedded Redis is none. */
bool redis_places_read(const struct config *c, struct backend_config *ret, char *reterr,
                       size_t room);

/* How many of max_clients the limit of open files allows; raises the limit if it can.
 */
uint64_t clients_possible(const struct config *c);

/* Warns of a root user, of access that is open to everybody, and of secrets that others
 * can read. Logs one line for each. */
void unsafe_warn(const struct options *options, const struct config *c);

#endif
