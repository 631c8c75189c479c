/* op_fields: what scenarios write of ops and of their results: words for the values of
 * enums, and the names of fields. Kinds and statuses are in support/op_words.h. */
#ifndef LATCHD_TESTS_OP_FIELDS_H
#define LATCHD_TESTS_OP_FIELDS_H

#include "engine/op.h"
#include "support/scenario.h"

extern const char *const LOCK_KINDS[];   /* by enum lock_kind */
extern const char *const OWNER_KINDS[];  /* by enum owner_kind */
extern const char *const TARGETS[];      /* by enum target_kind */
extern const char *const YIELDS[];       /* by enum yield */
extern const char *const LATCH_VERBS[];  /* by enum latch_verb */
extern const char *const LATCH_STATES[]; /* by enum latch_state */
extern const size_t LOCK_KIND_COUNT, TARGET_COUNT, YIELD_COUNT, LATCH_VERB_COUNT,
    LATCH_STATE_COUNT;

/* The place of a word in a list of words; -1: it is not there. */
int find_word(const char *const *words, size_t count, const char *word);
/* A word of a list, as in `kind=read`; -1: it is not about that. */
int read_choice(const char *word, const char *key, const char *const *words,
                size_t count);

/* `items`: of a RENEW; the first one is shown. */
void put_op_fields(struct value *map, const struct op *op,
                   const struct renew_item *items);
void put_claim_fields(struct value *map, const struct claim *claim);
/* The result of an op of that kind. */
void put_result_fields(struct value *map, const struct op_result *r, enum op_kind kind);

/* `key=value`; texts live as long as `word`. False: there is no such field. */
bool set_op_field(struct op *op, const char *word);
bool set_claim_field(struct claim *claim, const char *word);
bool set_item_field(struct renew_item *item, const char *word);
/* A field that is not there fails. */
void set_result_field(struct op_result *r, const char *word);

#endif
