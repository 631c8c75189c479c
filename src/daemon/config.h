/* config: the settings of the operator. config.def has every key; it drives the file,
 * the environment, the command line, CONFIG GET/SET/REWRITE, --print-config,
 * latchd.conf, and the keys of latchd.conf(5).
 *
 * A struct config owns its texts: config_init(), config_fini(). Times are milliseconds,
 * sizes bytes. Functions that can fail put one line for people into reterr; those that
 * read a file add one for each mistake, with its newline, to `mistakes`. */
#ifndef LATCHD_DAEMON_CONFIG_H
#define LATCHD_DAEMON_CONFIG_H

#include "backend/store.h"
#include "cmd/cmd.h"
#include "daemon/traces.h"
#include "engine/engine.h"
#include "io/tls.h"
#include "net/conn.h"
#include "util/buf.h"
#include "util/log.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CONFIG_KEYS_MAX = 80,
    CONFIG_FILE_MAX = 1 << 20, /* bytes of a configuration file */
    CONFIG_ERROR_MAX = 512,    /* enough room for any reterr */
    CONFIG_VALUE_MAX = 4096,   /* bytes of one value */
    CONFIG_MISTAKES_MAX = 20,  /* reported at once */
    CONFIG_PORT_AUTO = 65536,  /* KEY_PORT: `auto`, chosen by the kernel */
};

enum config_fsync { FSYNC_EVERYSEC, FSYNC_ALWAYS };

/* The structs of the parts are handed to them as they are. */
struct config {
    struct engine_config engine;
    struct cmd_limits cmd; /* its texts are the configuration's, too */
    struct net_limits net;
    struct store_options store;
    char *bind; /* addresses separated by spaces */
    uint64_t port;
    char *unixsocket; /* empty: none */
    uint64_t unixsocketperm;
    uint64_t tcp_backlog;
    uint64_t tcp_keepalive_ms;
    uint64_t tls_port; /* 0: off */
    char *tls_cert_file;
    char *tls_key_file;
    char *tls_ca_cert_file;
    char *tls_ca_cert_dir;
    enum tls_auth tls_auth_clients;
    char *redis;
    char *redis_password_file; /* empty: none */
    char *redis_tls_ca_cert_file;
    char *redis_tls_cert_file;
    char *redis_tls_key_file;
    char *state_dir; /* empty: see config_state_dir() */
    enum config_fsync embedded_fsync;
    int64_t quarantine_ms; /* -1: as long as the watchdog's lease */
    char *requirepass;     /* empty: none */
    char *aclfile;         /* empty: none */
    int64_t long_wait_ms;  /* -1: none */
    struct traces_options traces;
    char *http_bind;
    uint64_t http_port; /* 0: off */
    bool http_api;
    enum log_level log_level;
    enum log_format log_format;
};

enum config_type {
    KEY_COUNT,  /* uint64_t */
    KEY_OCTAL,  /* uint64_t: permission bits */
    KEY_PORT,   /* uint64_t: a port, or CONFIG_PORT_AUTO */
    KEY_MSEC,   /* uint64_t */
    KEY_GRACE,  /* int64_t: a duration, or -1 */
    KEY_USEC,   /* int64_t: microseconds without a unit, as in Redis, or -1 */
    KEY_SIZE,   /* uint64_t */
    KEY_CHOICE, /* an index into `choices` */
    KEY_TEXT,   /* char * */
    KEY_WORDS,  /* char *: words separated by spaces */
};

enum {
    KEY_LIVE = 1 << 0,   /* CONFIG SET and reload change it while running */
    KEY_SECRET = 1 << 1, /* never displayed */
    KEY_URLS = 1 << 2,   /* displayed without the passwords in its URLs */
};

struct config_key {
    const char *name;
    enum config_type type;
    size_t field;    /* offset in struct config */
    size_t size;     /* of that field */
    const char *def; /* the default, as a user writes it */
    uint64_t min;
    uint64_t max;
    const char *const *choices; /* NULL at the end */
    unsigned flags;
    const char *section;
    const char *help;
};

