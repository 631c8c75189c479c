/* sim_check: what must be true. Told of everything that clients and daemons see, and
 * looks at the sim's Redis for the truth.
 *
 *   - A belief is what a daemon may believe of a hold: since when it is confirmed,
 *     until when that lasts, as the lease less its margin, and whether something
 *     outside (FLUSHALL, lost data, FORCEUNLOCK, a jump of Redis's clock) excuses an
 *     error until the next confirmation.
 *   - A record is what a client was told: a token, and since then nothing that ends
 *     it. The record is vouched for while its connection is open, no notice said
 *     otherwise, and the belief lasts. */
#ifndef LATCHD_SIM_CHECK_H
#define LATCHD_SIM_CHECK_H

#include "engine/effect.h"
#include "sim/redis/sim_redis.h"

struct sim;
struct sim_daemon;
struct sim_conn;
struct flight;

/* The last word on a hold. ANYTHING: Redis has just confirmed it for a client that
 * came, and it may be one that its daemon had forgotten silently. */
enum told { TOLD_ANYTHING, TOLD_CERTAIN, TOLD_UNCERTAIN, TOLD_OVER };

struct belief {
    size_t daemon;
    uint64_t life;
    struct redis_name *name;
    uint64_t token;
    uint64_t sent_ms;      /* of the last confirmed script */
    uint64_t full_until;   /* sent + lease */
    uint64_t until;        /* sent + lease, less 1 %, less 50 ms */
    uint64_t heard_ms;     /* when that was */
    uint64_t renewing;     /* a renewal is on its way since; 0: none */
    uint64_t wanted;       /* what the last one was to reach: an end of the lease */
    uint64_t sent, ran;    /* of the grant, as counts of `happened` */
    uint64_t displaced_at; /* a later one was put back in its place; a count too */
    bool excused;
    bool rolled;  /* excused only by a failover, which the quarantine makes good */
    bool awaited; /* rolled, by a restart: others wait until it is put back */
    bool minted;  /* that grant made the token */
    enum told told;
};

struct record {
    struct redis_name *name;
    enum lock_kind kind; /* PLAIN, READ, WRITE or PERMITS */
    struct rtext owner;  /* empty: anonymous or ID alone */
    struct rtext id;
    struct rtext value; /* empty: no value hold */
    uint64_t token;
    uint32_t permits; /* PERMITS: how many */
    size_t daemon;
    uint64_t life;
    uint64_t conn;
    uint64_t
        conn_bits; /* all that it was attached to: a bare UNLOCK may come from any */
    uint64_t own_until; /* end of an entry's own lease */
    uint64_t granted_ms;
    uint64_t released_ms;
    uint64_t lease_ms; /* as first asked for */
    /* When a RENEW was last asked for, and through which daemon; and when through two
     * daemons in one ms, which does not tell the later of them. */
    uint64_t renewed_ms, tied_ms;
    size_t renewed_at;
    bool held; /* granted, and neither unlocked nor lost */
    bool certain;
    bool attached;
    bool fixed;    /* it has a LEASE, or has had one */
    bool moved;    /* a client asked another daemon to keep it, or for another lease */
    bool passed;   /* it was granted again by another daemon than before */
    bool over;     /* its client sent an UNLOCK */
    bool unlocked; /* and was told so by the daemon that it has */
    bool released; /* the same, by whichever: nothing is left of it */
};

/* An UNLOCK, CANCEL or RENEW LEASE that names an owner, ID or value: it ends what it
 * finds when it runs, perhaps something that was granted after it was sent. */
struct vague {
    struct rtext name, owner, id, value;
    uint64_t conn, call;
    uint64_t until; /* when all that it may have ended has been answered, too */
};

/* A fair queue as it was before a script. */
enum { QUEUE_SEEN_MAX = 64 };

struct queue_seen {
    bool known;
    uint64_t token;
    size_t count;
    struct rtext members[QUEUE_SEEN_MAX];
    struct rtext been[QUEUE_SEEN_MAX]; /* the last ones to join: they may come back */
    size_t been_count;
};

