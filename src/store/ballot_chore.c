/* What has to be done at nodes, sooner or later, whoever has had an answer. */
#include "core/op_clone.h"
#include "store/ballot_priv.h"
#include "util/alloc.h"
#include "util/hash.h"

#include <stdio.h>
#include <stdlib.h>

enum { KEY_MAX = 4096 + 2 * 512 + 64 };

static bool is_named(struct span field)
{
    return !span_starts(field, SPAN("latchd:"));
}

static bool tells_nothing(enum op_status status)
{
    return status == OP_LATE || status == OP_UNKNOWN || status == OP_ERROR;
}

/* By what a chore is found: name, NUL, and what it ends. 0: it is not looked for. */
static size_t make_key(char *out, size_t room, struct span name, struct span field,
                       struct span entry, uint64_t token)
{
    char number[24];
    int len = snprintf(number, sizeof(number), "%llu", (unsigned long long)token);
    struct span parts[] = { name, field, is_named(field) ? entry : SPAN_NONE,
                            field.len == 0 ? span_of(number, (size_t)len) : SPAN_NONE };
    size_t at = 0;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (at + parts[i].len + 1 > room) {
            return 0;
        }
        if (parts[i].len != 0) {
            memcpy(out + at, parts[i].ptr, parts[i].len);
        }
        at += parts[i].len;
        out[at++] = '\0';
    }
    return at;
}

static struct chore *find(const struct ballot *b, const char *key, size_t len)
{
    struct table_node *n =
        len == 0 ? NULL : table_find(&b->chores, hash_bytes(key, len));

    for (; n != NULL; n = table_next(n)) {
        struct chore *ch = container_of(n, struct chore, by_key);

        if (span_eq(span_of(ch->key, ch->key_len), span_of(key, len))) {
            return ch;
        }
    }
    return NULL;
}

static void errand_drop(struct ballot *b, struct errand *e, unsigned node)
{
    if (e->sent != NULL) {
        e->sent->errand = NULL;
    }
    b->nodes[node].errands_in_flight -= e->state == ERRAND_SENT ? 1 : 0;
    list_del(&e->in_node);
    e->state = ERRAND_NONE;
    e->sent = NULL;
}

void chore_free(struct ballot *b, struct chore *ch)
{
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        errand_drop(b, &ch->errands[i], i);
    }
    table_remove(&b->chores, &ch->by_key);
    list_del(&ch->in_chores);
    heap_remove(&b->chore_timers, &ch->timer);
    b->chore_count--;
    free(ch->op);
    free(ch);
}

static struct chore *chore_new(struct ballot *b, const struct op *op, uint64_t keep_ms)
{
    char key[KEY_MAX];
    size_t len = make_key(key, sizeof(key), op->name, op->target.field,
                          op->target.entry, op->target.token);
    struct chore *ch = find(b, key, len);

    if (ch != NULL) {
        chore_free(b, ch); /* the new one does the same, at all that may have it */
    }
    if (b->chore_count >= BALLOT_CHORES_MAX) {
        chore_free(b,
                   container_of(list_first(&b->chore_order), struct chore, in_chores));
        b->stats.forgotten++;
    }
    ch = xcalloc(1, sizeof(*ch) + len);
    memcpy(ch->key, key, len);
    ch->key_len = len;
    ch->op = op_clone(op);
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        ch->errands[i].chore = ch;
        list_init(&ch->errands[i].in_node);
    }
    ch->by_key.key = hash_bytes(ch->key, ch->key_len);
    table_add(&b->chores, &ch->by_key);
    list_append(&b->chore_order, &ch->in_chores);
    heap_set(&b->chore_timers, &ch->timer, b->now + keep_ms);
    b->chore_count++;
    return ch;
}

static void wait_for_turn(struct ballot *b, struct errand *e, unsigned node)
{
    e->state = ERRAND_WAITS;
    list_append(&b->nodes[node].errands, &e->in_node);
}

/* `as`: what `v` has on its way is to the errand. */
static void add_errand(struct ballot *b, struct chore *ch, unsigned node,
                       struct vote *v, enum errand_state as)
{
    struct errand *e = &ch->errands[node];

    ch->left++;
    e->had = v->had;
    e->sent = v->sent;
    if (v->sent == NULL) {
        wait_for_turn(b, e, node);
        return;
    }
    e->state = as;
    b->nodes[node].errands_in_flight += as == ERRAND_SENT ? 1 : 0;
    v->sent->call = NULL;
    v->sent->errand = e;
    v->sent = NULL;
}

/* Sends what can be; a chore without an errand is over. */
static void begin(struct ballot *b, struct chore *ch)
{
    if (ch->left == 0) {
        chore_free(b, ch);
        return;
    }
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        chores_flush(b, i);
    }
}

