#include "daemon/config/config.h"
#include "engine/op.h"

#include "latchd/protocol.h"

#define FIELD(name) offsetof(struct config, name)
#define MINUTES 60000ULL
#define HOURS (60 * MINUTES)
#define DAYS (24 * HOURS)
#define KB 1024ULL
#define GB (KB * KB * KB)
#define TEXT_OF_(x) #x
#define TEXT_OF(x) TEXT_OF_(x)

static const char *const FSYNCS[] = { "everysec", "always", NULL };
static const char *const AUTHS[] = { "no", "yes", "optional", NULL };
static const char *const CERT_USERS[] = { "off", "cn", NULL };
static const char *const YES_NO[] = { "no", "yes", NULL };
static const char *const LEVELS[] = { "debug",   "info",  "notice",
                                      "warning", "error", NULL };
static const char *const FORMATS[] = { "text", "json", NULL };

static const char NETWORK[] = "Network";
static const char TLS[] = "TLS";
static const char REDIS[] = "Redis";
static const char LOCKS[] = "Locks";
static const char SECURITY[] = "Security";
static const char OBSERVING[] = "Observing";
static const char HTTP[] = "Metrics and status page";
static const char LOGGING[] = "Log";

/* name, type, field, default, min, max, choices, flags, section, help */
const struct config_key CONFIG_KEYS[] = {
    { "bind", KEY_WORDS, FIELD(bind), "127.0.0.1 ::1", 1, CONFIG_VALUE_MAX, NULL, 0,
      NETWORK,
      "Addresses to listen on. One that this machine lacks is an error, unless it is\n"
      "::1." },
    { "port", KEY_COUNT, FIELD(port), TEXT_OF(LATCHD_DEFAULT_PORT), 0, 65535, NULL, 0,
      NETWORK,
      "TCP port. 0: no TCP when a unix socket or tls-port is given, else the kernel\n"
      "chooses one, and the log says which." },
    { "unixsocket", KEY_TEXT, FIELD(unixsocket), "", 0, 107, NULL, 0, NETWORK,
      "Path of a unix socket to listen on; empty: none." },
    { "unixsocketperm", KEY_OCTAL, FIELD(unixsocketperm), "700", 0, 0777, NULL, 0,
      NETWORK, "Permissions of the unix socket, octal." },
    { "tcp-backlog", KEY_COUNT, FIELD(tcp_backlog), "511", 1, 65535, NULL, 0, NETWORK,
      "Connections that the kernel keeps waiting to be accepted." },
    { "tcp-keepalive", KEY_MSEC, FIELD(tcp_keepalive_ms), "10s", 0, HOURS, NULL,
      KEY_LIVE, NETWORK,
      "A silent client is probed after this long (rounded up to seconds), then three\n"
      "times, 3 s apart, and given up. 0: never." },
    { "timeout", KEY_MSEC, FIELD(timeout_ms), "0", 0, 365 * DAYS, NULL, KEY_LIVE,
      NETWORK,
      "Connections that neither hold, wait nor subscribe are closed after this much\n"
      "silence. 0: never." },
    { "maxclients", KEY_COUNT, FIELD(maxclients), "10000", 1, 10000000, NULL, KEY_LIVE,
      NETWORK,
      "Connections at a time. Lowered, with a warning, to what the limit of open\n"
      "files allows." },
    { "query-buffer-limit", KEY_SIZE, FIELD(query_buffer_limit), "1mb", KB, GB, NULL,
      KEY_LIVE, NETWORK,
      "Unread or unfinished input of one connection; more closes it." },
    { "output-buffer-limit", KEY_SIZE, FIELD(output_buffer_limit), "8mb", 64 * KB, GB,
      NULL, KEY_LIVE, NETWORK,
      "Replies that one connection does not take in; more closes it." },
    { "maxmemory-clients", KEY_SIZE, FIELD(maxmemory_clients), "1gb", 0, KB *GB, NULL,
      KEY_LIVE, NETWORK,
      "What all connections together may have in their buffers, transactions and\n"
      "subscriptions. Beyond it those that have most are closed. 0: no limit." },
    { "tls-port", KEY_PORT, FIELD(tls_port), "0", 0, CONFIG_PORT_AUTO, NULL, 0, TLS,
      "TCP port for TLS, on the addresses of `bind`. 0: off. auto: the kernel "
      "chooses,\n"
      "and the log says which." },
    { "tls-cert-file", KEY_TEXT, FIELD(tls_cert_file), "", 0, CONFIG_VALUE_MAX, NULL,
      KEY_LIVE, TLS,
      "Certificate to show to clients, with its chain behind it (PEM). This and the\n"
      "other files are read again at SIGHUP; connections from then on use them." },
    { "tls-key-file", KEY_TEXT, FIELD(tls_key_file), "", 0, CONFIG_VALUE_MAX, NULL,
      KEY_LIVE, TLS,
      "Its private key, without a passphrase (PEM). Empty: it is in tls-cert-file." },
    { "tls-ca-cert-file", KEY_TEXT, FIELD(tls_ca_cert_file), "", 0, CONFIG_VALUE_MAX,
      NULL, KEY_LIVE, TLS,
      "Authorities whose certificates clients may show (PEM); see tls-auth-clients." },
    { "tls-ca-cert-dir", KEY_TEXT, FIELD(tls_ca_cert_dir), "", 0, CONFIG_VALUE_MAX,
      NULL, KEY_LIVE, TLS,
      "The same as a directory of files with hashed names (openssl rehash)." },
    { "tls-auth-clients", KEY_CHOICE, FIELD(tls_auth_clients), "no", 0, 0, AUTHS,
      KEY_LIVE, TLS,
      "Whether clients must show a certificate of those authorities: yes, no, or\n"
      "optional: only who shows a wrong one is refused." },
    { "tls-auth-clients-user", KEY_CHOICE, FIELD(tls_auth_clients_user), "off", 0, 0,
      CERT_USERS, KEY_LIVE, TLS,
      "cn: a client whose certificate has the name of a user as its common name is\n"
      "that user, without a password. off: all clients say who they are." },
    { "redis", KEY_WORDS, FIELD(redis), "embedded", 1, CONFIG_VALUE_MAX, NULL, KEY_URLS,
      REDIS,
      "Where the locks are kept: embedded (a private Redis that latchd runs itself),\n"
      "redis://[user:password@]host[:port][/db], the same with TLS as rediss://,\n"
      "unix:///path, sentinel://[user:password@]host[:port],host/master[/db], or\n"
      "cluster://[user:password@]host[:port],host: some nodes of a Redis Cluster;\n"
      "or quorum and three or five of the first kinds." },
    { "redis-tls-ca-cert-file", KEY_TEXT, FIELD(redis_tls_ca_cert_file), "", 0,
      CONFIG_VALUE_MAX, NULL, KEY_LIVE, REDIS,
      "Authorities whose certificates that Redis may show (PEM). Empty: those of the\n"
      "system. The certificate must be for the host of `redis`." },
    { "redis-tls-cert-file", KEY_TEXT, FIELD(redis_tls_cert_file), "", 0,
      CONFIG_VALUE_MAX, NULL, KEY_LIVE, REDIS,
      "Certificate to show to that Redis (PEM). Empty: none." },
    { "redis-tls-key-file", KEY_TEXT, FIELD(redis_tls_key_file), "", 0,
      CONFIG_VALUE_MAX, NULL, KEY_LIVE, REDIS,
      "Its private key (PEM). Empty: it is in redis-tls-cert-file." },
    { "redis-timeout", KEY_MSEC, FIELD(redis_timeout_ms), "3s", 10, 10 * MINUTES, NULL,
      KEY_LIVE, REDIS, "How long one call to Redis may take." },
    { "min-replicas", KEY_COUNT, FIELD(min_replicas), "0", 0, 100, NULL, KEY_LIVE,
      REDIS,
      "Replicas of Redis that must have a grant or a renewal before it counts; with\n"
      "fewer, a grant is undone and answered -NOREPLICAS. 0: none are waited for." },
    { "replica-timeout", KEY_MSEC, FIELD(replica_timeout_ms), "1s", 1, MINUTES, NULL,
      KEY_LIVE, REDIS, "How long to wait for them." },
    { "state-dir", KEY_TEXT, FIELD(state_dir), "", 0, 4000, NULL, 0, REDIS,
      "Directory of the embedded Redis. Empty: $STATE_DIRECTORY, else\n"
      "$XDG_STATE_HOME/latchd, else ~/.local/state/latchd." },
    { "embedded-fsync", KEY_CHOICE, FIELD(embedded_fsync), "everysec", 0, 0, FSYNCS, 0,
      REDIS,
      "always: a power cut loses nothing. everysec: faster; a power cut may lose two\n"
      "seconds, so after one nothing is granted for one watchdog-timeout." },
    { "watchdog-timeout", KEY_MSEC, FIELD(watchdog_timeout_ms), "30s", 500, DAYS, NULL,
      KEY_LIVE, LOCKS,
      "Lease of a lock that was taken without LEASE; renewed every third of it." },
    { "grace", KEY_GRACE, FIELD(grace_ms), "-1", 0, DAYS, NULL, KEY_LIVE, LOCKS,
      "How long such a lock outlives its last connection. -1: the rest of its lease,\n"
      "0: it is freed at once." },
    { "failover-quarantine", KEY_GRACE, FIELD(failover_quarantine_ms), "-1", 0, DAYS,
      NULL, KEY_LIVE, LOCKS,
      "After a failover of Redis: for how long names that this daemon's clients did "
      "not\n"
      "hold are granted to nobody, as a grant may have been lost. -1: for one\n"
      "watchdog-timeout, 0: not at all." },
    { "recheck", KEY_MSEC, FIELD(recheck_ms), "5s", 10, HOURS, NULL, KEY_LIVE, LOCKS,
      "The first waiter of a name asks Redis at least this often." },
    { "fair-wait-timeout", KEY_MSEC, FIELD(fair_wait_ms), "30s", 1000, DAYS, NULL,
      KEY_LIVE, LOCKS,
      "What this daemon's waiters add to the deadlines of a fair queue: how long,\n"
      "besides the lock's TTL, others wait for them if this daemon dies." },
    { "fair-window", KEY_COUNT, FIELD(fair_window), "1024", 1, OP_QUEUE_MAX, NULL,
      KEY_LIVE, LOCKS,
      "Waiters of one name that stand in Redis's fair queue; the others wait their\n"
      "turn here." },
    { "handoff-limit", KEY_COUNT, FIELD(handoff_limit), "64", 1, 1000000, NULL,
      KEY_LIVE, LOCKS,
      "After so many hand-overs in a row among this daemon's clients others get a\n"
      "chance, if there are others." },
    { "handoff-pause", KEY_MSEC, FIELD(handoff_pause_ms), "2ms", 0, MINUTES, NULL,
      KEY_LIVE, LOCKS, "How long this daemon's first waiter stands back then." },
    { "max-lease", KEY_MSEC, FIELD(max_lease_ms), "24h", LATCHD_LEASE_MIN_MS,
      365 * DAYS, NULL, KEY_LIVE, LOCKS, "Longest LEASE that a client may ask for." },
    { "max-wait", KEY_MSEC, FIELD(max_wait_ms), "0", 0, 365 * DAYS, NULL, KEY_LIVE,
      LOCKS, "Longest WAIT that a client may ask for. 0: no limit." },
    { "max-keep", KEY_MSEC, FIELD(max_keep_ms), "30s", 0, DAYS, NULL, KEY_LIVE, LOCKS,
      "Longest KEEP that a client may ask for." },
    { "max-waiters", KEY_COUNT, FIELD(max_waiters), "1000000", 1, 1000000000, NULL,
      KEY_LIVE, LOCKS, "LOCKs that may wait at a time." },
    { "max-holds", KEY_COUNT, FIELD(max_holds), "10000000", 1, 1000000000, NULL,
      KEY_LIVE, LOCKS, "Locks that this daemon's clients may hold at a time." },
    { "max-name-length", KEY_COUNT, FIELD(max_name_length), TEXT_OF(LATCHD_NAME_MAX), 1,
      LATCHD_NAME_MAX, NULL, 0, LOCKS, "Longest name of a lock, in bytes." },
    { "protected-mode", KEY_CHOICE, FIELD(protected_mode), "yes", 0, 0, YES_NO,
      KEY_LIVE, SECURITY,
      "yes: as long as the user default has no password, clients of other machines\n"
      "are refused." },
    { "requirepass", KEY_TEXT, FIELD(requirepass), "", 0, 512, NULL,
      KEY_LIVE | KEY_SECRET, SECURITY,
      "Password that clients must give (AUTH, HELLO). Empty: none. It is never shown\n"
      "by CONFIG GET or --print-config. It is the password of the user default." },
    { "auth-timeout", KEY_MSEC, FIELD(auth_timeout_ms), "1m", 0, DAYS, NULL, KEY_LIVE,
      SECURITY,
      "Where a password is wanted: connections that do not give one within this time\n"
      "are closed. 0: they may stay." },
    { "aclfile", KEY_TEXT, FIELD(aclfile), "", 0, 4000, NULL, 0, SECURITY,
      "File of users, in the syntax of Redis's ACL files. Empty: there is only the\n"
      "user default, unless ACL SETUSER makes others. Read again by ACL LOAD and on\n"
      "SIGHUP, written by ACL SAVE. Where it names default, requirepass is not used." },
    { "slowlog-log-slower-than", KEY_USEC, FIELD(slowlog_us), "10000", 0, HOURS * 1000,
      NULL, KEY_LIVE, OBSERVING,
      "Microseconds: commands that keep the daemon busy for longer are in SLOWLOG.\n"
      "Waiting is not work. 0: all commands, -1: none." },
    { "slowlog-max-len", KEY_COUNT, FIELD(slowlog_len), "128", 0, 100000, NULL,
      KEY_LIVE, OBSERVING,
      "Slow commands that are remembered, and as many long waits." },
    { "slowlog-waits-longer-than", KEY_GRACE, FIELD(long_wait_ms), "10s", 1, 365 * DAYS,
      NULL, KEY_LIVE, OBSERVING,
      "Waits for a lock that are longer are in SLOWLOG WAITS. -1: none." },
    { "latency-monitor-threshold", KEY_COUNT, FIELD(latency_ms), "100", 0, 1000000,
      NULL, KEY_LIVE, OBSERVING,
      "Milliseconds: what takes longer is remembered by LATENCY: a command, a turn of\n"
      "the event loop, an answer of Redis, the delay of a renewal. 0: nothing." },
    { "http-bind", KEY_TEXT, FIELD(http_bind), "127.0.0.1", 1, 64, NULL, 0, HTTP,
      "Address for HTTP, in digits. Nobody is asked who they are: on an address that\n"
      "others can reach, all who can connect see names, owners and addresses." },
    { "http-port", KEY_PORT, FIELD(http_port), "0", 0, CONFIG_PORT_AUTO, NULL, 0, HTTP,
      "Port for HTTP: / is a status page, /metrics is for Prometheus, /healthz says\n"
      "whether locks are granted. 0: off. auto: the kernel chooses, and the log says\n"
      "which." },
    { "log-level", KEY_CHOICE, FIELD(log_level), "notice", 0, 0, LEVELS, KEY_LIVE,
      LOGGING, "debug, info, notice, warning or error." },
    { "log-format", KEY_CHOICE, FIELD(log_format), "text", 0, 0, FORMATS, 0, LOGGING,
      "text, or json for log collectors. Lines go to standard error." },
};

const size_t CONFIG_KEY_COUNT = sizeof(CONFIG_KEYS) / sizeof(CONFIG_KEYS[0]);
_Static_assert(sizeof(CONFIG_KEYS) / sizeof(CONFIG_KEYS[0]) <= CONFIG_KEYS_MAX,
               "CONFIG_KEYS_MAX is too small");
