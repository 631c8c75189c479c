/* recent_asks: how often names are asked for with LOCAL, and whether others use them.
 * What is known decides which names are lent, and for how long an idle loan is kept.
 * A table of a fixed size, made when a LOCK with LOCAL comes: a name takes the place of
 * another one of the same slot, which then counts as never asked for. Private to
 * engine/. */
#ifndef LATCHD_ENGINE_HOLD_RECENT_ASKS_H
#define LATCHD_ENGINE_HOLD_RECENT_ASKS_H

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct loan;
struct lock;
struct recent_ask;

/* A LOCK that may be local came. Whether the name was asked for, or granted by Redis,
 * within a window before. */
bool recent_asks_note(struct engine *eng, const struct lock *lock);
/* Redis granted a LOCK that may be local: how long Redis took is no pause between two
 * LOCKs. */
void recent_asks_granted(struct engine *eng, const struct lock *lock);
/* Redis says that somebody else holds the name. */
void recent_asks_others(struct engine *eng, const struct lock *lock);
/* Whether that was so of late. */
bool recent_asks_have_others(const struct engine *eng, const struct lock *lock);
/* When a loan that nobody holds from now on is to be returned: a few times as much
 * later as the last LOCKs were apart, within the window; sooner if others have been
 * seen to use the name. */
uint64_t recent_asks_return_at(const struct engine *eng, const struct loan *loan);

#endif
