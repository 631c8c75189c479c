/* cmd: the commands. There is one table of commands, one handler for each, and one
 * struct client per connection (name, protocol version, user, subscriptions). cmd.c
 * runs the commands, in their order: no handler calls back into it.
 * daemon/server.c fills the env, makes cmd the conn_handler, and passes the engine's
 * replies and notices on. */
#ifndef LATCHD_CMD_CMD_H
#define LATCHD_CMD_CMD_H

#include "engine/effect.h"
#include "engine/engine.h"
#include "net/conn.h"
#include "util/buf.h"
#include "util/histogram.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits that requests are checked against. CONFIG SET changes them at run time. */
struct cmd_limits {
    const char *local_names; /* globs with a space between; the configuration's */
    uint64_t max_name;       /* bytes */
    bool one_tag;            /* Redis Cluster: a name has no brace, or one {tag} */
    unsigned database;       /* of Redis, in which the locks are */
    uint64_t max_lease_ms;
    uint64_t max_keep_ms;
    uint64_t watchdog_ms; /* a HEARTBEAT is at most that long */
    uint64_t max_wait_ms; /* 0: no limit */
    int64_t slowlog_us;   /* commands that take this long are logged; -1: none */
    uint64_t slowlog_len; /* entries of the slow log */
    bool protected_mode;  /* without a password only local clients may connect */
    bool cert_users;      /* a certificate's common name is its user */
    uint64_t latency_ms;  /* what takes this long is recorded for LATENCY; 0: off */
    bool lock_libraries;  /* SET NX and the like are served */
    uint64_t endless_lease_ms; /* lease of a lock that was taken without an end */
    uint64_t
        library_park_ms; /* how long a library that polls may wait; 0: it may not */
};

typedef void config_pair_fn(void *arg, const char *key, const char *value);

struct stats;

/* The parts of the daemon that commands need. Texts that are passed in are copied by
 * the callee if it keeps them. */
struct cmd_env {
    struct engine *engine;
    struct net *net;
    void *ctx;                     /* for the functions below */
    uint64_t (*now_ms)(void *ctx); /* time of this loop turn, CLOCK_BOOTTIME */
    /* CONFIG GET: calls `fn` for each key that `pattern`, in lower case, matches. The
     * next two return false on failure, with the error text after "ERR " in reterr. */
    void (*config_each)(void *ctx, struct span pattern, config_pair_fn *fn, void *arg);
    /* `pairs` has 2 * `count` spans: key, value, key, value, ... Either all are set,
     * or none. */
    bool (*config_set)(void *ctx, const struct span *pairs, size_t count, char *reterr,
                       size_t room);
    bool (*config_rewrite)(void *ctx, char *reterr, size_t room);
    void (*reset_stats)(void *ctx);
    /* Begins one step over the names that are held in Redis, from `cursor` on, of
     * `count` keys. Returns a number for cmd_on_scanned(), which comes later; 0: Redis
     * cannot be asked. May be NULL. */
    uint64_t (*scan_redis)(void *ctx, uint64_t cursor, size_t count);
    /* requirepass, the password of the user `default`; NULL or empty: none. */
    const char *(*password)(void *ctx);
    /* For ACL LOAD and SAVE; may be NULL. acl_file is the path, empty if there is
     * none. acl_read reads the file, or writes the reason into reterr; acl_write
     * replaces it. */
    const char *(*acl_file)(void *ctx);
    bool (*acl_read)(void *ctx, struct buf *out, struct buf *reterr);
    bool (*acl_write)(void *ctx, struct span text);
    /* Sets the numbers of stats.def that cmd/ cannot read. May be NULL. */
    void (*stats)(void *ctx, struct stats *ret);
    /* Appends "key:value\r\n" lines to a section of INFO, "Redis" for example, that
     * are no numbers of stats.def. May be NULL. */
    void (*info)(void *ctx, const char *section, struct buf *out);
    void (*shutdown)(void *ctx);
    /* Messages of lock libraries at Redis, as store_hear() and so on have it. */
    void (*hear)(void *ctx, bool is_pattern, struct span name, bool wanted);
    bool (*hears)(void *ctx, bool is_pattern, struct span name);
    bool (*publish)(void *ctx, struct span channel, struct span text);
    const char *run_id; /* 40 hex digits */
};

struct cmd;

struct cmd *cmd_new(const struct cmd_env *env, const struct cmd_limits *limits);
void cmd_free(struct cmd *c);
void cmd_set_limits(struct cmd *c, const struct cmd_limits *limits);

/* --- time ------------------------------------------------------------- */

/* Tells the time, and does what fell due. */
void cmd_tick(struct cmd *c, uint64_t now_ms);
/* When cmd_tick() is needed next; UINT64_MAX: not at all. */
uint64_t cmd_next_deadline(const struct cmd *c);

/* The result of a step over the names in Redis. */
struct scanned_names {
    const struct span *list;
    size_t count;
    uint64_t cursor;   /* where the next step begins; 0: that was the last one */
    struct span error; /* or why it found nothing */
};
void cmd_on_scanned(struct cmd *c, uint64_t id, const struct scanned_names *names);
/* The daemon stops: ends a CLIENT PAUSE, so that deferred commands are answered. */
void cmd_stop(struct cmd *c);

/* The functions of the conn_handler; ctx is the struct cmd. */
void cmd_on_event(void *ctx);
bool cmd_on_open(void *ctx, struct conn *conn);
void cmd_on_request(void *ctx, struct conn *conn, const struct resp_request *req);
void cmd_on_again(void *ctx, struct conn *conn);
void cmd_on_ran(void *ctx, struct conn *conn);
void cmd_on_close(void *ctx, struct conn *conn, bool unread);
bool cmd_is_busy(void *ctx, struct conn *conn);
uint32_t cmd_heartbeat(void *ctx, struct conn *conn);
bool cmd_is_unauthenticated(void *ctx, struct conn *conn);
size_t cmd_keeps(void *ctx, struct conn *conn);

/* Writes the words, without a line break, from which cmd_take_client() of another
 * process goes on with the client. False: words are not enough, as the client holds,
 * waits, listens, or is not at rest. */
bool cmd_write_client(const struct cmd *c, const struct conn *conn, struct buf *out);
/* Makes a new conn that client. False: it cannot be, and the conn is closed. */
bool cmd_take_client(struct cmd *c, struct conn *conn, struct span words);

/* The engine's answer to a command that waits. */
void cmd_reply(struct cmd *c, const struct effect_reply *reply);

#endif
