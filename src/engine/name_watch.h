/* name_watch: what LEADER and LATCH AWAIT share: requests that follow what Redis says
 * of a name, and the looks at it.
 *
 * A lock has a watch while somebody here follows its name. The watch looks into Redis
 * whenever something may have changed, and from time to time in any case, as a message
 * may be lost. One look is on its way at a time, so answers come in order. A follower
 * is a pending request that is answered once a look that was sent after it came says
 * what the request waits for, or when its WAIT is over. Private to engine/. */
#ifndef LATCHD_ENGINE_NAME_WATCH_H
#define LATCHD_ENGINE_NAME_WATCH_H

#include "engine/effect.h"
#include "engine/engine.h"
#include "engine/objects.h"
#include "engine/timer.h"
#include "util/list.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* all watches of a kind together look no more often than this in a second */
    WATCH_LOOKS_PER_S = 1000,
};

struct watch_kind {
    /* Whether the look found what no follower asked for. */
    bool (*finds_other_data)(const struct op_result *r);
    /* Takes what a look says, unless that counts no more. Returns in how many ms to
     * look again. */
    uint64_t (*take_look)(struct engine *eng, struct name_watch *watch, uint64_t op_id,
                          const struct op_result *r);
    /* Whether what is known is older than what the follower's client knows already. */
    bool (*is_older)(const struct name_watch *watch, const struct pending_request *c);
    /* Answers a follower whose WAIT is over. */
    void (*answer_over)(struct engine *eng, const struct name_watch *watch,
                        const struct pending_request *c);
};

/* The watches of one kind. */
struct watch_set {
    struct list list;
    struct list followers; /* of all of them, first come first */
    size_t count;
    size_t follower_count;
};

struct name_watch {
    const struct watch_kind *kind;
    struct watch_set *set;
    struct list in_set;
    struct lock *lock;
    struct list followers; /* pending_request.in_waiting, first come first */
    size_t follower_count;
    struct timer timer; /* the next look */
    struct inflight_op *look;
    uint64_t known_op;   /* the look that what is known is from */
    uint64_t not_before; /* no look before this, as Redis refused one */
    /* a text that stays: why nothing is known, although Redis answered; or none */
    struct span why_unknown;
    bool is_known; /* else Redis cannot be asked, or may lack something */
    bool is_due;   /* something may have changed since `look` was sent */
};

void watch_set_init(struct watch_set *set);
void name_watch_init(struct engine *eng, struct name_watch *watch,
                     const struct watch_kind *kind, struct watch_set *set,
                     struct lock *lock);
/* Nobody may follow any more. */
void name_watch_fini(struct engine *eng, struct name_watch *watch);
/* Something may have changed: the watch looks again. */
void name_watch_note(struct engine *eng, struct name_watch *watch);
/* Nothing is known any more, of any of these names. */
void watch_set_doubt(struct engine *eng, struct watch_set *set);
/* The daemon stops: all waits end. */
void watch_set_stop(struct engine *eng, struct watch_set *set);
/* Whether a look is due and can be sent. */
bool name_watch_may_look(const struct engine *eng, const struct name_watch *watch);
/* Begins a look, for which the caller makes the op. */
struct inflight_op *name_watch_begin_look(struct engine *eng, struct name_watch *watch);
/* Follows the name by the request, for `wait_ms`, or for ever. */
void name_watch_follow(struct engine *eng, struct name_watch *watch,
                       struct pending_request *c, uint64_t wait_ms, bool has_end);
/* Whether what is known was looked for after the request came, so that no reply is
 * older than what its client may know already. */
bool name_watch_is_known_to(const struct name_watch *watch,
                            const struct pending_request *c);
/* All followers get that error; `all` is false: but not those that wait for a change.
 */
void name_watch_refuse(struct engine *eng, struct name_watch *watch, bool all,
                       enum lock_error error, struct span text);
/* In how many ms the next look is due of a watch that is to look every `ms`. */
uint64_t name_watch_next_look_in(const struct name_watch *watch, uint64_t ms);
void on_name_watch_look(struct engine *eng, struct inflight_op *op,
                        const struct op_result *r);
/* Whether no more followers can be served; the request has been answered then. */
bool name_watch_refuses(struct engine *eng, struct call_ref from);
/* The deadline of a follower. */
void name_watch_request_on_timer(struct engine *eng, struct pending_request *c);
/* Ends the wait of a follower of that connection, as if its time were over, or with an
 * error. False: none waits. */
bool name_watch_unblock(struct engine *eng, struct session *s, bool with_error);
/* The followers' part of engine_refuse_waits(). */
void name_watch_refuse_waits(struct engine *eng, const struct session *s,
                             engine_refuses_fn *refuses, void *ctx);

#endif