enum { VAGUE_MAX = 64, VAGUE_MS = 10000, KEEPERS_KEPT = 8 };

/* The ID of a LOCK, and where it was asked for. */
enum { ASKED_IDS_MAX = 256 };

struct asked_id {
    struct rtext id;
    size_t daemon;
    uint64_t life;
};

/* A request whose UNLOCK that daemon has answered; no ID: none. */
enum { ENDED_IDS_MAX = 32 };

struct ended_id {
    struct rtext name, id;
    size_t daemon;
    uint64_t life;
};

/* A name that was lent to a daemon, as the script said. */
struct sim_loan {
    size_t daemon;
    uint64_t life;
    struct redis_name *name;
    uint64_t first, token; /* the block, and the field in Redis */
    uint64_t sent, ran;
    uint64_t sent_ms, heard_ms;
    uint64_t taken_ms; /* when the op that took it was sent; the others: renewed it */
    uint64_t lease_ms;
};

enum { LOANS_KEPT = 64 };

/* The client was told that the hold with that token is not there, after so many
 * failovers. */
enum { GONE_KEPT = 64 };

struct told_gone {
    const struct redis_name *name;
    uint64_t token, failovers;
};

/* A grant that a daemon told of. Its client hears of it then or, where the lease has to
 * be extended first, later. */
enum { TOLD_GRANTS_KEPT = 64 };

struct told_grant {
    size_t daemon;
    const struct redis_name *name;
    uint64_t token, ms;
};

/* The highest token that clients were given, and when. */
struct last_token {
    uint64_t token;
    uint64_t at; /* as a count of `happened` */
};

/* The data of the hold with that token; a hold that is not here has none. */
struct leader_data {
    struct redis_name *name;
    uint64_t token;
    struct rtext data;
};

/* The leader, and its changes for subscribers. */
struct leader_seen {
    uint64_t token, changes;
};

struct leader_told {
    bool ever;
    uint64_t token;
    struct rtext owner;
};

enum { DATA_KEPT = 256 };

/* The last grant of a name with ATLEAST, as Redis has it. */
struct sim_rest {
    uint64_t token; /* 0: none */
    uint64_t until; /* nobody else is granted the name before */
    /* The same as Redis last said, by a clock that may have been set since. */
    uint64_t told_until;
    size_t daemon;  /* that was granted it */
    size_t changed; /* the last one that did, took the hold over, or ended it.. */
    bool heard;     /* ..and has been answered: it knows of the rest */
    bool lost;      /* Redis may have lost it, so that it is put back, or not: */
    bool excused;
    bool died; /* one of these daemons */
};

