/* restore_mark: which holds are to be put back into Redis; recovery/restore.h sends
 * that. Private to engine/. */
#ifndef LATCHD_ENGINE_RESTORE_MARK_H
#define LATCHD_ENGINE_RESTORE_MARK_H

#include <stdbool.h>

struct engine;
struct hold;

/* A hold that was to be put back needs that no more. */
void hold_mark_restored(struct engine *eng, struct hold *h);
/* Queues a hold for a RESTORE: the first one, or another one, as the result of the last
 * one said nothing. */
void restore_again(struct engine *eng, struct hold *h);
/* Whether no RESTORE of the hold is waiting or in flight. */
bool restore_is_idle(const struct hold *h);
/* Drops the restore of a hold that is gone. */
void restore_forget(struct engine *eng, struct hold *h);

#endif
