/* upgrade: a successor, a new latchd from the same command, takes over the listening
 * sockets; this process then serves the clients that it has until they leave.
 *
 *   ALONE <──> STARTING ──> OFFERED ──> RETIRED
 *     ^___________________________'
 *
 * STARTING and OFFERED go back to ALONE when the successor ends, or takes too long to
 * start, or this process has lost Redis meanwhile: nothing has changed then. No lock
 * moves: both are daemons on one Redis, as any two are. So each client keeps its
 * connection, TLS or not, its holds and its place. A client that is at rest has nothing
 * of that: it moves, with its socket and a line of words.
 *
 * The two talk over a socket pair, in messages of words. The first has the version,
 * UPGRADE_VERSION: a successor that does not know it ends.
 *
 *   this process                successor
 *   latchd-upgrade VERSION
 *                               ready             Redis has answered it
 *   socket KIND FILE (+ fd)                       each listening socket
 *   go ID                                         its own clients get higher ids
 *                               took PID          it listens on all of them
 *   client ID FAMILY WORDS (+ fd)                 each one, once it is at rest
 *                               stop              it stops, so the other one is to
 *
 * As long as either lives, the other's end of the pair stays open. */
#ifndef LATCHD_DAEMON_UPGRADE_H
#define LATCHD_DAEMON_UPGRADE_H

#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

enum { UPGRADE_VERSION = 1, UPGRADE_START_MS = 60000 /* for the successor's start */ };

enum upgrade_state {
    UPGRADE_ALONE,
    UPGRADE_STARTING,
    UPGRADE_OFFERED,
    UPGRADE_RETIRED
};

enum upgrade_socket { UPGRADE_PLAIN, UPGRADE_TLS, UPGRADE_HTTP, UPGRADE_SOCKETS };

struct upgrade;

struct upgrade_events {
    void *ctx;
    /* In this process. The successor asks for the sockets: upgrade_offer() for each,
     * and upgrade_go(), or upgrade_give_up(). */
    void (*on_ready)(void *ctx);
    /* The successor, that process, has taken all. */
    void (*on_retired)(void *ctx, uint64_t pid);
    void (*on_stop)(void *ctx);
    /* After an upgrade_move() that had to wait: more can be moved. */
    void (*on_writable)(void *ctx);
    /* In the successor. Takes a socket. `owns_file`: it is a unix socket, whose file
     * goes with its last listener. False: that cannot be. */
    bool (*on_socket)(void *ctx, enum upgrade_socket kind, int fd, bool owns_file);
    /* All came; the ids of new clients are to be above `id`. False: it cannot listen.
     */
    bool (*on_go)(void *ctx, uint64_t id);
    /* Takes a client of the predecessor. */
    void (*on_client)(void *ctx, uint64_t id, int fd, bool is_unix, struct span words);
    /* The other one ended too early, or one of the two was false. */
    void (*on_failed)(void *ctx);
};

struct upgrade *upgrade_new(uv_loop_t *loop, const struct upgrade_events *events);
/* Ends the talks; the loop must run once more. Accepts NULL. */
void upgrade_close(struct upgrade *u);
/* After that. */
void upgrade_free(struct upgrade *u);

/* --- this process ----------------------------------------------------- */

/* Starts the successor: argv, with these variables ("NAME=value", NULL at the end)
 * added to the environment. False: the log says why not. */
bool upgrade_start(struct upgrade *u, const char *const *argv,
                   const char *const *variables, uint64_t now_ms);
/* Sends a copy of that socket. */
void upgrade_offer(struct upgrade *u, enum upgrade_socket kind, int fd, bool owns_file);
/* Ends the talk before the successor listens, and logs why. */
void upgrade_give_up(struct upgrade *u, const char *why);
/* All were sent; `last_id`: the highest id of a client here. */
void upgrade_go(struct upgrade *u, uint64_t last_id);
/* Once retired, sends a copy of a client's socket. False: that cannot be now. */
bool upgrade_move(struct upgrade *u, uint64_t id, int fd, bool is_unix,
                  struct span words);
/* Called about once a second: gives up a successor that takes too long. */
void upgrade_tick(struct upgrade *u, uint64_t now_ms);
enum upgrade_state upgrade_state(const struct upgrade *u);
/* Whether the other process may go on with the listening sockets that this one has, and
 * so needs their files. */
bool upgrade_shares_sockets(const struct upgrade *u);

/* --- the successor ---------------------------------------------------- */

/* Looks whether this process is a successor, and hears the first message. False: it is
 * one, and the log says why it must not go on. */
bool upgrade_join(struct upgrade *u) __attribute__((warn_unused_result));
/* Whether the process that this one succeeds is still there. */
bool upgrade_has_predecessor(const struct upgrade *u);
/* Redis has answered. Called again, it does nothing. */
void upgrade_say_ready(struct upgrade *u);
/* While stopping: asks a predecessor whose sockets it took to stop as well. */
void upgrade_say_stop(struct upgrade *u);

#endif
