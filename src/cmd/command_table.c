#include "cmd/command_table.h"

#include "cmd/handlers.h"
#include "util/parse.h"

#include <endian.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const char *const ACL_CATEGORY_NAMES[ACL_CATEGORY_COUNT] = {
    "@lock", "@keyspace", "@read",     "@write",     "@pubsub",     "@admin",
    "@fast", "@slow",     "@blocking", "@dangerous", "@connection", "@transaction",
};

/* Flags that several rows have in common. */
enum {
    ACL_CONN = ACL_FAST | ACL_CONNECTION,
    ACL_CLIENT = ACL_SLOW | ACL_CONNECTION,
    ACL_OPERATOR = ACL_ADMIN | ACL_SLOW | ACL_DANGEROUS,
    ACL_TRANSACT = ACL_FAST | ACL_TRANSACTION,
    ACL_SCRIPT = ACL_LOCK | ACL_SLOW, /* without it EVALSHA is of little use */
    ACL_LISTEN = ACL_PUBSUB | ACL_SLOW,
    ACL_HOLD = ACL_LOCK | ACL_KEYSPACE | ACL_WRITE | ACL_FAST,
    ACL_LOOK = ACL_LOCK | ACL_KEYSPACE | ACL_READ,
    CMD_LIBRARY = CMD_WRITE | CMD_FAST, /* of lock libraries; the engine answers */
};

#define LOCK_KIND "[FAIR | READ | WRITE | PERMITS n [OF limit]]"
#define RW_KIND "[READ | WRITE]"
#define NUM_OF_COMMANDS "O(N) where N is the number of commands"
#define NUM_OF_KEYS "O(N) where N is the number of keys"
#define NUM_OF_USERS "O(N) where N is the number of users"
#define NUM_OF_CLIENTS "O(N) where N is the number of connections"

/* clang-format off */

/* name, handler, arity, keys, flags, categories, group, since,
 * usage, summary, complexity */
