/* parts: what the engine's parts offer each other, file by file. Private to core/.
 *
 * Every entry into the engine (locks.h) changes the state, marks the locks that need
 * another look (lock_touch()), and ends with locks_settle(), which looks at them. */
#ifndef LATCHD_CORE_PARTS_H
#define LATCHD_CORE_PARTS_H

#include "core/mlock.h"

/* locks.c */
void timer_set(struct locks *l, struct timer *t, enum timer_kind kind, uint64_t at);
void timer_stop(struct locks *l, struct timer *t);
/* This tick is late for that deadline, and what Redis answered in time may not have
 * been read yet: the next tick tells. */
bool tick_is_too_late(const struct locks *l, uint64_t deadline);
void locks_settle(struct locks *l);

/* say.c: effects for clients */
#define TEXT_OVER SPAN("request is over")
#define TEXT_NOT_THERE SPAN("that hold is not there")
#define TEXT_ENDING SPAN("that hold is being released")
#define TEXT_UPGRADE SPAN("this owner reads it, and would wait for itself to write")
#define TEXT_BOTH SPAN("the owner reads and writes: READ or WRITE needed")
#define TEXT_WRONGTYPE SPAN("the name is in use by another kind of lock or data")
#define TEXT_GOING SPAN("the daemon is going down")
#define TEXT_UNBLOCKED SPAN("client unblocked via CLIENT UNBLOCK")
#define TEXT_NO_ANSWER SPAN("Redis did not answer in time")
#define TEXT_OTHERS SPAN("that owner, token or ID is another user's")
#define TEXT_QUORUM SPAN("a quorum has plain locks only")
#define TEXT_NO_REDIS SPAN("Redis cannot be reached")
#define TEXT_NO_REPLICAS SPAN("too few replicas acknowledged it")
#define TEXT_NO_ROOM SPAN("max-waiters reached")
#define TEXT_QUARANTINE SPAN("Redis may have lost locks: no new grants for a while")
void say_unreached(struct locks *l, struct call_ref to);
void say_int(struct locks *l, struct call_ref to, int64_t value);
void say_null(struct locks *l, struct call_ref to);
void say_error(struct locks *l, struct call_ref to, enum lock_error error,
               struct span text);
void say_grant(struct locks *l, struct call_ref to, const struct attach *a);
/* `tokens` live as long as the effects. */
void say_tokens(struct locks *l, struct call_ref to, const uint64_t *tokens,
                size_t count, uint64_t grant);
/* The wait is over; told if it was long. */
void say_waited(struct locks *l, const struct waiter *w, enum wait_end end,
                enum lock_error error);
struct effect_notice *say_notice(struct locks *l, enum notice_kind kind,
                                 const struct hold *hold);

/* want.c */
#define ID_FIELD_PREFIX LATCHD_RESERVED_OWNER_PREFIX "id:"
#define ID_ENTRY_PREFIX "id:"
/* Puts both, one behind the other, at *at and moves that on. */
struct span span_put2(char **at, struct span a, struct span b);
enum { SERIAL_MAX = OP_INSTANCE_LEN + 24 };
/* `<instance>:<n>`, never made twice, into `out`. */
struct span make_serial(struct locks *l, char *out, size_t room);
struct want *want_new(struct locks *l, const struct lock_req *req);
/* For a hold that was found, not asked for: RENEW. `entry`: of a named owner. */
struct want *want_found(struct locks *l, enum lock_kind lock_kind, struct span field,
                        struct span entry, struct span id);
struct span want_field(const struct want *w);  /* empty: anonymous */
struct span want_entry(const struct want *w);  /* ANONYMOUS: the request */
struct span want_id(const struct want *w);     /* empty: none */
struct span want_member(const struct want *w); /* its place in a fair queue */
struct want *want_ref(struct want *w);
void want_unref(struct locks *l, struct want *w);
uint64_t want_lease(const struct locks *l, const struct want *w);
enum owner_kind field_kind(struct span field);

