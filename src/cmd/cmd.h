/* cmd: what clients can say. One table of commands, one handler each, and the client
 * state that goes with a connection (name, protocol version, who it is, subscriptions).
 *
 * daemon/server fills the env, hands requests in as the conn_handler, and passes the
 * lock engine's replies and notices on. */
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

/* Bounds that requests are checked against; changed at run time by CONFIG SET. */
struct cmd_limits {
    uint64_t max_name; /* bytes */
    bool one_tag;      /* a name has no brace, or one {tag}: for a Redis Cluster */
    uint64_t max_lease_ms;
    uint64_t max_keep_ms;
    uint64_t max_wait_ms; /* 0: no limit */
    int64_t slowlog_us;   /* what works for so long is in the slow log; -1: nothing */
    uint64_t slowlog_len; /* its entries */
    bool protected_mode;  /* without a password: only this machine's clients */
    bool cert_users;      /* a certificate's common name is its user */
    uint64_t latency_ms;  /* what takes so long is an event of LATENCY; 0: nothing */
};

typedef void config_pair_fn(void *arg, const char *key, const char *value);

/* The rest of the daemon, as commands see it. All texts are copied by whoever needs
 * them longer. */
struct cmd_env {
    struct engine *engine;
    struct net *net;
    void *ctx;                     /* for the functions below */
    uint64_t (*now_ms)(void *ctx); /* of this loop turn, CLOCK_BOOTTIME */
    /* CONFIG: each key that the pattern, in lower case, matches; the others: false with
     * the whole error text behind "ERR " in reterr. */
    void (*config_each)(void *ctx, struct span pattern, config_pair_fn *fn, void *arg);
    /* `pairs` has 2 * `count` spans: key, value, key, value, ... All are set, or none,
     * and then `reterr` is the text of the error reply. */
    bool (*config_set)(void *ctx, const struct span *pairs, size_t count, char *reterr,
                       size_t room);
    bool (*config_rewrite)(void *ctx, char *reterr, size_t room);
    void (*reset_stats)(void *ctx);
    /* requirepass, the password of the user default; NULL or empty: none. */
    const char *(*password)(void *ctx);
    /* ACL LOAD and SAVE. aclfile, empty: none; its content, or why not; a new content
     * for it. May be NULL. */
    const char *(*acl_file)(void *ctx);
    bool (*acl_read)(void *ctx, struct buf *out, struct buf *reterr);
    bool (*acl_write)(void *ctx, struct span text);
    /* Adds "key:value\r\n" lines of INFO sections that cmd/ cannot know: "server"
     * (tcp_port, config_file, ...), "redis". cmd/ has written versions, mode, run_id,
     * uptime, pid. */
    void (*info)(void *ctx, const char *section, struct buf *out);
    void (*shutdown)(void *ctx);
    const char *run_id; /* 40 hex digits */
};

struct cmd;

struct cmd *cmd_new(const struct cmd_env *env, const struct cmd_limits *limits);
void cmd_free(struct cmd *c);
void cmd_set_limits(struct cmd *c, const struct cmd_limits *limits);

/* About once a second: for what INFO tells about the last one. */
void cmd_second(struct cmd *c, uint64_t now_ms);
/* One line of INFO: how many, and quantiles in microseconds. */
void cmd_info_histogram(struct buf *out, const char *field, const struct histogram *h);

/* --- what took long --------------------------------------------------- */

enum latency_event {
    LATENCY_COMMAND, /* a handler */
    LATENCY_LOOP,    /* a turn of the loop */
    LATENCY_REDIS,   /* from asking Redis to its answer */
    LATENCY_RENEWAL, /* a renewal was confirmed that late */
    LATENCY_EVENT_COUNT
};

/* That took so long; remembered if it is long enough. */
void cmd_latency(struct cmd *c, enum latency_event event, uint64_t ms);

/* --- what became of commands ------------------------------------------ */

struct cmd_outcome {
    const char *word; /* "ok", "null", "gone" or the first word of an error */
    uint64_t count;
};

/* One row of the table of commands, since the start or CONFIG RESETSTAT. */
struct cmd_stats {
    const char *name; /* "lock", "client|list" */
    uint64_t calls;
    uint64_t rejected;                  /* not run: arity, NOAUTH, NOPERM, ... */
    uint64_t failed;                    /* run, and answered with an error */
    const struct cmd_outcome *outcomes; /* those that occurred */
    size_t outcome_count;
    const struct histogram *work; /* the daemon's own time */
    const struct histogram *wait; /* until the engine's answer; NULL: it never waits */
};

/* Only rows that were called. What `stats` points to lives during the call. */
typedef void cmd_stats_fn(void *ctx, const struct cmd_stats *stats);
void cmd_stats_each(const struct cmd *c, cmd_stats_fn *fn, void *ctx);

/* --- users ------------------------------------------------------------ */

struct command_ctx;

/* requirepass was set: it is the one password of the user default from now on. */
void cmd_password_changed(struct cmd *c);
/* The users of an ACL file replace those that are there; connections of users that are
 * not in it are closed, that of `ctx` (NULL: none) after its reply. False: nothing is
 * changed, and reterr says what is wrong with the text, by `name` and line. */
bool cmd_load_users(struct cmd *c, const char *name, struct span text,
                    struct command_ctx *ctx, struct buf *reterr);
/* Only looks whether that would do. */
bool cmd_check_users(const char *name, struct span text, struct buf *reterr);

/* --- time ------------------------------------------------------------- */

/* It is now `now_ms`; what fell due is done. When it next wants to be told; UINT64_MAX:
 * not at all. */
void cmd_tick(struct cmd *c, uint64_t now_ms);
uint64_t cmd_next_deadline(const struct cmd *c);
/* The daemon stops: nobody is to wait for the end of a pause. */
void cmd_stop(struct cmd *c);

/* The conn_handler's functions; ctx is the struct cmd. */
bool cmd_on_open(void *ctx, struct conn *conn);
void cmd_on_request(void *ctx, struct conn *conn, const struct resp_request *req);
void cmd_on_again(void *ctx, struct conn *conn);
void cmd_on_ran(void *ctx, struct conn *conn);
void cmd_on_close(void *ctx, struct conn *conn, bool unread);
bool cmd_is_unauthenticated(void *ctx, struct conn *conn);
size_t cmd_keeps(void *ctx, struct conn *conn);

/* The lock engine's effects for clients. Notices for connections that track are
 * gathered: cmd_push() follows before anything else runs. */
void cmd_reply(struct cmd *c, const struct effect_reply *reply);
void cmd_notice(struct cmd *c, const struct effect_notice *notice);
void cmd_waited(struct cmd *c, const struct effect_waited *waited);
void cmd_push(struct cmd *c);

#endif
