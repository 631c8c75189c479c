/* A name as those see it who look on: read from its keys. */
#include "sim/redis/sim_redis.h"
#include "util/alloc.h"
#include "util/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char HEAD[] = "latchd:";

struct rtext rtext_of(struct span s)
{
    struct rtext t;

    if (s.len > RTEXT_MAX) {
        abort();
    }
    t.len = (unsigned char)s.len;
    if (s.len > 0) {
        memcpy(t.s, s.ptr, s.len);
    }
    t.s[s.len] = '\0';
    return t;
}

struct rtext rtext_join(struct span head, struct span middle, struct span tail)
{
    const struct span parts[] = { head, middle, tail };
    struct rtext t;
    size_t len = 0;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (len + parts[i].len > RTEXT_MAX) {
            abort();
        }
        if (parts[i].len > 0) {
            memcpy(t.s + len, parts[i].ptr, parts[i].len);
        }
        len += parts[i].len;
    }
    t.len = (unsigned char)len;
    t.s[len] = '\0';
    return t;
}

struct rtext rtext_printf(const char *fmt, ...)
{
    struct rtext t;
    va_list ap;
    int len;

    va_start(ap, fmt);
    len = vsnprintf(t.s, sizeof(t.s), fmt, ap);
    va_end(ap);
    if (len < 0 || len > RTEXT_MAX) {
        abort();
    }
    t.len = (unsigned char)len;
    return t;
}

struct rtext redis_key(const struct redis_name *n, const char *prefix,
                       const char *suffix)
{
    return rtext_join(span_str(prefix), rtext_span(&n->braced), span_str(suffix));
}

static const struct key *find(const struct redis_name *n, const struct rtext *name,
                              enum key_type type)
{
    const struct key *k = keyspace_find(&n->redis->keys, rtext_span(name));

    return k != NULL && k->type == type ? k : NULL;
}

/* Room for `count` in an array. */
#define MAKE_ROOM(array, room, count)                                                  \
    do {                                                                               \
        if ((count) > (room)) {                                                        \
            (room) = 2 * (count);                                                      \
            (array) = xrealloc((array), (room) * sizeof(*(array)));                    \
        }                                                                              \
    } while (0)

/* --- what is read --------------------------------------------------------- */

static uint64_t number_of(struct span text)
{
    uint64_t number;

    return parse_u64(text, UINT64_MAX, &number) ? number : 0;
}

/* `<token> <permits> <instance><time>`: a hold counts while all its permits are there,
 * for the 2 s less that it was given. */
static void read_permits_of(struct redis_name *n, const struct key *ends,
                            struct span field, struct span row)
{
    uint64_t token = number_of(span_next(&row, ' '));
    int64_t count = (int64_t)number_of(span_next(&row, ' '));
    int64_t alive = 0;
    char head[16] = "latchd";

    for (size_t i = 0; i < 8; i++) {
        head[6 + i] = (char)(token >> (56 - 8 * i));
    }
    for (size_t i = 0; ends != NULL && i < ends->count; i++) {
        struct span member = key_span(&ends->items[i].text);

        alive += member.len == 16 && memcmp(member.ptr, head, 14) == 0 &&
                 ends->items[i].score > (double)n->redis->now_ms + 2000;
    }
    if (alive < count) {
        return;
    }
    if (n->field_count == REDIS_FIELDS_MAX) {
        abort();
    }
    n->fields[n->field_count++] = (struct redis_hash_field){ .owner = rtext_of(field),
                                                             .count = count,
                                                             .token = token };
}

/* A semaphore: a counter, with holds beside it. */
static bool read_permits(struct redis_name *n, const struct key *k)
{
    const struct key *holds = find(n, &n->keys[REDIS_HOLDS], KEY_HASH);
    const struct key *ends = find(n, &n->keys[REDIS_ENDS], KEY_ZSET);

    n->free = INT64_MIN;
    n->out = ends == NULL ? 0 : ends->count;
    if ((holds == NULL && ends == NULL) ||
        (k != NULL &&
         (k->type != KEY_STRING || !parse_i64(key_span(&k->string), &n->free)))) {
        return false;
    }
    n->mode = MODE_PERMITS;
    n->is_string = false;
    n->expires = 0;
    for (size_t i = 0; holds != NULL && i < holds->count; i++) {
        struct span field = key_span(&holds->items[i].text);

        if (!span_starts(field, SPAN(":"))) {
            read_permits_of(n, ends, field, key_span(&holds->items[i].value));
        }
    }
    return true;
}

static void read_hash(struct redis_name *n)
{
    const struct key *k = keyspace_find(&n->redis->keys, rtext_span(&n->name));
    const struct key_text *mode = keyspace_field(k, SPAN("mode"));

    n->field_count = 0;
    n->mode = MODE_NONE;
    if (read_permits(n, k)) {
        return;
    }
    n->is_string = k != NULL && k->type != KEY_HASH;
    n->expires = k == NULL || n->is_string ? 0 : k->expires;
    n->mode = mode == NULL                             ? MODE_NONE
              : span_eq(key_span(mode), SPAN("write")) ? MODE_WRITE
                                                       : MODE_READ;
    for (size_t i = 0; k != NULL && !n->is_string && i < k->count; i++) {
        struct span owner = key_span(&k->items[i].text);

        if (mode != NULL && span_eq(owner, SPAN("mode"))) {
            continue;
        }
        if (n->field_count == REDIS_FIELDS_MAX) {
            abort();
        }
        n->fields[n->field_count++] = (struct redis_hash_field){
            .owner = rtext_of(owner),
            .count = (int64_t)number_of(key_span(&k->items[i].value)),
        };
    }
}

