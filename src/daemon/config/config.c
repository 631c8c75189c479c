#include "daemon/config/config.h"

#include "acl/acl.h"
#include "backend/config/backend_config.h"
#include "backend/store.h"
#include "daemon/files.h"
#include "daemon/server.h"
#include "daemon/server_state.h"
#include "daemon/tls_certs.h"
#include "engine/engine.h"
#include "engine/op.h"
#include "latchd/protocol.h"
#include "util/alloc.h"
#include "util/edits.h"
#include "util/log.h"
#include "util/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

/* aclfile, the file of users: read at the start, by ACL LOAD and on SIGHUP, written by
 * ACL SAVE. */

enum { ACL_FILE_MODE = 0600 };

const char *acl_file(void *ctx)
{
    const struct server *s = ctx;

    return s->config.aclfile;
}

static bool read_file(const char *path, struct buf *out, struct buf *reterr)
{
    int err = file_read(path, ACL_FILE_MAX, out, NULL);

    if (err != 0) {
        buf_printf(reterr, "Error loading ACLs, opening file '%s': %s", path,
                   strerror(err));
    }
    return err == 0;
}

bool acl_file_read(void *ctx, struct buf *out, struct buf *reterr)
{
    return read_file(acl_file(ctx), out, reterr);
}

bool acl_file_write(void *ctx, struct span text)
{
    const char *path = acl_file(ctx);
    int err = file_replace(path, text, ACL_FILE_MODE);

    if (err != 0) {
        log_error("acl", "cannot write %s: %s", path, strerror(err));
    }
    return err == 0;
}

bool acl_file_load(struct server *s)
{
    struct buf text = { 0 }, reason = { 0 };
    const char *path = acl_file(s);
    bool ok = path[0] == '\0' ||
              (read_file(path, &text, &reason) &&
               cmd_load_users(s->cmd, path, buf_span(&text), NULL, &reason));

    if (!ok) {
        log_error("acl", "%.*s", (int)buf_len(&reason), buf_ptr(&reason));
    }
    buf_reset(&text);
    buf_reset(&reason);
    return ok;
}

bool acl_file_check(const char *path, char *reterr, size_t room)
{
    struct buf text = { 0 }, reason = { 0 };
    bool ok = path[0] == '\0' || (read_file(path, &text, &reason) &&
                                  cmd_check_users(path, buf_span(&text), &reason));

    if (!ok) {
        (void)snprintf(reterr, room, "aclfile: %.*s", (int)buf_len(&reason),
                       buf_ptr(&reason));
    }
    buf_reset(&text);
    buf_reset(&reason);
    return ok;
}

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

/* What a start, a reload and --check-config refuse besides what config_set() does.
 * CONFIG SET does not come here: the keys that have checks of their own need a restart,
 * and it looks for conflicts itself. */

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
      KEY_LIVE, LOCKS,
      "How long this daemon's waiters pause after handoff-limit; longer, up to 128ms,\n"
      "while Redisson waits and does not get the lock." },
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

static bool is_space(char ch)
{
    return ch == ' ' || ch == '\t' || ch == '\r';
}

/* Reads an escape after the backslash at *at. False: there is no such escape. */
static bool unescape_char(struct span line, size_t *at, char *ret)
{
    static const char FROM[] = "nrt\"\\";
    static const char TO[] = "\n\r\t\"\\";
    char ch = *at < line.len ? line.ptr[*at] : '\0';
    const char *found = ch == '\0' ? NULL : strchr(FROM, ch);

    if (found != NULL) {
        *ret = TO[found - FROM];
        (*at)++;
        return true;
    }
    if (ch == 'x' && *at + 2 < line.len) {
        int byte = parse_hex_byte(line.ptr[*at + 1], line.ptr[*at + 2]);

        *ret = (char)byte;
        *at += 3;
        return byte >= 0;
    }
    return false;
}