/* session.c */
struct session *session_get(struct locks *l, uint64_t conn);
struct session *session_find(const struct locks *l, uint64_t conn);
/* Frees it when nothing is on it any more. */
void session_idle(struct locks *l, struct session *s);
void session_lost(struct session *s, const struct lock *lock);
void session_forget_lost(struct session *s);
bool session_has_lost(const struct session *s, const struct lock *lock);

/* request.c */
struct request *request_find(const struct locks *l, struct span name, struct span id);
struct request *request_new(struct locks *l, struct span name, const struct want *want);
void request_over(struct locks *l, struct request *r, int64_t answer);
/* Forgets it when nothing refers to it and it is not over. */
void request_idle(struct locks *l, struct request *r);
void request_expire(struct locks *l);
void requests_free(struct locks *l);

/* lock.c */
struct lock *lock_of(struct table_node *n);
struct lock *lock_find(const struct locks *l, struct span name);
/* See locks_setup. */
uint32_t lock_group(const struct locks *l, struct span name);
struct lock *lock_get(struct locks *l, struct span name);
struct span lock_name(const struct lock *lock);
struct waiter *lock_head(const struct lock *lock);
/* The newest hold here, or NULL. */
struct hold *lock_hold(const struct lock *lock);
/* Look at it before the engine returns. */
void lock_touch(struct locks *l, struct lock *lock);
/* Nothing is sent for it for so long. */
void lock_pause(struct locks *l, struct lock *lock, uint64_t ms);
/* The head is to ask, whatever it believed. */
void lock_ask(struct locks *l, struct lock *lock);
/* Somebody was just seen to hold it as `by`, by op `op_id`; `ttl_ms` < 0: not known. */
void lock_seen(struct locks *l, struct lock *lock, uint64_t op_id, int64_t ttl_ms,
               enum lock_kind by);
/* When the head of one that is held so long is to ask again. */
uint64_t lock_recheck_in(const struct locks *l, int64_t ttl_ms);
void lock_unsubscribe(struct locks *l, struct lock *lock);
void lock_step(struct locks *l, struct lock *lock);
void lock_free(struct locks *l, struct lock *lock);
void lock_on_timer(struct locks *l, struct lock *lock);

/* desk.c */
extern const struct desk NO_DESK;
void desk_none(struct lock *lock);
struct desk *desk_open(struct locks *l, struct lock *lock);
/* Puts it away if nothing is on it. */
void desk_clear(struct locks *l, struct lock *lock);
void desk_free(struct locks *l, struct lock *lock);
static inline bool lock_rests(const struct lock *lock)
{
    return lock->desk == &NO_DESK;
}
/* To write on: for whatever may come first at a name. It stays until the engine
 * returns. */
static inline struct desk *lock_desk(struct locks *l, struct lock *lock)
{
    return lock_rests(lock) ? desk_open(l, lock) : lock->desk;
}

/* work.c */
struct work *work_new(struct locks *l, enum work_kind kind, struct lock *lock);
/* NULL: it is answered, or never was. */
struct work *work_find(const struct locks *l, uint64_t op_id);
void work_free(struct locks *l, struct work *w);
struct op *work_op(struct locks *l, struct work *w, enum op_kind kind);
struct span op_copy(struct locks *l, struct span s);
struct target op_target(struct locks *l, const struct target *t);
void op_claim(struct locks *l, struct op *op, const struct want *want,
              uint64_t lease_ms);
struct asked work_asked(const struct work *w);
/* Enough of the lease that it gave is left for somebody to begin on it. */
bool asked_in_time(const struct locks *l, const struct lock *lock, struct asked asked);
/* What it says was so before Redis, or its clock, became another. */
bool asked_before(const struct locks *l, const struct lock *lock, uint64_t op_id);
void work_done(struct locks *l, const struct op_result *r);
/* Every token that comes by: a new one is to be greater. */
void work_saw_token(struct locks *l, uint64_t token);

/* waiter.c */
struct waiter *waiter_new(struct locks *l, struct lock *lock, struct session *s,
                          const struct lock_req *req, struct want *want);
