/* leader_followers: the LEADERs that wait for what a watch finds. Private to engine/.
 */
#ifndef LATCHD_ENGINE_LEADER_LEADER_FOLLOWERS_H
#define LATCHD_ENGINE_LEADER_LEADER_FOLLOWERS_H

#include "engine/effect.h"
#include "util/span.h"

#include <stdbool.h>

struct engine;
struct leader;
struct leader_watch;
struct pending_request;
struct session;

/* Whether `leader` was followed by the one with that token: Redis lost that. Tokens
 * that are closer to each other may be those of one loan, whose own token is its
 * highest. */
bool leader_is_older(const struct leader *leader, uint64_t token);
/* Whether a LEADER waits for a change. */
bool followers_wait(const struct leader_watch *w);
/* Answers all that do not wait for another leader than the one who is known. */
void followers_answer(struct engine *eng, struct leader_watch *w);
/* All of them get that error; those that wait for a change only if `all`. */
void followers_refuse(struct engine *eng, struct leader_watch *w, bool all,
                      enum lock_error error, struct span text);
/* The deadline of a LEADER that waits. */
void leader_request_on_timer(struct engine *eng, struct pending_request *c);
/* Ends the wait of a LEADER of that connection, as if its time were over, or with an
 * error. False: none waits. */
bool leader_unblock(struct engine *eng, struct session *s, bool with_error);
/* The daemon stops: ends all waits. */
void leader_end_waits(struct engine *eng);

#endif