struct sim_check {
    struct sim_rest rests[REDIS_NAMES_MAX];
    uint64_t rest_count; /* ever */
    struct belief *beliefs;
    size_t belief_count, belief_room;
    struct sim_loan loans[LOANS_KEPT];
    size_t loan_count; /* ever */
    struct told_grant told_grants[TOLD_GRANTS_KEPT];
    size_t told_grant_count; /* ever */
    struct told_gone gone[GONE_KEPT];
    size_t gone_count; /* ever */
    struct record *records;
    size_t record_count, record_room;
    uint64_t external[REDIS_NAMES_MAX]; /* `happened` of the last thing from outside */
    uint64_t external_ms[REDIS_NAMES_MAX]; /* the same as a time */
    /* A later hold was put back there in the place of one that came back: `happened`.
     */
    struct last_token displaced[REDIS_NAMES_MAX];
    struct last_token last[REDIS_NAMES_MAX];
    struct last_token last_of[REDIS_DAEMONS_MAX][REDIS_NAMES_MAX];
    /* When the daemon last heard that another one has the name on loan. */
    uint64_t lent_ms[REDIS_DAEMONS_MAX][REDIS_NAMES_MAX];
    /* When somebody last held it, or stood in its fair queue. */
    uint64_t held_ms[REDIS_NAMES_MAX];
    uint64_t freed_ms[REDIS_NAMES_MAX]; /* free since, and it was published; 0: no */
    bool clock_set_back;                /* Redis's */
    bool fences_lost;                   /* fence keys may be gone */
    bool resurrected;                   /* old data came back: an old token may, too */
    uint64_t force_asked;
    bool draining; /* everything is unlocked, also what nobody was told of yet */
    uint64_t unlock_at[REDIS_NAMES_MAX]; /* not before */
    /* The daemon that last made itself the keeper of a hold: of the last such holds,
     * the newest first. */
    struct keeper {
        uint64_t token;
        size_t daemon;
    } keepers[REDIS_NAMES_MAX][KEEPERS_KEPT];
    struct asked_id asked_ids[ASKED_IDS_MAX];
    size_t asked_id_count; /* ever */
    struct ended_id ended_ids[ENDED_IDS_MAX];
    size_t ended_id_count; /* ever */
    struct vague vague[VAGUE_MAX];
    size_t vague_count;
    struct queue_seen seen;
    /* what Redisson's fair waiters took off scores there counts for so long, which is
     * more than latchd can have known of */
    uint64_t overtaken_until[REDIS_NAMES_MAX];
    uint64_t thrown_out;                  /* living daemons' waiters from fair queues */
    uint64_t upgrade_ms[REDIS_NAMES_MAX]; /* Redis said that who asks to write reads */
    uint64_t many_ms[REDIS_NAMES_MAX];    /* an MLOCK was about then */
    struct leader_data data[DATA_KEPT];
    size_t data_count; /* ever */
    struct leader_seen leaders[REDIS_NAMES_MAX];
    struct leader_told leaders_told[REDIS_DAEMONS_MAX][REDIS_NAMES_MAX];
    uint64_t handed_to, handed_call; /* the waiter that an UNLOCK has named, or 0 */
    /* a release last left it to a fair queue, or to rest */
    uint64_t not_handed_ms[REDIS_NAMES_MAX];
    uint64_t grants, grants_from_loans, loans_renewed, uncertain, deadlocks;
    uint64_t lost, expired;
};

void check_fini(struct sim_check *c);

void check_asked(struct sim *s, struct sim_conn *c);
void check_replied(struct sim *s, struct sim_conn *c, const struct effect_reply *r);
void check_closed(struct sim *s, struct sim_conn *c);
void check_notice(struct sim *s, struct sim_daemon *d, const struct effect_notice *n);
void check_op_sent(struct sim *s, struct sim_daemon *d, struct flight *f);
void check_op_ran(struct sim *s, struct flight *f);
/* `0` was published: nobody holds it. */
void check_freed(struct sim *s, const struct redis_message *m);
/* The result is about to be reported to the engine. */
void check_result(struct sim *s, struct sim_daemon *d, struct flight *f);
/* Something outside touched the name; NULL: all. */
void check_external(struct sim *s, struct redis_name *n);
/* The last writes are about to be lost, but daemons are told so. */
void check_failed_over(struct sim *s);
/* That op has put a later hold of the name back. */
void check_displaced(struct sim *s, struct redis_name *n, uint64_t token);
bool check_is_displaced(struct sim *s, const struct belief *b, uint64_t ran);
/* A restart of Redis has lost data. `known`: the daemons know of each other. */
void check_lost(struct sim *s, bool known);
/* Whatever was to be put back after that may come too late. */
void check_disturbed(struct sim *s);
/* Redisson cut the lease of a name that others hold, too. */
void check_cut(struct sim *s, struct redis_name *n);
/* The daemon has just learnt that nothing is sure: it must have said so. */
void check_all_uncertain(struct sim *s, struct sim_daemon *d, const char *why);
void check_daemon_died(struct sim *s, struct sim_daemon *d);
/* That MLOCK takes names at this time. */
void check_many(struct sim *s, const struct sim_conn *c);
/* After each turn of a daemon. */
void check_turn(struct sim *s, struct sim_daemon *d);
/* After everything was closed and all leases have ended. */
void check_end(struct sim *s);