bool waiter_is_head(const struct waiter *w);
/* The lease to ask for: a grant that nobody is there to take is held for KEEP only. */
uint64_t waiter_lease(const struct locks *l, const struct waiter *w);
void waiter_bind(struct locks *l, struct waiter *w, struct session *s,
                 const struct lock_req *req);
/* It has been waiting since then. */
void waiter_since(struct locks *l, struct waiter *w, uint64_t since);
/* Answers and ends the wait; the place is kept if it has a KEEP and `keep` allows it.
 */
void waiter_end_null(struct locks *l, struct waiter *w, bool keep);
void waiter_end_error(struct locks *l, struct waiter *w, enum lock_error error,
                      struct span text, bool keep);
/* Its time is over, or it is to try once: null, if others hold the lock; otherwise what
 * keeps it from everybody. */
void waiter_end_unserved(struct locks *l, struct waiter *w);
/* The same as soon as it is known which: now, or with the head's next answer. */
void waiter_decide(struct locks *l, struct waiter *w);
/* The connection is gone. */
void waiter_detach(struct locks *l, struct waiter *w);
/* Off the queue and freed; undoes what it may have been granted. */
void waiter_remove(struct locks *l, struct waiter *w);
void waiter_on_timer(struct locks *l, struct waiter *w);

/* take.c */
void take_ask(struct locks *l, struct lock *lock, struct waiter *w);
/* Asks for one waiter that is not the head whether it holds already. */
void take_probe(struct locks *l, struct waiter *w);
/* Asks for one that is not the head, but may be granted beside who holds. */
void take_join(struct locks *l, struct waiter *w);
/* The same as soon as nothing is left to be undone and Redis is up. */
void take_probe_later(struct locks *l, struct waiter *w);
/* It may be asked for; else it is looked at again when it may. */
bool take_may_ask(struct locks *l, struct lock *lock);
/* Granted, but not acknowledged by enough replicas: back with it. Who waits goes on
 * trying, with a pause. `waiter` may be NULL. */
void take_unacked(struct locks *l, struct lock *lock, struct want *want,
                  struct waiter *waiter, const struct op_result *r);
/* It is to ask once more: as the head, or for itself. */
void take_again(struct locks *l, struct waiter *w);
void take_done(struct locks *l, struct work *w, const struct op_result *r);
/* Redis gave `want` the lock by an op sent at `sent`, or had given it before; `waiter`
 * is NULL when nobody waits for it any more. */
void take_granted(struct locks *l, struct lock *lock, struct want *want,
                  struct waiter *waiter, const struct op_result *r, struct asked asked);

/* kinds.c */
bool kind_is_rw(enum lock_kind kind);
/* PLAIN for FAIR. */
enum lock_kind kind_of_hold(enum lock_kind kind);
/* The owner that a hash field names: a writer's without its `:write`. */
struct span field_owner(struct span field);
/* Somebody here holds or waits: the name keeps its family. */
bool lock_in_use(const struct lock *lock);
void lock_set_family(struct locks *l, struct lock *lock, bool rw);
/* A hold that is certain keeps `want` from being granted now; asking Redis is of no
 * use. */
bool lock_in_the_way(const struct locks *l, const struct lock *lock,
                     const struct want *want);
/* Somebody else surely holds it alone, so that `want` cannot hold it already. */
bool lock_rules_out(const struct locks *l, const struct lock *lock,
                    const struct want *want);
/* By one of our readers, for certain. */
bool lock_being_read(const struct locks *l, const struct lock *lock);
/* The holds here that cannot be true beside that one, at most `max` (at least 1). An
 * empty field: an anonymous owner's. */
size_t lock_denied(const struct lock *lock, enum lock_kind kind, struct span field,
                   uint64_t token, struct hold **ret, size_t max);
/* Redis says that this holds: what cannot be true beside it is lost. Gives the hold, if
 * it is known already. `token` 0: not known. */
struct hold *lock_believe(struct locks *l, struct lock *lock, enum lock_kind kind,
                          struct span field, uint64_t token);
