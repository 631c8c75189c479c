/* loan_renewal: keeps a name lent that clients of this daemon go on asking for.
 *
 * A loan lends for a window from when Redis confirmed it. A grant from memory in the
 * last part of the window has Redis confirm the loan once more, with all others of that
 * ms in one script, instead of a return and another loan. Whoever listens to the name
 * or queues for it ends that, and LOAN_WINDOWS_MAX windows do in any case, so that
 * those get in who only try now and then. Private to engine/. */
#ifndef LATCHD_ENGINE_LOAN_RENEWAL_H
#define LATCHD_ENGINE_LOAN_RENEWAL_H

struct engine;
struct inflight_op;
struct loan;
struct op_result;

/* A client was granted the name from the loan. */
void loan_renewal_note(struct engine *eng, struct loan *loan);
/* Sends what is due. */
void loan_renewals_flush(struct engine *eng);
void on_loan_renewal_reply(struct engine *eng, struct inflight_op *w,
                           const struct op_result *r);

#endif