static const char *quoted_word(struct span line, size_t *at, struct buf *out)
{
    (*at)++;
    while (*at < line.len && line.ptr[*at] != '"') {
        char ch = line.ptr[(*at)++];

        if (ch == '\\' && !unescape_char(line, at, &ch)) {
            return "unknown escape in quotes (there are \\\" \\\\ \\n \\r \\t \\xHH)";
        }
        buf_add(out, &ch, 1);
    }
    if (*at == line.len) {
        return "a quote is not closed";
    }
    (*at)++;
    if (*at < line.len && !is_space(line.ptr[*at])) {
        return "a space is missing after a closing quote";
    }
    return NULL;
}

/* Appends the next word. Returns NULL, or the error. */
static const char *next_word(struct span line, size_t *at, struct buf *out)
{
    if (line.ptr[*at] == '"') {
        return quoted_word(line, at, out);
    }
    while (*at < line.len && !is_space(line.ptr[*at])) {
        if (line.ptr[*at] == '"') {
            return "a quote inside a word";
        }
        buf_add(out, line.ptr + *at, 1);
        (*at)++;
    }
    return NULL;
}

static bool skip_to_word(struct span line, size_t *at)
{
    while (*at < line.len && is_space(line.ptr[*at])) {
        (*at)++;
    }
    return *at < line.len && line.ptr[*at] != '#';
}

/* Parses one line into a key and its value: quotes and escapes are undone, words
 * joined by one space. True with an empty *ret_key: a comment or blank line. */
static bool config_parse_line(struct span line, struct buf *ret_key,
                              struct buf *ret_value, size_t *ret_words, char *reterr,
                              size_t room)
{
    const char *wrong = NULL;
    size_t at = 0;

    buf_clear(ret_key);
    buf_clear(ret_value);
    *ret_words = 0;
    if (skip_to_word(line, &at)) {
        wrong = next_word(line, &at, ret_key);
    }
    while (wrong == NULL && skip_to_word(line, &at)) {
        if (*ret_words > 0) {
            buf_add(ret_value, " ", 1);
        }
        wrong = next_word(line, &at, ret_value);
        (*ret_words)++;
    }
    if (wrong == NULL && buf_len(ret_key) == 0 && *ret_words > 0) {
        wrong = "the key is empty";
    }
    if (wrong != NULL) {
        (void)snprintf(reterr, room, "%s", wrong);
        return false;
    }
    return true;
}

struct parse_state {
    struct config *config;
    bool seen[CONFIG_KEYS_MAX];
    struct buf key;
    struct buf value;
};

/* The length of an unknown key in a message, bounded. */
static int shown_len(const struct buf *key)
{
    return buf_len(key) < 64 ? (int)buf_len(key) : 64;
}

/* Bytes that are no text become question marks, as in the log. */
static bool fail_unknown(const struct buf *key, char *reterr, size_t room)
{
    const struct config_key *guess = config_key_guess(buf_span(key));
    int len =
        snprintf(reterr, room, "unknown key '%.*s'", shown_len(key), buf_ptr(key));

    for (char *ch = reterr; *ch != '\0'; ch++) {
        *ch = (unsigned char)*ch < 0x20 || *ch == 0x7f ? '?' : *ch;
    }
    if (guess != NULL && len > 0 && (size_t)len < room) {
        (void)snprintf(reterr + len, room - (size_t)len, ", did you mean '%s'?",
                       guess->name);
    }
    return false;
}

