/* server: the whole daemon. It owns the loop and every part, and connects them.
 *
 *   STARTING -> RUNNING -> STOPPING -> CLOSING -> GONE
 *
 * STARTING ends when somebody can be served: sockets listen and Redis answered once. */
#ifndef LATCHD_DAEMON_SERVER_H
#define LATCHD_DAEMON_SERVER_H

#include "backend/store.h"
#include "daemon/config.h"
#include "daemon/embedded.h"
#include "daemon/notify.h"
#include "daemon/process.h"
#include "daemon/upgrade.h"
#include "engine/engine.h"
#include "io/stream.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum { RUN_ID_LEN = 40, SERVER_SIGNALS = 4 };

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
    uint32_t scans; /* ops of LOCKS REDIS ever */
    struct upgrade *upgrade;
    int http_fd;     /* for the web to take; -1: it opens its own */
    struct web *web; /* NULL: http-port is 0 */
    struct traces *traces;
    struct top_granted *top_granted; /* web's, while its page is open somewhere */

    enum server_phase phase;
    bool listening;
    bool failed;       /* to become another latchd's successor */
    uint64_t tls_port; /* the actual port; 0: none */
    bool store_started;
    bool redis_answered;
    bool has_rest;   /* the last turn left something to do: see net_end_turn() */
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

/* Runs the daemon until it is stopped. False: it could not start; the log says why. */
bool server_main(const struct options *options, const struct config *config)
    __attribute__((warn_unused_result));

#endif
