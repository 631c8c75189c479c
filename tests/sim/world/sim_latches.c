#include "sim/world/sim_latches.h"

#include "sim/redis/sim_redisson.h"
#include "sim/world/sim_world.h"
#include "util/alloc.h"
#include "util/text.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    NOTICE_MS = 1000, /* an engine's time may be a little ahead */
    CALM_MS = 5000,   /* in which counts are made again */
};

void latches_begin(struct sim *s)
{
    s->latches.name = sim_redis_name(sim_redis_now(s), SPAN("gate"));
}

void latches_fini(struct sim_latches *l)
{
    free(l->log);
}

/* --- the truth -------------------------------------------------------------------- */

static const struct key *find_beside(const struct sim *s, const char *prefix)
{
    struct rtext name = redis_key(s->latches.name, prefix, "");

    return keyspace_find(&s->redis.keys, rtext_span(&name));
}

static int64_t left_now(const struct sim *s)
{
    const struct key *k =
        keyspace_find(&s->redis.keys, rtext_span(&s->latches.name->name));
    int64_t left = 0;

    return k != NULL && k->type == KEY_STRING &&
                   parse_i64(key_span(&k->string), &left) && left > 0
               ? left
               : 0;
}

bool latches_is_set(struct sim *s)
{
    return s->latches.name != NULL && left_now(s) > 0;
}

static void note(struct sim *s, enum latch_event what)
{
    static const char *const WORDS[] = { "set", "opened", "opened by Redisson",
                                         "not there" };
    struct sim_latches *l = &s->latches;

    TRACE(s, "gate is %s", WORDS[what]);
    if (l->log_count == l->log_room) {
        l->log_room = 2 * l->log_room + 16;
        l->log = xrealloc(l->log, l->log_room * sizeof(*l->log));
    }
    l->log[l->log_count].at = s->happened;
    l->log[l->log_count++].what = what;
    if (what == LATCH_OPENED || what == LATCH_OPENED_UNSEEN) {
        l->opened++;
        l->zero_ms = s->now;
    }
    if (l->is_mistaken && what == LATCH_WAS_SET) {
        l->is_mistaken = false;
        l->mistaken_until = s->happened;
    }
}

static struct latch_request *request_of(struct sim *s, struct span id)
{
    struct sim_latches *l = &s->latches;

    for (size_t i = 0; i < l->request_count; i++) {
        if (rtext_is(&l->requests[i].id, id)) {
            return &l->requests[i];
        }
    }
    if (l->request_count == LATCH_REQUESTS_MAX) {
        return NULL;
    }
    l->requests[l->request_count] = (struct latch_request){ .id = rtext_of(id) };
    return &l->requests[l->request_count++];
}

static void note_count(struct sim *s, const struct flight *f, int64_t before,
                       int64_t now)
{
    struct latch_request *r = request_of(s, f->op.latch.request);

    if (before - now != 1) {
        sim_fail(s, "one COUNT takes %" PRId64 " from the latch", before - now);
    }
    if (r != NULL && ++r->times > 1) {
        sim_fail(s, "%s counts %u times", r->id.s, r->times);
    }
    if (now == 0) {
        note(s, LATCH_OPENED);
    }
}

/* Which requests Redis knows to have counted, after it lost some. */
static void recount(struct sim *s)
{
    const struct key *k = find_beside(s, "latchd:counted:");

    for (size_t i = 0; i < s->latches.request_count; i++) {
        struct latch_request *r = &s->latches.requests[i];
        struct rtext member = rtext_printf("c:%s", r->id.s);

        r->times = 0;
        for (size_t j = 0; k != NULL && j < k->count; j++) {
            r->times += rtext_is(&member, key_span(&k->items[j].text)) ? 1 : 0;
        }
    }
}

/* --- what has to be counted again --------------------------------------------------
 */

/* The latch was deleted, or its end leaves no sign: what was counted down before counts
 * in none. */
static void owe_nothing(struct sim *s)
{
    for (size_t i = 0; i < s->latches.request_count; i++) {
        s->latches.requests[i].is_owed = false;
    }
}

void latches_heard(struct sim *s, const struct sim_daemon *d, const struct flight *f)
{
    const struct op_result *result = &f->reply.result;
    const struct op_latch *asked = &f->op.latch;
    struct latch_request *r;

    s->latches.heard = NULL;
    if (s->latches.name == NULL || f->op.kind != OP_LATCH ||
        asked->verb != LATCH_TO_COUNT || result->status != OP_OK ||
        result->latch.value < 0 ||
        (asked->generation != 0 && asked->generation != result->latch.generation)) {
        return;
    }
    r = request_of(s, asked->request);
    if (r != NULL && asked->generation == 0) {
        s->latches.heard = r;
        s->latches.heard_by = d;
        s->latches.heard_generation = result->latch.generation;
    } else if (r != NULL && r->daemon == d->index) {
        r->told_ms = s->now;
    }
}