static bool parse_one(struct parse_state *p, struct span line, char *reterr,
                      size_t room)
{
    char why[CONFIG_ERROR_MAX / 2];
    const struct config_key *key;
    size_t words;

    if (!config_parse_line(line, &p->key, &p->value, &words, reterr, room)) {
        return false;
    }
    if (buf_len(&p->key) == 0) {
        return true;
    }
    key = config_key_find(buf_span(&p->key));
    if (key == NULL) {
        return fail_unknown(&p->key, reterr, room);
    }
    if (p->seen[config_key_index(key)]) {
        (void)snprintf(reterr, room, "%s is there twice", key->name);
        return false;
    }
    p->seen[config_key_index(key)] = true;
    if (words == 0 || (words > 1 && key->type != KEY_WORDS)) {
        (void)snprintf(reterr, room, "%s: %s", key->name,
                       words == 0 ? "the value is missing"
                                  : "one value is wanted (quote it if it has spaces)");
        return false;
    }
    if (!config_set(p->config, key, buf_span(&p->value), why, sizeof(why))) {
        (void)snprintf(reterr, room, "%s: %s", key->name, why);
        return false;
    }
    return true;
}

bool config_parse(struct config *c, const char *name, struct span text,
                  struct buf *mistakes)
{
    struct parse_state p = { .config = c };
    char why[CONFIG_ERROR_MAX];
    unsigned number = 0;
    unsigned wrong = 0;

    while (text.len > 0) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end == NULL ? text.len : (size_t)(end - text.ptr);

        number++;
        if (!parse_one(&p, span_of(text.ptr, len), why, sizeof(why)) &&
            wrong++ < CONFIG_MISTAKES_MAX) {
            buf_printf(mistakes, "%s:%u: %s\n", name, number, why);
        }
        len += end == NULL ? 0 : 1;
        text = span_of(text.ptr + len, text.len - len);
    }
    if (wrong > CONFIG_MISTAKES_MAX) {
        buf_printf(mistakes, "%s: and %u more\n", name, wrong - CONFIG_MISTAKES_MAX);
    }
    buf_reset(&p.key);
    buf_reset(&p.value);
    return wrong == 0;
}

bool config_load(struct config *c, const char *path, struct buf *mistakes)
{
    struct buf text = { 0 };
    int err = file_read(path, CONFIG_FILE_MAX, &text, NULL);
    bool ok = false;

    if (err != 0) {
        buf_printf(mistakes, "%s: %s\n", path, strerror(err));
    } else {
        ok = config_parse(c, path, buf_span(&text), mistakes);
    }
    buf_reset(&text);
    return ok;
}

/* Whether a value needs no quotes. Words are joined by one space, so several spaces,
 * or what looks like a comment, would be lost. */
static bool is_plain(struct span value, bool words)
{
    char last = ' ';

    for (size_t i = 0; i < value.len; i++) {
        unsigned char ch = (unsigned char)value.ptr[i];

        if (ch == '"' || ch < 0x20 || ch == 0x7f || (ch == ' ' && !words) ||
            (last == ' ' && (ch == ' ' || ch == '#'))) {
            return false;
        }
        last = (char)ch;
    }
    return last != ' ';
}

/* Appends a value, quoted if necessary. */
static void config_quote(struct span value, bool words, struct buf *out)
{
    if (is_plain(value, words)) {
        buf_add_span(out, value);
        return;
    }
    buf_add_str(out, "\"");
    for (size_t i = 0; i < value.len; i++) {
        unsigned char ch = (unsigned char)value.ptr[i];

        if (ch == '"' || ch == '\\') {
            buf_printf(out, "\\%c", ch);
        } else if (ch < 0x20 || ch == 0x7f) {
            buf_printf(out, "\\x%02x", ch);
        } else {
            buf_add(out, &value.ptr[i], 1);
        }
    }
    buf_add_str(out, "\"");
}

void config_show(const struct config *c, const struct config_key *key, struct buf *out)
{
    struct buf value = { 0 };

    config_format(c, key, (key->flags & KEY_URLS) != 0 ? &value : out);
    if ((key->flags & KEY_URLS) != 0) {
        buf_add(&value, "", 1);
        backend_config_show(buf_ptr(&value), out);
    }
    buf_reset(&value);
}

static void add_key(const struct config *c, const struct config_key *key, bool shown,
                    struct buf *out)
{
    struct buf value = { 0 };

