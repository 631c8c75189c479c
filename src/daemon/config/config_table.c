#include "daemon/config/config.h"
#include "engine/engine.h"
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
      "Addresses to listen on. An address that this machine lacks is an error, unless\n"
      "it is ::1." },
    { "port", KEY_COUNT, FIELD(port), TEXT_OF(LATCHD_DEFAULT_PORT), 0, 65535, NULL, 0,
      NETWORK,
      "TCP port. 0: no TCP when a unix socket or tls-port is given, else the kernel\n"
      "chooses one, and the log says which." },
    { "unixsocket", KEY_TEXT, FIELD(unixsocket), "", 0, 107, NULL, 0, NETWORK,
      "Path of a unix socket to listen on; empty: none." },
    { "unixsocketperm", KEY_OCTAL, FIELD(unixsocketperm), "700", 0, 0777, NULL, 0,
      NETWORK, "Permissions of the unix socket, octal." },
    { "tcp-backlog", KEY_COUNT, FIELD(tcp_backlog), "511", 1, 65535, NULL, 0, NETWORK,
      "Length of the kernel's queue of connections to accept." },
    { "tcp-keepalive", KEY_MSEC, FIELD(tcp_keepalive_ms), "10s", 0, HOURS, NULL,
      KEY_LIVE, NETWORK,
      "A silent client is probed after this long (rounded up to seconds), then three\n"
      "times, 3 s apart, and given up. 0: never." },
    { "timeout", KEY_MSEC, FIELD(timeout_ms), "0", 0, 365 * DAYS, NULL, KEY_LIVE,
      NETWORK,
      "A connection that holds no lock, waits for none and subscribes to nothing is\n"
      "closed after this much silence. 0: never." },
    { "maxclients", KEY_COUNT, FIELD(maxclients), "10000", 1, 10000000, NULL, KEY_LIVE,
      NETWORK,
      "Most connections at a time. latchd lowers it, with a warning, to what the\n"
      "limit of open files allows." },
    { "query-buffer-limit", KEY_SIZE, FIELD(query_buffer_limit), "1mb", KB, GB, NULL,
      KEY_LIVE, NETWORK,
      "Unread or unfinished input of one connection; more closes the connection." },
    { "output-buffer-limit", KEY_SIZE, FIELD(output_buffer_limit), "8mb", 64 * KB, GB,
      NULL, KEY_LIVE, NETWORK,
      "Unread replies of one connection; more closes the connection." },
    { "maxmemory-clients", KEY_SIZE, FIELD(maxmemory_clients), "1gb", 0, KB *GB, NULL,
      KEY_LIVE, NETWORK,
      "Memory of all connections' buffers, transactions and subscriptions together.\n"
      "Beyond it latchd closes the connections that use most. 0: no limit." },
    { "tls-port", KEY_PORT, FIELD(tls_port), "0", 0, CONFIG_PORT_AUTO, NULL, 0, TLS,
      "TCP port for TLS, on the addresses of `bind`. 0: off. auto: the kernel\n"
      "chooses, and the log says which." },
    { "tls-cert-file", KEY_TEXT, FIELD(tls_cert_file), "", 0, CONFIG_VALUE_MAX, NULL,
      KEY_LIVE, TLS,
      "Certificate that clients get, followed by its chain (PEM). SIGHUP reads this\n"
      "and the other files again; later connections use them." },
    { "tls-key-file", KEY_TEXT, FIELD(tls_key_file), "", 0, CONFIG_VALUE_MAX, NULL,
      KEY_LIVE, TLS,
      "Private key of tls-cert-file, without a passphrase (PEM). Empty: in that\n"
      "file." },
    { "tls-ca-cert-file", KEY_TEXT, FIELD(tls_ca_cert_file), "", 0, CONFIG_VALUE_MAX,
      NULL, KEY_LIVE, TLS,
      "Authorities that sign client certificates (PEM); see tls-auth-clients." },
    { "tls-ca-cert-dir", KEY_TEXT, FIELD(tls_ca_cert_dir), "", 0, CONFIG_VALUE_MAX,
      NULL, KEY_LIVE, TLS,
      "Directory of such authorities, with hashed file names (openssl rehash)." },
    { "tls-auth-clients", KEY_CHOICE, FIELD(tls_auth_clients), "no", 0, 0, AUTHS,
      KEY_LIVE, TLS,
      "Whether clients need a certificate of those authorities: yes, no, or optional:\n"
      "only a client with a wrong certificate is refused." },
    { "tls-auth-clients-user", KEY_CHOICE, FIELD(tls_auth_clients_user), "off", 0, 0,
      CERT_USERS, KEY_LIVE, TLS,
      "cn: a client whose certificate has the name of a user as its common name is\n"
      "that user, without a password. off: clients log in with AUTH or HELLO." },
    { "redis", KEY_WORDS, FIELD(redis), "embedded", 1, CONFIG_VALUE_MAX, NULL, KEY_URLS,
      REDIS,
      "Where the locks are kept: embedded (a private Redis that latchd runs itself),\n"
      "redis://[user:password@]host[:port][/db], the same with TLS as rediss://,\n"
      "unix://[user:password@]/path, the same of a Redis on a unix socket,\n"
      "sentinel://[user:password@]host[:port],host/master[/db], or\n"
      "cluster://[user:password@]host[:port],host (some nodes of a Redis Cluster), or\n"
      "quorum followed by three or five redis, rediss or unix URLs." },
    { "redis-password-file", KEY_TEXT, FIELD(redis_password_file), "", 0, 4000, NULL,
      KEY_LIVE, REDIS,
      "File whose first line is the password of each Redis that `redis` gives none.\n"
      "SIGHUP reads it again: latchd then logs in anew, and loses no lock." },
    { "redis-tls-ca-cert-file", KEY_TEXT, FIELD(redis_tls_ca_cert_file), "", 0,
      CONFIG_VALUE_MAX, NULL, KEY_LIVE, REDIS,
      "Authorities that sign Redis's certificate (PEM). Empty: those of the system.\n"
      "The certificate must be for the host of `redis`." },
    { "redis-tls-cert-file", KEY_TEXT, FIELD(redis_tls_cert_file), "", 0,
      CONFIG_VALUE_MAX, NULL, KEY_LIVE, REDIS,
      "Client certificate that latchd presents to Redis (PEM). Empty: none." },
    { "redis-tls-key-file", KEY_TEXT, FIELD(redis_tls_key_file), "", 0,
      CONFIG_VALUE_MAX, NULL, KEY_LIVE, REDIS,
      "Private key of redis-tls-cert-file (PEM). Empty: in that file." },
    { "redis-timeout", KEY_MSEC, FIELD(redis_timeout_ms), "3s", 10, 10 * MINUTES, NULL,
      KEY_LIVE, REDIS, "How long one call to Redis may take." },
    { "min-replicas", KEY_COUNT, FIELD(min_replicas), "0", 0, 100, NULL, KEY_LIVE,
      REDIS,
      "How many replicas of Redis must acknowledge a grant or renewal before it\n"
      "counts. With fewer, a grant is undone, and the answer is -NOREPLICAS.\n"
      "0: none." },
    { "replica-timeout", KEY_MSEC, FIELD(replica_timeout_ms), "1s", 1, MINUTES, NULL,
      KEY_LIVE, REDIS, "How long to wait for replicas." },
    { "state-dir", KEY_TEXT, FIELD(state_dir), "", 0, 4000, NULL, 0, REDIS,
      "Directory of the embedded Redis. Empty: $STATE_DIRECTORY, else\n"
      "$XDG_STATE_HOME/latchd, else ~/.local/state/latchd." },
    { "embedded-fsync", KEY_CHOICE, FIELD(embedded_fsync), "everysec", 0, 0, FSYNCS, 0,
      REDIS,
      "always: a power cut loses nothing. everysec: faster; a power cut may lose two\n"
      "seconds, so after one nothing is granted for one watchdog-timeout." },
    { "watchdog-timeout", KEY_MSEC, FIELD(watchdog_timeout_ms), "30s", 500, DAYS, NULL,
      KEY_LIVE, LOCKS,
      "Lease of a lock taken without LEASE; latchd renews it every third of this." },
    { "grace", KEY_GRACE, FIELD(grace_ms), "-1", 0, DAYS, NULL, KEY_LIVE, LOCKS,
      "How long a lock without LEASE outlives its last connection. -1: for the rest\n"
      "of its lease, 0: not at all." },
    { "failover-quarantine", KEY_GRACE, FIELD(failover_quarantine_ms), "-1", 0, DAYS,
      NULL, KEY_LIVE, LOCKS,
      "How long after a failover of Redis latchd grants no name that its own\n"
      "clients did not hold, as another grant may have been lost. -1: one\n"
      "watchdog-timeout, 0: not at all." },
    { "recheck", KEY_MSEC, FIELD(recheck_ms), "5s", 10, HOURS, NULL, KEY_LIVE, LOCKS,
      "The first waiter of a name asks Redis at least this often." },
    { "fence-ttl", KEY_MSEC, FIELD(fence_ttl_ms), "5m", MINUTES, DAYS, NULL, 0, LOCKS,
      "How long Redis keeps the last token of a name after the lease of its last "
      "hold:\n"
      "half of that at least, some 300 bytes for each name. On a quorum it is 1h." },
    { "fair-wait-timeout", KEY_MSEC, FIELD(fair_wait_ms), "30s", 1000, DAYS, NULL,
      KEY_LIVE, LOCKS,
      "How long, beyond the lock's TTL, this daemon's waiters delay a fair queue if\n"
      "the daemon dies." },
    { "fair-window", KEY_COUNT, FIELD(fair_window), "1024", 1, OP_QUEUE_MAX, NULL,
      KEY_LIVE, LOCKS,
      "How many of this daemon's waiters of one name stand in Redis's fair queue; the\n"
      "others queue here." },
    { "handoff-limit", KEY_COUNT, FIELD(handover_limit), "64", 1, 1000000, NULL,
      KEY_LIVE, LOCKS,
      "After this many hand-overs of a name in a row among this daemon's clients, or\n"
      "after 10 ms of them, waiters elsewhere get a chance, if there are any." },
    { "handoff-pause", KEY_MSEC, FIELD(handover_pause_ms), "2ms", 0, MINUTES, NULL,
      KEY_LIVE, LOCKS, "How long this daemon's waiters pause after handoff-limit." },
    { "local-names", KEY_WORDS, FIELD(local_names), "", 0, CONFIG_VALUE_MAX, NULL,
      KEY_LIVE, LOCKS,
      "Names, as globs, whose plain LOCKs are LOCAL without saying so: see\n"
      "latchd-protocol(7). Other daemons may answer null to LOCK n WAIT 0 of such a\n"
      "name although nobody holds it." },
    { "local-window", KEY_MSEC, FIELD(local_window_ms), "20ms", 1, LOCAL_WINDOW_MAX_MS,
      NULL, KEY_LIVE, LOCKS,
      "For how long a name that is lent to this daemon is granted from memory before\n"
      "Redis is asked again." },
    { "priority-aging", KEY_MSEC, FIELD(priority_aging_ms), "10s", 0, DAYS, NULL,
      KEY_LIVE, LOCKS,
      "By how much each step of PRIORITY puts a LOCK before those who came earlier. "
      "0:\n"
      "PRIORITY changes nothing." },
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
    { "lock-libraries", KEY_CHOICE, FIELD(lock_libraries), "yes", 0, 0, YES_NO,
      KEY_LIVE, LOCKS,
      "yes: lock libraries that are made for Redis work with latchd as they are, by\n"
      "SET key value NX and the like." },
    { "endless-lease", KEY_MSEC, FIELD(endless_lease_ms), "24h", MINUTES, 365 * DAYS,
      NULL, KEY_LIVE, LOCKS,
      "Lease of a lock that SET takes without an end: how long it outlives the daemon\n"
      "that renews it." },
    { "library-park", KEY_MSEC, FIELD(library_park_ms), "80ms", 0, MINUTES, NULL,
      KEY_LIVE, LOCKS,
      "How long a library that asks for a held lock again and again waits in the\n"
      "queue each time, instead of null at once. 0: not at all." },
    { "protected-mode", KEY_CHOICE, FIELD(protected_mode), "yes", 0, 0, YES_NO,
      KEY_LIVE, SECURITY,
      "yes: clients of other machines are refused as long as the user default has no\n"
      "password." },
    { "requirepass", KEY_TEXT, FIELD(requirepass), "", 0, 512, NULL,
      KEY_LIVE | KEY_SECRET, SECURITY,
      "Password of the user default, for AUTH and HELLO. Empty: none. CONFIG GET and\n"
      "--print-config never show it." },
    { "auth-timeout", KEY_MSEC, FIELD(auth_timeout_ms), "1m", 0, DAYS, NULL, KEY_LIVE,
      SECURITY,
      "Where clients have to log in: a connection that has not done so within this\n"
      "time is closed. 0: never." },
    { "aclfile", KEY_TEXT, FIELD(aclfile), "", 0, 4000, NULL, 0, SECURITY,
      "File of users, in the syntax of Redis's ACL files. Empty: there is only the\n"
      "user default, unless ACL SETUSER creates others. ACL LOAD and SIGHUP read it\n"
      "again, ACL SAVE writes it. If it defines default, requirepass is not used." },
    { "slowlog-log-slower-than", KEY_USEC, FIELD(slowlog_us), "10000", 0, HOURS * 1000,
      NULL, KEY_LIVE, OBSERVING,
      "Microseconds: SLOWLOG has the commands that keep the daemon busy for longer.\n"
      "Waiting is not work. 0: all commands, -1: none." },
    { "slowlog-max-len", KEY_COUNT, FIELD(slowlog_len), "128", 0, 100000, NULL,
      KEY_LIVE, OBSERVING,
      "How many slow commands SLOWLOG keeps, and how many long waits." },
    { "slowlog-waits-longer-than", KEY_GRACE, FIELD(long_wait_ms), "10s", 1, 365 * DAYS,
      NULL, KEY_LIVE, OBSERVING,
      "SLOWLOG WAITS has the waits for a lock that are longer. -1: none." },
    { "latency-monitor-threshold", KEY_COUNT, FIELD(latency_ms), "100", 0, 1000000,
      NULL, KEY_LIVE, OBSERVING,
      "Milliseconds: LATENCY records what takes longer: a command, a turn of the\n"
      "event loop, an answer of Redis, the delay of a renewal. 0: nothing." },
    { "http-bind", KEY_TEXT, FIELD(http_bind), "127.0.0.1", 1, 64, NULL, 0, HTTP,
      "IP address for HTTP. There is no login: everybody who can reach this address\n"
      "sees names, owners and client addresses." },
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