/* A client has the answer: from now on the daemon has to count it again. */
static void note_answered(struct sim *s)
{
    struct latch_request *r = s->latches.heard;

    r->is_owed = true;
    r->daemon = s->latches.heard_by->index;
    r->life = s->latches.heard_by->life;
    r->generation = s->latches.heard_generation;
    r->told_ms = s->now;
}

void latches_noticed(struct sim *s, const struct sim_daemon *d)
{
    for (size_t i = 0; i < s->latches.request_count; i++) {
        struct latch_request *r = &s->latches.requests[i];

        if (r->daemon == d->index &&
            s->now + NOTICE_MS >= r->told_ms + d->config.watchdog_ms) {
            r->is_owed = false;
        }
    }
}

/* Whether the daemon that has to count it again could do so. */
static bool can_pay(const struct sim *s, const struct latch_request *r)
{
    const struct sim_daemon *d = &s->daemons[r->daemon];

    return d->engine != NULL && d->life == r->life && !d->stopping && !d->isolated &&
           d->told_up && d->link_works && d->stalled_until <= s->now &&
           d->server == s->server && d->failovers == s->failovers;
}

/* Of the latch, or of the last one; 0: none is known. */
static uint64_t generation_now(const struct sim *s)
{
    const struct key_text *text =
        keyspace_field(find_beside(s, "latchd:latch:"), SPAN("gen"));
    uint64_t generation = 0;

    return text != NULL && parse_u64(key_span(text), UINT64_MAX, &generation)
               ? generation
               : 0;
}

void latches_end(struct sim *s)
{
    uint64_t generation;

    if (s->latches.name == NULL) {
        return;
    }
    sim_run(s, CALM_MS);
    if (left_now(s) == 0) {
        return; /* nothing is to be counted in a latch that is open, or gone */
    }
    recount(s);
    generation = generation_now(s);
    for (size_t i = 0; i < s->latches.request_count && !s->failed; i++) {
        const struct latch_request *r = &s->latches.requests[i];

        if (r->is_owed && r->generation == generation && r->times == 0 &&
            can_pay(s, r)) {
            sim_fail(s, "what %s has counted is lost", r->id.s);
        }
    }
}

/* --- what happens to the latch ------------------------------------------------------
 */

/* Where Redis has lost a latch and its clock has gone back, a new one may get the
 * number of the lost one; what was counted in that is of no worth in this. */
static void note_generation(struct sim *s)
{
    uint64_t generation = generation_now(s);

    for (size_t i = 0; i < s->latches.request_count; i++) {
        struct latch_request *r = &s->latches.requests[i];

        r->is_owed = r->is_owed && (s->latches.generation == generation ||
                                    r->generation != generation);
    }
    s->latches.generation = generation;
}

void latches_ran(struct sim *s, const struct flight *f)
{
    struct sim_latches *l = &s->latches;
    int64_t before = l->left, now;

    if (l->name == NULL || f->op.kind != OP_LATCH) {
        return;
    }
    now = l->left = left_now(s);
    note_generation(s);
    l->is_unseen = false;
    if (before == now) {
        return;
    }
    switch (f->op.latch.verb) {
    case LATCH_TO_SET:
        if (before != 0) {
            sim_fail(s, "a latch that is set is set anew");
        }
        note(s, LATCH_WAS_SET);
        break;
    case LATCH_TO_COUNT:
        note_count(s, f, before, now);
        break;
    case LATCH_TO_DELETE:
        owe_nothing(s);
        note(s, LATCH_VANISHED);
        l->zero_ms = s->now;
        break;
    case LATCH_TO_LOOK:
        sim_fail(s, "a look changes a latch");
    }
}

void latches_moved(struct sim *s)
{
    const struct key_text *state;

    if (s->latches.name == NULL) {
        return;
    }
    s->latches.left = left_now(s);
    s->latches.generation = generation_now(s);
    recount(s);
    state = keyspace_field(find_beside(s, "latchd:latch:"), SPAN("state"));
    note(s, LATCH_VANISHED);
    if (s->latches.left > 0) {
        note(s, LATCH_WAS_SET);
    } else if (state != NULL && span_eq(key_span(state), SPAN("open"))) {
        note(s, LATCH_OPENED);
    }
}