const struct command COMMANDS[] = {
    { "acl", ctx_arity_error, -2, KEYS_NONE, CMD_CONTAINER, ACL_SLOW, "server", "0.1.0",
      "", "A container for commands about users.", NULL },
    { "acl|cat", cmd_acl_cat, -2, KEYS_NONE, 0, ACL_SLOW, "server", "0.1.0",
      "[category]", "Lists the categories, or the commands of one.", NUM_OF_COMMANDS },
    { "acl|deluser", cmd_acl_deluser, -3, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR, "server", "0.1.0",
      "username...", "Deletes users, and closes their connections.", NUM_OF_CLIENTS },
    { "acl|dryrun", cmd_acl_dryrun, -4, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR, "server", "0.1.0",
      "username command [arg...]", "Tells whether a user could run a command, without running it.", NULL },
    { "acl|genpass", cmd_acl_genpass, -2, KEYS_NONE, 0, ACL_SLOW, "server", "0.1.0",
      "[bits]", "Makes a password of 256 random bits, or so many.", NULL },
    { "acl|getuser", cmd_acl_getuser, 3, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR, "server", "0.1.0",
      "username", "Returns what a user may do.", NULL },
    { "acl|help", ctx_help, 2, KEYS_NONE, 0, ACL_SLOW, "server", "0.1.0",
      "", "Lists the subcommands.", NULL },
    { "acl|list", cmd_acl_list, 2, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR, "server", "0.1.0",
      "", "Describes all users, as an ACL file does.", NUM_OF_USERS },
    { "acl|load", cmd_acl_load, 2, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR, "server", "0.1.0",
      "", "Reads the ACL file again: all of it, or nothing.", NUM_OF_USERS },
    { "acl|log", cmd_acl_log, -2, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR, "server", "0.1.0",
      "[count | RESET]", "Returns what was refused lately, and to whom.", NULL },
    { "acl|save", cmd_acl_save, 2, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR, "server", "0.1.0",
      "", "Writes all users into the ACL file.", NUM_OF_USERS },
    { "acl|setuser", cmd_acl_setuser, -3, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR, "server", "0.1.0",
      "username [rule...]", "Makes or changes a user: all rules are applied, or none.", NUM_OF_CLIENTS },
    { "acl|users", cmd_acl_users, 2, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR, "server", "0.1.0",
      "", "Returns the names of all users.", NUM_OF_USERS },
    { "acl|whoami", cmd_acl_whoami, 2, KEYS_NONE, 0, ACL_SLOW, "server", "0.1.0",
      "", "Returns the name of this connection's user.", NULL },
    { "asking", cmd_cluster, 1, KEYS_NONE, CMD_FAST, ACL_CONN, "cluster", "0.1.0",
      "", "Refused: this is not a cluster node.", NULL },
    { "auth", cmd_auth, -2, KEYS_NONE, CMD_NO_AUTH | CMD_FAST, ACL_CONN, "connection", "0.1.0",
      "[username] password", "Says who this connection is.", NULL },
    { "cancel", cmd_cancel, -2, KEYS_ONE, CMD_WRITE | CMD_FAST, ACL_HOLD, "lock", "0.1.0",
      "name (OWNER owner | ID request)", "Ends waits for a lock, and gives back a kept grant.", NULL },
    { "client", ctx_arity_error, -2, KEYS_NONE, CMD_CONTAINER, ACL_SLOW, "connection", "0.1.0",
      "", "A container for client connection commands.", NULL },
    { "client|caching", cmd_client_caching, 3, KEYS_NONE, 0, ACL_CLIENT, "connection", "0.1.0",
      "(YES | NO)", "Accepted with TRACKING OPTIN; changes nothing.", NULL },
    { "client|capa", cmd_client_capa, -3, KEYS_NONE, 0, ACL_CLIENT, "connection", "0.1.0",
      "capability...", "Accepted: nothing depends on what a client can do.", NULL },
    { "client|getname", cmd_client_getname, 2, KEYS_NONE, 0, ACL_CLIENT, "connection", "0.1.0",
      "", "Returns the name of this connection.", NULL },
    { "client|getredir", cmd_client_getredir, 2, KEYS_NONE, 0, ACL_CLIENT, "connection", "0.1.0",
      "", "Returns -1, or 0 with TRACKING ON: notices are never redirected.", NULL },
    { "client|help", ctx_help, 2, KEYS_NONE, 0, ACL_CLIENT, "connection", "0.1.0",
      "", "Lists the subcommands.", NULL },
    { "client|id", cmd_client_id, 2, KEYS_NONE, 0, ACL_CLIENT, "connection", "0.1.0",
      "", "Returns the number of this connection.", NULL },
    { "client|info", cmd_client_info, 2, KEYS_NONE, 0, ACL_CLIENT, "connection", "0.1.0",
      "", "Describes this connection.", NULL },
    { "client|kill", cmd_client_kill, -3, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR | ACL_CONNECTION, "connection", "0.1.0",
      "[address] [ID client-id] [TYPE (NORMAL | MASTER | REPLICA | PUBSUB)] [USER username] "
      "[ADDR address] [LADDR address] [SKIPME (YES | NO)]",
      "Closes connections.", NUM_OF_CLIENTS },
    { "client|list", cmd_client_list, -2, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR | ACL_CONNECTION, "connection", "0.1.0",
      "[TYPE (NORMAL | MASTER | REPLICA | PUBSUB)] [ID client-id...]",
      "Describes connections, one on a line.", NUM_OF_CLIENTS },
    { "client|no-evict", cmd_client_no_evict, 3, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR | ACL_CONNECTION, "connection", "0.1.0",
      "(ON | OFF)", "Spares the connection when maxmemory-clients is exceeded.", NULL },
    { "client|no-touch", cmd_client_no_touch, 3, KEYS_NONE, 0, ACL_CLIENT, "connection", "0.1.0",
      "(ON | OFF)", "Accepted: there is nothing to touch.", NULL },
    { "client|pause", cmd_client_pause, -3, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR | ACL_CONNECTION, "connection", "0.1.0",
      "ms [WRITE | ALL]", "Puts off commands of clients for some time. Renewals go on.", NULL },
    { "client|reply", cmd_client_reply, 3, KEYS_NONE, CMD_NO_MULTI, ACL_CLIENT, "connection", "0.1.0",
      "(ON | OFF | SKIP)", "Says which replies this connection wants. LOCK without reply is not run.", NULL },
    { "client|setinfo", cmd_client_setinfo, 4, KEYS_NONE, 0, ACL_CLIENT, "connection", "0.1.0",
      "(LIB-NAME libname | LIB-VER libver)", "Says which library uses this connection.", NULL },
    { "client|setname", cmd_client_setname, 3, KEYS_NONE, 0, ACL_CLIENT, "connection", "0.1.0",
      "connection-name", "Gives this connection a name.", NULL },
    { "client|tracking", cmd_client_tracking, -3, KEYS_NONE, 0, ACL_CLIENT, "connection", "0.1.0",
      "(ON | OFF) [BCAST] [PREFIX prefix]... [OPTIN] [OPTOUT] [NOLOOP]",
      "Asks for an invalidate push when a hold of this connection is uncertain, certain again or lost.", NULL },
    { "client|trackinginfo", cmd_client_trackinginfo, 2, KEYS_NONE, 0, ACL_CLIENT, "connection", "0.1.0",
      "", "Tells what TRACKING asked for.", NULL },
    { "client|unblock", cmd_client_unblock, -3, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR | ACL_CONNECTION, "connection", "0.1.0",
      "client-id [TIMEOUT | ERROR]", "Ends the wait of another connection.", NULL },
    { "client|unpause", cmd_client_unpause, 2, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR | ACL_CONNECTION, "connection", "0.1.0",
      "", "Ends what CLIENT PAUSE began.", NUM_OF_CLIENTS },
    { "cluster", cmd_cluster, -2, KEYS_NONE, 0, ACL_SLOW, "cluster", "0.1.0",
      "subcommand", "Refused: this is not a cluster node.", NULL },
    { "command", cmd_command, -1, KEYS_NONE, CMD_CONTAINER, ACL_CLIENT, "server", "0.1.0",
      "", "Describes all commands.", NUM_OF_COMMANDS },
    { "command|count", cmd_command_count, 2, KEYS_NONE, 0, ACL_CLIENT, "server", "0.1.0",
      "", "Returns the number of commands.", NULL },
    { "command|docs", cmd_command_docs, -2, KEYS_NONE, 0, ACL_CLIENT, "server", "0.1.0",
      "[command-name...]", "Returns what commands do and take.", NUM_OF_COMMANDS },
    { "command|getkeys", cmd_command_getkeys, -3, KEYS_NONE, 0, ACL_CLIENT, "server", "0.1.0",
      "command [arg...]", "Returns the lock names of a command.", NULL },
    { "command|getkeysandflags", cmd_command_getkeysandflags, -3, KEYS_NONE, 0, ACL_CLIENT, "server", "0.1.0",
      "command [arg...]", "Returns the lock names of a command, and whether it only looks.", NULL },
    { "command|help", ctx_help, 2, KEYS_NONE, 0, ACL_CLIENT, "server", "0.1.0",
      "", "Lists the subcommands.", NULL },
    { "command|info", cmd_command_info, -2, KEYS_NONE, 0, ACL_CLIENT, "server", "0.1.0",
      "[command-name...]", "Describes commands.", NUM_OF_COMMANDS },
    { "command|list", cmd_command_list, -2, KEYS_NONE, 0, ACL_CLIENT, "server", "0.1.0",
      "[FILTERBY (MODULE module | ACLCAT category | PATTERN pattern)]",
      "Returns the names of commands.", NUM_OF_COMMANDS },
    { "config", ctx_arity_error, -2, KEYS_NONE, CMD_CONTAINER, ACL_SLOW, "server", "0.1.0",
      "", "A container for configuration commands.", NULL },
    { "config|get", cmd_config_get, -3, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR, "server", "0.1.0",
      "pattern...", "Returns settings.", NULL },
    { "config|help", ctx_help, 2, KEYS_NONE, 0, ACL_SLOW, "server", "0.1.0",
      "", "Lists the subcommands.", NULL },
    { "config|resetstat", cmd_config_resetstat, 2, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR, "server", "0.1.0",
      "", "Sets the counters of INFO to zero.", NULL },
    { "config|rewrite", cmd_config_rewrite, 2, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR, "server", "0.1.0",
      "", "Writes the settings to the configuration file.", NULL },
    { "config|set", cmd_config_set, -4, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR, "server", "0.1.0",
      "(parameter value)...", "Changes settings: all of them, or none.", NULL },
    { "dbsize", cmd_dbsize, 1, KEYS_NONE, CMD_READONLY | CMD_FAST, ACL_KEYSPACE | ACL_READ | ACL_FAST, "server", "0.1.0",
      "", "Returns how many names are held or waited for here.", NULL },
    { "del", cmd_library, -2, KEYS_ALL, CMD_LIBRARY, ACL_HOLD, "library", "0.1.0",
      "key...", "Releases locks that were taken from here by SET.", NUM_OF_KEYS },
    { "discard", cmd_discard, 1, KEYS_NONE, CMD_FAST | CMD_AT_ONCE, ACL_TRANSACT, "transactions", "0.1.0",
      "", "Forgets what was queued since MULTI.", NULL },
    { "echo", cmd_echo, 2, KEYS_NONE, CMD_FAST, ACL_CONN, "connection", "0.1.0",
      "message", "Returns the message.", NULL },
    { "eval", cmd_eval, -3, KEYS_SCRIPT, CMD_LIBRARY | CMD_NEEDS_REPLY, ACL_HOLD, "library", "0.1.0",
      "script numkeys [key...] [arg...]", "Does what a lock library's script does to locks.", NUM_OF_KEYS },
    { "evalsha", cmd_evalsha, -3, KEYS_SCRIPT, CMD_LIBRARY | CMD_NEEDS_REPLY, ACL_HOLD, "library", "0.1.0",
      "sha1 numkeys [key...] [arg...]", "Does what a lock library's script does to locks.", NUM_OF_KEYS },
    { "exec", cmd_exec, 1, KEYS_NONE, CMD_AT_ONCE, ACL_SLOW | ACL_TRANSACTION, "transactions", "0.1.0",
      "", "Runs what was queued since MULTI, one after the other.", "Depends on the commands" },
    { "exists", cmd_exists, -2, KEYS_ALL, CMD_READONLY | CMD_FAST, ACL_LOOK | ACL_FAST, "library", "0.1.0",
      "key...", "Counts the names that are held.", NUM_OF_KEYS },
    { "expire", cmd_library, 3, KEYS_ONE, CMD_LIBRARY, ACL_HOLD, "library", "0.1.0",
      "key seconds", "Sets when a lock that was taken from here by SET ends.", NULL },
    { "expireat", cmd_library, 3, KEYS_ONE, CMD_LIBRARY, ACL_HOLD, "library", "0.1.0",
      "key unix-time-seconds", "Sets when a lock that was taken from here by SET ends.", NULL },
    { "forceunlock", cmd_forceunlock, -3, KEYS_ONE, CMD_WRITE | CMD_ADMIN | CMD_BLOCKING, ACL_HOLD | ACL_ADMIN | ACL_DANGEROUS, "lock", "0.1.0",
      "name (TOKEN token | OWNER owner | ANY)", "Frees somebody else's hold.", NULL },
    { "get", cmd_get, 2, KEYS_ONE, CMD_READONLY | CMD_FAST, ACL_LOOK | ACL_FAST, "library", "0.1.0",
      "key", "Returns the value that holds a lock, or null.", NULL },
    { "hello", cmd_hello, -1, KEYS_NONE, CMD_NO_AUTH | CMD_FAST, ACL_CONN, "connection", "0.1.0",
      "[protover [AUTH username password] [SETNAME clientname]]", "Chooses RESP2 or RESP3, and says who this is.", NULL },
    { "info", cmd_info, -1, KEYS_NONE, 0, ACL_SLOW | ACL_DANGEROUS, "server", "0.1.0",
      "[section...]", "Returns what the daemon knows about itself.", NUM_OF_CLIENTS },
    { "latch", ctx_arity_error, -2, KEYS_NONE, CMD_CONTAINER, ACL_SLOW, "lock", "0.1.0",
      "", "A container for commands about latches.", NULL },
    { "latch|await", cmd_latch_await, -3, KEYS_SECOND, CMD_READONLY | CMD_BLOCKING, ACL_LOOK | ACL_SLOW | ACL_BLOCKING, "lock", "0.1.0",
      "name [WAIT ms]", "Waits until a latch is opened. Returns 1, or null.", NULL },
    { "latch|count", cmd_latch_count, -3, KEYS_SECOND, CMD_WRITE | CMD_BLOCKING, ACL_HOLD, "lock", "0.1.0",
      "name [ID request]", "Counts a latch down, which opens at 0. Returns what is left.", NULL },
    { "latch|delete", cmd_latch_delete, 3, KEYS_SECOND, CMD_WRITE | CMD_BLOCKING, ACL_HOLD, "lock", "0.1.0",
      "name", "Deletes a latch: whoever waits gets an error.", NULL },
    { "latch|help", ctx_help, 2, KEYS_NONE, 0, ACL_SLOW, "lock", "0.1.0",
      "", "Lists the subcommands.", NULL },
    { "latch|info", cmd_latch_info, 3, KEYS_SECOND, CMD_READONLY | CMD_BLOCKING, ACL_LOOK | ACL_SLOW, "lock", "0.1.0",
      "name", "Tells what is left of a latch, and how many wait for it here.", NULL },
    { "latch|set", cmd_latch_set, -4, KEYS_SECOND, CMD_WRITE | CMD_BLOCKING, ACL_HOLD, "lock", "0.1.0",
      "name count [ID request]", "Sets a latch, unless one is set. Returns 1 if so, else 0.", NULL },
    { "latency", ctx_arity_error, -2, KEYS_NONE, CMD_CONTAINER, ACL_SLOW, "server", "0.1.0",
      "", "A container for latency diagnostics.", NULL },
    { "latency|help", ctx_help, 2, KEYS_NONE, 0, ACL_SLOW, "server", "0.1.0",
      "", "Lists the subcommands.", NULL },
    { "latency|history", cmd_latency_history, 3, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR, "server", "0.1.0",
      "event", "Returns the samples of an event: command, loop, redis or renewal.", NULL },
    { "latency|latest", cmd_latency_latest, 2, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR, "server", "0.1.0",
      "", "Returns the last and the worst sample of each event.", NULL },
    { "latency|reset", cmd_latency_reset, -2, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR, "server", "0.1.0",
      "[event...]", "Forgets the samples.", NULL },
    { "leader", cmd_leader, -2, KEYS_ONE, CMD_READONLY | CMD_BLOCKING, ACL_LOOK | ACL_SLOW | ACL_BLOCKING, "lock", "0.1.0",
      "name [AFTER token] [WAIT ms]", "Tells who holds a lock alone, now or once that has changed: token, owner and data.", NULL },
    { "lock", cmd_lock, -2, KEYS_ONE, CMD_WRITE | CMD_BLOCKING | CMD_NEEDS_REPLY, ACL_LOCK | ACL_KEYSPACE | ACL_WRITE | ACL_SLOW | ACL_BLOCKING, "lock", "0.1.0",
      "name " LOCK_KIND " [WAIT ms] [LEASE ms] [OWNER owner] [ID request] [KEEP ms] [GRACE ms] [HEARTBEAT ms] [DATA data] [ATLEAST ms] [QUEUE n] [PRIORITY n] [LOCAL]",
      "Takes a lock, or waits for it. Returns its token, or null.", NULL },
    { "lockinfo", cmd_lockinfo, 2, KEYS_ONE, CMD_READONLY | CMD_BLOCKING, ACL_LOOK | ACL_FAST, "lock", "0.1.0",
      "name", "Tells who holds a lock and how many wait.", "O(N) where N is the number of holders" },
    { "locks", cmd_locks, -1, KEYS_NONE, CMD_READONLY | CMD_BLOCKING, ACL_LOOK | ACL_SLOW, "lock", "0.1.0",
      "[REDIS] [CURSOR cursor] [MATCH glob] [COUNT count] [TOP count]", "Lists the names that are held or waited for here, or that are held in Redis, or the hottest ones.", "O(N) where N is COUNT, or the number of names for TOP" },
    { "memory", ctx_arity_error, -2, KEYS_NONE, CMD_CONTAINER, ACL_SLOW, "server", "0.1.0",
      "", "A container for memory diagnostics commands.", NULL },
    { "memory|help", ctx_help, 2, KEYS_NONE, 0, ACL_SLOW, "server", "0.1.0",
      "", "Lists the subcommands.", NULL },
    { "memory|usage", cmd_memory_usage, -3, KEYS_SECOND, CMD_READONLY, ACL_READ | ACL_SLOW, "server", "0.1.0",
      "name [SAMPLES count]", "Returns the bytes that a name takes here, or null.", "O(N) where N is the number of samples" },
    { "mlock", cmd_mlock, -3, KEYS_COUNTED, CMD_WRITE | CMD_BLOCKING | CMD_NEEDS_REPLY, ACL_LOCK | ACL_KEYSPACE | ACL_WRITE | ACL_SLOW | ACL_BLOCKING, "lock", "0.1.0",
      "count name... [WAIT ms] [LEASE ms] [OWNER owner] [ID request] [KEEP ms] [GRACE ms] [HEARTBEAT ms] [PRIORITY n]",
      "Takes several locks, all or none. Returns their tokens, or null.", "O(N*log(N)) where N is the number of names" },
    { "monitor", cmd_monitor, 1, KEYS_NONE, CMD_ADMIN | CMD_NO_MULTI, ACL_OPERATOR, "server", "0.1.0",
      "", "Shows every command that runs, until RESET or QUIT.", NULL },
    { "multi", cmd_multi, 1, KEYS_NONE, CMD_FAST | CMD_AT_ONCE, ACL_TRANSACT, "transactions", "0.1.0",
      "", "Queues commands until EXEC.", NULL },
    { "pexpire", cmd_library, 3, KEYS_ONE, CMD_LIBRARY, ACL_HOLD, "library", "0.1.0",
      "key milliseconds", "Sets when a lock that was taken from here by SET ends.", NULL },
    { "pexpireat", cmd_library, 3, KEYS_ONE, CMD_LIBRARY, ACL_HOLD, "library", "0.1.0",
      "key unix-time-milliseconds", "Sets when a lock that was taken from here by SET ends.", NULL },
    { "ping", cmd_ping, -1, KEYS_NONE, CMD_FAST | CMD_PUBSUB, ACL_CONN, "connection", "0.1.0",
      "[message]", "Shows that the daemon answers.", NULL },
    { "psubscribe", cmd_psubscribe, -2, KEYS_NONE, CMD_PUBSUB | CMD_NO_MULTI | CMD_PATTERNS, ACL_LISTEN, "pubsub", "0.1.0",
      "pattern...", "Listens to all channels that match.", NULL },
    { "pttl", cmd_library, 2, KEYS_ONE, CMD_READONLY | CMD_FAST, ACL_LOOK | ACL_FAST, "library", "0.1.0",
      "key", "Returns what is left of the lease of a lock, in milliseconds.", NULL },
    { "pubsub", ctx_arity_error, -2, KEYS_NONE, CMD_CONTAINER, ACL_SLOW, "pubsub", "0.1.0",
      "", "A container for Pub/Sub commands.", NULL },
    { "pubsub|channels", cmd_pubsub_channels, -2, KEYS_NONE, 0, ACL_LISTEN, "pubsub", "0.1.0",
      "[pattern]", "Lists the channels that somebody listens to.", "O(N) where N is the number of channels" },
    { "pubsub|help", ctx_help, 2, KEYS_NONE, 0, ACL_SLOW, "pubsub", "0.1.0",
      "", "Lists the subcommands.", NULL },
    { "pubsub|numpat", cmd_pubsub_numpat, 2, KEYS_NONE, 0, ACL_LISTEN, "pubsub", "0.1.0",
      "", "Returns the number of patterns that somebody listens to.", NULL },
    { "pubsub|numsub", cmd_pubsub_numsub, -2, KEYS_NONE, 0, ACL_LISTEN, "pubsub", "0.1.0",
      "[channel...]", "Returns how many connections listen to channels.", NULL },
    { "punsubscribe", cmd_punsubscribe, -1, KEYS_NONE, CMD_PUBSUB | CMD_NO_MULTI, ACL_LISTEN, "pubsub", "0.1.0",
      "[pattern...]", "Stops listening to patterns.", NULL },
    { "quit", cmd_quit, -1, KEYS_NONE, CMD_NO_AUTH | CMD_FAST | CMD_PUBSUB | CMD_AT_ONCE, ACL_CONN, "connection", "0.1.0",
      "", "Closes this connection.", NULL },
    { "readonly", cmd_readonly, 1, KEYS_NONE, CMD_FAST, ACL_CONN, "cluster", "0.1.0",
      "", "Accepted: there are no replicas to read from.", NULL },
    { "readwrite", cmd_readonly, 1, KEYS_NONE, CMD_FAST, ACL_CONN, "cluster", "0.1.0",
      "", "Accepted: there are no replicas to read from.", NULL },
    { "renew", cmd_renew, -2, KEYS_ONE, CMD_WRITE | CMD_BLOCKING, ACL_HOLD, "lock", "0.1.0",
      "name " RW_KIND " [TOKEN token] [OWNER owner] [ID request] [VALUE value] [LEASE ms]",
      "Attaches a hold to this connection and renews it. Returns the lease left; by VALUE the token.", NULL },
    { "reset", cmd_reset, 1, KEYS_NONE, CMD_NO_AUTH | CMD_FAST | CMD_PUBSUB | CMD_AT_ONCE, ACL_CONN, "connection", "0.1.0",
      "", "Makes this connection as it was when it was new. Holds stay.", NULL },
    { "role", cmd_role, 1, KEYS_NONE, CMD_FAST, ACL_FAST | ACL_ADMIN | ACL_DANGEROUS, "server", "0.1.0",
      "", "Returns master: there are no replicas.", NULL },
    { "script", ctx_arity_error, -2, KEYS_NONE, CMD_CONTAINER, ACL_SCRIPT, "library", "0.1.0",
      "", "A container for commands about lock libraries' scripts.", NULL },
    { "script|exists", cmd_script_exists, -3, KEYS_NONE, 0, ACL_SCRIPT, "library", "0.1.0",
      "sha1...", "Tells which scripts are known.", NULL },
    { "script|flush", cmd_script_flush, -2, KEYS_NONE, 0, ACL_SCRIPT, "library", "0.1.0",
      "[ASYNC | SYNC]", "Forgets the scripts that were loaded.", NULL },
    { "script|help", ctx_help, 2, KEYS_NONE, 0, ACL_SCRIPT, "library", "0.1.0",
      "", "Lists the subcommands.", NULL },
    { "script|load", cmd_script_load, 3, KEYS_NONE, 0, ACL_SCRIPT, "library", "0.1.0",
      "script", "Reads a script, and returns its SHA1.", NULL },
    { "select", cmd_select, 2, KEYS_NONE, CMD_FAST, ACL_CONN, "connection", "0.1.0",
      "index", "Accepts 0, and the number of the database in which latchd keeps its locks.", NULL },
    { "semaphore", ctx_arity_error, -2, KEYS_NONE, CMD_CONTAINER, ACL_SLOW, "lock", "0.1.0",
      "", "A container for commands about semaphores.", NULL },
    { "semaphore|delete", cmd_semaphore_delete, 3, KEYS_SECOND, CMD_WRITE | CMD_BLOCKING, ACL_HOLD, "lock", "0.1.0",
      "name", "Deletes a semaphore whose permits are all free.", NULL },
    { "semaphore|help", ctx_help, 2, KEYS_NONE, 0, ACL_SLOW, "lock", "0.1.0",
      "", "Lists the subcommands.", NULL },
    { "semaphore|info", cmd_semaphore_info, 3, KEYS_SECOND, CMD_READONLY | CMD_BLOCKING, ACL_LOOK | ACL_SLOW, "lock", "0.1.0",
      "name", "Tells how many permits a semaphore has, and who holds them.", "O(N) where N is the number of holders" },
    { "semaphore|limit", cmd_semaphore_limit, 4, KEYS_SECOND, CMD_WRITE | CMD_BLOCKING, ACL_HOLD, "lock", "0.1.0",
      "name limit", "Sets how many permits a semaphore has.", NULL },
    { "set", cmd_library, -3, KEYS_ONE, CMD_LIBRARY | CMD_NEEDS_REPLY, ACL_HOLD, "library", "0.1.0",
      "key value [NX | XX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds]", "Takes a free lock for a value; XX: sets when it ends.", NULL },
    { "setnx", cmd_library, 3, KEYS_ONE, CMD_LIBRARY | CMD_NEEDS_REPLY, ACL_HOLD, "library", "0.1.0",
      "key value", "Takes a free lock for a value.", NULL },
    { "shutdown", cmd_shutdown, -1, KEYS_NONE, CMD_ADMIN | CMD_NO_MULTI, ACL_OPERATOR, "server", "0.1.0",
      "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]", "Stops the daemon in order.", NULL },
    { "slowlog", ctx_arity_error, -2, KEYS_NONE, CMD_CONTAINER, ACL_SLOW, "server", "0.1.0",
      "", "A container for slow log commands.", NULL },
    { "slowlog|get", cmd_slowlog_get, -2, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR, "server", "0.1.0",
      "[count]", "Returns the last commands that kept the daemon busy for long.", "O(N) where N is the number of entries" },
    { "slowlog|help", ctx_help, 2, KEYS_NONE, 0, ACL_SLOW, "server", "0.1.0",
      "", "Lists the subcommands.", NULL },
    { "slowlog|len", cmd_slowlog_len, 2, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR, "server", "0.1.0",
      "", "Returns how many slow commands are remembered.", NULL },
    { "slowlog|reset", cmd_slowlog_reset, 2, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR, "server", "0.1.0",
      "", "Forgets them, and the long waits.", NULL },
    { "slowlog|waits", cmd_slowlog_waits, -2, KEYS_NONE, CMD_ADMIN, ACL_OPERATOR, "server", "0.1.0",
      "[count]", "Returns the last long waits for locks, and how they ended.", "O(N) where N is the number of entries" },
    { "subscribe", cmd_subscribe, -2, KEYS_NONE, CMD_PUBSUB | CMD_NO_MULTI | CMD_CHANNELS, ACL_LISTEN, "pubsub", "0.1.0",
      "channel...", "Listens to granted:, released:, uncertain:, lost: and expired: of a name.", NULL },
    { "time", cmd_time, 1, KEYS_NONE, CMD_FAST, ACL_FAST, "server", "0.1.0",
      "", "Returns the daemon's wall clock.", NULL },
    { "ttl", cmd_library, 2, KEYS_ONE, CMD_READONLY | CMD_FAST, ACL_LOOK | ACL_FAST, "library", "0.1.0",
      "key", "Returns what is left of the lease of a lock, in seconds.", NULL },
    { "unlink", cmd_library, -2, KEYS_ALL, CMD_LIBRARY, ACL_HOLD, "library", "0.1.0",
      "key...", "Releases locks that were taken from here by SET.", NUM_OF_KEYS },
    { "unlock", cmd_unlock, -2, KEYS_ONE, CMD_WRITE | CMD_BLOCKING, ACL_HOLD, "lock", "0.1.0",
      "name " RW_KIND " [TOKEN token] [OWNER owner] [ID request] [TO request]",
      "Releases a lock. Returns how many entries its owner still has.", NULL },
    { "unsubscribe", cmd_unsubscribe, -1, KEYS_NONE, CMD_PUBSUB | CMD_NO_MULTI, ACL_LISTEN, "pubsub", "0.1.0",
      "[channel...]", "Stops listening to channels.", NULL },
    { "unwatch", cmd_unwatch, 1, KEYS_NONE, CMD_FAST, ACL_TRANSACT, "transactions", "0.1.0",
      "", "Forgets the watched keys.", NULL },
    { "wait", cmd_wait, 3, KEYS_NONE, 0, ACL_SLOW | ACL_BLOCKING | ACL_CONNECTION, "generic", "0.1.0",
      "numreplicas ms", "Returns 0: there are no replicas.", NULL },
    { "waiters", cmd_waiters, -2, KEYS_ONE, CMD_READONLY, ACL_LOOK | ACL_SLOW, "lock", "0.1.0",
      "name [COUNT count]", "Lists who waits for a lock here, in order.", "O(N) where N is COUNT" },
    { "watch", cmd_watch, -2, KEYS_ALL, CMD_FAST | CMD_AT_ONCE, ACL_TRANSACT, "transactions", "0.1.0",
      "key...", "EXEC does nothing if one of these locks has another holder by then.", NUM_OF_KEYS },
};

