#include "engine/lock_terms.h"

#include <string.h>

const char *lock_kind_name(enum lock_kind kind)
{
    static const char *const KINDS[] = {
        [KIND_PLAIN] = "plain", [KIND_FAIR] = "fair",       [KIND_READ] = "read",
        [KIND_WRITE] = "write", [KIND_PERMITS] = "permits", [KIND_LATCH] = "latch",
    };

    return KINDS[kind];
}

/* Where the texts are. */
static const size_t TEXTS[] = {
    offsetof(struct lock_terms, value),
#define TEXT_FLAG(field)
#define TEXT_MS(field)
#define TEXT_NUMBER(field)
#define TEXT_SMALL(field)
#define TEXT_WORD(field) offsetof(struct lock_terms, field),
#define TEXT_TEXT(field) offsetof(struct lock_terms, field),
#define TERM(word, type, field, ...) TEXT_##type(field)
#define OPTION(...)
#include "latchd/terms.def"
};

enum { TEXT_COUNT = sizeof(TEXTS) / sizeof(TEXTS[0]) };

size_t lock_terms_bytes(const struct lock_terms *terms)
{
    size_t bytes = 0;

    for (size_t i = 0; i < TEXT_COUNT; i++) {
        bytes += ((const struct span *)((const char *)terms + TEXTS[i]))->len;
    }
    return bytes;
}

void lock_terms_move(struct lock_terms *terms, char **at)
{
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        struct span *text = (struct span *)((char *)terms + TEXTS[i]);

        if (text->len == 0) {
            *text = SPAN_NONE;
            continue;
        }
        memcpy(*at, text->ptr, text->len);
        text->ptr = *at;
        *at += text->len;
    }
}