extern const struct config_key CONFIG_KEYS[];
extern const size_t CONFIG_KEY_COUNT;
/* How the variables of the environment begin that set keys. */
extern const char CONFIG_VARIABLES[];

/* Finds a key by name, or NULL. */
const struct config_key *config_key_find(struct span name);
size_t config_key_index(const struct config_key *key);

void config_init(struct config *c); /* all defaults */
void config_fini(struct config *c);
void config_copy(struct config *to,
                 const struct config *from); /* `to` is not initialised */

/* Sets the fields of the parts that follow from other keys than their own. Called
 * before the parts get their structs. */
void config_derive(struct config *c);

/* Sets one key, after checking the bounds. */
bool config_set(struct config *c, const struct config_key *key, struct span value,
                char *reterr, size_t room) __attribute__((warn_unused_result));
/* Appends the value as a user writes it: "30s". */
void config_format(const struct config *c, const struct config_key *key,
                   struct buf *out);
/* Appends the value for display: passwords in URLs become stars. */
void config_show(const struct config *c, const struct config_key *key, struct buf *out);
bool config_same(const struct config *a, const struct config *b,
                 const struct config_key *key);
bool config_is_default(const struct config *c, const struct config_key *key);
/* Whether a variable such as LATCHD_REDIS_TIMEOUT sets the key. */
bool config_is_in_environment(const struct config_key *key);

/* The directory for the daemon's data, to be freed by the caller. NULL: none is
 * configured. */
char *config_state_dir(const struct config *c);
/* Whether `redis` is a Redis Cluster. */
bool config_is_cluster(const struct config *c);

/* Applies the lines of a file to `c`, except for wrong ones. `name` is for messages.
 * False: there are mistakes. */
bool config_parse(struct config *c, const char *name, struct span text,
                  struct buf *mistakes) __attribute__((warn_unused_result));
bool config_load(struct config *c, const char *path, struct buf *mistakes)
    __attribute__((warn_unused_result));

/* Writes the commented configuration file; keys with their default are commented out.
 */
void config_print(const struct config *c, struct buf *out);
/* Updates the text of a configuration file: lines of known keys are replaced in place,
 * comments and unknown keys stay, other keys without their default are added at the
 * end. Lines that could not be read again are dropped. */
void config_rewrite_text(const struct config *c, struct span text, struct buf *out);
/* The same for a file. */
bool config_rewrite(const struct config *c, const char *path, char *reterr, size_t room)
    __attribute__((warn_unused_result));

/* Config conflicts: values that are valid by themselves, but not together.
 *
 * A start, a reload, --check-config and CONFIG SET refuse them, with the same words.
 * Files are not read here. */

struct config_conflict {
    const char *key; /* which one is to be corrected */
    const char *why;
    bool (*is_in)(const struct config *c);
};

extern const struct config_conflict CONFIG_CONFLICTS[];
extern const size_t CONFIG_CONFLICT_COUNT;

/* The first one; NULL: the values fit. */
const struct config_conflict *config_find_conflict(const struct config *c);

/* The command line. Its values override the environment, whose override the file, also
 * after a reload. */

enum options_action {
    OPTIONS_RUN,
    OPTIONS_HELP,
    OPTIONS_VERSION,
    OPTIONS_PRINT_CONFIG,
    OPTIONS_CHECK_CONFIG,
};

/* The parsed command line; points into argv. */
struct options {
    enum options_action action;
    const char *config_path; /* NULL: no file */
    int argc;
    const char *const *argv;
};

/* Parses the words; does not read the file. */
bool options_parse(int argc, const char *const *argv, struct options *ret, char *reterr,
                   size_t room) __attribute__((warn_unused_result));
/* Makes the configuration of defaults, the file, the environment (LATCHD_REDIS=...) and
 * the command line, in this order.
 * False: `mistakes` has a line for each mistake. *ret must be freed by config_fini()
 * in any case. */
bool options_config(const struct options *o, struct config *ret, struct buf *mistakes)
    __attribute__((warn_unused_result));
void options_help(struct buf *out);

#endif
