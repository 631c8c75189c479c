/* Redisson's clients, and what goes wrong: done to Redis and to the model. */
#include "differ_claims.h"

#include "sim/sim_redis_foreign.h"
#include "sim/sim_redis_queue.h"
#include "support/redisson.h"

#include <check.h>
#include <inttypes.h>

static const char *const OWNERS[] = {
    "cccccccc-0000-0000-0000-000000000003:1",
    "dddddddd-0000-0000-0000-000000000004:1",
};

enum { REDISSON_WAIT = 500000 };

static void same_number(struct differ *d, const char *name, int64_t real, int64_t model)
{
    /* Small ones are words, NIL too; others are times. */
    bool times = real > INT64_MIN + 10 && llabs(real) > 10 && llabs(model) > 10;

    if (real != model && (!times || llabs(real - model) > DIFFER_SLACK_MS)) {
        differ_fail(d, name, "Redisson hears %" PRId64 " and %" PRId64, real, model);
    }
}

/* nil, or the number that the script gives. */
static int64_t as_reply(struct redisson_wait w)
{
    return w.taken ? REDISSON_NIL : w.ttl_ms;
}

static int64_t as_unlock(int released)
{
    return released < 0 ? REDISSON_NIL : released;
}

/* --- plain ---------------------------------------------------------------- */

/* An RFencedLock, which counts its tokens. */
static void fenced(struct differ *d, const char *name, const struct redisson *r)
{
    uint64_t lease = differ_lease(d);
    int64_t ttl;
    int64_t token;
    int64_t real;
    struct redis_name *n;

    differ_say(d, "Redisson %.1s locks %s for a token", r->owner, name);
    real = redisson_fenced_lock(r, name, (int64_t)lease, &token);
    n = differ_name(d, name);
    ttl = redis_pttl(&d->model, n);
    if (redis_foreign_take(&d->model, n, span_str(r->owner), lease)) {
        ttl = REDISSON_NIL;
        n->counted++;
        if (n->counted < REDIS_COUNTED_END && (uint64_t)token != n->counted) {
            differ_fail(d, name, "its token is %" PRId64 ", not %" PRIu64, token,
                        n->counted);
        }
    }
    same_number(d, name, real, ttl);
}

static void plain(struct differ *d, const char *name, const struct redisson *r)
{
    struct span owner = span_str(r->owner);
    uint64_t lease = differ_lease(d);
    bool publish = dice_chance(&d->dice, 700);
    struct redis_name *n = differ_name(d, name);
    struct redis_hash_field *f = redis_field(n, owner);
    int64_t real;

    if (dice_chance(&d->dice, 200)) {
        differ_say(d, "Redisson %.1s renews %s", r->owner, name);
        real = redisson_renew_lock(r, name, (int64_t)lease);
        n = differ_name(d, name);
        same_number(d, name, real,
                    redis_foreign_renew(&d->model, n, owner, lease) ? 1 : 0);
    } else if (f != NULL && dice_chance(&d->dice, 700)) {
        differ_say(d, "Redisson %.1s unlocks %s", r->owner, name);
        real = publish ? redisson_unlock(r, name, NULL) : redisson_spin_unlock(r, name);
        n = differ_name(d, name);
        (void)redis_foreign_release(&d->model, n, owner, publish);
        same_number(d, name, real, n->field_count == 0 ? 1 : 0);
    } else if (dice_chance(&d->dice, 150)) {
        fenced(d, name, r);
    } else {
        int64_t ttl;

        differ_say(d, "Redisson %.1s locks %s", r->owner, name);
        real = redisson_lock(r, name, (int64_t)lease);
        n = differ_name(d, name);
        ttl = redis_pttl(&d->model, n);
        same_number(d, name, real,
                    redis_foreign_take(&d->model, n, owner, lease) ? REDISSON_NIL
                                                                   : ttl);
    }
}

/* --- fair ----------------------------------------------------------------- */

