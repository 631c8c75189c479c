/* Every key that belongs to a name, in Redis and in the model. */
#include "differ.h"

#include "sim/sim_redis_queue.h"
#include "sim/sim_redis_rw.h"
#include "support/redisson.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Entries and keepers count only for holds that are there, an entry of a read/write
 * lock only for the hold with its token. */
static const char DUMP[] =
    "local N, T, call, out = ARGV[1], ARGV[2], redis.call, {} "
    "local time = call('TIME') "
    "local now = time[1] * 1000 + math.floor(time[2] / 1000) "
    "local function add(text, number) "
    "  out[#out + 1] = text "
    "  out[#out + 1] = string.format('%.0f', number or 0) "
    "end "
    "local kind, fields = call('TYPE', N).ok, {} "
    "if kind == 'hash' then "
    "  local all = call('HGETALL', N) "
    "  for i = 1, #all, 2 do "
    "    fields[all[i]] = all[i + 1] "
    "    add('field ' .. all[i] .. ' ' .. all[i + 1]) "
    "  end "
    "  add('ttl', call('PTTL', N)) "
    "elseif kind ~= 'none' then add('other') end "
    "for i, m in ipairs(call('LRANGE', 'redisson_lock_queue:' .. T, 0, -1)) do "
    "  add('queue ' .. i .. ' ' .. m) "
    "end "
    "local z = call('ZRANGE', 'redisson_lock_timeout:' .. T, 0, -1, 'WITHSCORES') "
    "for i = 1, #z, 2 do "
    "  add('score ' .. z[i], z[i + 1] - now) "
    "  if string.sub(z[i], 1, 7) == 'latchd:' then "
    "    local m = call('HMGET', 'latchd:fair:' .. T, z[i], string.sub(z[i], 8, 23)) "
    "    add('mark ' .. z[i], now - (m[1] or m[2] or now)) "
    "  end "
    "end "
    "local fence = call('GET', 'latchd:fence:' .. T) "
    "if fence then add('fence ' .. fence) end "
    "local counted = call('GET', 'redisson_lock_token:' .. T) "
    "if counted then add('counted ' .. counted) end "
    "local writer = call('GET', 'latchd:writer:' .. T) "
    "if writer then "
    "  local t, who = string.match(writer, '^(%d+) (.*)$') "
    "  if fields['latchd:' .. t .. ':write'] or fields[string.sub(who, 18)] then "
    "    add('writer ' .. writer) "
    "  end "
    "end "
    "local function token_of(field) "
    "  if string.sub(field, -6) == ':write' then "
    "    local t, who = string.match(call('GET', 'latchd:writer:' .. T) or '', "
    "      '^(%d+) (.*)$') "
    "    return t and string.sub(who, 18) == field and t "
    "  end "
    "  local t = call('GET', T .. ':' .. field .. ':rwlock_timeout:1') "
    "  return t and t ~= '1' and t "
    "end "
    "local function entry(id, v) "
    "  local owner = string.sub(v, 33) "
    "  if fields.mode then "
    "    owner = string.sub(v, 49) "
    "    local t = token_of(owner) "
    "    if t and tonumber(t) ~= tonumber(string.sub(v, 33, 48)) then return end "
    "  end "
    "  if fields[owner] then "
    "    add('entry ' .. id .. ' ' .. string.sub(v, 1, 16) .. ' ' .. owner) "
    "  end "
    "end "
    "local e = call('HGETALL', 'latchd:entries:' .. T) "
    "for i = 1, #e, 2 do entry(e[i], e[i + 1]) end "
    "local function rest(key, prefix) "
    "  return string.sub(key, 1, #prefix) == prefix and string.sub(key, #prefix + 1) "
    "end "
    "for _, key in ipairs(call('KEYS', '*')) do "
    "  local hold = rest(key, T .. ':') "
    "  local reader = rest(key, 'latchd:reader:' .. T .. ':') "
    "  local keeper = rest(key, 'latchd:keeper:' .. T .. ':') "
    "  local ended = rest(key, 'latchd:ended:' .. T .. ':') "
    "  local owner, index = string.match(hold or '', '^(.*):rwlock_timeout:(%d+)$') "
    "  if owner then "
    "    if tonumber(index) <= tonumber(fields[owner] or 0) then "
    "      add('hold ' .. hold .. ' ' .. call('GET', key), call('PTTL', key)) "
    "    end "
    "  elseif reader then "
    "    local field = call('GET', key) "
    "    if fields[field] and token_of(field) == reader then "
    "      add('reader ' .. reader .. ' ' .. field) "
    "    end "
    "  elseif keeper and fields[keeper] then "
    "    add('keeper ' .. keeper .. ' ' .. string.sub(call('GET', key), 1, 16)) "
    "  elseif ended then add('ended ' .. ended .. ' ' .. call('GET', key)) end "
    "end "
    "return out";

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct differ_line *)a)->text,
                  ((const struct differ_line *)b)->text);
}

