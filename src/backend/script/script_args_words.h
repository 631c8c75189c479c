/* script_args_words: what several arguments of scripts are written as. A part of
 * script_args.h. */
#ifndef LATCHD_BACKEND_SCRIPT_SCRIPT_ARGS_WORDS_H
#define LATCHD_BACKEND_SCRIPT_SCRIPT_ARGS_WORDS_H

#include "backend/redis/redis_command.h"
#include "backend/script/script_call_priv.h"
#include "util/digits.h"

static void put_bool(struct script_source *from, bool value)
{
    command_word(from->out, value ? SPAN("1") : SPAN("0"));
}

static void put_letters(struct script_source *from, const struct span *letters,
                        size_t count)
{
    command_join(from->out, letters, count);
}

/* A number; with a `-` before it, it says one thing more. */
static void put_number(struct script_source *from, bool dashed, uint64_t number)
{
    char text[DIGITS_MAX];
    const char *at = digits_before(text + sizeof(text), number);
    struct span parts[] = { dashed ? SPAN("-") : SPAN_NONE,
                            span_of(at, (size_t)(text + sizeof(text) - at)) };

    command_join(from->out, parts, sizeof(parts) / sizeof(parts[0]));
}

static struct span kind_letter(enum owner_kind kind)
{
    switch (kind) {
    case OWNER_ID:
        return SPAN("i");
    case OWNER_NAMED:
        return SPAN("n");
    case OWNER_ANONYMOUS:
    case OWNER_REST:
        break;
    }
    return SPAN("a");
}

static struct span lock_kind_letter(enum lock_kind kind, struct span plain)
{
    return kind == KIND_WRITE ? SPAN("w") : kind == KIND_READ ? SPAN("r") : plain;
}

/* An anonymous claim is known by its request, unless it comes with its field. */
static bool is_known_by_request(const struct claim *claim)
{
    return claim->kind == OWNER_ANONYMOUS && !lock_kind_is_shared(claim->lock_kind);
}

#endif