static void fair(struct differ *d, const char *name, struct redisson *r)
{
    struct redisson_fair f = { span_str(r->owner), REDISSON_LEASE, REDISSON_WAIT, 0 };
    uint64_t what = dice_below(&d->dice, 10);
    struct redis_name *n;
    int64_t real = 0;
    int64_t model = 0;

    if (dice_chance(&d->dice, 60)) {
        r->skew_ms = dice_chance(&d->dice, 500) ? 900000 : -2000000;
    }
    differ_say(d, "Redisson %.1s, clock %+" PRId64 ", %s %s", r->owner, r->skew_ms,
               what < 5   ? "fair lock"
               : what < 6 ? "fair try"
               : what < 7 ? "fair failed"
                          : "fair unlock",
               name);
    if (what < 5) {
        f.lease_ms = differ_lease(d);
        real = redisson_fair_lock(r, name, (int64_t)f.lease_ms, REDISSON_WAIT);
    } else if (what < 6) {
        f.lease_ms = differ_lease(d);
        real = redisson_fair_try(r, name, (int64_t)f.lease_ms, REDISSON_WAIT);
    } else if (what < 7) {
        redisson_fair_leave(r, name, REDISSON_WAIT);
    } else {
        real = redisson_fair_unlock(r, name, NULL);
    }
    n = differ_name(d, name);
    f.clock = (uint64_t)((int64_t)d->model.now_ms + r->skew_ms);
    if (what < 5) {
        model = as_reply(redis_foreign_fair_take(&d->model, n, &f));
    } else if (what < 6) {
        model = redis_foreign_fair_try(&d->model, n, &f) ? REDISSON_NIL : 1;
    } else if (what < 7) {
        redis_foreign_fair_failed(&d->model, n, &f);
    } else {
        model = as_unlock(redis_foreign_fair_release(&d->model, n, &f));
    }
    same_number(d, name, real, model);
}

/* --- read and write ------------------------------------------------------- */

static void read_write(struct differ *d, const char *name, const struct redisson *r)
{
    struct span owner = span_str(r->owner);
    uint64_t lease = differ_lease(d);
    uint64_t what = dice_below(&d->dice, 10);
    struct redis_name *n;
    int64_t real;
    int64_t model;

    differ_say(d, "Redisson %.1s %s %s", r->owner,
               what < 3   ? "reads"
               : what < 6 ? "unreads"
               : what < 7 ? "writes"
               : what < 9 ? "unwrites"
                          : "renews its read of",
               name);
    real = what < 3   ? redisson_read_lock(r, name, (int64_t)lease)
           : what < 6 ? redisson_read_unlock(r, name, NULL)
           : what < 7 ? redisson_write_lock(r, name, (int64_t)lease)
           : what < 9 ? redisson_write_unlock(r, name, NULL)
                      : redisson_read_renew(r, name, (int64_t)lease);
    n = differ_name(d, name);
    model = what < 3   ? as_reply(redis_foreign_read(&d->model, n, owner, lease))
            : what < 6 ? as_unlock(redis_foreign_unread(&d->model, n, owner))
            : what < 7 ? as_reply(redis_foreign_write(&d->model, n, owner, lease))
            : what < 9 ? as_unlock(redis_foreign_unwrite(&d->model, n, owner))
            : redis_foreign_renew_reads(&d->model, n, &owner, 1, lease) ? 1
                                                                        : 0;
    same_number(d, name, real, model);
}

void differ_foreign(struct differ *d, const char *name)
{
    struct redisson r = { peer_redis(), OWNERS[dice_below(&d->dice, 2)], 0 };
    struct redis_name *n = differ_name(d, name);
    bool is_rw = differ_is_rw(d, n);

    /* No client mixes the families: that would destroy the name for both. */
    if (n->is_string || (n->field_count > 0 && is_rw != (n->mode != MODE_NONE))) {
        return;
    }
    if (is_rw) {
        read_write(d, name, &r);
    } else if (!d->mix.fair || dice_chance(&d->dice, 250)) {
        plain(d, name, &r);
    } else {
        fair(d, name, &r);
    }
}

/* --- faults --------------------------------------------------------------- */

static void score_moves(struct differ *d, const char *name)
{
    struct redis_name *n = differ_name(d, name);
    const char *member;
    struct redis_score *was;
    int64_t score;

    if (n->queue_count == 0) {
        return;
    }
    member = differ_text(d, "%s", n->queue[dice_below(&d->dice, n->queue_count)].s);
    score = (int64_t)d->model.now_ms + (dice_chance(&d->dice, 500) ? -50000 : 50000);
    differ_say(d, "the score of %s in %s moves", member, name);
    was = queue_score(n, span_str(member));
    if (was == NULL) {
        return;
    }
    was->score = score;
    (void)redis_ask_int(peer_redis(), "ZADD redisson_lock_timeout:%s %s %s",
                        differ_tagged(d, name), differ_text(d, "%" PRId64, score),
                        member);
}

