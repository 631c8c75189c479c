#include "engine/peers.h"
#include "engine/engine_priv.h"

#include <inttypes.h>

enum { ANNOUNCEMENT_MAX = 128 };

/* --- who is there ----------------------------------------------------------------- */

static struct peer *find_peer(struct peers *peers, struct span instance)
{
    for (size_t i = 0; i < peers->count; i++) {
        if (span_eq(span_of(peers->list[i].instance, OP_INSTANCE_LEN), instance)) {
            return &peers->list[i];
        }
    }
    return NULL;
}

/* NULL: there are too many. */
static struct peer *add_peer(struct peers *peers, struct span instance)
{
    struct peer *peer;

    if (peers->count == PEERS_MAX) {
        peers->more = true;
        return NULL;
    }
    peer = &peers->list[peers->count++];
    *peer = (struct peer){ 0 };
    memcpy(peer->instance, instance.ptr, OP_INSTANCE_LEN);
    return peer;
}

static void remove_peer(struct peers *peers, struct peer *peer)
{
    *peer = peers->list[--peers->count];
}

/* A daemon that has not come back by now has died, or keeps its locks elsewhere. */
static void forget_absent(struct peers *peers)
{
    for (size_t i = peers->count; i-- > 0;) {
        if (peers->list[i].heard < peers->lost_at) {
            remove_peer(peers, &peers->list[i]);
        }
    }
    peers->more = peers->more && peers->count == PEERS_MAX;
}

/* Redis has gone back, and something is to be put back that somebody else could get. */
static bool others_have_to_wait(const struct engine *eng)
{
    return eng->stats.restoring > eng->put_back_count;
}

static uint64_t later_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* When there is something to do about it next. */
static void look_again(struct engine *eng)
{
    uint64_t at = eng->now < eng->peers.absent_at ? eng->peers.absent_at : NEVER;

    if (others_have_to_wait(eng) && (at == NEVER || at > eng->now + PEER_REPEAT_MS)) {
        at = eng->now + PEER_REPEAT_MS;
    }
    if (at != NEVER) {
        timer_set(eng, &eng->peers_timer, TIMER_PEERS, at);
    }
}

/* --- telling ---------------------------------------------------------------------- */

/* Of a failover each hears by itself, and of which names it is about. */
static uint64_t left_ms(const struct engine *eng)
{
    if (others_have_to_wait(eng) && !eng->peers.failed_over) {
        return PEER_RETURN_MS;
    }
    return eng->now < eng->peers.withheld_until ? eng->peers.withheld_until - eng->now
                                                : 0;
}

static void announce_self(struct engine *eng, const char *word)
{
    char *text;
    int len;

    if (eng->quorum || (!eng->up && !eng->peers.asking)) {
        return;
    }
    text = effects_alloc(&eng->fx, ANNOUNCEMENT_MAX);
    len = snprintf(text, ANNOUNCEMENT_MAX,
                   "%s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, word,
                   eng->instance, ++eng->peers.number, left_ms(eng), eng->seen_token,
                   inflight_clock_floor(eng));
    effects_add(&eng->fx, EFFECT_ANNOUNCE)->announcement = span_of(text, (size_t)len);
}

void peers_greet(struct engine *eng)
{
    eng->peers.was_up = true;
    if (eng->peers.failed_over) {
        eng->peers.absent_at = eng->now + PEER_RETURN_MS;
    }
    announce_self(eng, "hello");
    look_again(eng);
}

void peers_tell_token(struct engine *eng)
{
    announce_self(eng, "here");
}

void peers_leave(struct engine *eng)
{
    announce_self(eng, "bye");
}

void engine_listening(struct engine *eng)
{
    announce_self(eng, "hello");
}

/* --- withholding ------------------------------------------------------------------ */

static void withhold_names(struct engine *eng, uint64_t ms)
{
    uint64_t until = eng->now + ms;

    if (eng->now < eng->peers.withheld_until &&
        until < eng->peers.withheld_until + PEER_SLACK_MS) {
        return;
    }
    eng->peers.withheld_until = until;
    eng->peers.absent_at = later_of(eng->peers.absent_at, until);
    /* A failover before may have given them longer. */
    eng->peers.back_by = later_of(eng->peers.back_by, until);
    eng->peers.back_late = later_of(eng->peers.back_late, until);
    quarantine_withhold(eng, until);
    if (!eng->peers.asking) {
        look_again(eng);
    }
}

/* The first Redis of all has lost nothing that is known of here. */
void peers_withhold(struct engine *eng)
{
    if (eng->peers.was_up && peers_known(&eng->peers) && !eng->peers.failed_over &&
        !eng->quorum) {
        withhold_names(eng, PEER_RETURN_MS);
    }
}

