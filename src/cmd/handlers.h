/* handlers: the functions that the rows of the command table name, one per command,
 * grouped by file. */
#ifndef LATCHD_CMD_HANDLERS_H
#define LATCHD_CMD_HANDLERS_H

#include "cmd/cmd_priv.h"
#include "cmd/lock/lock_args.h"

/* Parses the options of a lock command. False: an error reply was written. */
bool ctx_lock_args(struct command_ctx *ctx, const struct lock_syntax *syntax,
                   struct lock_args *ret);

/* Whether lock libraries are served. False: an error reply was written. */
bool ctx_serves_libraries(struct command_ctx *ctx);

/* Whether the locks are in the database of that number, or of any. False: an error
 * reply was written. */
bool ctx_has_database(struct command_ctx *ctx, int64_t index);

/* Whether a LOCK, MLOCK or LEADER does not wait for others. False: an error reply was
 * written. */
bool ctx_tries_once(struct command_ctx *ctx);

/* Sets the connection's name. False: an error reply was written. */
bool ctx_set_name(struct command_ctx *ctx, struct span name);
/* Reads a client type. *ret_any: latchd can have clients of this type. False: there is
 * no such type, and an error reply was written. */
bool ctx_client_type(struct command_ctx *ctx, struct span type, bool *ret_any,
                     bool *ret_pubsub);

/* cmd_lock.c */
command_fn cmd_lock, cmd_unlock, cmd_renew, cmd_cancel, cmd_forceunlock, cmd_mlock;
/* cmd_lockinfo.c */
command_fn cmd_lockinfo, cmd_locks, cmd_waiters;
/* cmd_latch.c */
command_fn cmd_latch_await, cmd_latch_count, cmd_latch_delete, cmd_latch_info,
    cmd_latch_set;

/* cmd_leader.c */
command_fn cmd_leader;
/* cmd_semaphore.c */
command_fn cmd_semaphore_delete, cmd_semaphore_info, cmd_semaphore_limit;
/* cmd_acl.c, cmd_acl_users.c */
command_fn cmd_acl_cat, cmd_acl_deluser, cmd_acl_dryrun, cmd_acl_genpass,
    cmd_acl_getuser, cmd_acl_list, cmd_acl_load, cmd_acl_log, cmd_acl_save,
    cmd_acl_setuser, cmd_acl_users, cmd_acl_whoami;
/* cmd_auth.c */
command_fn cmd_auth;
/* cmd_connection.c */
command_fn cmd_echo, cmd_hello, cmd_ping, cmd_quit, cmd_readonly, cmd_reset, cmd_role,
    cmd_select, cmd_time, cmd_wait;
/* cmd_client.c */
command_fn cmd_client_capa, cmd_client_getname, cmd_client_id, cmd_client_info,
    cmd_client_list, cmd_client_no_evict, cmd_client_no_touch, cmd_client_reply,
    cmd_client_setinfo, cmd_client_setname, cmd_client_unblock;
/* cmd_tracking.c */
command_fn cmd_client_caching, cmd_client_getredir, cmd_client_tracking,
    cmd_client_trackinginfo;
/* client_pause.c */
command_fn cmd_client_pause, cmd_client_unpause;
/* cmd_client_kill.c */
command_fn cmd_client_kill;
/* cmd_command.c */
command_fn cmd_command, cmd_command_count, cmd_command_docs, cmd_command_getkeys,
    cmd_command_getkeysandflags, cmd_command_info, cmd_command_list;
/* cmd_config.c */
command_fn cmd_config_get, cmd_config_set, cmd_config_resetstat, cmd_config_rewrite;
/* cmd_memory.c */
command_fn cmd_memory_usage;
/* cmd_info.c */
command_fn cmd_info;
/* multi.c */
command_fn cmd_multi, cmd_exec, cmd_discard;
/* cmd_watch.c */
command_fn cmd_watch, cmd_unwatch;
/* Whether a transaction that watches may be this command alone. */
bool watch_admits(struct watch *watch, const struct deferred_command *command);
/* cmd_pubsub.c */
command_fn cmd_subscribe, cmd_unsubscribe, cmd_psubscribe, cmd_punsubscribe,
    cmd_pubsub_channels, cmd_pubsub_numpat, cmd_pubsub_numsub;
/* latency.c */
command_fn cmd_latency_history, cmd_latency_latest, cmd_latency_reset;
/* cmd_slowlog.c */
command_fn cmd_slowlog_get, cmd_slowlog_len, cmd_slowlog_reset, cmd_slowlog_waits;
/* monitor.c */
command_fn cmd_monitor;
/* cmd_server.c */
command_fn cmd_cluster, cmd_dbsize, cmd_shutdown;
/* cmd_library.c: the plain commands of lock libraries */
command_fn cmd_library, cmd_exists, cmd_get;
/* cmd_script.c */
command_fn cmd_eval, cmd_evalsha, cmd_script_exists, cmd_script_flush, cmd_script_load;

#endif
