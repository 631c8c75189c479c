/* entry_extra: what few entries have. An extra is made when it is first needed; the
 * entries without one share the constant ENTRY_NO_EXTRA, which is read only. Private to
 * engine/. */
#ifndef LATCHD_ENGINE_ENTRY_EXTRA_H
#define LATCHD_ENGINE_ENTRY_EXTRA_H

#include "engine/timer.h"

#include <stdint.h>

struct engine;
struct entry;
struct far_attach;
struct mlock_member;
struct pending_release;
struct request;

struct entry_extra {
    struct entry *entry;
    /* when the entry ends by itself: grace, KEEP, or its own fixed lease */
    struct timer timer;
    uint64_t until;                  /* end of the entry's own fixed lease */
    struct far_attach *attaches;     /* all but the own_attach */
    struct request *request;         /* the request whose ID the entry has, or NULL */
    struct pending_release *release; /* the release in progress, or NULL */
    /* the member of an MLOCK that the entry was granted to, or NULL */
    struct mlock_member *member;
};

extern const struct entry_extra ENTRY_NO_EXTRA;

void entry_extra_none(struct entry *e);
/* The extra, to be changed: made if the entry has none. It stays as long as the entry.
 */
struct entry_extra *entry_open_extra(struct engine *eng, struct entry *e);
/* Frees what the entry has of it, timer and all. */
void entry_extra_free(struct engine *eng, struct entry *e);

#endif
