/* objects: the structs of engine/, for pointers to them; engine_state.h says how they
 * hang together. Private to engine/. */
#ifndef LATCHD_ENGINE_OBJECTS_H
#define LATCHD_ENGINE_OBJECTS_H

struct acquire_spec;
struct attach;
struct engine;
struct entry;
struct hold;
struct hold_req;
struct inflight_op;
struct loan;
struct lock;
struct lock_req;
struct mlock_member;
struct name_watch;
struct op_result;
struct pending_release;
struct pending_request;
struct recent_ask;
struct request;
struct session;
struct waiter;

#endif