void peers_lost_writes(struct engine *eng)
{
    uint64_t ms = eng->cfg.quarantine_ms < PEER_RETURN_MS ? eng->cfg.quarantine_ms
                                                          : PEER_RETURN_MS;

    eng->peers.failed_over = true;
    eng->peers.back_by = eng->now + ms;
    eng->peers.absent_at = eng->now + PEER_RETURN_MS;
    if (!eng->peers.asking) {
        look_again(eng);
    }
    eng->peers.back_late_before = eng->peers.back_late;
    if (peers_known(&eng->peers)) {
        eng->peers.back_late =
            eng->now + (eng->cfg.quarantine_ms != 0 ? eng->cfg.quarantine_ms
                                                    : eng->cfg.watchdog_ms);
    }
}

void peers_lost_nothing(struct engine *eng)
{
    eng->peers.back_late = eng->peers.back_late_before;
}

bool peers_may_restore(const struct engine *eng)
{
    return eng->now < eng->peers.back_by && peers_known(&eng->peers);
}

/* Also of a name that was held here: who holds here may have released it through
 * another daemon, which has granted it anew. */
bool peers_may_restore_late(const struct engine *eng, const struct lock *lock)
{
    return eng->now < eng->peers.back_late &&
           (eng->cfg.quarantine_ms == 0 ||
            quarantine_of_name(eng, lock_name(lock)) != 0);
}

/* --- hearing ---------------------------------------------------------------------- */

/* Cuts the first word off. */
static struct span next_word(struct span *text)
{
    size_t len = 0;
    struct span word;

    while (len < text->len && text->ptr[len] != ' ') {
        len++;
    }
    word = span_of(text->ptr, len);
    *text = span_after(*text, len < text->len ? len + 1 : len);
    return word;
}

/* True: it is a hello that was not heard before. */
static bool note_peer(struct engine *eng, struct span instance, uint64_t number,
                      bool asks)
{
    struct peer *peer = find_peer(&eng->peers, instance);
    bool again = peer != NULL && asks && peer->hello == number;

    if (peer == NULL) {
        peer = add_peer(&eng->peers, instance);
    }
    if (peer != NULL) {
        peer->heard = eng->now;
        peer->hello = asks ? number : peer->hello;
    }
    if (asks && !again) {
        announce_self(eng, "here");
    }
    return asks && !again;
}

bool peers_on_announcement(struct engine *eng, struct span text)
{
    struct span word = next_word(&text);
    struct span instance = next_word(&text);
    struct span number_text = next_word(&text);
    struct span left_text = next_word(&text);
    struct span seen_text = next_word(&text);
    uint64_t number, left, seen = 0, floor_us = 0;
    struct peer *peer;

    if (instance.len != OP_INSTANCE_LEN || span_eq(instance, span_str(eng->instance)) ||
        !parse_u64(number_text, UINT64_MAX, &number) ||
        !parse_u64(left_text, UINT64_MAX, &left) ||
        (seen_text.len > 0 && !parse_u64(seen_text, LATCHD_TOKEN_MAX, &seen)) ||
        (text.len > 0 && !parse_u64(text, LATCHD_TOKEN_MAX, &floor_us))) {
        return false;
    }
    /* The clock may have been set back before this daemon began. */
    inflight_saw_token(eng, seen);
    inflight_raise_clock_floor(eng, floor_us);
    if (!span_eq(word, SPAN("hello")) && !span_eq(word, SPAN("here"))) {
        if (!span_eq(word, SPAN("bye"))) {
            return false;
        }
        peer = find_peer(&eng->peers, instance);
        if (peer != NULL) {
            remove_peer(&eng->peers, peer);
        }
        return false;
    }
    if (left != 0) {
        withhold_names(eng, left < PEER_RETURN_MS ? left : PEER_RETURN_MS);
    }
    return note_peer(eng, instance, number, span_eq(word, SPAN("hello")));
}

/* --- time ------------------------------------------------------------------------- */

void engine_store_is_young(struct engine *eng)
{
    eng->peers.young = true;
}

bool peers_ask_first(struct engine *eng)
{
    bool asks = eng->peers.young && !eng->peers.was_up && !eng->quorum;

    eng->peers.young = false;
    if (!asks) {
        return false;
    }
    eng->peers.asking = true;
    announce_self(eng, "hello");
    timer_set(eng, &eng->peers_timer, TIMER_PEERS, eng->now + PEER_ASK_MS);
    return true;
}

void peers_forget_asking(struct engine *eng)
{
    eng->peers.lost_at = eng->up ? eng->now : eng->peers.lost_at;
    eng->peers.failed_over = false;
    if (eng->peers.asking) {
        eng->peers.asking = false;
        timer_stop(eng, &eng->peers_timer);
    }
}

bool peers_on_timer(struct engine *eng)
{
    if (eng->peers.asking) {
        eng->peers.asking = false;
        return true;
    }
    if (others_have_to_wait(eng)) {
        announce_self(eng, "here");
    }
    /* While Redis is out of reach, nobody can be heard. */
    if (eng->up && eng->now >= eng->peers.absent_at) {
        forget_absent(&eng->peers);
    }
    look_again(eng);
    return false;
}
