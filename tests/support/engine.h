/* engine: the lock engine on a workbench. The test plays time, clients and Redis.
 *
 * Ops that the engine emits queue up until the test answers them, oldest first. */
#ifndef LATCHD_TESTS_ENGINE_H
#define LATCHD_TESTS_ENGINE_H

#include "engine/engine.h"

#include <check.h>

enum { ENGINE_OPS_MAX = 32, ENGINE_SAID_MAX = 64, ENGINE_MANY_MAX = OP_BATCH_MAX };
enum { FIXTURE_BEGINS_MS = 1000000 };
enum { ENGINE_LONG_WAIT_MS = 300, ENGINE_WINDOW_MS = 20, ENGINE_AGING_MS = 10000 };

/* One op as it was emitted; texts are copies. */
enum { ENGINE_WAITED_MAX = 8 }; /* members of which it is looked at */

struct seen_op {
    struct op op;
    char name[64];
    char field[160];
    char entry[96];
    char member[96];
    char target_field[160];
    char target_entry[96];
    char members[512]; /* "1 2 3": the numbers of our members */
    uint64_t waited_ms[ENGINE_WAITED_MAX];
    struct renew_item items[OP_RENEW_MAX];
    char item_names[OP_RENEW_MAX][64];
    char batch[ENGINE_MANY_MAX][64]; /* the names.. */
    uint32_t
        blocks_us[ENGINE_MANY_MAX]; /* ..and the blocks of tokens that they ask for */
};

struct said {
    struct call_ref to;
    enum reply_kind kind;
    int64_t value;
    uint64_t grant;
    uint64_t token; /* of a RENEW that tells it */
    enum lock_error error;
    enum latch_state latch_state; /* LATCH.. */
    size_t waiting;               /* ..and this */
    struct lock_info info;        /* INFO: its numbers; what it points to is gone */
    struct hold_view hold; /* INFO: the first holder, whose owner is in `owner` */
    char owner[64];
    char text[512]; /* of an error; INFO: the fair queue; LEADER: "7,ann,data" */
    uint64_t tokens[ENGINE_MANY_MAX];
    size_t token_count;
};

struct engine_fixture {
    struct engine *engine;
    struct engine_config config; /* what it began with */
    uint64_t now;
    struct seen_op ops[ENGINE_OPS_MAX];
    size_t op_count;
    struct said said[ENGINE_SAID_MAX];
    size_t said_count;
    char notices[8192]; /* "granted:job lost:job ..." */
    char told[8192];    /* "uncertain:job>1,2 ...": to which connections, if any */
    char subs[256];     /* "+job -job ..." */
    char announced[512];
    char watches[512];
    struct effect_heartbeat heartbeat; /* the last one */
    char heartbeats[256];              /* "1>500 ...": all of them */
    char leaders[512]; /* "job>7,ann,data ...": changes that were told */
    char waited[512];  /* "granted:job>1:owner:300 ...": long waits, and whose */
};

/* A running engine with default settings and Redis up. */
void fixture_init(struct engine_fixture *e);
/* Another engine takes the place of the first one; Redis is not up yet. The defaults
 * are the configuration, whatever `setup` says. */
void fixture_replace(struct engine_fixture *e, struct engine_setup setup);
void fixture_fini(struct engine_fixture *e);
/* Takes in what the engine emitted; called by all of the following. */
void fixture_collect(struct engine_fixture *e);
void fixture_pass(struct engine_fixture *e, uint64_t ms);

/* The request of connection `conn`; WAIT < 0: none. Unset fields of `terms` are
 * defaults.
 */
void fixture_lock(struct engine_fixture *e, uint64_t conn, const char *name,
                  struct lock_terms terms);
/* MLOCK of the names in that text, which stand between spaces. */
void fixture_mlock(struct engine_fixture *e, uint64_t conn, const char *names,
                   struct lock_terms terms);
void fixture_unlock(struct engine_fixture *e, uint64_t conn, const char *name,
                    struct hold_req req);
void fixture_renew(struct engine_fixture *e, uint64_t conn, const char *name,
                   struct hold_req req);
void fixture_force(struct engine_fixture *e, uint64_t conn, const char *name,
                   struct hold_req req);
void fixture_close(struct engine_fixture *e, uint64_t conn);

/* The oldest op must be of this kind; it is taken off into *ret. */
void fixture_take_op(struct engine_fixture *e, enum op_kind kind, struct seen_op *ret);
void fixture_answer(struct engine_fixture *e, const struct seen_op *op,
                    struct op_result r);
/* The same in one: what the oldest op, of this kind, gave. */
void fixture_gives(struct engine_fixture *e, enum op_kind kind, struct op_result r);
/* The oldest op renews; each of its holds gets this result. */
void fixture_renews(struct engine_fixture *e, enum renew_result result);
/* A whole LOCK, granted by Redis; gives the grant's number. */
uint64_t fixture_grant(struct engine_fixture *e, uint64_t conn, const char *name,
                       struct lock_terms terms, uint64_t token);
/* Nothing is left in the engine, and nothing will happen any more. */
void fixture_is_empty(struct engine_fixture *e);

/* The oldest reply must be this one. Returns it. */
struct said fixture_hears(struct engine_fixture *e, uint64_t conn,
                          enum reply_kind kind);
void fixture_hears_nothing(struct engine_fixture *e);

#endif
