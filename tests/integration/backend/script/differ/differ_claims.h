/* differ_claims: who asks, and for what, in the steps of differ.h. Few names, owners
 * and requests, so that they meet. For differ_*.c only. */
#ifndef LATCHD_TESTS_DIFFER_CLAIMS_H
#define LATCHD_TESTS_DIFFER_CLAIMS_H

#include "differ.h"

/* One of two daemons. */
const char *differ_instance(struct differ *d);
uint64_t differ_lease(struct differ *d);
/* A claim of that family; an entry id or a request always means the same one. */
struct claim differ_claim(struct differ *d, const char *instance, bool rw);
/* A hold that could be there. */
struct target differ_target(struct differ *d, struct redis_name *n, bool rw,
                            bool force);
/* One that could be renewed. */
struct renew_item differ_item(struct differ *d, const char *name, bool rw);
/* The family that the name has, or some. */
bool differ_is_rw(struct differ *d, struct redis_name *n);
/* Some member of that daemon in a fair queue: 0 <= `i` < DIFFER_MEMBERS. */
enum { DIFFER_MEMBERS = 5 };
struct span differ_member(struct differ *d, const char *instance, size_t i);

/* Fills in a hold that could be put back. */
void differ_restore(struct differ *d, struct redis_name *n, const char *instance,
                    struct op *op);

#endif
