/* schedule: the scheduler of the engine. The parts of the engine change state, and mark
 * what needs another look; the scheduler looks, and sends. Private to engine/. */
#ifndef LATCHD_ENGINE_SCHEDULE_SCHEDULE_H
#define LATCHD_ENGINE_SCHEDULE_SCHEDULE_H

struct engine;

/* Sends the queued requests and steps every dirty lock and MLOCK until none is left;
 * the last act of each entry into the engine. */
void engine_settle(struct engine *eng);

#endif
