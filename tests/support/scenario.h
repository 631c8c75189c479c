/* scenario: tests as text, one language for four stages; docs/testing.md has the
 * grammar.
 *
 * scenario.c reads a file, runs each scenario (and each row of its tables) as one test
 * of Check, and compares what a step answered with what it expects. A stage is a table
 * of verbs, and what its clients say. Each answer is a struct value, whatever made it:
 * a reply of RESP, or a map that a stage fills with scn_put_*().
 *
 * The main() is the runner's: a program is a stage's file and this. */
#ifndef LATCHD_TESTS_SCENARIO_H
#define LATCHD_TESTS_SCENARIO_H

#include "support/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SCN_WORDS_MAX = 320, SCN_NAME_MAX = 40, SCN_VALUE_MAX = 512 };

struct scn_words {
    size_t count;
    const char *at[SCN_WORDS_MAX];
};

enum scn_want { SCN_NOTHING, SCN_REPLY, SCN_SILENCE };

/* `who: words -> ..`; without words it only listens. */
struct scn_saying {
    const char *who;
    const struct scn_words *words;
    enum scn_want want; /* NOTHING: nobody looks at *ret */
};

struct scn_verb {
    const char *name;
    size_t max_words; /* further ones fail */
    void (*run)(const struct scn_words *words, struct value *ret);
};

struct scn_stage {
    int timeout_s;       /* of one scenario; 0: Check's own */
    void (*start)(void); /* before all scenarios, or NULL */
    void (*stop)(void);  /* after all of them, or NULL */
    void (*begin)(void);
    void (*end)(void);     /* after a scenario that did not fail */
    void (*wait)(void);    /* between two looks of `within` and `until` */
    uint64_t (*now)(void); /* ms, by the clock that `within` counts on */
    void (*say)(const struct scn_saying *saying, struct value *ret);
    /* The value of $name where no step has bound it, as `$a` does for the last token
     * of the client `a`; false: nothing. */
    bool (*look_up)(const char *name, char ret[SCN_VALUE_MAX]);
    bool (*is_client)(const char *name); /* it was named before; NULL: all are */
    const struct scn_verb *verbs;        /* ended by a name of NULL */
};

/* Each program has one. */
extern const struct scn_stage scn_stage;

/* Fails the test at the line that runs. */
void scn_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* The i-th word; a line that has too few fails. */
const char *scn_word(const struct scn_words *words, size_t i);
int64_t scn_number(const struct scn_words *words, size_t i);
/* The same where there may be none. */
int64_t scn_number_or(const struct scn_words *words, size_t i, int64_t otherwise);
/* `word` is `key=value`: the value; NULL: it is not. */
const char *scn_option(const char *word, const char *key);

/* A field of a struct that a word of a scenario sets, or reads: `key=value`. */
struct scn_field {
    const char *name;
    size_t offset,
        size; /* an unsigned integer or a bool; 4 and 8 bytes may be signed */
};
#define SCN_MEMBER(type, name, member)                                                 \
    {                                                                                  \
        name, offsetof(type, member), sizeof(((type *)0)->member)                      \
    }
#define SCN_FIELD(type, field) SCN_MEMBER(type, #field, field)
/* Sets what `word` says; a name that is not in the table fails. */
void scn_set_field(void *to, const struct scn_field *fields, size_t count,
                   const char *word);
/* Puts all of them into the map. */
void scn_put_fields(struct value *map, const void *from, const struct scn_field *fields,
                    size_t count);

/* The answer of a step. *ret is nil before. */
void scn_int(struct value *ret, int64_t number);
void scn_text(struct value *ret, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds to a list. */
void scn_add_int(struct value *list, int64_t number);
/* Adds to a map; the key "" is its headline, which a bare word is compared with; where
 * there is a key "<", `<` and `<=` are compared with that. */
void scn_put_int(struct value *map, const char *key, int64_t number);
void scn_put_text(struct value *map, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
