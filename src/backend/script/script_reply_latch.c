#include "backend/script/script_reply_priv.h"
#include "util/parse.h"

static enum latch_state read_latch_state(struct reply_reader *r)
{
    static const struct span WORDS[] = {
        [LATCH_NONE] = SPAN("none"), [LATCH_SET] = SPAN("set"),
        [LATCH_OPEN] = SPAN("open"), [LATCH_GONE] = SPAN("gone"),
        [LATCH_LOST] = SPAN("lost"),
    };
    struct span word = reply_text(r);
    size_t i = 0;

    while (i < sizeof(WORDS) / sizeof(WORDS[0]) && !span_eq(word, WORDS[i])) {
        i++;
    }
    r->bad = r->bad || i == sizeof(WORDS) / sizeof(WORDS[0]);
    return r->bad ? LATCH_NONE : (enum latch_state)i;
}

static uint64_t read_generation(struct reply_reader *r)
{
    uint64_t generation = 0;

    r->bad = !parse_u64(reply_text(r), SCRIPT_TOKEN_MAX, &generation) || r->bad;
    return generation;
}

void reply_latch(struct reply_reader *r, struct latch_told *ret)
{
    r->bad = !parse_i64(reply_text(r), &ret->value) || r->bad;
    ret->state = read_latch_state(r);
    ret->generation = read_generation(r);
    ret->last_gone = read_generation(r);
    ret->last_lost = read_generation(r);
}