/* `<token> <who>[ <token before> <who>]`, and the data on the next line. */
static void read_fence(struct redis_name *n)
{
    const struct key *k = find(n, &n->keys[REDIS_FENCE], KEY_STRING);
    struct span text = k == NULL ? SPAN_NONE : key_span(&k->string);
    struct span rest = span_next(&text, '\n');

    n->fence_token = number_of(span_next(&rest, ' '));
    n->fence_who = rtext_of(span_next(&rest, ' '));
}

static void read_queue(struct redis_name *n)
{
    const struct key *k = find(n, &n->keys[REDIS_QUEUE], KEY_LIST);

    n->queue_count = k == NULL ? 0 : k->count;
    MAKE_ROOM(n->queue, n->queue_room, n->queue_count);
    for (size_t i = 0; i < n->queue_count; i++) {
        n->queue[i] = rtext_of(key_span(&k->items[i].text));
    }
}

static void read_scores(struct redis_name *n)
{
    const struct key *k = find(n, &n->keys[REDIS_SCORES], KEY_ZSET);

    n->score_count = k == NULL ? 0 : k->count;
    MAKE_ROOM(n->scores, n->score_room, n->score_count);
    for (size_t i = 0; i < n->score_count; i++) {
        n->scores[i].member = rtext_of(key_span(&k->items[i].text));
        n->scores[i].score = (int64_t)k->items[i].score;
    }
}

/* `at:<member>` -> `<since> <put back>` */
static void read_waits(struct redis_name *n)
{
    const struct key *k = find(n, &n->keys[REDIS_MARKS], KEY_HASH);

    n->wait_count = 0;
    for (size_t i = 0; k != NULL && i < k->count; i++) {
        struct span field = key_span(&k->items[i].text);
        struct span value = key_span(&k->items[i].value);

        if (span_starts(field, SPAN("at:"))) {
            MAKE_ROOM(n->waits, n->wait_room, n->wait_count + 1);
            n->waits[n->wait_count++] = (struct redis_wait){
                .member = rtext_of(span_after(field, 3)),
                .since = (int64_t)number_of(span_next(&value, ' ')),
                .put_back = span_eq(value, SPAN("1")),
            };
        }
    }
}

/* `{N}:<field>:rwlock_timeout:<index>` */
static void read_hold_key(struct redis_name *n, const struct key *k)
{
    struct span index = key_span(&k->name);
    struct span field;
    struct span word;

    if (k->type != KEY_STRING || !span_starts(index, rtext_span(&n->braced)) ||
        !span_cut_last(&index, ':', &word) || !span_cut_last(&word, ':', &field) ||
        !span_eq(word, SPAN("rwlock_timeout")) || field.len <= n->braced.len) {
        return;
    }
    MAKE_ROOM(n->hold_keys, n->hold_key_room, n->hold_key_count + 1);
    n->hold_keys[n->hold_key_count++] = (struct redis_hold_key){
        .field = rtext_of(span_after(field, n->braced.len + 1)),
        .index = (int64_t)number_of(index),
        .token = number_of(key_span(&k->string)),
        .expires = k->expires,
    };
}

static void read_hold_keys(struct redis_name *n)
{
    n->hold_key_count = 0;
    n->was_rw = n->was_rw || n->mode == MODE_READ || n->mode == MODE_WRITE;
    for (size_t i = 0; n->was_rw && i < KEYSPACE_BUCKETS; i++) {
        for (const struct key *k = n->redis->keys.buckets[i]; k != NULL; k = k->next) {
            read_hold_key(n, k);
        }
    }
}

void redis_read_name(struct redis_name *n)
{
    n->stale = false;
    read_hash(n);
    read_fence(n);
    read_queue(n);
    read_scores(n);
    read_waits(n);
    read_hold_keys(n);
}

void redis_read_all(struct sim_redis *r)
{
    for (size_t i = 0; i < r->name_count; i++) {
        redis_read_name(&r->names[i]);
    }
}

void redis_name_fini(struct redis_name *n)
{
    free(n->queue);
    free(n->scores);
    free(n->waits);
    free(n->hold_keys);
}

/* --- what is asked -------------------------------------------------------- */

struct redis_name *redis_find_name(struct sim_redis *r, struct span name)
{
    struct redis_name *n;

