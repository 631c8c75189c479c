/* server_state: the insides of the server, shared by the files that it is split into:
 *
 *   server.c  the process: signals, the loop, its end
 *   wiring.c   makes the parts and wires them
 *   loop.c    time, the one timer, the lock engine's effects, and the way out
 *   tls_certs.c  TLS: see tls_certs.h
 *   listeners.c  sockets, and how many clients there may be
 *   server_info.c    what INFO says of the process
 *   web.c     HTTP: see web.h
 *
 *   STARTING -> RUNNING -> STOPPING -> CLOSING -> GONE
 *
 * STARTING ends when somebody can be served: sockets listen and Redis answered once. */
#ifndef LATCHD_DAEMON_SERVER_STATE_H
#define LATCHD_DAEMON_SERVER_STATE_H

#include "backend/store.h"
#include "cmd/acl/users.h"
#include "cmd/cmd.h"
#include "cmd/pubsub/events.h"
#include "cmd/pubsub/tracking.h"
#include "daemon/config/command_line.h"
#include "daemon/config/config.h"
#include "daemon/embedded/embedded.h"
#include "daemon/memory_trim.h"
#include "daemon/notify.h"
#include "engine/engine.h"
#include "io/stream.h"
#include "net/conn.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum { RUN_ID_LEN = 40, SERVER_SIGNALS = 3 };

enum server_phase {
    SERVER_STARTING,
    SERVER_RUNNING,
    SERVER_STOPPING, /* waits are answered, holds renewed once more */
    SERVER_CLOSING,  /* links and connections close, the embedded Redis ends */
    SERVER_GONE,     /* all handles are closed, the loop ends */
};

struct server {
    const struct options *options;
    struct config config;
    struct notify notify;
    uv_loop_t loop;
    struct io io;

    uv_timer_t timer;
    uv_signal_t signals[SERVER_SIGNALS];
    int signal_count;  /* initialised signal handles */
    uint64_t armed_at; /* deadline of the timer; 0: not set */

    struct embedded *embedded;
    struct engine *engine;
    struct store *store;
    struct net *net;
    struct tls *tls; /* NULL: none */
    struct cmd *cmd;
    uint32_t scans;                  /* ops of LOCKS REDIS ever */
    struct web *web;                 /* NULL: http-port is 0 */
    struct top_granted *top_granted; /* web's, while its page is open somewhere */

    enum server_phase phase;
    bool listening;
    uint64_t tls_port; /* the actual port; 0: none */
    bool store_started;
    bool redis_answered;
    uint64_t now_ms; /* when this turn of the loop began */
    uint64_t seed;   /* random */
    uint64_t started_ms;
    uint64_t started_wall_us;
    uint64_t no_grants_until_ms; /* after a power cut; 0: none */
    struct histogram loop_lag;   /* how late the timer was */
    uint64_t next_second_ms;
    struct memory_trim trim;
    uint64_t next_cert_ms;        /* next check of the certificate's expiry */
    struct histogram round_trips; /* copy from a second ago, for LATENCY */
    struct histogram renewal_lags;
    uint64_t next_alive_ms; /* WATCHDOG=1 is due */
    uint64_t stop_deadline_ms;
    char run_id[RUN_ID_LEN + 1];
    char instance[OP_INSTANCE_LEN + 1];
};

/* --- loop.c ----------------------------------------------------------- */

void loop_init(struct server *s);
int loop_run(struct server *s);
/* Ends a turn of the loop: carries out the engine's effects, and sends what they
 * produced. */
void loop_end(struct server *s);
/* Once a second: tells the engine why Redis cannot be used. */
void loop_tell_trouble(struct server *s);

void shutdown_begin(struct server *s); /* called again: stops waiting */
void shutdown_close(struct server *s); /* closes everything at once */
void shutdown_on_embedded(void *ctx);

/* --- listeners.c ------------------------------------------------------ */

/* Opens all listeners; logs each address, or why it failed. */
bool listen_all(struct server *s);
/* Raises the limit of open files for `wanted` clients; returns for how many it
 * suffices. */
uint64_t listen_raise_limit(uint64_t wanted);

/* --- server_info.c ---------------------------------------------------- */

void info_section(void *ctx, const char *section, struct buf *out);
void server_stats(void *ctx, struct stats *ret);

/* --- wiring.c --------------------------------------------------------- */

/* Makes and starts everything; what it made before it failed is closed by
 * shutdown_close().
 */
bool wiring_start(struct server *s);
/* Frees everything, after the loop has ended. */
void wiring_free(struct server *s);

#endif
