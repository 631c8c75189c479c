/* sim_random_lock: what a random client asks for when it wants a lock. */
#ifndef LATCHD_SIM_RANDOM_LOCK_H
#define LATCHD_SIM_RANDOM_LOCK_H

#include "sim/world/sim_world.h"

struct redis_name *random_name(struct sim *s);
struct rtext random_owner(struct sim *s);
void random_wait(struct sim *s, struct ask *a);
void random_place(struct sim *s, struct ask *a);

struct ask random_lock(struct sim *s);
/* With ATLEAST, too, where the schedule has it. */
struct ask random_lock_or_mlock(struct sim *s);

#endif
