/* lock_terms: what a LOCK asks for, in one struct from the parser to the waiter, the
 * hold and the replies. latchd/terms.def has a row for each option. Pure data. */
#ifndef LATCHD_ENGINE_LOCK_TERMS_H
#define LATCHD_ENGINE_LOCK_TERMS_H

#include "latchd/terms.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A hold is PLAIN, READ, WRITE or PERMITS: fair is only a way of waiting, and a latch
 * is waited for and never held. */
enum lock_kind {
    KIND_PLAIN,
    KIND_FAIR,
    KIND_READ,
    KIND_WRITE,
    KIND_PERMITS,
    KIND_LATCH,
};

/* "plain", "fair", ... */
const char *lock_kind_name(enum lock_kind kind);

/* Kinds that share the layout in Redis, the scripts and the channel. Classes exclude
 * each other. */
enum lock_class {
    CLASS_PLAIN,     /* plain and fair locks */
    CLASS_RW,        /* read and write locks */
    CLASS_SEMAPHORE, /* permits */
    CLASS_LATCH,     /* counted down; nobody holds it */
    LOCK_CLASSES,
};

static inline enum lock_class lock_class_of(enum lock_kind kind)
{
    return kind == KIND_READ || kind == KIND_WRITE ? CLASS_RW
           : kind == KIND_PERMITS                  ? CLASS_SEMAPHORE
           : kind == KIND_LATCH                    ? CLASS_LATCH
                                                   : CLASS_PLAIN;
}

/* Whether a request of this kind says which lock class it is about. PLAIN, unless of a
 * LOCK, does not. */
static inline bool lock_kind_tells_class(enum lock_kind kind)
{
    return lock_class_of(kind) != CLASS_PLAIN;
}

/* Whether a name may have many holds of this kind, whose fields are chosen before they
 * are asked for. */
static inline bool lock_kind_is_shared(enum lock_kind kind)
{
    return kind == KIND_READ || kind == KIND_PERMITS;
}

/* Options that were not given are 0 or empty. */
struct lock_terms {
    enum lock_kind lock_kind; /* PLAIN if none was given */
    uint32_t user;            /* of the connection, see engine.h */
    unsigned has;             /* OPT_* */
    struct span value; /* of a value hold, see value_hold.h; empty: none is asked for */
#define TERM_FLAG(field)
#define TERM_MS(field) uint64_t field;
#define TERM_NUMBER(field) uint64_t field;
#define TERM_SMALL(field) uint32_t field;
#define TERM_WORD(field) struct span field;
#define TERM_TEXT(field) struct span field;
#define TERM(word, type, field, ...) TERM_##type(field)
#define OPTION(...)
#include "latchd/terms.def"
};

/* Whether the LOCK has WAIT 0: its wait ends as soon as Redis has answered. */
static inline bool lock_tries_once(const struct lock_terms *terms)
{
    return (terms->has & OPT_WAIT) != 0 && terms->wait_ms == 0;
}

/* The bytes of all texts, and their move to *at, which moves on behind them: the terms
 * then point there. */
size_t lock_terms_bytes(const struct lock_terms *terms);
void lock_terms_move(struct lock_terms *terms, char **at);

#endif