    if (shown) {
        config_show(c, key, &value);
    } else {
        config_format(c, key, &value);
    }
    buf_printf(out, "%s ", key->name);
    config_quote(buf_span(&value), key->type == KEY_WORDS, out);
    buf_add_str(out, "\n");
    buf_reset(&value);
}

static void add_comment(const char *text, struct buf *out)
{
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");

        buf_printf(out, "# %.*s\n", (int)len, text);
        text += len + (text[len] == '\n' ? 1 : 0);
    }
}

static bool is_shown_whole(const struct config *c, const struct config_key *key)
{
    struct buf shown = { 0 }, value = { 0 };
    bool whole;

    config_show(c, key, &shown);
    config_format(c, key, &value);
    whole = span_eq(buf_span(&shown), buf_span(&value));
    buf_reset(&shown);
    buf_reset(&value);
    return whole;
}

static void print_key(const struct config *c, const struct config_key *key,
                      struct buf *out)
{
    bool changed = !config_is_default(c, key);

    buf_add_str(out, "\n");
    add_comment(key->help, out);
    if ((key->flags & KEY_LIVE) != 0) {
        out->tail--; /* before the newline */
        buf_add_str(out, " [live]\n");
    }
    if (changed && (key->flags & KEY_SECRET) != 0) {
        buf_printf(out, "# %s is set, and not shown here.\n", key->name);
        return;
    }
    if (!is_shown_whole(c, key)) {
        buf_add_str(out, "# Passwords are not shown here:\n#");
    } else {
        buf_add_str(out, changed ? "" : "#");
    }
    add_key(c, key, true, out);
}

void config_print(const struct config *c, struct buf *out)
{
    const char *section = "";

    add_comment(
        "Configuration of latchd, see latchd.conf(5). What is commented out has its\n"
        "default. One key and its value a line; values with spaces in \"quotes\".\n"
        "Times are milliseconds or have a unit: ms, s, m, h, d. Sizes are bytes or\n"
        "have a unit: kb, mb, gb. Keys marked [live] can be changed while latchd\n"
        "runs, with CONFIG SET or by changing this file and sending SIGHUP.",
        out);
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        if (strcmp(section, CONFIG_KEYS[i].section) != 0) {
            section = CONFIG_KEYS[i].section;
            buf_printf(out, "\n# --- %s ---\n", section);
        }
        print_key(c, &CONFIG_KEYS[i], out);
    }
}

struct rewrite {
    const struct config *config;
    bool done[CONFIG_KEYS_MAX];
    struct buf *out;
};

/* Whether a line parses, and agrees with the configuration. */
static bool is_up_to_date(const struct config *c, const struct config_key *key,
                          struct span value, size_t words)
{
    char err[CONFIG_ERROR_MAX];
    struct config alone = { 0 };
    bool same = (words == 1 || (words > 1 && key->type == KEY_WORDS)) &&
                config_set(&alone, key, value, err, sizeof(err)) &&
                config_same(&alone, c, key);

    config_fini(&alone);
    return same;
}

/* Replaces a line that sets a known key, unless its value is up to date: then it stays
 * as its author wrote it. Lines that could not be read again are dropped: malformed
 * ones, and a second line for a key. */
static void rewrite_line(struct rewrite *rw, struct span line)
{
    struct buf word = { 0 };
    struct buf value = { 0 };
    char err[CONFIG_ERROR_MAX];
    const struct config_key *key = NULL;
    size_t words;
    bool ok = config_parse_line(line, &word, &value, &words, err, sizeof(err));

    if (ok) {
        key = config_key_find(buf_span(&word));
    }
    if (ok &&
        (key == NULL || (!rw->done[config_key_index(key)] &&
                         is_up_to_date(rw->config, key, buf_span(&value), words)))) {
        buf_add_span(rw->out, line);
        buf_add_str(rw->out, "\n");
    } else if (key != NULL && !rw->done[config_key_index(key)]) {
        add_key(rw->config, key, false, rw->out);
    }
    if (key != NULL) {
        rw->done[config_key_index(key)] = true;
    }
    buf_reset(&word);
    buf_reset(&value);
}

