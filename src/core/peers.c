#include "core/peers.h"

#include "core/restore.h"
#include "util/parse.h"

#include <inttypes.h>
#include <stdio.h>

enum { ANNOUNCEMENT_MAX = 96 };

/* --- who is there ----------------------------------------------------------------- */

bool peers_known(const struct locks *l)
{
    return l->peers.count != 0 || l->peers.more;
}

static struct peer *find_peer(struct peers *p, struct span instance)
{
    for (size_t i = 0; i < p->count; i++) {
        if (span_eq(span_of(p->list[i].instance, OP_INSTANCE_LEN), instance)) {
            return &p->list[i];
        }
    }
    return NULL;
}

/* NULL: there are too many. */
static struct peer *add_peer(struct peers *p, struct span instance)
{
    struct peer *peer;

    if (p->count == PEERS_MAX) {
        p->more = true;
        return NULL;
    }
    peer = &p->list[p->count++];
    *peer = (struct peer){ 0 };
    memcpy(peer->instance, instance.ptr, OP_INSTANCE_LEN);
    return peer;
}

static void remove_peer(struct peers *p, struct peer *peer)
{
    *peer = p->list[--p->count];
}

/* Who has not come back by now has died, or keeps its locks elsewhere. */
static void forget_absent(struct peers *p)
{
    for (size_t i = p->count; i-- > 0;) {
        if (p->list[i].heard < p->lost_at) {
            remove_peer(p, &p->list[i]);
        }
    }
    p->more = p->more && p->count == PEERS_MAX;
}

/* When there is something to do about it next. */
static void look_again(struct locks *l)
{
    uint64_t at = l->now < l->peers.withheld_until ? l->peers.withheld_until : NEVER;

    if (l->stats.restoring != 0 && (at == NEVER || at > l->now + PEER_REPEAT_MS)) {
        at = l->now + PEER_REPEAT_MS;
    }
    if (at != NEVER) {
        timer_set(l, &l->peers_timer, TIMER_PEERS, at);
    }
}

/* --- telling ---------------------------------------------------------------------- */

/* Of a failover each hears by itself, and of which names it is about. */
static uint64_t left_ms(const struct locks *l)
{
    if (l->stats.restoring != 0 && !l->peers.failed_over) {
        return PEER_RETURN_MS;
    }
    return l->now < l->peers.withheld_until ? l->peers.withheld_until - l->now : 0;
}

static void announce(struct locks *l, const char *word)
{
    char *text;
    int len;

    if (l->quorum || (!l->up && !l->peers.asking)) {
        return;
    }
    text = effects_alloc(&l->fx, ANNOUNCEMENT_MAX);
    len = snprintf(text, ANNOUNCEMENT_MAX, "%s %s %" PRIu64 " %" PRIu64, word,
                   l->instance, ++l->peers.number, left_ms(l));
    effects_add(&l->fx, EFFECT_ANNOUNCE)->announcement = span_of(text, (size_t)len);
}

void peers_greet(struct locks *l)
{
    l->peers.was_up = true;
    announce(l, "hello");
    look_again(l);
}

void peers_leave(struct locks *l)
{
    announce(l, "bye");
}

void locks_listening(struct locks *l)
{
    announce(l, "hello");
}

/* --- withholding ------------------------------------------------------------------ */

static void withhold(struct locks *l, uint64_t ms)
{
    uint64_t until = l->now + ms;

    if (l->now < l->peers.withheld_until &&
        until < l->peers.withheld_until + PEER_SLACK_MS) {
        return;
    }
    l->peers.withheld_until = until;
    quarantine_withhold(l, until);
    if (!l->peers.asking) {
        look_again(l);
    }
}

/* The first Redis of all has lost nothing that is known of here. */
void peers_withhold(struct locks *l)
{
    if (l->peers.was_up && peers_known(l) && !l->peers.failed_over && !l->quorum) {
        withhold(l, PEER_RETURN_MS);
    }
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

static void hear(struct locks *l, struct span instance, uint64_t number, bool asks)
{
    struct peer *peer = find_peer(&l->peers, instance);
    bool again = peer != NULL && asks && peer->hello == number;

    if (peer == NULL) {
        peer = add_peer(&l->peers, instance);
    }
    if (peer != NULL) {
        peer->heard = l->now;
        peer->hello = asks ? number : peer->hello;
    }
    if (asks && !again) {
        announce(l, "here");
    }
}

void locks_announced(struct locks *l, struct span text)
{
    struct span word = next_word(&text);
    struct span instance = next_word(&text);
    struct span number_text = next_word(&text);
    uint64_t number, left;
    struct peer *peer;

    if (instance.len != OP_INSTANCE_LEN || span_eq(instance, span_str(l->instance)) ||
        !parse_u64(number_text, UINT64_MAX, &number) ||
        !parse_u64(text, UINT64_MAX, &left)) {
        return;
    }
    if (!span_eq(word, SPAN("hello")) && !span_eq(word, SPAN("here"))) {
        if (!span_eq(word, SPAN("bye"))) {
            return;
        }
        peer = find_peer(&l->peers, instance);
        if (peer != NULL) {
            remove_peer(&l->peers, peer);
        }
        return;
    }
    if (left != 0) {
        withhold(l, left < PEER_RETURN_MS ? left : PEER_RETURN_MS);
    }
    hear(l, instance, number, span_eq(word, SPAN("hello")));
    locks_settle(l);
}

/* --- time ------------------------------------------------------------------------- */

void locks_store_is_young(struct locks *l)
{
    l->peers.young = true;
}

bool peers_ask_first(struct locks *l)
{
    bool asks = l->peers.young && !l->peers.was_up && !l->quorum;

    l->peers.young = false;
    if (!asks) {
        return false;
    }
    l->peers.asking = true;
    announce(l, "hello");
    timer_set(l, &l->peers_timer, TIMER_PEERS, l->now + PEER_ASK_MS);
    return true;
}

void peers_forget_asking(struct locks *l)
{
    l->peers.lost_at = l->up ? l->now : l->peers.lost_at;
    l->peers.failed_over = false;
    if (l->peers.asking) {
        l->peers.asking = false;
        timer_stop(l, &l->peers_timer);
    }
}

void peers_on_timer(struct locks *l)
{
    if (l->peers.asking) {
        l->peers.asking = false;
        locks_store_up(l, false);
        return;
    }
    if (l->stats.restoring != 0) {
        announce(l, "here");
    }
    if (l->now >= l->peers.withheld_until) {
        forget_absent(&l->peers);
    }
    look_again(l);
}
