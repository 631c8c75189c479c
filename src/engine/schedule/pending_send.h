/* pending_send: sends the pending requests that are queued. Private to engine/. */
#ifndef LATCHD_ENGINE_SCHEDULE_PENDING_SEND_H
#define LATCHD_ENGINE_SCHEDULE_PENDING_SEND_H

struct engine;
struct lock;
struct pending_request;

/* Sends what is queued, or lets it wait for Redis, or for the holds of its lock. */
void pending_requests_send(struct engine *eng);
/* Sends the pending requests that waited until all holds of the lock were put back. */
void pending_requests_resume(struct engine *eng, struct lock *lock);
void pending_request_on_timer(struct engine *eng, struct pending_request *c);

#endif