/* The request means a hold that was granted under that ID. */
bool check_means_id(const struct sim *s, const struct sim_conn *c, struct span id);
/* An UNLOCK is under way that may end this hold, whenever it was granted. */
bool check_is_vague(const struct sim *s, const struct record *r);
/* A RENEW LEASE of it is not answered yet: less time may be left than before. */
bool check_is_cut(const struct sim *s, const struct record *r);

/* --- sim_told.c -------------------------------------------------------------- */

void check_told(struct sim *s, const struct sim_daemon *d,
                const struct effect_notice *n);
/* A client is told that its hold is not there; a daemon has put that hold back. */
void check_told_gone(struct sim *s, const struct sim_conn *c);
void check_not_told_gone(struct sim *s, const struct flight *f);
/* Its client may believe in it: then nobody was left in doubt. */
void check_told_certain(struct sim *s, const struct sim_daemon *d,
                        const struct record *r);

/* --- sim_entries.c ----------------------------------------------------------- */

/* After each script that touches the name. */
void check_entries(struct sim *s, struct redis_name *n);
/* A LOCK or MLOCK is asked for. */
void check_id_asked(struct sim *s, const struct sim_conn *c);
/* An UNLOCK was answered that ended what it named. */
void check_id_ended(struct sim *s, const struct sim_conn *c);
/* The daemon sends that op. */
void check_claims(struct sim *s, const struct sim_daemon *d, const struct op *op);

/* --- sim_loans.c ------------------------------------------------------------- */

/* A daemon hears that a name was lent to it. */
void check_lent(struct sim *s, const struct flight *f, struct span name,
                const struct op_result *r, uint64_t lease_ms);
/* The loan of a living daemon from which it may have granted that token, or NULL. */
const struct sim_loan *loan_of(const struct sim *s, size_t daemon,
                               const struct redis_name *n, uint64_t token);
/* The loan in whose field the hold may stand: whichever daemon's, or NULL. */
const struct sim_loan *loan_with_field(const struct sim *s, const struct redis_name *n,
                                       uint64_t token);

/* A hold that was granted from a loan stands in the field of the loan until it is
 * settled: until then no other daemon knows its token. */
bool check_stands_in_loan(const struct sim *s, const struct record *r);

/* An UNLOCK of that hold was answered: Redis does not have the hold any more. */
void check_gone(struct sim *s, const struct sim_conn *c, const struct record *r);

/* --- sim_rests.c ------------------------------------------------------------- */

void check_rest_ran(struct sim *s, const struct flight *f);
void check_rest_heard(struct sim *s, const struct flight *f);
/* As check_external(). */
void check_rest_external(struct sim *s, const struct redis_name *n);
/* Redis loses data. `others_wait`: no daemon grants a name that another one may have.
 */
void check_rests_lost(struct sim *s, bool others_wait);
void check_rest_daemon_died(struct sim *s, const struct sim_daemon *d);
/* After each turn of a daemon. */
void check_rests(struct sim *s);

/* --- sim_order.c ------------------------------------------------------------- */

/* Around each script that touches the name; `f`: a daemon's, NULL: Redisson's. */
void check_queue_before(struct sim *s, const struct redis_name *n);
void check_queue_after(struct sim *s, const struct redis_name *n, struct flight *f);
/* A Redisson's grant, or its giving up, has just taken so much off the scores of those
 * behind it. */
void check_scores_fell(struct sim *s, const struct redis_name *n, uint64_t by_ms);
/* After each turn of a daemon, while nothing fails. */
void check_queues(struct sim *s, struct sim_daemon *d);
void check_queue_end(struct sim *s, const struct redis_name *n);

/* --- sim_places.c -------------------------------------------------------------- */

/* A LOCK is granted: was it its turn among those who wait at its daemon? `sent_ms`:
 * when its daemon asked Redis for that grant. */
