/* emit: effects for clients: replies and notices. Each function adds one effect, and
 * changes nothing else, but for a mark by which a notice names a connection once. A
 * LOCK, which may be a call of an MLOCK's own, is answered by mlock_member.h. Private
 * to engine/.
 */
#ifndef LATCHD_ENGINE_EMIT_H
#define LATCHD_ENGINE_EMIT_H

#include "engine/effect.h"
#include "engine/objects.h"
#include "util/span.h"

#include <stddef.h>
#include <stdint.h>

#define TEXT_OVER SPAN("request is over")
#define TEXT_NOT_THERE SPAN("that hold is not there")
#define TEXT_ENDING SPAN("that hold is being released")
#define TEXT_NO_SEMAPHORE SPAN("no such semaphore; PERMITS n OF limit makes one")
#define TEXT_PERMITS_OUT SPAN("some of its permits are out")
#define TEXT_BEYOND SPAN("the semaphore has fewer permits than that")
#define TEXT_UPGRADE SPAN("this owner reads it, and would wait for itself to write")
#define TEXT_BOTH SPAN("the owner reads and writes: READ or WRITE needed")
#define TEXT_WRONGTYPE SPAN("the name is in use by another kind of lock or data")
#define TEXT_GOING SPAN("the daemon is going down")
#define TEXT_UNBLOCKED SPAN("client unblocked via CLIENT UNBLOCK")
#define TEXT_NO_ANSWER SPAN("Redis did not answer in time")
#define TEXT_NO_RIGHT SPAN("this user may not wait for that any more")
#define TEXT_OTHERS SPAN("that owner, token or ID is another user's")
#define TEXT_QUORUM SPAN("a quorum has plain locks only")
#define TEXT_NO_WAITER SPAN("no such waiter")
#define TEXT_OTHER_DATA SPAN("that owner or ID has it with other DATA")
#define TEXT_NOT_NEXT SPAN("TO hands over plain and write locks, without a fair queue")
#define TEXT_NO_LATCH SPAN("no such latch")
#define TEXT_LATCH_GONE                                                                \
    SPAN("gone: the latch was deleted or lost, or opened where nobody here saw it")
#define TEXT_LATCH_FULL SPAN("the latch remembers no more IDs")
#define TEXT_NO_REPLICAS SPAN("too few replicas acknowledged it")
#define TEXT_NO_ROOM SPAN("max-waiters reached")
#define TEXT_QUEUE_FULL SPAN("as many wait already as QUEUE allows")
#define TEXT_OTHER_PRIORITY SPAN("that ID waits with another PRIORITY")
#define TEXT_LENT SPAN("another latchd has the name on loan and does not say who holds")
#define TEXT_MAY_COME_BACK                                                             \
    SPAN("Redis may have lost that hold, and another latchd may put it back")
#define TEXT_QUARANTINE SPAN("Redis may have lost locks: no new grants for a while")
void emit_unreached(struct engine *eng, struct call_ref to);
void emit_int(struct engine *eng, struct call_ref to, int64_t value);
/* The lease that is left, and the token of the hold if that is not NULL. A token that
 * nobody knows any more is null. */
void emit_renewed(struct engine *eng, struct call_ref to, int64_t left_ms,
                  const struct hold *hold);
void emit_null(struct engine *eng, struct call_ref to);
void emit_error(struct engine *eng, struct call_ref to, enum lock_error error,
                struct span text);
/* The error of an op that did not do what it was for. */
void emit_op_error(struct engine *eng, struct call_ref to, const struct op_result *r);
/* WRONGTYPE, with what is there: its PTTL, and the value of a string. */
void emit_other_data(struct engine *eng, struct call_ref to, int64_t ttl_ms,
                     struct span data);
/* LATCH INFO. */
void emit_latch(struct engine *eng, struct call_ref to, const struct latch_told *told,
                size_t waiting);
void emit_leader(struct engine *eng, struct call_ref to, const struct leader *leader);
/* For those who have subscribed. */
void emit_leader_change(struct engine *eng, struct span name,
                        const struct leader *leader);
void emit_grant(struct engine *eng, struct call_ref to, const struct attach *a);
void emit_heartbeat(struct engine *eng, const struct attach *a);
/* `tokens` must live as long as the effects. */
void emit_tokens(struct engine *eng, struct call_ref to, const uint64_t *tokens,
                 size_t count, uint64_t grant);
/* Reports the end of a wait, if the wait was long. `token`: of the grant. */
void emit_wait_end(struct engine *eng, const struct waiter *w, enum wait_end end,
                   enum lock_error error, uint64_t token);
/* Reports the end of an entry, if that was held for long. Not of one that another
 * daemon keeps from now on. `cause`: HELD_LOST. */
void emit_held_end(struct engine *eng, const struct entry *e, enum held_end end,
                   enum loss_cause cause);
/* Of a grant or a release, which engine_set_heard() can switch off. */
void emit_if_heard(struct engine *eng, enum notice_kind kind, const struct hold *hold);
struct effect_notice *emit_notice(struct engine *eng, enum notice_kind kind,
                                  const struct hold *hold);

#endif