/* The marks become older: as if time had passed. */
static void marks_age(struct differ *d, const char *name)
{
    static const char AGE[] =
        "for _, m in ipairs(redis.call('HKEYS', KEYS[1])) do "
        "  if not string.find(redis.call('HGET', KEYS[1], m), ' ', 1, true) then "
        "    redis.call('HINCRBY', KEYS[1], m, -30000) "
        "  end "
        "end "
        "return 0";
    struct redis_name *n = differ_name(d, name);

    differ_say(d, "the marks of %s age", name);
    for (size_t i = 0; i < n->score_count; i++) {
        n->scores[i].moved_on -= 30000;
    }
    (void)redis_ask_int(peer_redis(), "EVAL %s 1 latchd:fair:%s", AGE,
                        differ_tagged(d, name));
}

static void key_goes(struct differ *d, const char *name)
{
    static const char *const PREFIXES[] = { "latchd:fence:", "redisson_lock_queue:",
                                            "redisson_lock_timeout:" };
    size_t which = dice_below(&d->dice, 3);
    struct redis_name *n = differ_name(d, name);
    const char *tagged = differ_tagged(d, name);

    differ_say(d, "%s%s goes", PREFIXES[which], tagged);
    (void)redis_ask_int(peer_redis(), "DEL %s%s", PREFIXES[which], tagged);
    switch (which) {
    case 0:
        n->fence_token = 0;
        n->fence_who.len = 0;
        n->has_before = false;
        break;
    case 1:
        n->queue_count = 0;
        break;
    default:
        n->score_count = n->wait_count = 0;
        (void)redis_ask_int(peer_redis(), "DEL latchd:fair:%s", tagged);
    }
}

/* A reader's lease ends; the lock lives on. */
static void reader_ends(struct differ *d, const char *name)
{
    struct redis_name *n = differ_name(d, name);
    const char *field;

    if (n->hold_key_count == 0) {
        return;
    }
    field = differ_text(d, "%s",
                        n->hold_keys[dice_below(&d->dice, n->hold_key_count)].field.s);
    differ_say(d, "the lease of %s in %s ends", field, name);
    for (size_t i = n->hold_key_count; i-- > 0;) {
        struct redis_hold_key *k = &n->hold_keys[i];

        if (rtext_is(&k->field, span_str(field))) {
            (void)redis_ask_int(peer_redis(), "DEL %s",
                                differ_text(d, "%s:%s:rwlock_timeout:%" PRId64,
                                            differ_tagged(d, name), field, k->index));
            *k = n->hold_keys[--n->hold_key_count];
        }
    }
}

static void hash_goes(struct differ *d, const char *name)
{
    struct redis_name *n = differ_name(d, name);

    differ_say(d, "%s ends", name);
    (void)redis_ask_int(peer_redis(), "DEL %s", name);
    redis_operator_del(n);
    redis_del_string(n);
}

static void string_comes(struct differ *d, const char *name)
{
    struct redis_name *n = differ_name(d, name);

    if (redis_set_string(&d->model, n)) {
        differ_say(d, "%s becomes a string", name);
        redis_expect(peer_redis(), "OK", "SET %s x", name);
    }
}

/* Redisson's counter of tokens: behind, ahead of all that is granted, beyond what can
 * be counted; or it goes. */
static void counter_moves(struct differ *d, const char *name)
{
    const uint64_t to[] = { 3,
                            (UINT64_C(1) << 52) + d->serial * 1000 + 1500,
                            REDIS_COUNTED_END - 100,
                            REDIS_COUNTED_END,
                            UINT64_C(1) << 62,
                            0 };
    struct redis_name *n = differ_name(d, name);
    const char *key = differ_text(d, "redisson_lock_token:%s", differ_tagged(d, name));

    n->counted = to[dice_below(&d->dice, sizeof(to) / sizeof(to[0]))];
    differ_say(d, "the counter of %s is %" PRIu64, name, n->counted);
    if (n->counted == 0) {
        (void)redis_ask_int(peer_redis(), "DEL %s", key);
    } else {
        redis_expect(peer_redis(), "OK", "SET %s %s", key,
                     differ_text(d, "%" PRIu64, n->counted));
    }
}

void differ_fault(struct differ *d, const char *name)
{
    if (dice_chance(&d->dice, 150)) {
        counter_moves(d, name);
        return;
    }
    switch (dice_between(&d->dice, d->mix.fair ? 0 : 6, 11)) {
    case 0:
    case 1:
    case 2:
        score_moves(d, name);
        break;
    case 3:
    case 4:
        marks_age(d, name);
        break;
    case 5:
        key_goes(d, name);
        break;
    case 6:
    case 7:
        reader_ends(d, name);
        break;
    case 8:
        if (dice_chance(&d->dice, 200)) {
            string_comes(d, name);
        }
        break;
    default:
        hash_goes(d, name);
    }
}