void check_turn_among(struct sim *s, const struct sim_conn *me, uint64_t sent_ms);
/* When that daemon told of the grant; UINT64_MAX: not known. */
uint64_t check_told_granted_ms(const struct sim *s, size_t daemon,
                               const struct redis_name *n, uint64_t token);
/* Before the engine is told of a LOCK: notes how many wait already. */
void check_queue_asked(struct sim *s, struct sim_conn *c);
/* A LOCK is answered -LIMIT. */
void check_limit(struct sim *s, const struct sim_conn *c);
/* A LOCK is answered: it did not wait beyond its QUEUE. */
void check_queue_kept(struct sim *s, const struct sim_conn *c);

/* --- sim_cycle.c ------------------------------------------------------------ */

/* Refused with DEADLOCK: there must be a cycle. */
void check_deadlock(struct sim *s, const struct sim_conn *c);
/* While nothing fails, a wait that closes one is refused. */
void check_cycle_asked(struct sim *s, struct sim_conn *c);
void check_cycles(struct sim *s, const struct sim_daemon *d);

/* --- sim_grants.c ------------------------------------------------------------ */

/* Of a LOCK, or of one name of an MLOCK. */
void check_grant(struct sim *s, struct sim_conn *c, struct redis_name *n,
                 uint64_t token);
void check_grants(struct sim *s, struct sim_conn *c, const struct effect_reply *r);
enum lock_kind check_hold_kind(enum lock_kind kind);

/* --- sim_leaders.c ------------------------------------------------------- */

/* Notes who leads now. */
void check_leaders(struct sim *s);
/* After check_op_ran(). */
void check_data_ran(struct sim *s, const struct flight *f);
void check_leader_answer(struct sim *s, struct sim_conn *c,
                         const struct effect_reply *r);
void check_leader_told(struct sim *s, struct sim_daemon *d,
                       const struct effect_leader *change);
/* The leader of that name has been the same for so long that all know. */
void check_followers_know(struct sim *s, const struct redis_name *n);
/* An UNLOCK TO was answered 0; then, after the turn. */
void check_handed(struct sim *s, const struct sim_conn *c);
void check_handed_over(struct sim *s);
void check_heartbeats(struct sim *s, const struct sim_daemon *d);

/* --- sim_null.c ---------------------------------------------------------- */

/* A script is about to run. */
void check_op_runs(struct sim *s);
/* That client was told null. */
void check_null_is_due(struct sim *s, const struct sim_conn *c);

/* --- sim_excuses.c ------------------------------------------------------- */

/* Redis lost fence keys, and its clock was set back: a token may go back, or be given
 * twice. */
bool check_tokens_may_repeat(const struct sim *s);

/* --- sim_keepers.c ------------------------------------------------------- */

/* An op granted or attached that hold: its daemon may be the keeper from now on. */
void check_keeper(struct sim *s, const struct flight *f, struct span in,
                  const struct op_result *res, const struct claim *cl);
/* Another daemon is the keeper by now. */
bool record_moved(struct sim *s, const struct record *r);
/* The same, and that daemon has said that the hold is lost or released. */
bool record_ended_by_keeper(struct sim *s, const struct record *r);

/* --- sim_beliefs.c ------------------------------------------------------- */

/* The belief of a living daemon; NULL: none. */
struct belief *belief_get(struct sim *s, size_t daemon, const struct redis_name *n,
                          uint64_t token);
/* Redis confirmed loans once more. */
void check_loans_renewed(struct sim *s, const struct flight *f);
/* A client was granted from that loan. */
void check_lends(struct sim *s, const struct sim_loan *l, uint64_t token);
/* A grant from memory: the daemon believes what Redis confirmed of the loan. NULL: it
 * has no such loan. */
struct belief *belief_from_loan(struct sim *s, size_t daemon, struct redis_name *n,
                                uint64_t token);
/* The client may believe that it holds, going by all that it was told. */
bool record_believed(const struct sim *s, const struct record *r);
size_t check_name_index(struct sim *s, const struct redis_name *n);

#endif