    for (size_t i = 0; i < r->name_count; i++) {
        if (rtext_is(&r->names[i].name, name)) {
            return &r->names[i];
        }
    }
    if (r->name_count == REDIS_NAMES_MAX) {
        abort();
    }
    n = &r->names[r->name_count++];
    n->redis = r;
    n->name = rtext_of(name);
    n->braced = memchr(name.ptr, '{', name.len) != NULL
                    ? n->name
                    : rtext_printf("{%s}", n->name.s);
    n->keys[REDIS_FENCE] = redis_key(n, "latchd:fence:", "");
    n->keys[REDIS_QUEUE] = redis_key(n, "redisson_lock_queue:", "");
    n->keys[REDIS_SCORES] = redis_key(n, "redisson_lock_timeout:", "");
    n->keys[REDIS_MARKS] = redis_key(n, "latchd:fair:", "");
    n->keys[REDIS_HOLDS] = redis_key(n, "latchd:holds:", "");
    n->keys[REDIS_ENDS] = redis_key(n, "", ":timeout");
    n->stale = true;
    return n;
}

void redis_refresh(struct redis_name *n)
{
    struct sim_redis *r = n->redis;

    r->keys.now_ms = r->now_ms;
    if (keyspace_sweep(&r->keys)) {
        redis_read_all(r);
    }
    if (n->stale || n->mode == MODE_PERMITS) { /* permits end without a key's end */
        redis_read_name(n);
    }
}

struct redis_name *sim_redis_name(struct sim_redis *r, struct span name)
{
    struct redis_name *n = redis_find_name(r, name);

    redis_refresh(n);
    return n;
}

struct redis_hash_field *redis_field(struct redis_name *n, struct span owner)
{
    for (size_t i = 0; i < n->field_count; i++) {
        if (rtext_is(&n->fields[i].owner, owner)) {
            return &n->fields[i];
        }
    }
    return NULL;
}

int64_t redis_pttl(const struct sim_redis *r, const struct redis_name *n)
{
    if (n->field_count == 0) {
        return -2;
    }
    return n->expires == 0 ? -1 : (int64_t)(n->expires - r->now_ms);
}

static bool is_writer(struct span field)
{
    return field.len > 6 && span_eq(span_after(field, field.len - 6), SPAN(":write"));
}

/* `latchd:writer` names the token of the last writer, and who it was. */
static uint64_t writer_token(const struct redis_name *n, struct span field)
{
    struct rtext key = redis_key(n, "latchd:writer:", "");
    const struct key *k = find(n, &key, KEY_STRING);
    struct span text = k == NULL ? SPAN_NONE : key_span(&k->string);
    struct span who = span_next(&text, '\n'); /* its data follow */
    uint64_t token = number_of(span_next(&who, ' '));
    size_t head = 1 + OP_INSTANCE_LEN;

    return who.len > head && who.ptr[0] == 'f' && span_eq(span_after(who, head), field)
               ? token
               : 0;
}

static uint64_t reader_token(const struct redis_name *n, struct span field)
{
    for (size_t i = 0; i < n->hold_key_count; i++) {
        const struct redis_hold_key *k = &n->hold_keys[i];

        if (rtext_is(&k->field, field) && k->token > 1) {
            return k->token;
        }
    }
    return 0;
}

uint64_t redis_token_of(const struct redis_name *n, const struct rtext *field)
{
    struct span rest = rtext_span(field);
    uint64_t token = 0;

    for (size_t i = 0; n->mode == MODE_PERMITS && i < n->field_count; i++) {
        if (rtext_is(&n->fields[i].owner, rest)) {
            return n->fields[i].token;
        }
    }

    if (span_starts(rest, span_str(HEAD))) {
        rest = span_after(rest, sizeof(HEAD) - 1);
        token = number_of(span_next(&rest, ':'));
        token = rest.len == 0 || is_writer(rtext_span(field)) ? token : 0;
    }
    if (token != 0) {
        return token;
    }
    if (n->mode == MODE_NONE) {
        return n->fence_token;
    }
    return is_writer(rtext_span(field)) ? writer_token(n, rtext_span(field))
                                        : reader_token(n, rtext_span(field));
}

bool redis_has_entry(const struct redis_name *n, struct span id)
{
    struct rtext key = redis_key(n, "latchd:entries:", "");

    return keyspace_field(find(n, &key, KEY_HASH), id) != NULL;
}

struct redis_score *redis_score(const struct redis_name *n, struct span member)
{
    for (size_t i = 0; i < n->score_count; i++) {
        if (rtext_is(&n->scores[i].member, member)) {
            return &n->scores[i];
        }
    }
    return NULL;
}

struct redis_hold_key *redis_hold_key(const struct redis_name *n, struct span field,
                                      int64_t index)
{
    for (size_t i = 0; i < n->hold_key_count; i++) {
        if (n->hold_keys[i].index == index && rtext_is(&n->hold_keys[i].field, field)) {
            return &n->hold_keys[i];
        }
    }
    return NULL;
}

bool redis_is_ours(struct span member)
{
    return span_starts(member, span_str(HEAD));
}

bool redis_member_of(struct span member, const char *instance)
{
    size_t head = sizeof(HEAD) - 1;

    return redis_is_ours(member) && member.len > head + OP_INSTANCE_LEN &&
           memcmp(member.ptr + head, instance, OP_INSTANCE_LEN) == 0 &&
           member.ptr[head + OP_INSTANCE_LEN] == ':';
}