/* --- others ----------------------------------------------------------------------- */

/* A `0` may be on its way that told of a latch before. */
static bool zero_is_on_its_way(const struct sim *s)
{
    return s->latches.zero_ms != 0 &&
           s->now < s->latches.zero_ms + 8 * s->profile.rtt_ms + MESSAGE_LATE_MS;
}

void latches_foreign_act(struct sim *s)
{
    struct redis_name *n = s->latches.name;
    int64_t before = left_now(s);
    size_t what = dice_below(&s->dice, 10);
    bool zero_was = zero_is_on_its_way(s);

    s->happened++;
    if (what < 2) {
        redis_foreign_latch_set(sim_redis_now(s), n,
                                (int64_t)dice_between(&s->dice, 1, 4));
    } else if (what < 9) {
        redis_foreign_latch_count(sim_redis_now(s), n);
    } else {
        redis_foreign_latch_delete(sim_redis_now(s), n);
    }
    s->latches.left = left_now(s);
    if (before == 0 && s->latches.left > 0) {
        note(s, LATCH_WAS_SET);
        s->latches.is_unseen = true;
    } else if (before > 0 && s->latches.left == 0) {
        owe_nothing(s);
        note(s, what < 9 ? LATCH_OPENED_UNSEEN : LATCH_VANISHED);
        s->latches.is_mistaken = s->latches.is_unseen || zero_was;
    }
}

void latches_delete(struct sim *s)
{
    if (left_now(s) == 0) {
        return; /* it may be open */
    }
    TRACE(s, "DEL gate");
    s->happened++;
    (void)sim_redis_now(s);
    redis_operator_del(s->latches.name);
    owe_nothing(s);
    latches_moved(s);
    s->latches.is_mistaken = zero_is_on_its_way(s);
}

/* --- answers ---------------------------------------------------------------------- */

void latches_replied(struct sim *s, const struct sim_conn *c,
                     const struct effect_reply *r)
{
    s->latches.awaited += c->ask.kind == ASK_LATCH_AWAIT ? 1 : 0;
    if (c->ask.kind == ASK_LATCH_COUNT && r->kind == REPLY_INT &&
        s->latches.heard != NULL) {
        note_answered(s);
    }
    check_latch_answer(s, c, r);
}

/* --- clients ---------------------------------------------------------------------- */

static struct ask some_count(struct sim *s)
{
    struct ask a = { .kind = ASK_LATCH_COUNT };

    if (dice_chance(&s->dice, 700)) {
        a.id = rtext_printf("part-%04" PRIu64, dice_below(&s->dice, 12));
    }
    return a;
}

static struct ask some_latch(struct sim *s)
{
    static const enum ask_kind KINDS[] = { ASK_LATCH_SET, ASK_LATCH_COUNT,
                                           ASK_LATCH_AWAIT, ASK_LATCH_DELETE };
    static const unsigned WEIGHTS[] = { 15, 45, 38, 2 };
    struct ask a = { .kind = KINDS[dice_weighted(&s->dice, WEIGHTS, 4)] };

    if (a.kind == ASK_LATCH_COUNT) {
        a = some_count(s);
    } else if (a.kind == ASK_LATCH_SET) {
        a.limit = (uint32_t)dice_between(&s->dice, 1, 4);
        if (dice_chance(&s->dice, 500)) {
            a.id = rtext_printf("setter-%04" PRIu64, dice_below(&s->dice, 100));
        }
    } else if (a.kind == ASK_LATCH_AWAIT && dice_chance(&s->dice, 600)) {
        a.has = OPT_WAIT;
        a.wait_ms = dice_chance(&s->dice, 200) ? 0 : dice_below(&s->dice, 20000);
    }
    a.name = s->latches.name->name;
    return a;
}

void latches_act(struct sim *s)
{
    struct sim_clients *cl = &s->clients;
    size_t from = cl->count == 0 ? 0 : dice_below(&s->dice, cl->count);

    for (size_t i = 0; i < cl->count; i++) {
        const struct sim_conn *c = &cl->conns[(from + i) % cl->count];
        const struct sim_daemon *d = &s->daemons[c->daemon];

        if (c->open && !sim_is_busy(c) && d->engine != NULL &&
            d->stalled_until <= s->now) {
            struct ask a = some_latch(s);

            sim_ask(s, (from + i) % cl->count, &a);
            return;
        }
    }
}
