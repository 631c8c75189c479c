/* state: the insides of the server, shared by the files that it is split into:
 *
 *   server.c  the process: signals, the loop, its end
 *   parts.c   makes the parts and wires them
 *   turn.c    time, the one timer, and the lock engine's effects
 *   secure.c  TLS: see secure.h
 *   listen.c  sockets, and how many clients there may be
 *   stop.c    the way out
 *   live.c    CONFIG and reload
 *   acl_file.c  the file of users
 *   info.c    what INFO says of the process
 *   web.c     HTTP: see web.h; metrics.c and status.c are what it tells
 *
 *   STARTING -> RUNNING -> STOPPING -> CLOSING -> GONE
 *
 * STARTING ends when somebody can be served: sockets listen and Redis answered once. */
#ifndef LATCHD_DAEMON_STATE_H
#define LATCHD_DAEMON_STATE_H

#include "cmd/cmd.h"
#include "core/locks.h"
#include "daemon/config.h"
#include "daemon/embedded.h"
#include "daemon/notify.h"
#include "daemon/options.h"
#include "io/stream.h"
#include "net/conn.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum { RUN_ID_LEN = 40, SERVER_SIGNALS = 3 };

enum server_phase {
    SERVER_STARTING,
    SERVER_RUNNING,
    SERVER_STOPPING, /* waits end, holds get a last renewal */
    SERVER_CLOSING,  /* links and connections are closed, the embedded Redis ends */
    SERVER_GONE,     /* all handles are closed: the loop runs out */
};

struct server {
    const struct options *options;
    struct config config;
    struct notify notify;
    uv_loop_t loop;
    struct io io;

    uv_timer_t timer;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_signal_t signals[SERVER_SIGNALS];
    int signal_count;  /* of those that exist */
    uint64_t armed_at; /* what the timer is set to; 0: nothing */

    struct embedded *embedded;
    struct locks *locks;
    struct store *store;
    struct net *net;
    struct tls *tls; /* NULL: none */
    struct cmd *cmd;
    struct web *web; /* NULL: http-port is 0 */
    struct hot *hot; /* web's, while somebody looks at its page */

    enum server_phase phase;
    bool listening;
    uint64_t tls_port; /* where it really listens; 0: nowhere */
    bool store_started;
    bool redis_answered;
    bool ticked; /* the clock was looked at in this turn */
    uint64_t now_ms;
    uint64_t seed; /* random */
    uint64_t started_ms;
    uint64_t started_wall_us;
    uint64_t no_grants_until_ms; /* after a power cut; 0: none */
    struct histogram loop_lag;   /* how late the timer was */
    uint64_t next_second_ms;
    uint64_t next_cert_ms;        /* a look at how long the certificate is valid */
    struct histogram round_trips; /* as they were a second ago, for LATENCY */
    struct histogram renewal_lags;
    uint64_t next_alive_ms; /* WATCHDOG=1 is due */
    uint64_t stop_deadline_ms;
    char run_id[RUN_ID_LEN + 1];
    char instance[OP_INSTANCE_LEN + 1];
};

/* --- turn.c ----------------------------------------------------------------------- */

int turn_init(struct server *s);
void turn_fini(struct server *s);
/* Looks at the clock, once a turn: what fell due is done before anything else. */
void turn_begin(void *ctx);
/* Grants that stand among the effects for a connection that closes now: nobody will be
 * told of them. To be called before the engine learns of the close. */
void turn_conn_closing(struct server *s, uint64_t conn);
/* Does what the engine wants done, and sends what came of it. */
void turn_end(struct server *s);

/* --- listen.c --------------------------------------------------------------------- */

/* Opens all sockets; logs what it opened, or why it could not. */
bool listen_all(struct server *s);
/* How many clients the limit of open files allows, after raising it towards `wanted`.
 */
uint64_t listen_raise_limit(uint64_t wanted);

/* --- stop.c ----------------------------------------------------------------------- */

void stop_begin(struct server *s); /* again: does not wait any longer */
void stop_check(struct server *s); /* at the end of each turn */
void stop_close(struct server *s); /* closes what there is, without waiting */
void stop_on_embedded(void *ctx);

/* --- live.c ----------------------------------------------------------------------- */

void live_apply(struct server *s); /* the configuration, to all parts */
void live_reload(struct server *s);
void live_each(void *ctx, struct span pattern, config_pair_fn *fn, void *arg);
bool live_set(void *ctx, const struct span *pairs, size_t count, char *reterr,
              size_t room);
bool live_rewrite(void *ctx, char *reterr, size_t room);
const char *live_password(void *ctx);
struct locks_config live_locks_config(const struct config *c);
struct cmd_limits live_cmd_limits(const struct config *c);
struct store_options live_store_options(const struct config *c);
struct net_limits live_net_limits(const struct server *s);

/* --- acl_file.c ------------------------------------------------------------------- */

const char *acl_file(void *ctx); /* empty: none */
bool acl_file_read(void *ctx, struct buf *out, struct buf *reterr);
bool acl_file_write(void *ctx, struct span text);
/* Takes its users over; if it cannot, the log says why. */
bool acl_file_load(struct server *s);
bool acl_file_check(const char *path, char *reterr, size_t room);

/* --- info.c ----------------------------------------------------------------------- */

void info_section(void *ctx, const char *section, struct buf *out);

/* --- parts.c ---------------------------------------------------------------------- */

/* Makes and starts everything; what it made before it failed is closed by stop_close().
 */
bool parts_start(struct server *s);
/* After the loop has run out. */
void parts_free(struct server *s);

#endif