static void sort(struct differ_lines *l)
{
    qsort(l->line, l->count, sizeof(l->line[0]), by_text);
}

static void dump_real(struct differ *d, const char *name, struct differ_lines *l)
{
    redisReply *reply =
        redis_ask(peer_redis(), "EVAL %s 0 %s %s", DUMP, name, differ_tagged(d, name));

    ck_assert_msg(reply->type == REDIS_REPLY_ARRAY, "%s", reply->str);
    l->count = 0;
    for (size_t i = 0; i + 1 < reply->elements; i += 2) {
        differ_add(l, strtoll(reply->element[i + 1]->str, NULL, 10), "%s",
                   reply->element[i]->str);
    }
    freeReplyObject(reply);
    sort(l);
}

static void dump_hash(struct sim_redis *r, struct redis_name *n, struct differ_lines *l)
{
    if (n->is_string) {
        differ_add(l, 0, "other");
        return;
    }
    for (size_t i = 0; i < n->field_count; i++) {
        differ_add(l, 0, "field %s %" PRId64, n->fields[i].owner.s, n->fields[i].count);
    }
    if (n->mode != MODE_NONE) {
        differ_add(l, 0, "field mode %s", n->mode == MODE_WRITE ? "write" : "read");
    }
    if (n->field_count > 0) {
        differ_add(l, redis_pttl(r, n), "ttl");
    }
}

static void dump_queue(struct sim_redis *r, struct redis_name *n,
                       struct differ_lines *l)
{
    int64_t now = (int64_t)r->now_ms;

    for (size_t i = 0; i < n->queue_count; i++) {
        differ_add(l, 0, "queue %zu %s", i + 1, n->queue[i].s);
    }
    for (size_t i = 0; i < n->score_count; i++) {
        const struct redis_score *z = &n->scores[i];

        differ_add(l, z->score - now, "score %s", z->member.s);
        if (queue_is_ours(rtext_span(&z->member))) {
            differ_add(l, now - (int64_t)z->moved_on, "mark %s", z->member.s);
        }
    }
}

/* Left-overs of holds that are gone say nothing. */
static bool writer_is_there(struct redis_name *n)
{
    struct redis_hash_field *writer = rw_writer(n);

    return n->writer_token != 0 && writer != NULL &&
           rw_token_of(n, writer) == n->writer_token;
}