/* clang-format on */

const size_t COMMAND_COUNT = sizeof(COMMANDS) / sizeof(COMMANDS[0]);

/* Finds a command in the table, and the names of locks in its arguments. */

/* Appends in lower case to a key of NULs. False: longer than any name. */
static bool add_lower(char *key, size_t *len, struct span text)
{
    if (*len + text.len >= COMMAND_NAME_MAX) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        char ch = text.ptr[i];

        if (ch == '\0') {
            return false;
        }
        key[(*len)++] = (char)(ch >= 'A' && ch <= 'Z' ? ch - 'A' + 'a' : ch);
    }
    return true;
}

/* The first bytes of a name, as a number that sorts as they do. */
static uint64_t read_head(const char *name)
{
    uint64_t head;

    memcpy(&head, name, sizeof(head));
    return be64toh(head);
}

/* Whether a row has the name of a key with the same head. */
static bool has_tail(const struct command *row, const char *key)
{
    enum { HEAD = sizeof(uint64_t) };

    return memcmp(row->name + HEAD, key + HEAD, COMMAND_NAME_MAX - HEAD) == 0;
}

/* Every request is looked up, so the search compares heads, up to the last row that has
 * this one or a smaller one. */
static const struct command *find_command(const char *key)
{
    uint64_t head = read_head(key);
    size_t at = 0;

    for (size_t count = COMMAND_COUNT, half; count > 1; count -= half) {
        half = count / 2;
        at += read_head(COMMANDS[at + half].name) <= head ? half : 0;
    }
    for (; read_head(COMMANDS[at].name) == head; at--) {
        if (has_tail(&COMMANDS[at], key)) {
            return &COMMANDS[at];
        }
        if (at == 0) {
            break;
        }
    }
    return NULL;
}

