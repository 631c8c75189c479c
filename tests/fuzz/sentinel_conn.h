/* sentinel_conn: what the code of Sentinel runs on, for fuzz_sentinel: redis_conn.h,
 * clock.h and the timer of libuv, whose other ends are the input's. Connections are
 * numbered in the order in which they were made; closed ones are gone when the turn
 * ends. */
#ifndef LATCHD_TESTS_FUZZ_SENTINEL_CONN_H
#define LATCHD_TESTS_FUZZ_SENTINEL_CONN_H

#include "backend/redis/redis_conn.h"
#include "util/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ASKED_MAX = 64 };

enum asked { ASKED_AUTH, ASKED_ID, ASKED_OTHERS, ASKED_EPOCH, ASKED_PLACE, ASKED_NEWS };

/* The words on such a connection are checked against that. */
struct conns_rules {
    bool wants_auth;
    const char *master;
};

void conns_begin(const struct conns_rules *rules);
/* Gives back what was closed. */
void conns_end_turn(void);
/* Those that are not closed. */
size_t conns_count(void);
/* The n-th of them, modulo how many there are; NULL: none. */
struct redis_conn *conns_at(size_t n);
/* The next thing that a timer does is done; false: nothing is due by then. */
bool conns_run_timer(uint64_t until_ms);
void conns_set_now(uint64_t ms);
uint64_t conns_now(void);

/* From here on conn may be NULL. It is connected, if it wants to be. */
void conn_open(struct redis_conn *c);
/* Refused, or lost. */
void conn_break(struct redis_conn *c);
void conn_receive(struct redis_conn *c, struct span bytes);
/* Copies what was asked and not answered yet; returns how many. */
size_t conn_asked(const struct redis_conn *c, enum asked ret[ASKED_MAX]);

void sentinel_fail(const char *what) __attribute__((noreturn));

#endif