void config_rewrite_text(const struct config *c, struct span text, struct buf *out)
{
    struct rewrite rw = { .config = c, .out = out };

    while (text.len > 0) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end == NULL ? text.len : (size_t)(end - text.ptr);

        rewrite_line(&rw, span_of(text.ptr, len));
        text = span_after(text, len + (end == NULL ? 0 : 1));
    }
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        const struct config_key *key = &CONFIG_KEYS[i];

        if (!rw.done[i] && !config_is_default(c, key)) {
            add_key(c, key, false, out);
        }
    }
}

bool config_rewrite(const struct config *c, const char *path, char *reterr, size_t room)
{
    struct buf text = { 0 }, out = { 0 };
    mode_t mode = 0600;
    int err = file_read(path, CONFIG_FILE_MAX, &text, &mode);

    if (err == 0) {
        config_rewrite_text(c, buf_span(&text), &out);
        err = file_replace(path, buf_span(&out), mode);
    }
    if (err != 0) {
        (void)snprintf(reterr, room, "Rewriting config file: %s", strerror(err));
    }
    buf_reset(&text);
    buf_reset(&out);
    return err == 0;
}

static void *field_of(const struct config *c, const struct config_key *key)
{
    return (char *)(uintptr_t)c + key->field;
}

static bool is_text(const struct config_key *key)
{
    return key->type == KEY_TEXT || key->type == KEY_WORDS;
}

const struct config_key *config_key_find(struct span name)
{
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        if (span_eq_nocase(name, span_str(CONFIG_KEYS[i].name))) {
            return &CONFIG_KEYS[i];
        }
    }
    return NULL;
}

const struct config_key *config_key_guess(struct span name)
{
    const struct config_key *best = NULL;
    size_t nearest =
        name.len < 6 ? 2 : name.len / 3 + 1; /* words that differ more are no guess */

    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        size_t edits = edits_between(name, span_str(CONFIG_KEYS[i].name));

        if (edits < nearest) {
            nearest = edits;
            best = &CONFIG_KEYS[i];
        }
    }
    return best;
}

size_t config_key_index(const struct config_key *key)
{
    return (size_t)(key - CONFIG_KEYS);
}

/* Sets one key to its default. */
static void set_default(struct config *c, const struct config_key *key)
{
    char err[CONFIG_ERROR_MAX];

    /* A default outside its own bounds is a mistake in the table. */
    if (!config_set(c, key, span_str(key->def), err, sizeof(err))) {
        abort();
    }
}

void config_init(struct config *c)
{
    memset(c, 0, sizeof(*c));
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        set_default(c, &CONFIG_KEYS[i]);
    }
}

void config_fini(struct config *c)
{
    if (c == NULL) {
        return;
    }
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        if (is_text(&CONFIG_KEYS[i])) {
            char **text = field_of(c, &CONFIG_KEYS[i]);

            free(*text);
            *text = NULL;
        }
    }
}

void config_copy(struct config *to, const struct config *from)
{
    *to = *from;
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        if (is_text(&CONFIG_KEYS[i])) {
            char **text = field_of(to, &CONFIG_KEYS[i]);

            *text = xstrdup(*text);
        }
    }
}

static bool may_be_minus_one(const struct config_key *key)
{
    return key->type == KEY_GRACE || key->type == KEY_USEC;
}

static void format_msec(uint64_t ms, struct buf *out)
{
    static const struct {
        uint64_t ms;
        const char *unit;
    } UNITS[] = { { 3600000, "h" }, { 60000, "m" }, { 1000, "s" }, { 1, "ms" } };
    size_t i = 0;

    if (ms == 0) {
        buf_add_str(out, "0");
        return;
    }
    while (ms % UNITS[i].ms != 0) {
        i++;
    }
    buf_printf(out, "%" PRIu64 "%s", ms / UNITS[i].ms, UNITS[i].unit);
}