void lock_let_readers_in(struct locks *l, struct lock *lock);

/* fair.c */
/* There is a fair queue, or is to be: all who wait here join it. */
void fair_start(struct locks *l, struct lock *lock);
void fair_free(struct locks *l, struct lock *lock);
/* Nothing is left to be told to Redis. */
bool fair_idle(const struct lock *lock);
/* It is on the queue now; it is about to be taken off. */
void fair_came(struct locks *l, struct waiter *w);
void fair_gone(struct locks *l, struct waiter *w);
/* That op has granted it, which took its place away. */
void fair_granted(struct locks *l, struct waiter *w, const struct op_result *r);
/* It holds, but Redis may have forgotten that it took its place away. */
void fair_leave_again(struct locks *l, struct lock *lock, struct want *want);
/* But it was too late: it goes on waiting, where it stood. */
void fair_put_back(struct locks *l, struct waiter *w, const struct op_result *r);
/* Its OP_ACQUIRE is about to be sent. */
void fair_claim(struct locks *l, struct op *op, struct waiter *w);
/* What an op on the lock said of the queue; of the waiter's place, if it was its. */
void fair_heard(struct locks *l, struct lock *lock, struct waiter *w,
                const struct op_result *r);
/* The places may be gone, or their scores wrong. */
void fair_refresh_soon(struct locks *l, struct lock *lock);
/* Redis may have lost what was done to its queue. */
void fair_lost(struct locks *l, struct lock *lock);
/* Places of ours in it may be those of who is gone. */
void fair_sweep(struct locks *l, struct lock *lock);
/* Sends what is due; nothing is in flight that may change who holds. `head_asked`: nor
 * is the head about to ask, which could give it its place. */
void fair_step(struct locks *l, struct lock *lock, bool head_asked);
void fair_on_timer(struct locks *l, struct timer *t);
void fair_work_gone(struct work *w);
void fair_done(struct locks *l, struct work *w, const struct op_result *r);

/* many.c */
/* Asks for so many waiters by one op: heads of queues that are idle otherwise, at most
 * OP_MANY_MAX, of names of one group. Whoever comes behind one that is not granted
 * leaves its queue. */
void take_many(struct locks *l, struct waiter *const *waiters, size_t count);
void many_done(struct locks *l, struct work *all, const struct op_result *r);

/* hold.c */
struct hold *hold_new(struct locks *l, struct lock *lock, enum lock_kind kind,
                      struct span field, uint64_t token);
struct entry *hold_add_entry(struct locks *l, struct hold *h, struct want *want);
struct entry *hold_find_entry(const struct hold *h, struct span entry);
/* What Redis would find for that target, if it is known here; TARGET_OWNER and
 * TARGET_ANY are only known there. */
struct entry *lock_find_target(const struct lock *lock, const struct target *t);
bool hold_alone(const struct hold *h); /* it has one entry here */
/* Confirmed by that op, with the lease that it asked for. */
void hold_confirm(struct locks *l, struct hold *h, struct asked asked);
void hold_uncertain(struct locks *l, struct hold *h);
/* Gone without our doing: tell everybody, then forget it. */
/* Ended or kept elsewhere: forget it. `answer`: see request_over(). */
void hold_forget(struct locks *l, struct hold *h, bool over);
/* By somebody's message, perhaps of a release before it: it is looked at soon. */
void hold_freed(struct locks *l, struct hold *h);
void hold_on_timer(struct locks *l, struct hold *h);
void hold_schedule(struct locks *l, struct hold *h);
bool hold_certain(const struct locks *l, const struct hold *h);
/* The lease that Redis should give it now; 0: it is left to run out. */
uint64_t hold_lease(const struct locks *l, const struct hold *h);
/* Every entry's release is on the way. */
bool hold_ending(const struct hold *h);
/* When a lease that was asked for at `sent` is over for us. */
uint64_t hold_vouch_until(uint64_t sent, uint64_t lease_ms);

