/* lock_step: decides which op a name needs next. Private to engine/. */
#ifndef LATCHD_ENGINE_SCHEDULE_LOCK_STEP_H
#define LATCHD_ENGINE_SCHEDULE_LOCK_STEP_H

struct engine;
struct lock;

/* The scheduler of one name: sends what the name needs next, if nothing is in the way.
 */
void lock_step(struct engine *eng, struct lock *lock);
void lock_free(struct engine *eng, struct lock *lock);
void lock_on_timer(struct engine *eng, struct lock *lock);

#endif