static void format_size(uint64_t bytes, struct buf *out)
{
    static const char *const UNITS[] = { "", "kb", "mb", "gb" };
    size_t i = 0;

    while (bytes != 0 && bytes % 1024 == 0 && i < 3) {
        bytes /= 1024;
        i++;
    }
    buf_printf(out, "%" PRIu64 "%s", bytes, UNITS[i]);
}

static void format_number(enum config_type type, uint64_t value, struct buf *out)
{
    switch (type) {
    case KEY_MSEC:
    case KEY_GRACE:
        format_msec(value, out);
        return;
    case KEY_SIZE:
        format_size(value, out);
        return;
    case KEY_OCTAL:
        buf_printf(out, "%" PRIo64, value);
        return;
    case KEY_PORT:
        if (value == CONFIG_PORT_AUTO) {
            buf_add_str(out, "auto");
            return;
        }
        buf_printf(out, "%" PRIu64, value);
        return;
    default:
        buf_printf(out, "%" PRIu64, value);
        return;
    }
}

static bool bad_bounds(const struct config_key *key, char *reterr, size_t room)
{
    struct buf text = { 0 };

    buf_add_str(&text, "must be between ");
    format_number(key->type, key->min, &text);
    buf_add_str(&text, " and ");
    format_number(key->type, key->max, &text);
    if (may_be_minus_one(key)) {
        buf_add_str(&text, ", or -1");
    }
    (void)snprintf(reterr, room, "%.*s", (int)buf_len(&text), buf_ptr(&text));
    buf_reset(&text);
    return false;
}

static bool parse_octal(struct span text, uint64_t *ret)
{
    uint64_t value = 0;

    if (text.len == 0 || text.len > 5) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '7') {
            return false;
        }
        value = value * 8 + (uint64_t)(text.ptr[i] - '0');
    }
    *ret = value;
    return true;
}

static bool set_number(struct config *c, const struct config_key *key,
                       struct span value, char *reterr, size_t room)
{
    const char *what = "a number";
    uint64_t number = 0;
    bool ok;

    switch (key->type) {
    case KEY_MSEC:
    case KEY_GRACE:
        what = "milliseconds, or a number with ms, s, m, h or d";
        ok = parse_msec(value, &number);
        break;
    case KEY_SIZE:
        what = "bytes, or a number with kb, mb or gb";
        ok = parse_size(value, &number);
        break;
    case KEY_USEC:
        what = "microseconds";
        ok = parse_u64(value, UINT64_MAX, &number);
        break;
    case KEY_OCTAL:
        what = "an octal number";
        ok = parse_octal(value, &number);
        break;
    case KEY_PORT:
        what = "a port, or auto";
        number = CONFIG_PORT_AUTO;
        ok = span_eq_nocase(value, SPAN("auto")) ||
             parse_u64(value, CONFIG_PORT_AUTO - 1, &number);
        break;
    default:
        ok = parse_u64(value, UINT64_MAX, &number);
        break;
    }
    if (!ok) {
        (void)snprintf(reterr, room, "must be %s%s", what,
                       may_be_minus_one(key) ? ", or -1" : "");
        return false;
    }
    if (number < key->min || number > key->max) {
        return bad_bounds(key, reterr, room);
    }
    *(uint64_t *)field_of(c, key) = number;
    return true;
}

static bool set_choice(struct config *c, const struct config_key *key,
                       struct span value, char *reterr, size_t room)
{
    size_t len;

