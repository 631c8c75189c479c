/* permits: what Redis says of a semaphore's permits. Private to engine/. */
#ifndef LATCHD_ENGINE_LOCK_PERMITS_H
#define LATCHD_ENGINE_LOCK_PERMITS_H

struct engine;
struct lock;
struct op_result;

/* A grant, or a release, tells what is left: the head asks if there is something, and
 * sleeps otherwise. */
void permits_seen(struct engine *eng, struct lock *lock, const struct op_result *r);

#endif
