/* session: a connection's waiters, attachments and pending requests. Made on first
 * use, freed when it is empty. Private to engine/. */
#ifndef LATCHD_ENGINE_SESSION_H
#define LATCHD_ENGINE_SESSION_H

#include "engine/objects.h"
#include "util/list.h"
#include "util/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lost_name {
    struct lost_name *next;
    size_t len;
    char name[];
};

struct session {
    struct table_node conn;
    struct list waiters;
    struct list attaches;
    struct list pending_requests;
    struct list mlocks;
    struct lost_name *lost;
    uint64_t noticed; /* the number of the last notice that named the connection */
    uint16_t lost_count;
    bool lost_many; /* more names than could be remembered */
    bool closing;
};

struct session *session_get(struct engine *eng, uint64_t conn);
struct session *session_find(const struct engine *eng, uint64_t conn);
void session_free(struct engine *eng, struct session *s);
/* Frees the session if it is empty. */
void session_idle(struct engine *eng, struct session *s);
void session_lost(struct session *s, const struct lock *lock);
void session_forget_lost(struct session *s);
bool session_has_lost(const struct session *s, const struct lock *lock);

#endif