static void dump_helpers(struct sim_redis *r, struct redis_name *n,
                         struct differ_lines *l)
{
    if (n->fence_token != 0) {
        struct rtext before =
            rtext_printf(" %" PRIu64 " %s", n->before_token, n->before_who.s);

        differ_add(l, 0, "fence %" PRIu64 " %s%s", n->fence_token, n->fence_who.s,
                   n->has_before ? before.s : "");
    }
    if (n->counted != 0) {
        differ_add(l, 0, "counted %" PRIu64, n->counted);
    }
    if (writer_is_there(n)) {
        differ_add(l, 0, "writer %" PRIu64 " %s", n->writer_token, n->writer_who.s);
    }
    for (size_t i = 0; i < n->hold_key_count; i++) {
        const struct redis_hold_key *k = &n->hold_keys[i];
        struct redis_hash_field *f = redis_field(n, rtext_span(&k->field));

        if (f == NULL || k->index > f->count) {
            continue;
        }
        differ_add(l, (int64_t)(k->expires - r->now_ms),
                   "hold %s:rwlock_timeout:%" PRId64 " %" PRIu64, k->field.s, k->index,
                   k->token);
    }
    for (size_t i = 0; i < n->reader_key_count; i++) {
        const struct redis_reader_key *k = &n->reader_keys[i];
        struct redis_hash_field *f = redis_field(n, rtext_span(&k->field));

        if (f != NULL && rw_token_of(n, f) == k->token) {
            differ_add(l, 0, "reader %" PRIu64 " %s", k->token, k->field.s);
        }
    }
    for (size_t i = 0; i < n->mark_count; i++) {
        differ_add(l, 0, "ended %s %" PRId64 " %" PRIu64, n->marks[i].key.s,
                   n->marks[i].left, n->marks[i].token);
    }
    for (size_t i = 0; i < n->entry_count; i++) {
        if (redis_field(n, rtext_span(&n->entries[i].owner)) != NULL) {
            differ_add(l, 0, "entry %s %s %s", n->entries[i].id.s, n->entries[i].keeper,
                       n->entries[i].owner.s);
        }
    }
    for (size_t i = 0; i < n->keeper_count; i++) {
        if (redis_field(n, rtext_span(&n->keepers[i].field)) != NULL) {
            differ_add(l, 0, "keeper %s %s", n->keepers[i].field.s,
                       n->keepers[i].instance);
        }
    }
}

void differ_dump(struct differ *d, const char *name, struct differ_lines *real,
                 struct differ_lines *model)
{
    struct redis_name *n;

    dump_real(d, name, real);
    n = differ_name(d, name);
    model->count = 0;
    dump_hash(&d->model, n, model);
    dump_queue(&d->model, n, model);
    dump_helpers(&d->model, n, model);
    sort(model);
}

static bool differ_in(const struct differ_lines *a, const struct differ_lines *b,
                      size_t i)
{
    return i >= a->count || i >= b->count ||
           strcmp(a->line[i].text, b->line[i].text) != 0 ||
           llabs(a->line[i].number - b->line[i].number) > DIFFER_SLACK_MS;
}

static void compare(struct differ *d, const char *name, const char *what,
                    const struct differ_lines *real, const struct differ_lines *model)
{
    for (size_t i = 0; i < real->count || i < model->count; i++) {
        if (differ_in(real, model, i)) {
            const struct differ_line none = { .text = "nothing" };
            const struct differ_line *a = i < real->count ? &real->line[i] : &none;
            const struct differ_line *b = i < model->count ? &model->line[i] : &none;

            differ_fail(d, name,
                        "%s: Redis has '%s' %" PRId64 ", the model '%s' %" PRId64, what,
                        a->text, a->number, b->text, b->number);
        }
    }
}

void differ_compare(struct differ *d, const char *name)
{
    static struct differ_lines real, model;

    differ_dump(d, name, &real, &model);
    compare(d, name, "keys", &real, &model);
}

/* --- messages ------------------------------------------------------------- */

/* All that were published by now: they come before the answer to a PING. */
static void drain(redisContext *c, struct differ_lines *l)
{
    redisReply *r;

    ck_assert_int_eq(redisAppendCommand(c, "PING"), REDIS_OK);
    for (;;) {
        ck_assert_int_eq(redisGetReply(c, (void **)&r), REDIS_OK);
        if (r->type == REDIS_REPLY_ARRAY && r->elements == 4) {
            differ_add(l, 0, "%s %s", r->element[2]->str, r->element[3]->str);
            freeReplyObject(r);
        } else {
            freeReplyObject(r);
            return;
        }
    }
}

void differ_compare_messages(struct differ *d, const char *name)
{
    static struct differ_lines real;

    real.count = 0;
    drain(d->listener, &real);
    sort(&real);
    sort(&d->heard);
    compare(d, name, "messages", &real, &d->heard);
    d->heard.count = 0;
}