/* hold_index.c; NULL: none that is known here */
void index_add(struct hold *h);
void index_remove(struct hold *h);
struct hold *lock_hold_of(const struct lock *lock, struct span field);
struct hold *lock_hold_with(const struct lock *lock, uint64_t token);
/* PLAIN: writes or, if not, reads or holds. */
struct hold *lock_held_by(const struct lock *lock, struct span owner,
                          enum lock_kind kind);

/* cut.c */
struct cut *cut_find(const struct hold *h);
void cut_free(struct cut *cut);
/* That op, about to be sent, may cut the lease to that: from now on no more is
 * vouched for, whatever becomes of the op, until it or a later one is confirmed. */
void hold_cut(struct locks *l, struct hold *h, struct asked asked, bool to_grace);
/* By RENEW LEASEs sent after that op, by which the hold is known here. */
void hold_cut_by_calls(struct locks *l, struct entry *e, uint64_t op_id);
/* That op did not run, or nobody knows: the wanted lease is asked for again. */
void hold_cut_failed(struct locks *l, struct hold *h, uint64_t op_id);
/* By a client's RENEW LEASE in flight, that no renewal is to undo. */
bool hold_being_cut(const struct hold *h);
/* A cut of that field, sent after that op, has taken back what it gave. */
bool lock_cut_since(const struct locks *l, const struct lock *lock, struct span field,
                    uint64_t op_id);

/* entry.c */
struct attach *entry_attach(struct locks *l, struct entry *e, struct session *s);
struct attach *entry_attach_of(const struct entry *e, const struct session *s);
void attach_free(struct locks *l, struct attach *a);
/* The attach's connection is gone. */
void entry_detach(struct locks *l, struct attach *a);
/* When the op was sent that gave this entry of a fixed lease what it has. */
uint64_t entry_lease_began(const struct entry *e);
/* At least half of its lease is left, as far as is known. */
bool entry_is_fresh(const struct locks *l, const struct entry *e);
/* A connection has it, and its fixed lease is over. */
bool entry_ran_out(const struct locks *l, const struct entry *e);
void entry_keep(struct locks *l, struct entry *e);
/* What they say, and the numbers of such entries. */
void entry_set_kept(struct locks *l, struct entry *e, bool kept);
void entry_set_fixed(struct locks *l, struct entry *e, bool fixed);
/* If no connection has it (any more), and nothing ends it yet: grace or KEEP begins. */
void entry_left(struct locks *l, struct entry *e);
/* What that attach's connection was told, or was to be told, never came there: the
 * entry goes, or is kept for KEEP, unless another connection knows of it. */
void entry_untold(struct locks *l, struct attach *a, bool keep);
/* Its request is over; `answer` as in request_over(). */
void entry_over(struct locks *l, struct entry *e, int64_t answer);
/* Its request is as if it had never been granted. */
void entry_disown(struct locks *l, struct entry *e);
void entry_on_timer(struct locks *l, struct entry *e);
/* Out of its hold and freed; an empty hold stays for the caller to judge. */
void entry_free(struct locks *l, struct entry *e);

/* duty.c */
struct duty *duty_new(struct locks *l, struct lock *lock, const struct target *t);
/* The same for an entry that is known here: it is ending from now on. */
struct duty *duty_for_entry(struct locks *l, struct entry *e);
/* Sent late it may end another hold than was meant. */
bool duty_vague(const struct duty *d);
void duty_free(struct locks *l, struct lock *lock, struct duty *d);
/* It and its local entry forget each other. */
void duty_let_go(struct duty *d);
/* It is not on its way any more. */
void duty_stays(struct lock *lock, struct duty *d);
/* Gives back what `want` may have been granted. False: it is not to be, as its request
 * goes on. */
bool duty_undo(struct locks *l, struct lock *lock, const struct want *want);
/* Drops such a duty that was not sent yet: the request goes on. */
bool duty_cancel_undo(struct locks *l, struct lock *lock, const struct want *want);
/* Somebody has come back to that hold or entry: no release of our own accord is to
 * follow. False: one may be on its way already, or its owner gave it up. */
