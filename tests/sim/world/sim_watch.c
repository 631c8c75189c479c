/* A daemon's watch link: what it reads is watched, and Redis tells of a change once.
 * Answers and what is told come in the order in which they happened, before or after
 * the answers on the command link. No die decides, which would make others of all
 * schedules. */
#include "sim/world/sim_world.h"

#include <stdlib.h>

static void travels(struct sim *s, struct sim_daemon *d, enum event_kind kind,
                    struct redis_name *n, bool missing)
{
    uint64_t ms = s->happened % 2 == 0 ? s->profile.rtt_ms : 0;
    struct event *e = sim_event(
        s, kind,
        kind == EVENT_WATCH ? s->now : link_later(s->now + ms, &d->last_watch));

    e->daemon = d->index;
    e->gen = d->watch_gen;
    e->name = n;
    e->flag = missing;
}

void watch_begin(struct sim *s)
{
    s->watches = true;
    for (size_t i = 0; i < s->daemon_count; i++) {
        if (s->daemons[i].engine != NULL) {
            engine_on_watch(s->daemons[i].engine, REDIS_NAMES_MAX, NULL, NULL);
        }
    }
}

void watch_name(struct sim *s, struct sim_daemon *d, struct span name)
{
    if (d->link_works) {
        travels(s, d, EVENT_WATCH, sim_redis_name(sim_redis_now(s), name), false);
    }
}

static uint64_t mix(uint64_t digest, const void *ptr, size_t len)
{
    const unsigned char *at = ptr;

    for (size_t i = 0; i < len; i++) {
        digest = (digest ^ at[i]) * UINT64_C(0x100000001b3);
    }
    return digest;
}

static uint64_t mix_text(uint64_t digest, const struct key_text *text)
{
    return mix(mix(digest, &text->len, sizeof(text->len)), text->ptr, text->len);
}

/* What a write changes: the TTL counts, too. */
static uint64_t digest_of(const struct sim_redis *r, const struct redis_name *n)
{
    const struct key *key = keyspace_find(&r->keys, rtext_span(&n->name));
    uint64_t digest = 1;

    if (key == NULL) {
        return 0;
    }
    digest = mix(digest, &key->expires, sizeof(key->expires));
    digest = mix_text(digest, &key->string);
    for (size_t i = 0; i < key->count; i++) {
        digest = mix_text(digest, &key->items[i].text);
        digest = mix_text(digest, &key->items[i].value);
    }
    return digest | 1;
}

/* Of all keys at once, as FLUSHALL: nothing is watched any more. */
void watch_flushed(struct sim *s)
{
    for (size_t i = 0; i < s->daemon_count; i++) {
        struct sim_daemon *d = &s->daemons[i];

        if (s->watches && d->link_works) {
            memset(d->watched, 0, sizeof(d->watched));
            travels(s, d, EVENT_TOUCHED, NULL, false);
        }
    }
}

/* A false alarm, as for a key with the same name in another database. */
void watch_touch(struct sim *s, struct redis_name *n)
{
    size_t at = check_name_index(s, n);

    for (size_t i = 0; i < s->daemon_count; i++) {
        struct sim_daemon *d = &s->daemons[i];

        if (d->link_works && d->watched[at]) {
            d->watched[at] = false;
            travels(s, d, EVENT_TOUCHED, n, false);
        }
    }
}

void watch_look(struct sim *s)
{
    struct sim_redis *r = sim_redis_now(s);

    for (size_t i = 0; i < s->daemon_count && s->watches; i++) {
        struct sim_daemon *d = &s->daemons[i];

        for (size_t at = 0; at < r->name_count; at++) {
            if (d->watched[at] && digest_of(r, &r->names[at]) != d->watched_as[at]) {
                d->watched[at] = false;
                travels(s, d, EVENT_TOUCHED, &r->names[at], false);
            }
        }
    }
}

void watch_break(const struct sim *s, struct sim_daemon *d)
{
    d->watch_gen++;
    memset(d->watched, 0, sizeof(d->watched));
    if (s->watches && d->engine != NULL) {
        engine_on_watch(d->engine, REDIS_NAMES_MAX, NULL, NULL); /* it comes back */
    }
}

void watch_event(struct sim *s, struct sim_daemon *d, const struct event *e)
{
    struct sim_redis *r = sim_redis_now(s);
    struct engine *engine;
    size_t at;

    switch (e->kind) {
    case EVENT_WATCH:
        at = check_name_index(s, e->name);
        redis_refresh(e->name);
        d->watched[at] = true;
        d->watched_as[at] = digest_of(r, e->name);
        travels(s, d, EVENT_WATCHED, e->name, d->watched_as[at] == 0);
        return;
    case EVENT_WATCHED:
        TRACE(s, "d%zu: watches %s%s", d->index, e->name->name.s,
              e->flag ? ", which is missing" : "");
        engine = sim_turn_begin(s, d);
        engine_on_watched(engine, rtext_span(&e->name->name), e->flag);
        break;
    case EVENT_TOUCHED:
        TRACE(s, "d%zu: told that %s was changed", d->index,
              e->name == NULL ? "anything" : e->name->name.s);
        engine = sim_turn_begin(s, d);
        engine_on_touched(engine,
                          e->name == NULL ? SPAN_NONE : rtext_span(&e->name->name),
                          NULL, NULL);
        break;
    default:
        abort();
    }
    sim_turn_end(s, d);
}
