#include "engine/followed_names.h"
#include "engine/engine_priv.h"

#include <inttypes.h>

#define CHANGED_WORD "leader"
enum { HEAD_MAX = 64 }; /* of an announcement, before the name */

/* Noted when its last announcement was heard. */
struct followed_name {
    struct recent_item item;
    uint64_t told; /* the token of the hold here that was announced last */
};

void followed_names_init(struct engine *eng)
{
    recent_init(&eng->followed, sizeof(struct followed_name), FOLLOWED_MAX);
}

static bool is_followed(const struct engine *eng, const struct followed_name *followed)
{
    return followed != NULL && eng->now < followed->item.at + FOLLOWED_MS;
}

bool followed_name_is(const struct engine *eng, struct span name)
{
    return is_followed(eng, recent_find(&eng->followed, name));
}

/* --- telling ---------------------------------------------------------------------- */

void followed_name_announce(struct engine *eng, const char *word, struct span name)
{
    char *text = effects_alloc(&eng->fx, HEAD_MAX + name.len);
    int len = snprintf(text, HEAD_MAX, "%s %s %" PRIu64 " ", word, eng->instance,
                       ++eng->peers.number);

    memcpy(text + len, name.ptr, name.len);
    effects_add(&eng->fx, EFFECT_ANNOUNCE)->announcement =
        span_of(text, (size_t)len + name.len);
}

void followed_name_step(struct engine *eng, struct lock *lock)
{
    uint64_t token = lock_leader_token(lock);
    struct followed_name *followed;

    if (eng->followed.count == 0 || !eng->up) {
        return;
    }
    followed = recent_find(&eng->followed, lock_name(lock));
    if (followed == NULL || followed->told == token || lock->loan != NULL) {
        return; /* holds from a loan come and go, and the loan stays */
    }
    followed->told = token;
    if (is_followed(eng, followed)) {
        followed_name_announce(eng, CHANGED_WORD, lock_name(lock));
    } else {
        recent_drop(&eng->followed, followed);
    }
}

/* --- hearing ---------------------------------------------------------------------- */

static void note_followed(struct engine *eng, struct span name)
{
    struct lock *lock = lock_find(eng, name);
    struct followed_name *followed;
    bool is_new;

    recent_expire(&eng->followed, eng->now, FOLLOWED_MS);
    is_new = recent_find(&eng->followed, name) == NULL;
    if (!is_new || eng->followed.count < FOLLOWED_MAX) {
        followed = recent_note(&eng->followed, name, eng->now);
        followed->told = !is_new        ? followed->told
                         : lock == NULL ? 0
                                        : lock_leader_token(lock);
    }
    if (lock != NULL && lock->loan != NULL) {
        loan_end(eng, lock);
        if (lock->loan->holder != NULL) {
            hold_schedule_renewal(eng, lock->loan->holder);
        }
    }
}

/* Cuts the first word off. */
static struct span cut_word(struct span *text)
{
    const char *space = text->len == 0 ? NULL : memchr(text->ptr, ' ', text->len);
    size_t len = space == NULL ? text->len : (size_t)(space - text->ptr);
    struct span word = span_of(text->ptr, len);

    *text = span_after(*text, len < text->len ? len + 1 : len);
    return word;
}

bool followed_names_on_announcement(struct engine *eng, struct span text,
                                    struct span *ret_changed)
{
    struct span word = cut_word(&text);
    struct span instance = cut_word(&text);
    bool follows = span_eq(word, SPAN(FOLLOWED_WORD));

    *ret_changed = SPAN_NONE;
    if (!follows && !span_eq(word, SPAN(CHANGED_WORD))) {
        return false;
    }
    (void)cut_word(&text); /* the number tells one announcement from the next */
    if (span_eq(instance, span_str(eng->instance)) || text.len == 0 ||
        text.len > LATCHD_NAME_MAX) {
        return true;
    }
    if (follows) {
        note_followed(eng, text);
    } else {
        *ret_changed = text;
    }
    return true;
}
