/* lock_plan: a lock_script from within: an operation whose operands are not bound yet,
 * for each variant that the arguments may choose. Plain data, so that those of known
 * libraries are constants of the program. */
#ifndef LATCHD_LOCKSCRIPT_LOCK_PLAN_H
#define LATCHD_LOCKSCRIPT_LOCK_PLAN_H

#include "lockscript/lock_script.h"

enum {
    LOCK_CONDITIONS_MAX = 2, /* arguments that are compared with a text */
    LOCK_VARIANTS = 1 << LOCK_CONDITIONS_MAX,
};

enum lock_operand_source {
    LOCK_OPERAND_NONE,
    LOCK_OPERAND_KEY,    /* KEYS[index] */
    LOCK_OPERAND_ARG,    /* ARGV[index] */
    LOCK_OPERAND_TEXT,   /* text */
    LOCK_OPERAND_NUMBER, /* number */
};

struct lock_operand {
    enum lock_operand_source source;
    unsigned index; /* 1 and up */
    int64_t number;
    struct span text;
};

enum lock_unit { LOCK_UNIT_MS, LOCK_UNIT_S };

/* Which command gives the end: Redis takes other times for each. */
enum lock_end_command {
    LOCK_END_BY_SET,    /* SET, SETEX: positive times only */
    LOCK_END_BY_EXPIRE, /* EXPIRE...: any time */
};

struct lock_end_plan {
    enum lock_call_end end;
    enum lock_unit unit;
    enum lock_end_command command;
    struct lock_operand time;
};

/* struct lock_call says what the fields mean. */
struct lock_plan {
    enum lock_call_kind kind; /* LOCK_CALL_KINDS: the arguments cannot choose this */
    enum lock_call_scope scope;
    enum lock_call_compare compare;
    enum lock_call_endless endless;
    unsigned value_arg; /* index of ARGV; 0: no value */
    struct lock_operand prefix_len;
    struct lock_end_plan end;
    struct lock_operand channel, message;
    struct lock_operand
        database; /* that SELECT is given; LOCK_OPERAND_NONE: no SELECT */
    struct lock_reply replies[LOCK_KEY_STATES];
};

/* ARGV[arg] == text */
struct lock_condition {
    unsigned arg;
    struct span text;
};

struct lock_script {
    unsigned keys_named;  /* the call needs so many keys */
    unsigned keys_locked; /* so many of them are locks; 0: all that there are */
    unsigned condition_count;
    struct lock_condition conditions[LOCK_CONDITIONS_MAX];
    /* Condition i holds in the plans whose number has bit i. */
    struct lock_plan plans[LOCK_VARIANTS];
    char *text; /* what the spans point into, owned; NULL: constants */
};

static inline bool lock_operand_eq(const struct lock_operand *a,
                                   const struct lock_operand *b)
{
    return a->source == b->source && a->index == b->index && a->number == b->number &&
           span_eq(a->text, b->text);
}

bool lock_end_plan_eq(const struct lock_end_plan *a, const struct lock_end_plan *b);

#endif