void chore_undo(struct ballot *b, struct call *c)
{
    const struct claim *cl = &c->op->claim;
    struct op op = {
        .kind = OP_RELEASE,
        .name = c->op->name,
        .own_accord = true,
        .untold = c->untold,
        .target = { .kind = cl->kind == OWNER_NAMED ? TARGET_ENTRY : TARGET_FIELD,
                    .field = cl->field,
                    .entry = cl->entry },
    };
    struct chore *ch = NULL;

    for (unsigned i = 0; i < b->setup.node_count; i++) {
        if (c->votes[i].may) {
            ch = ch != NULL ? ch : chore_new(b, &op, cl->lease_ms + SLACK_MS);
            add_errand(b, ch, i, &c->votes[i], ERRAND_WATCHES);
            c->votes[i].may = false;
        }
    }
    if (ch != NULL) {
        begin(b, ch);
    }
}

/* Sent late, it might end what was taken since. */
static bool is_vague(const struct target *t)
{
    return t->kind == TARGET_OWNER || t->kind == TARGET_ANY;
}

static bool is_done_there(const struct vote *v)
{
    return v->state == VOTE_IN && !tells_nothing(v->r.status);
}

void chore_release(struct ballot *b, struct call *c)
{
    uint64_t keep_ms = c->op->lease_ms == 0 ? CHORE_KEEP_MS : c->op->lease_ms;
    struct chore *ch = NULL;

    if (is_vague(&c->op->target)) {
        return;
    }
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        struct vote *v = &c->votes[i];

        if (!is_done_there(v)) {
            ch = ch != NULL ? ch : chore_new(b, c->op, keep_ms + SLACK_MS);
            add_errand(b, ch, i, v, ERRAND_SENT);
        }
    }
    if (ch != NULL) {
        begin(b, ch);
    }
}

void chore_absorb(struct ballot *b, struct call *c)
{
    const struct claim *cl = &c->op->claim;
    char key[KEY_MAX];
    size_t len = make_key(key, sizeof(key), c->op->name, cl->field, cl->entry, 0);
    struct chore *ch = find(b, key, len);

    if (ch == NULL) {
        return;
    }
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        c->votes[i].may = c->votes[i].may || ch->errands[i].state != ERRAND_NONE;
    }
    c->untold = ch->op->untold != 0 ? ch->op->untold : c->untold;
    chore_free(b, ch);
}

/* What became of an ACQUIRE that is to be undone: nothing, or is there something? */
static bool is_there(struct ballot *b, const struct errand *e,
                     const struct op_result *r)
{
    bool granted = r->status == OP_OK && !r->elsewhere;

    if (granted) {
        ballot_note_split(b, ballot_slot(b, e->chore->op->name), true);
    }
    return granted || r->status == OP_UNKNOWN || r->status == OP_ERROR ||
           (e->had && (r->status == OP_LATE || r->status == OP_BEHIND));
}

static void hold_up(struct ballot *b, struct ballot_node *n, enum op_status status)
{
    uint64_t pause = status == OP_ERROR  ? ERROR_PAUSE_MS
                     : status == OP_LATE ? LATE_PAUSE_MS
                                         : 0;

    if (n->pause_until < b->now + pause) {
        n->pause_until = b->now + pause;
    }
}

void chore_on_result(struct ballot *b, struct errand *e, const struct op_result *r)
{
    struct chore *ch = e->chore;
    unsigned node = (unsigned)(e - ch->errands);
    enum errand_state was = e->state;

    e->sent = NULL;
    e->state = ERRAND_NONE;
    if (was == ERRAND_WATCHES && is_there(b, e, r)) {
        wait_for_turn(b, e, node);
        return;
    }
    if (was == ERRAND_SENT) {
        b->nodes[node].errands_in_flight--;
        if (tells_nothing(r->status)) {
            wait_for_turn(b, e, node);
            hold_up(b, &b->nodes[node], r->status);
            return;
        }
        b->stats.undone++;
    }
    if (--ch->left == 0) {
        chore_free(b, ch);
    }
}

void chores_flush(struct ballot *b, unsigned node)
{
    struct ballot_node *n = &b->nodes[node];
    struct list *it;

    while (b->now >= n->pause_until && n->errands_in_flight < ERRANDS_IN_FLIGHT &&
           ballot_usable(b, node) && (it = list_first(&n->errands)) != NULL) {
        struct errand *e = container_of(it, struct errand, in_node);

        list_del(it);
        e->state = ERRAND_SENT;
        n->errands_in_flight++;
        e->sent = ballot_send(b, node, e->chore->op);
        e->sent->errand = e;
    }
}
