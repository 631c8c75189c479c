/* lock_terms: what a LOCK asks for, in one struct from the parser to the waiter, the
 * hold and the replies. latchd/terms.def has a row for each option. Pure data. */
#ifndef LATCHD_ENGINE_LOCK_TERMS_H
#define LATCHD_ENGINE_LOCK_TERMS_H

#include "engine/lock_kind.h"
#include "latchd/terms.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Options that were not given are 0 or empty. */
struct lock_terms {
    enum lock_kind kind; /* PLAIN if none was given */
    uint32_t user;       /* of the connection, see engine.h */
    unsigned has;        /* OPT_* */
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