const struct command *command_find(struct span name)
{
    char key[COMMAND_NAME_MAX] = { 0 };
    size_t len = 0;

    return add_lower(key, &len, name) ? find_command(key) : NULL;
}

const struct command *command_find_sub(const struct command *container, struct span sub)
{
    char key[COMMAND_NAME_MAX] = { 0 };
    size_t len = 0;

    if (!add_lower(key, &len, span_str(container->name)) ||
        !add_lower(key, &len, SPAN("|")) || !add_lower(key, &len, sub)) {
        return NULL;
    }
    return find_command(key);
}

const struct command *command_resolve(const struct span *argv, size_t argc)
{
    const struct command *c = command_find(argv[0]);

    if (c != NULL && (c->flags & CMD_CONTAINER) != 0 && argc > 1) {
        c = command_find_sub(c, argv[1]);
    }
    return c;
}

bool command_is_lock(const struct command *c)
{
    return c != NULL && (c->flags & CMD_NEEDS_REPLY) != 0;
}

bool command_may_wait(const struct command *c)
{
    return c != NULL && (c->flags & CMD_BLOCKING) != 0 && (c->acl & ACL_BLOCKING) != 0;
}

bool command_is_sub(const struct command *c)
{
    return strchr(c->name, '|') != NULL;
}