bool duty_withdraw(struct locks *l, struct lock *lock, struct span field,
                   struct span entry);
/* Ends a local entry of our own accord. */
void duty_end_entry(struct locks *l, struct entry *e);

/* release.c */
/* Too late to send it (again). */
void duty_give_up(struct locks *l, struct lock *lock, struct duty *d);
void release_send(struct locks *l, struct lock *lock, struct duty *d);
/* Whether it is this hold that FORCEUNLOCK means. */
bool release_forces(const struct duty *d, const struct hold *h);
void release_done(struct locks *l, struct work *w, const struct op_result *r);

/* call.c */
struct call *call_new(struct locks *l, enum call_kind kind, struct lock *lock,
                      const struct hold_req *req);
/* It means this entry, whatever words it used. */
void call_aim(struct call *c, struct entry *e);
void call_free(struct locks *l, struct call *c);
/* Somebody is about to come back to that entry: nothing is to end it meanwhile. */
bool call_renews(const struct entry *e);
void call_info(struct locks *l, const struct hold_req *req);
/* LOCKINFOs of names that are in doubt since now have not much time left. */
void info_hurry(struct locks *l);
void call_send(struct locks *l, struct call *c);
/* The op has told nothing: once more, after a pause where haste would not help. */
void call_again(struct locks *l, struct call *c, enum op_status status);
void call_on_timer(struct locks *l, struct call *c);
/* An asked-again LOCK whose grant must first be extended. */
struct call *call_regrant(struct locks *l, struct entry *e, const struct lock_req *req);
void attach_done(struct locks *l, struct work *w, const struct op_result *r);
void inspect_done(struct locks *l, struct work *w, const struct op_result *r);

/* look.c */
/* A hold here is not vouched for now. */
bool lock_in_doubt(const struct locks *l, const struct lock *lock);
/* Answers that LOCKINFO by what is known here, as Redis does not. */
void info_in_doubt(struct locks *l, const struct call *c);

/* lock_in.c */
/* LOCK, without the engine settling. */
void lock_in(struct locks *l, const struct lock_req *req);
/* Whether nobody here holds, waits for or does anything about that name, and that ID is
 * not known. */
bool lock_untouched(const struct locks *l, struct span name, struct span id);
/* The same in two steps, for a name that is untouched: into the queue.. */
struct waiter *lock_in_queue(struct locks *l, const struct lock_req *req);
/* ..and what it does first. Also for one that has come back. */
void lock_in_start(struct locks *l, struct waiter *w);

/* user.c */
bool user_differs(uint32_t a, uint32_t b);
/* Whether that owner holds it here, for another user. */
bool lock_owner_is_others(const struct lock *lock, struct span owner, uint32_t user);
/* True: it has been answered, as what it names is another user's. */
bool user_refused(struct locks *l, const struct lock *lock, const struct hold_req *req);
/* The same of an UNLOCK that has been waiting for its turn. */
bool user_refused_duty(struct locks *l, struct lock *lock, struct duty *d);

/* look.c */
/* A connection that keeps it; 0: none. */
uint64_t hold_client(const struct hold *h);
/* What locks_scan() does, for those who want to see more than the name. */
typedef void lock_fn(void *ctx, const struct lock *lock);
uint64_t lock_scan(const struct locks *l, uint64_t cursor, size_t count, lock_fn *fn,
                   void *ctx);

/* survey.c */
/* No entry of it is renewed by the watchdog. */
bool hold_is_fixed(const struct hold *h);
struct waiter_info waiter_info_of(const struct locks *l, const struct waiter *w);

/* circle.c */
/* Whether that wait would close a circle: then it has been answered, and is gone. */
bool circle_refuses(struct locks *l, struct waiter *w);

/* watchdog.c */
void renew_flush(struct locks *l);
void renew_done(struct locks *l, struct work *w, const struct op_result *r);
void renew_want(struct locks *l, struct hold *h);
void renew_entry_gone(const struct entry *e);

#endif
