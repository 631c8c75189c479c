/* core_world: a whole server without sockets: commands, the lock engine, connections
 * that are buffers, a Redis that answers what it is told to. One in each program; for
 * fuzz_core.c. */
#ifndef LATCHD_TESTS_CORE_WORLD_H
#define LATCHD_TESTS_CORE_WORLD_H

#include "../support/buffer_conn.h"
#include "cmd/cmd.h"
#include "cmd/events.h"
#include "util/list.h"

enum {
    WORLD_CONNS = 4,
    WORLD_SUBS = 16,
    WORLD_NAME_MAX = 64,
    WORLD_LEASE_MAX = 60000, /* ms, so that the end comes soon */
};

/* An op that Redis has not answered. */
struct asked {
    struct list in_world;
    struct op *op;
};

/* A subscription that Redis has not confirmed. */
struct wanted {
    size_t len;
    enum lock_class lock_class;
    char name[WORLD_NAME_MAX];
};

struct world {
    struct cmd *cmd;
    struct engine *engine;
    struct resp_parser *parser;
    uint64_t now, next_conn, token;
    struct conn conns[WORLD_CONNS];
    struct list asked;
    size_t asked_count;
    struct wanted wanted[WORLD_SUBS];
    size_t wanted_count;
    bool grouped;
    bool up, over; /* over: nobody is to come any more */
};

extern struct world world;

/* A violation: tells it, and aborts. */
void world_fail(const char *what) __attribute__((noreturn));

/* --- core_world.c ---------------------------------------------------------------- */

/* `kind` bits: 1: names are in two groups; 2: a quorum. */
void world_begin(unsigned kind);
/* Everybody leaves; what is left is a violation. */
void world_end(void);
/* Code that needs a turn stands between these two. */
void world_turn_begin(void);
void world_turn_end(void);
void world_pass(uint64_t ms);
/* The same in one go: it stood still. */
void world_jump(uint64_t ms);
void world_down(void);
void world_up(bool same);

/* --- core_net.c ------------------------------------------------------------------ */

void world_send(size_t conn, struct span bytes);
void world_close(size_t conn, bool unread);
/* Requests that can run now are run. True: some did. */
bool world_run_conns(void);
/* Written replies are looked at, and gone. */
void world_flush_conns(void);
void world_free_conns(void);

/* --- core_redis.c ---------------------------------------------------------------- */

/* Answers the oldest op, or the newest, in that way. */
void world_answer(bool newest, char how, uint64_t n);
void world_forget_ops(void);

/* --- core_resp.c ----------------------------------------------------------------- */

/* How many whole values `text` is; -1: it is something else. */
int resp_values(struct span text);

#endif