const struct command *command_subs(const struct command *container, size_t *ret_count)
{
    const struct command *end = COMMANDS + COMMAND_COUNT;
    const struct command *c = container + 1;

    if ((container->flags & CMD_CONTAINER) != 0) {
        while (c < end && command_is_sub(c)) {
            c++;
        }
    }
    *ret_count = (size_t)(c - container - 1);
    return container + 1;
}

const char *command_short_name(const struct command *c)
{
    const char *bar = strchr(c->name, '|');

    return bar == NULL ? c->name : bar + 1;
}

bool command_arity_fits(const struct command *c, size_t argc)
{
    return c->arity >= 0 ? argc == (size_t)c->arity : argc >= (size_t)-c->arity;
}

bool command_key_range(const struct command *c, const struct span *argv, size_t argc,
                       size_t *ret_first, size_t *ret_count)
{
    uint64_t count = 1;

    switch (c->keys) {
    case KEYS_NONE:
        count = 0;
        *ret_first = 0;
        break;
    case KEYS_ONE:
        *ret_first = 1;
        break;
    case KEYS_SECOND:
        *ret_first = 2;
        break;
    case KEYS_ALL:
        *ret_first = 1;
        count = argc - 1;
        break;
    case KEYS_COUNTED:
        *ret_first = 2;
        if (!parse_u64(argv[1], argc - 2, &count) || count == 0) {
            return false;
        }
        break;
    case KEYS_SCRIPT:
        *ret_first = 3;
        if (!parse_u64(argv[2], argc - 3, &count)) {
            return false;
        }
        break;
    }
    *ret_count = (size_t)count;
    return true;
}