    for (uint64_t i = 0; key->choices[i] != NULL; i++) {
        if (span_eq_nocase(value, span_str(key->choices[i]))) {
            *(uint64_t *)field_of(c, key) = i;
            return true;
        }
    }
    len = (size_t)snprintf(reterr, room, "must be one of:");
    for (size_t i = 0; key->choices[i] != NULL && len < room; i++) {
        len += (size_t)snprintf(reterr + len, room - len, " %s", key->choices[i]);
    }
    return false;
}

static bool set_text(struct config *c, const struct config_key *key, struct span value,
                     char *reterr, size_t room)
{
    char **text = field_of(c, key);

    if (value.len != 0 && memchr(value.ptr, '\0', value.len) != NULL) {
        (void)snprintf(reterr, room, "must not contain a NUL byte");
        return false;
    }
    if (value.len < key->min) {
        (void)snprintf(reterr, room, "must not be empty");
        return false;
    }
    if (value.len > key->max) {
        (void)snprintf(reterr, room, "must not be longer than %" PRIu64 " bytes",
                       key->max);
        return false;
    }
    free(*text);
    *text = xmemdup0(value.ptr, value.len);
    return true;
}

bool config_set(struct config *c, const struct config_key *key, struct span value,
                char *reterr, size_t room)
{
    switch (key->type) {
    case KEY_CHOICE:
        return set_choice(c, key, value, reterr, room);
    case KEY_TEXT:
    case KEY_WORDS:
        return set_text(c, key, value, reterr, room);
    case KEY_GRACE:
    case KEY_USEC:
        if (span_eq(value, SPAN("-1"))) {
            *(int64_t *)field_of(c, key) = -1;
            return true;
        }
        return set_number(c, key, value, reterr, room);
    default:
        return set_number(c, key, value, reterr, room);
    }
}

void config_format(const struct config *c, const struct config_key *key,
                   struct buf *out)
{
    const void *field = field_of(c, key);

    if (is_text(key)) {
        buf_add_str(out, *(char *const *)field);
    } else if (key->type == KEY_CHOICE) {
        buf_add_str(out, key->choices[*(const uint64_t *)field]);
    } else if (may_be_minus_one(key) && *(const int64_t *)field < 0) {
        buf_add_int(out, *(const int64_t *)field);
    } else {
        format_number(key->type, *(const uint64_t *)field, out);
    }
}

bool config_same(const struct config *a, const struct config *b,
                 const struct config_key *key)
{
    const void *x = field_of(a, key);
    const void *y = field_of(b, key);

    if (is_text(key)) {
        return strcmp(*(char *const *)x, *(char *const *)y) == 0;
    }
    return *(const uint64_t *)x == *(const uint64_t *)y;
}

bool config_is_default(const struct config *c, const struct config_key *key)
{
    struct config fresh = { 0 };
    bool same;

    set_default(&fresh, key);
    same = config_same(c, &fresh, key);
    config_fini(&fresh);
    return same;
}

static char *join_path(const char *a, const char *b)
{
    struct buf text = { 0 };
    char *ret;

    buf_add_str(&text, a);
    buf_add_str(&text, b);
    ret = xmemdup0(buf_ptr(&text), buf_len(&text));
    buf_reset(&text);
    return ret;
}

static const char *env_path(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] == '/' ? value : NULL;
}

char *config_state_dir(const struct config *c)
{
    const char *systemd = env_path("STATE_DIRECTORY");
    const char *state = env_path("XDG_STATE_HOME"), *home = env_path("HOME");

    if (c->state_dir[0] != '\0') {
        return xstrdup(c->state_dir);
    }
    if (systemd != NULL) {
        /* systemd separates several directories with colons; the first is ours. */
        return xmemdup0(systemd, strcspn(systemd, ":"));
    }
    if (state != NULL) {
        return join_path(state, "/latchd");
    }
    if (home != NULL) {
        return join_path(home, "/.local/state/latchd");
    }
    return NULL;
}

bool config_is_cluster(const struct config *c)
{
    return backend_config_is_cluster(c->redis);
}
