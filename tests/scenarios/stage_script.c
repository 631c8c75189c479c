/* The stage `script`: the Lua scripts of backend/script/lua/ on a real Redis, one op at
 * a time, over a blocking connection. All scenarios of a program share the Redis; each
 * begins without a key.
 *
 * A client is a daemon, named by a letter: A is the instance $A, `aaaaaaaaaaaaaaaa`.
 * `A: acquire job request q:1 lease_ms=1000 -> ok token=$t` runs that op as daemon A.
 * After the kind and the name come positional words for the hold, then fields by their
 * names in op_fields.c:
 *
 *   a claim    request R | id FIELD | owner FIELD ENTRY | field FIELD
 *   a target   request R | field F | id F E | entry F E | owner F [E] | value F [E] |
 *              token T | any
 *
 * `kind=read` is the lock kind of either, from which the class follows, or `class=rw`
 * says it; `member=M` is a fair claim; `next` begins the claim that gets the lock after
 * a release. `asked=` and `deadline=` are microseconds of Redis's clock. */
#include "backend/script/script_codec.h"
#include "latchd/protocol.h"
#include "scenarios/op_fields.h"
#include "scenarios/redis_words.h"
#include "support/daemon.h"
#include "support/op_words.h"
#include "support/runner.h"
#include "support/scenario.h"
#include "util/buf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEASE_MS = 30000, FAIR_WAIT_MS = 30000, ROOM = 1 << 20 };

static const uint64_t NEVER_LATE = UINT64_C(1) << 53;

static struct test_redis *redis;

/* Texts that live as long as the scenario. */
static char room[ROOM];
static size_t room_used;

static const char *keep_text(const char *text)
{
    size_t len = strlen(text) + 1;
    char *kept = room + room_used;

    ck_assert_uint_le(room_used + len, sizeof room);
    memcpy(kept, text, len);
    room_used += len;
    return kept;
}

static const char *keep_joined(const char *a, const char *b)
{
    const char *kept = keep_text(a);

    room_used--;
    (void)keep_text(b);
    return kept;
}

/* --- ops ------------------------------------------------------------------------ */

/* An op as it is read; what it points to is here, too. */
struct request {
    struct op op;
    struct op_times times;
    bool asked;
    struct renew_item items[OP_RENEW_MAX];
    struct batch_item names[OP_BATCH_MAX];
    struct restore_entry entries[OP_RESTORE_ENTRIES_MAX];
    struct span members[OP_QUEUE_MAX];
    uint64_t waited_ms[OP_QUEUE_MAX];
};

static struct request request;

/* The words of an op, one after the other. */
struct cursor {
    const struct scn_words *words;
    size_t at;
};

static bool has_more(const struct cursor *c)
{
    return c->at < c->words->count;
}

static const char *next_text(struct cursor *c)
{
    return keep_text(scn_word(c->words, c->at++));
}

static struct span next_span(struct cursor *c)
{
    return span_str(next_text(c));
}

static bool next_is(const struct cursor *c, const char *word)
{
    return has_more(c) && strcmp(c->words->at[c->at], word) == 0;
}

/* The next word is a field, and no positional one: an entry never has a `=`. */
static bool next_is_field(const struct cursor *c)
{
    return has_more(c) && strchr(c->words->at[c->at], '=') != NULL;
}

static bool read_class(struct op *op, const char *word)
{
    static const char *const WORDS[] = { [CLASS_PLAIN] = "plain",
                                         [CLASS_RW] = "rw",
                                         [CLASS_SEMAPHORE] = "semaphore",
                                         [CLASS_LATCH] = "latch" };
    int class = read_choice(word, "class", WORDS, sizeof WORDS / sizeof WORDS[0]);

    if (class >= 0) {
        op->lock_class = (enum lock_class) class;
    }
    return class >= 0;
}

static int read_kind(const char *word)
{
    return read_choice(word, "kind", LOCK_KINDS, LOCK_KIND_COUNT);
}

static bool read_times(const char *word)
{
    const char *asked = scn_option(word, "asked");
    const char *deadline = scn_option(word, "deadline");

    if (asked != NULL) {
        request.times.asked_us = strtoull(asked, NULL, 10);
        request.asked = true;
    } else if (deadline != NULL) {
        request.times.deadline_us = strtoull(deadline, NULL, 10);
    }
    return asked != NULL || deadline != NULL;
}

static void read_op_word(struct op *op, const char *word)
{
    if (!read_class(op, word) && !read_times(word) && !set_op_field(op, word)) {
        scn_fail("'%s' is no field of %s", word, OP_WORDS[op->kind]);
    }
}

/* The owner of a claim, or of a hold that is renewed. */
static void read_owner(struct cursor *c, enum owner_kind *kind, struct span *field,
                       struct span *entry)
{
    *kind = OWNER_ANONYMOUS;
    if (next_is(c, "request")) {
        c->at++;
        *entry = next_span(c);
    } else if (next_is(c, "field")) {
        c->at++;
        *field = next_span(c);
    } else if (next_is(c, "id")) {
        c->at++;
        *kind = OWNER_ID;
        *field = next_span(c);
    } else if (next_is(c, "owner")) {
        c->at++;
        *kind = OWNER_NAMED;
        *field = next_span(c);
        *entry = next_span(c);
    }
}

/* Readers and permits have their field from the beginning. */
static void complete_claim(struct claim *claim)
{
    bool given = claim->lock_kind == KIND_READ || claim->lock_kind == KIND_PERMITS;

    if (claim->owner_kind == OWNER_ANONYMOUS && given && claim->field.len == 0) {
        claim->field = span_str(keep_joined("latchd:", claim->entry.ptr));
    }
}

static void be_fair(struct op *op, struct claim *claim, const char *member)
{
    claim->lock_kind = KIND_FAIR;
    claim->member = span_str(keep_text(member));
    if (claim->owner_kind == OWNER_ANONYMOUS && claim->entry.len == 0) {
        claim->entry = span_after(claim->member, strlen("latchd:"));
    }
    if (op->kind == OP_ACQUIRE) {
        op->acquire.fair = true;
    }
}

static bool read_claim_word(struct op *op, struct claim *claim, const char *word)
{
    const char *member = scn_option(word, "member");
    const char *entry = scn_option(word, "entry");
    int kind = read_kind(word);

    if (member != NULL) {
        be_fair(op, claim, member);
    } else if (entry != NULL) {
        claim->entry = span_str(keep_text(entry));
    } else if (kind >= 0) {
        claim->lock_kind = (enum lock_kind)kind;
        op->lock_class = lock_class_of(claim->lock_kind);
    } else if (strcmp(word, "rest") == 0) {
        claim->owner_kind = OWNER_REST;
    } else {
        return set_claim_field(claim, keep_text(word));
    }
    return true;
}

/* Up to the end, or to the word `until`. */
static void read_claim(struct cursor *c, struct op *op, struct claim *claim,
                       const char *until)
{
    enum owner_kind owner_kind;

    *claim = (struct claim){ .lease_ms = LEASE_MS };
    read_owner(c, &owner_kind, &claim->field, &claim->entry);
    claim->owner_kind = owner_kind;
    while (has_more(c) && !next_is(c, until)) {
        const char *word = c->words->at[c->at++];

        if (!read_claim_word(op, claim, word)) {
            read_op_word(op, word);
        }
    }
    complete_claim(claim);
}

static void read_target(struct cursor *c, struct target *t)
{
    int kind = find_word(TARGETS, TARGET_COUNT, scn_word(c->words, c->at++));

    if (kind < 0) {
        scn_fail("'%s' is no target", c->words->at[c->at - 1]);
    }
    t->kind = (enum target_kind)kind;
    if (t->kind == TARGET_TOKEN) {
        t->token = (uint64_t)scn_number(c->words, c->at++);
    } else if (t->kind == TARGET_REQUEST) {
        t->entry = next_span(c);
    } else if (t->kind != TARGET_ANY) {
        t->field = next_span(c);
        if (t->kind != TARGET_FIELD && has_more(c) && !next_is(c, "next") &&
            !next_is_field(c)) {
            t->entry = next_span(c);
        }
    }
}

static bool read_target_word(struct op *op, struct target *t, const char *word)
{
    const char *entry = scn_option(word, "entry");
    int kind = read_kind(word);

    if (kind >= 0) {
        t->lock_kind = (enum lock_kind)kind;
        op->lock_class = lock_class_of(t->lock_kind);
    } else if (entry != NULL) {
        t->entry = span_str(keep_text(entry));
    }
    return kind >= 0 || entry != NULL;
}

static void read_release(struct cursor *c, struct op *op)
{
    int yield;

    op->release.leave_tombstone = true;
    read_target(c, &op->release.target);
    while (has_more(c) && !next_is(c, "next")) {
        const char *word = c->words->at[c->at++];

        yield = read_choice(word, "yield", YIELDS, YIELD_COUNT);
        if (yield >= 0) {
            op->release.yield = (enum yield)yield;
        } else if (!read_target_word(op, &op->release.target, word)) {
            read_op_word(op, word);
        }
    }
    if (has_more(c)) {
        c->at++;
        op->release.has_next = true;
        read_claim(c, op, &op->release.next, "");
    }
}

static void read_attach(struct cursor *c, struct op *op)
{
    op->attach.lease_ms = LEASE_MS;
    read_target(c, &op->attach.target);
    while (has_more(c)) {
        const char *word = c->words->at[c->at++];

        if (!read_target_word(op, &op->attach.target, word)) {
            read_op_word(op, word);
        }
    }
}

/* `NAME WHO key=value..`, up to `and` */
static void read_item(struct cursor *c, struct op *op, struct renew_item *item)
{
    *item = (struct renew_item){ .name = next_span(c), .lease_ms = LEASE_MS };
    if (next_is(c, "token")) {
        c->at++;
        item->token = (uint64_t)scn_number(c->words, c->at);
        item->field = span_str(keep_joined("latchd:", c->words->at[c->at++]));
    } else {
        read_owner(c, &item->owner_kind, &item->field, &item->entry);
    }
    for (; has_more(c) && !next_is(c, "and"); c->at++) {
        const char *word = c->words->at[c->at];
        int kind = read_kind(word);

        if (kind >= 0) {
            item->lock_kind = (enum lock_kind)kind;
            op->lock_class = lock_class_of(item->lock_kind);
        } else if (!set_item_field(item, word)) {
            read_op_word(op, word);
        }
    }
    c->at += has_more(c) ? 1 : 0;
    if (item->field.len == 0) {
        item->field = span_str(keep_joined("latchd:", item->entry.ptr));
    }
}

/* Those that `item` has said before this RENEW. */
static struct renew_item said_items[OP_RENEW_MAX];
static size_t said_item_count;

static void read_renew(struct cursor *c, struct op *op)
{
    op->renew.items = request.items;
    op->renew.count = said_item_count;
    op->lock_class = lock_class_of(said_items[0].lock_kind);
    memcpy(request.items, said_items, sizeof request.items);
    memset(said_items, 0, sizeof said_items);
    said_item_count = 0;
    while (has_more(c)) {
        ck_assert_uint_lt(op->renew.count, OP_RENEW_MAX);
        read_item(c, op, &request.items[op->renew.count++]);
    }
}

/* Those that `name` has said before this batch. */
static struct batch_item said_names[OP_BATCH_MAX];
static size_t said_name_count;

static void read_name(struct cursor *c, struct op *op, struct batch_item *item)
{
    item->name = next_span(c);
    read_claim(c, op, &item->claim, "and");
    c->at += has_more(c) ? 1 : 0;
}

/* Names, `and` between them: `a request q:1 and b request q:1 all_or_none=1` */
static void read_batch(struct cursor *c, struct op *op)
{
    op->batch.items = request.names;
    op->batch.count = said_name_count;
    memcpy(request.names, said_names, sizeof request.names);
    said_name_count = 0;
    while (has_more(c)) {
        ck_assert_uint_lt(op->batch.count, OP_BATCH_MAX);
        read_name(c, op, &request.names[op->batch.count++]);
    }
}

/* `kept=id:1` is an entry, `kept=id:1@500` one that is kept for 500 ms; of a hold
 * without entries `for_ms=500`. */
static bool read_kept(struct op *op, const char *word)
{
    const char *kept = scn_option(word, "kept"), *ms = scn_option(word, "for_ms");

    if (kept != NULL) {
        struct restore_entry *entry = &request.entries[op->restore.entry_count++];
        const char *at = strchr(kept, '@');

        ck_assert_uint_le(op->restore.entry_count, OP_RESTORE_ENTRIES_MAX);
        entry->entry =
            span_of(keep_text(kept), at == NULL ? strlen(kept) : (size_t)(at - kept));
        entry->for_ms = at == NULL ? 0 : strtoull(at + 1, NULL, 10);
    } else if (ms != NULL) {
        request.entries[0].for_ms = strtoull(ms, NULL, 10);
    }
    return kept != NULL || ms != NULL;
}

static void read_restore(struct cursor *c, struct op *op)
{
    struct claim *claim = &op->restore.claim;
    enum owner_kind owner_kind;

    *claim = (struct claim){ .lease_ms = LEASE_MS };
    read_owner(c, &owner_kind, &claim->field, &claim->entry);
    claim->owner_kind = owner_kind;
    op->restore.entries = request.entries;
    while (has_more(c)) {
        const char *word = c->words->at[c->at++];

        if (!read_kept(op, word) && !read_claim_word(op, claim, word)) {
            read_op_word(op, word);
        }
    }
    complete_claim(claim);
    if (op->restore.entry_count == 0) {
        op->restore.entry_count = 1;
        request.entries[0].entry =
            claim->owner_kind == OWNER_NAMED ? claim->entry : SPAN_NONE;
    }
}

static void add_member(struct op *op, struct span member, const char *waited_ms)
{
    size_t i = op->queue.count++;

    ck_assert_uint_lt(i, OP_QUEUE_MAX);
    request.members[i] = member;
    if (waited_ms != NULL) {
        request.waited_ms[i] = strtoull(waited_ms, NULL, 10);
        op->queue.waited_ms = request.waited_ms;
    }
}

/* `latchd:..:0..4094/2@9000-20`: every second one; the first has waited for 9000 ms,
 * each one after it for 20 ms less. */
static void add_members(struct op *op, const char *word, const char *dots)
{
    int stem = 0;
    unsigned from = 0, to = 0, step = 1;
    uint64_t waited = 0, less = 0;
    const char *at = strchr(word, '@');

    ck_assert_int_eq(sscanf(word, "latchd:%*[a-f]:%n%u", &stem, &from), 1);
    ck_assert_int_ge(sscanf(dots, "..%u/%u", &to, &step), 1);
    ck_assert(at == NULL || sscanf(at, "@%" SCNu64 "-%" SCNu64, &waited, &less) == 2);
    for (; from <= to; from += step, waited -= less) {
        char member[64], ms[24];

        (void)snprintf(member, sizeof member, "%.*s%u", stem, word, from);
        (void)snprintf(ms, sizeof ms, "%" PRIu64, waited);
        add_member(op, span_str(keep_text(member)), at == NULL ? NULL : ms);
    }
}

/* Members; `latchd:..:7@500` has waited for 500 ms. */
static void read_members(struct cursor *c, struct op *op)
{
    op->queue.members = request.members;
    while (has_more(c)) {
        const char *word = c->words->at[c->at++];
        const char *at = strchr(word, '@'), *dots = strstr(word, "..");
        size_t len = at == NULL ? strlen(word) : (size_t)(at - word);

        if (strchr(word, '=') != NULL) {
            read_op_word(op, word);
        } else if (dots != NULL) {
            add_members(op, word, dots);
        } else {
            add_member(op, span_of(keep_text(word), len), at == NULL ? NULL : at + 1);
        }
    }
}

/* `set REQUEST 7`, `count REQUEST`, `delete REQUEST`, `look` */
static void read_latch(struct cursor *c, struct op *op)
{
    int verb = find_word(LATCH_VERBS, LATCH_VERB_COUNT, scn_word(c->words, c->at++));

    if (verb < 0) {
        scn_fail("a latch knows no '%s'", c->words->at[c->at - 1]);
    }
    op->lock_class = CLASS_LATCH;
    op->latch.verb = (enum latch_verb)verb;
    op->latch.most_counted = LATCHD_COUNTED_MAX;
    if (op->latch.verb != LATCH_TO_LOOK) {
        op->latch.request = next_span(c);
    }
    if (op->latch.verb == LATCH_TO_SET) {
        op->latch.count = scn_number(c->words, c->at++);
    }
    while (has_more(c)) {
        read_op_word(op, c->words->at[c->at++]);
    }
}

static void read_fields(struct cursor *c, struct op *op)
{
    while (has_more(c)) {
        read_op_word(op, c->words->at[c->at++]);
    }
}

static void read_op(const struct scn_words *words, struct op *op)
{
    struct cursor c = { words, 1 };
    int kind = find_word(OP_WORDS, OP_SCAN + 1, scn_word(words, 0));

    if (kind < 0) {
        scn_fail("'%s' is no op", words->at[0]);
    }
    *op = (struct op){ .kind = (enum op_kind)kind, .fair_wait_ms = FAIR_WAIT_MS };
    if (op->kind != OP_RENEW && op->kind != OP_ACQUIRE_BATCH && op->kind != OP_SCAN) {
        op->name = next_span(&c);
    }
    switch (op->kind) {
    case OP_ACQUIRE:
        read_claim(&c, op, &op->acquire.claim, "");
        break;
    case OP_ACQUIRE_BATCH:
        read_batch(&c, op);
        break;
    case OP_RELEASE:
        read_release(&c, op);
        break;
    case OP_RENEW:
        read_renew(&c, op);
        break;
    case OP_ATTACH:
        read_attach(&c, op);
        break;
    case OP_RESTORE:
        read_restore(&c, op);
        break;
    case OP_QUEUE:
    case OP_LEAVE:
        read_members(&c, op);
        break;
    case OP_LATCH:
        read_latch(&c, op);
        break;
    case OP_INSPECT:
    case OP_LIMIT:
    case OP_SCAN:
        read_fields(&c, op);
        break;
    }
}

/* --- results -------------------------------------------------------------------- */

/* Words with blanks between. */
struct line {
    size_t len;
    char text[16384];
};

static void add_span(struct line *line, struct span s)
{
    line->len += (size_t)snprintf(line->text + line->len, sizeof line->text - line->len,
                                  "%s%.*s", line->len == 0 ? "" : " ", (int)s.len,
                                  s.len == 0 ? "" : s.ptr);
    ck_assert_uint_lt(line->len, sizeof line->text);
}

static void put_line(struct value *map, const char *key, const struct line *line)
{
    scn_put_text(map, key, "%s", line->text);
}

static void put_span(struct value *map, const char *key, struct span s)
{
    scn_put_text(map, key, "%.*s", (int)s.len, s.len == 0 ? "" : s.ptr);
}

/* `of-o_write="write 1 7"`: the hold of the owner `o:write`, its count and its token.
 */
static void put_inspect(struct value *map, const struct op_result *r)
{
    struct line queue = { 0 };

    scn_put_int(map, "fields", (int64_t)r->inspect.field_count);
    for (size_t i = 0; i < r->inspect.field_count && i < 8; i++) {
        const struct op_field *f = &r->inspect.fields[i];
        char owner[512];
        char text[128];

        (void)snprintf(owner, sizeof owner, "of-%.*s", (int)f->owner.len, f->owner.ptr);
        for (char *at = owner; *at != '\0'; at++) {
            *at = *at == ':' ? '_' : *at;
        }
        (void)snprintf(text, sizeof text, "%s %" PRId64 " %" PRIu64,
                       LOCK_KINDS[f->lock_kind], f->count, f->token);
        scn_put_text(map, owner, "%s", text);
        if (i == 0) {
            put_span(map, "owner", f->owner);
        }
    }
    for (size_t i = 0; i < r->inspect.queue_count && i < 64; i++) {
        add_span(&queue, r->inspect.queue[i]);
    }
    put_line(map, "queue", &queue);
    scn_put_int(map, "queued", (int64_t)r->inspect.queue_count);
    put_span(map, "who", r->inspect.who);
    put_span(map, "data", r->inspect.data);
    scn_put_int(map, "atleast_ms", (int64_t)r->inspect.atleast_ms);
    scn_put_int(map, "is_string", r->inspect.is_string);
}

static void put_items(struct value *map, const struct op_result *r)
{
    struct line items = { 0 };
    int64_t ok = 0;

    for (size_t i = 0; i < r->renew.count; i++) {
        ok += r->renew.items[i] == RENEW_OK ? 1 : 0;
        add_span(&items, span_str(RENEW_WORDS[r->renew.items[i]]));
    }
    put_line(map, "items", &items);
    scn_put_int(map, "ok_items", ok);
}

static void put_result(struct value *map, const struct op_result *r, enum op_kind kind);

/* `results.0.token`, and `statuses` of all. */
static void put_results(struct value *map, const struct op_result *results,
                        size_t count, enum op_kind kind)
{
    struct line statuses = { 0 };
    struct value list = { .type = VALUE_LIST,
                          .count = count,
                          .items = calloc(count + 1, sizeof *list.items) };

    for (size_t i = 0; i < count; i++) {
        add_span(&statuses, span_str(OP_STATUS_WORDS[results[i].status]));
        put_result(&list.items[i], &results[i], kind);
    }
    put_line(map, "statuses", &statuses);
    scn_put_int(map, "results", 0);
    map->items[map->count - 1] = list;
}

static void put_result(struct value *map, const struct op_result *r, enum op_kind kind)
{
    scn_put_text(map, "", "%s", OP_STATUS_WORDS[r->status]);
    scn_put_text(map, "status", "%s", OP_STATUS_WORDS[r->status]);
    put_result_fields(map, r, kind);
    scn_put_text(map, "kind", "%s", LOCK_KINDS[r->lock_kind]);
    put_span(map, "text", r->text);
    if (kind == OP_RENEW) {
        put_items(map, r);
    } else if (kind == OP_INSPECT) {
        put_inspect(map, r);
    } else if (kind == OP_ATTACH) {
        put_span(map, "field", r->attach.field);
        put_span(map, "entry", r->attach.entry);
        put_span(map, "data", r->attach.data);
    } else if (kind == OP_LATCH) {
        scn_put_text(map, "state", "%s", LATCH_STATES[r->latch.state]);
    } else if (kind == OP_ACQUIRE_BATCH) {
        put_results(map, r->batch.results, r->batch.count, OP_ACQUIRE);
    }
}

/* --- calls ---------------------------------------------------------------------- */

static uint64_t time_us(void)
{
    redisReply *reply = redis_ask(redis, "TIME");
    uint64_t us = strtoull(reply->element[0]->str, NULL, 10) * 1000000 +
                  strtoull(reply->element[1]->str, NULL, 10);

    freeReplyObject(reply);
    return us;
}

static redisReply *call(const char *instance, const struct op *ops, size_t count)
{
    redisContext *side = redis_side(redis);
    struct buf out = { 0 };
    void *reply = NULL;

    if (!request.asked) {
        uint64_t now_us = time_us();

        request.times.asked_us =
            now_us < request.times.deadline_us ? now_us : request.times.deadline_us;
    }
    script_call(&out, ops, count, instance, request.times);
    ck_assert_int_eq(redisAppendFormattedCommand(side, buf_ptr(&out), buf_len(&out)),
                     REDIS_OK);
    buf_reset(&out);
    ck_assert_int_eq(redisGetReply(side, &reply), REDIS_OK);
    return reply;
}

/* Of the daemon with that letter. */
static const char *instance_of(const char *letter, char ret[OP_INSTANCE_LEN + 1])
{
    if (*letter < 'A' || *letter > 'F' || letter[1] != '\0') {
        scn_fail("a daemon is A to F, not '%s'", letter);
    }
    memset(ret, *letter - 'A' + 'a', OP_INSTANCE_LEN);
    ret[OP_INSTANCE_LEN] = '\0';
    return ret;
}

/* Ops for one call together. */
static struct op together[SCRIPT_BATCH_MAX];
static size_t together_count;

/* `with acquire a request q:1`; then `A: all` sends all of them in one call. */
static void do_with(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    ck_assert_uint_lt(together_count, SCRIPT_BATCH_MAX);
    read_op(words, &together[together_count]);
    ck_assert(script_batch_is_simple(&together[together_count]));
    together_count++;
}

/* `item n7 token $last`: one more item of the next RENEW. */
static void do_item(const struct scn_words *words, struct value *ret)
{
    struct cursor c = { words, 0 };
    struct op op = { .kind = OP_RENEW };

    (void)ret;
    ck_assert_uint_lt(said_item_count, OP_RENEW_MAX);
    read_item(&c, &op, &said_items[said_item_count++]);
}

/* `name n7 request q:1`: one more name of the next batch. */
static void do_name(const struct scn_words *words, struct value *ret)
{
    struct cursor c = { words, 0 };
    struct op op = { .kind = OP_ACQUIRE_BATCH };

    (void)ret;
    ck_assert_uint_lt(said_name_count, OP_BATCH_MAX);
    read_name(&c, &op, &said_names[said_name_count++]);
}

/* Of the op that was run last. */
static uint64_t last_token;

static void say_all(const char *instance, struct value *ret)
{
    redisReply *reply = call(instance, together, together_count);
    struct op_result results[SCRIPT_BATCH_MAX] = { 0 };
    struct script_result parts[SCRIPT_BATCH_MAX] = { 0 };
    bool refused = script_reply_part(reply, 0, together_count) == NULL;

    for (size_t i = 0; i < together_count && !refused; i++) {
        script_reply(script_reply_part(reply, i, together_count), together->kind, 0,
                     &parts[i]);
        results[i] = parts[i].result;
    }
    scn_put_text(ret, "", "%s", refused ? "refused" : "ok");
    put_results(ret, results, refused ? 0 : together_count, together->kind);
    for (size_t i = 0; i < together_count; i++) {
        script_result_fini(&parts[i]);
    }
    freeReplyObject(reply);
    together_count = 0;
}

static void say(const struct scn_saying *saying, struct value *ret)
{
    static struct script_result result;
    char instance[OP_INSTANCE_LEN + 1];
    redisReply *reply;

    memset(&request, 0, sizeof request);
    request.times.deadline_us = NEVER_LATE;
    (void)instance_of(saying->who, instance);
    if (strcmp(scn_word(saying->words, 0), "all") == 0) {
        struct cursor c = { saying->words, 1 };

        while (has_more(&c)) {
            ck_assert(read_times(c.words->at[c.at++]));
        }
        say_all(instance, ret);
        return;
    }
    read_op(saying->words, &request.op);
    reply = call(instance, &request.op, 1);
    script_reply(reply, request.op.kind, op_item_count(&request.op), &result);
    put_result(ret, &result.result, request.op.kind);
    last_token = result.result.token;
    if (result.result.status == OP_ERROR && saying->want == SCN_NOTHING) {
        scn_fail("%.*s", (int)result.result.text.len, result.result.text.ptr);
    }
    script_result_fini(&result);
    freeReplyObject(reply);
}

/* `$A` is an instance, `$last` the token of the last result. */
static bool look_up(const char *name, char ret[SCN_VALUE_MAX])
{
    if (strcmp(name, "last") == 0) {
        (void)snprintf(ret, SCN_VALUE_MAX, "%" PRIu64, last_token);
        return true;
    }
    if (*name < 'A' || *name > 'F' || name[1] != '\0') {
        return false;
    }
    (void)instance_of(name, ret);
    return true;
}

/* --- Redis ---------------------------------------------------------------------- */

static void do_redis(const struct scn_words *words, struct value *ret)
{
    say_to_redis(redis, words, ret);
}

static void do_redisson(const struct scn_words *words, struct value *ret)
{
    say_as_redisson(redis, words, ret);
}

static void do_listen(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    listen_at_redis(redis, words);
}

static redisContext *pattern_ear; /* NULL: none */

/* `listen-all`: until the end, to a pattern that fits every channel. */
static void do_listen_all(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    (void)words;
    ck_assert_ptr_null(pattern_ear);
    pattern_ear = redisConnectUnix(redis_path(redis));
    freeReplyObject(redisCommand(pattern_ear, "PSUBSCRIBE *"));
}

static void do_hear(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    hear_from_redis(words);
}

/* Microseconds of Redis's clock. */
static void do_time(const struct scn_words *words, struct value *ret)
{
    (void)words;
    scn_int(ret, (int64_t)time_us());
}

/* How many scripts there are; Redis knows each by the SHA1 that was embedded. */
static void do_load_scripts(const struct scn_words *words, struct value *ret)
{
    (void)words;
    for (int i = 0; i < LUA_COUNT; i++) {
        redis_expect(redis, LUA_SCRIPTS[PUBLISH_PLAIN][i].sha1, "SCRIPT LOAD %b",
                     LUA_SCRIPTS[PUBLISH_PLAIN][i].text,
                     LUA_SCRIPTS[PUBLISH_PLAIN][i].len);
    }
    scn_int(ret, LUA_COUNT);
}

/* `renew-without-gt 1 n ..`: the script for a Redis that takes no GT, here one whose
 * word for it is another, with these keys and arguments. */
static void do_renew_without_gt(const struct scn_words *words, struct value *ret)
{
    const struct lua_script *script = &LUA_SCRIPTS[PUBLISH_PLAIN][LUA_RENEW];
    char *text = strdup(script->text), *gt = strstr(text, "'GT'");
    struct scn_words command = { .count = words->count + 2, .at = { "EVAL", text } };

    ck_assert_ptr_nonnull(gt);
    memcpy(gt, "'G?'", 4);
    ck_assert_ptr_null(strstr(gt, "'GT'"));
    memcpy(command.at + 2, words->at, words->count * sizeof words->at[0]);
    say_to_redis(redis, &command, ret);
    free(text);
}

/* `calls pttl`: since `redis CONFIG RESETSTAT`. */
static void do_calls(const struct scn_words *words, struct value *ret)
{
    scn_int(ret, redis_calls(redis, scn_word(words, 0), NULL));
}

/* `marks 107000`: there are ended marks, and each was made just now, to live so long.
 */
static void do_marks(const struct scn_words *words, struct value *ret)
{
    redisReply *keys = redis_ask(redis, "KEYS latchd:ended:*");
    int64_t ms = scn_number(words, 0);

    (void)ret;
    ck_assert_uint_gt(keys->elements, 0);
    for (size_t i = 0; i < keys->elements; i++) {
        const char *key = keys->element[i]->str;
        int64_t ttl = redis_ask_int(redis, "PTTL %s", key);

        /* On a slow machine the moment may be long. */
        ck_assert_msg(ttl <= ms && ttl > ms - 30000, "%s: %" PRId64, key, ttl);
    }
    freeReplyObject(keys);
}

/* All there is; with `times` as long as it lasts, in 10 s, and without the times that
 * are a part of it. */
static char *dump(bool times)
{
    static const char SCRIPT[] =
        "local times, out = ARGV[1] == '1', {} "
        "local keys = redis.call('KEYS', '*') table.sort(keys) "
        "for _, k in ipairs(keys) do "
        "  local what, v = redis.call('TYPE', k).ok, nil "
        "  v = what == 'hash' and redis.call('HGETALL', k) "
        "    or what == 'list' and redis.call('LRANGE', k, 0, -1) "
        "    or what == 'zset' and redis.call('ZRANGE', k, 0, -1, 'WITHSCORES') "
        "    or { redis.call('GET', k) } "
        "  for i, w in ipairs(v) do "
        "    if times and string.find(k, 'keeper', 1, true) then "
        "      w = string.sub(w, 1, 16) "
        "    elseif times and string.find(k, 'fence', 1, true) then "
        "      w = string.gsub(w, ' %d+$', '') "
        "    elseif times and string.find(k, 'entries', 1, true) and #w > 32 then "
        "      w = string.sub(w, 1, 16) .. string.sub(w, 33) "
        "    end "
        "    v[i] = w "
        "  end "
        "  out[#out + 1] = k .. '=' .. table.concat(v, ' ') .. (times and "
        "    string.format(' %.0f', redis.call('PTTL', k) / 10000) or '') "
        "end return table.concat(out, '\\n')";
    redisReply *reply = redis_ask(redis, "EVAL %s 0 %s", SCRIPT, times ? "1" : "0");
    char *text;

    ck_assert_msg(reply->type == REDIS_REPLY_STRING, "%s", reply->str);
    text = strdup(reply->str);
    freeReplyObject(reply);
    return text;
}

static char *remembered;
static bool remembers_times;

/* `remember` all keys, as they are `unchanged` later. `remember times`: their TTLs,
 * too, but not when somebody took a hold over. */
static void do_remember(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    free(remembered);
    remembers_times = words->count > 0;
    remembered = dump(remembers_times);
}

static void do_unchanged(const struct scn_words *words, struct value *ret)
{
    char *now = dump(remembers_times);

    (void)words;
    (void)ret;
    ck_assert_str_eq(now, remembered);
    free(now);
}

/* --- permits ------------------------------------------------------------------------
 */

/* `TOKEN 2`, the 16 bytes of the second permit of that token, or a text of 16 bytes, as
 * a Redisson has. Returns how many words that were. */
static size_t read_permit(const struct scn_words *words, size_t at, char ret[16])
{
    const char *word = scn_word(words, at);
    uint64_t token = strtoull(word, NULL, 10);
    int64_t i;

    if (strlen(word) == 16 && token == 0) {
        memcpy(ret, word, 16);
        return 1;
    }
    i = scn_number(words, at + 1);
    memcpy(ret, "latchd", 6);
    for (int byte = 0; byte < 8; byte++) {
        ret[6 + byte] = (char)(token >> (56 - 8 * byte) & 0xff);
    }
    ret[14] = (char)(i / 256);
    ret[15] = (char)(i % 256);
    return 2;
}

/* `permit-ends s PERMIT`: in ms, by its score; nil: it is not there. */
static void do_permit_ends(const struct scn_words *words, struct value *ret)
{
    char permit[16];
    redisReply *r;

    (void)read_permit(words, 1, permit);
    r = redis_ask(redis, "ZSCORE {%s}:timeout %b", scn_word(words, 0), permit,
                  sizeof permit);
    if (r->type != REDIS_REPLY_NIL) {
        scn_int(ret, strtoll(r->str, NULL, 10) - (int64_t)(time_us() / 1000));
    }
    freeReplyObject(r);
}

/* `end-permit s PERMIT 2000`: so far from now, by its score. */
static void do_end_permit(const struct scn_words *words, struct value *ret)
{
    char permit[16];
    size_t used = read_permit(words, 1, permit);
    int64_t at = (int64_t)(time_us() / 1000) + scn_number(words, 1 + used);

    (void)ret;
    ck_assert_int_ge(redis_ask_int(redis, "ZADD {%s}:timeout XX %lld %b",
                                   scn_word(words, 0), (long long)at, permit,
                                   sizeof permit),
                     0);
}

/* `permit-row s FIELD`: the row of a hold, but for the time in it, which is 16 digits;
 * nil: there is none. Its token leads to the field. */
static void do_permit_row(const struct scn_words *words, struct value *ret)
{
    const char *name = scn_word(words, 0), *field = scn_word(words, 1);
    redisReply *r = redis_ask(redis, "HGET latchd:holds:{%s} %s", name, field);

    if (r->type != REDIS_REPLY_NIL) {
        ck_assert_uint_gt(r->len, 16);
        ck_assert_uint_eq(strspn(r->str + r->len - 16, "0123456789"), 16);
        r->str[r->len - 16] = '\0';
        scn_text(ret, "%s", r->str);
        r->str[strcspn(r->str, " ")] = '\0';
        redis_expect(redis, field, "HGET latchd:holds:{%s} :%s", name, r->str);
    }
    freeReplyObject(r);
}

static void publish_free(const char *name, int64_t free_permits)
{
    (void)redis_ask_int(redis, "PUBLISH redisson_sc:{%s} %lld", name,
                        (long long)free_permits);
}

/* As a Redisson: `take-permit s PERMIT 30000`, which ends then. */
static void do_take_permit(const struct scn_words *words, struct value *ret)
{
    const char *name = scn_word(words, 0);
    char permit[16];
    size_t used = read_permit(words, 1, permit);
    int64_t at = (int64_t)(time_us() / 1000) + scn_number(words, 1 + used);

    (void)ret;
    (void)redis_ask_int(redis, "DECRBY %s 1", name);
    ck_assert_int_eq(redis_ask_int(redis, "ZADD {%s}:timeout %lld %b", name,
                                   (long long)at, permit, sizeof permit),
                     1);
}

/* `give-permit s PERMIT`: and tells of it; 0: it is not there. */
static void do_give_permit(const struct scn_words *words, struct value *ret)
{
    const char *name = scn_word(words, 0);
    char permit[16];
    int64_t there;

    (void)read_permit(words, 1, permit);
    there = redis_ask_int(redis, "ZREM {%s}:timeout %b", name, permit, sizeof permit);
    if (there == 1) {
        publish_free(name, redis_ask_int(redis, "INCRBY %s 1", name));
    }
    scn_int(ret, there);
}

/* `reclaim-permits s 500`: takes for dead what is over by a clock that is so much
 * ahead.
 */
static void do_reclaim_permits(const struct scn_words *words, struct value *ret)
{
    const char *name = scn_word(words, 0);
    int64_t now = (int64_t)(time_us() / 1000) + scn_number(words, 1);
    int64_t dead = redis_ask_int(redis, "ZREMRANGEBYSCORE {%s}:timeout 0 %lld", name,
                                 (long long)now);

    if (dead > 0) {
        publish_free(name,
                     redis_ask_int(redis, "INCRBY %s %lld", name, (long long)dead));
    }
    scn_int(ret, dead);
}

/* --- the fair queue ------------------------------------------------------------- */

/* `queue job`: its members, between blanks; each has a score, and no other has one. */
static void do_queue(const struct scn_words *words, struct value *ret)
{
    const char *name = scn_word(words, 0);
    redisReply *list = redis_ask(redis, "LRANGE redisson_lock_queue:{%s} 0 -1", name);
    struct line text = { 0 };

    for (size_t i = 0; i < list->elements; i++) {
        const char *member = list->element[i]->str;
        redisReply *score =
            redis_ask(redis, "ZSCORE redisson_lock_timeout:{%s} %s", name, member);

        ck_assert_msg(score->type == REDIS_REPLY_STRING, "%s has no score", member);
        freeReplyObject(score);
        add_span(&text, span_str(member));
    }
    ck_assert_int_eq(redis_ask_int(redis, "ZCARD redisson_lock_timeout:{%s}", name),
                     (int64_t)list->elements);
    freeReplyObject(list);
    scn_text(ret, "%s", text.text);
}

/* `due job MEMBER`: how far its score is ahead of Redis's clock, ms. */
static void do_due(const struct scn_words *words, struct value *ret)
{
    redisReply *score = redis_ask(redis, "ZSCORE redisson_lock_timeout:{%s} %s",
                                  scn_word(words, 0), scn_word(words, 1));

    ck_assert_msg(score->type == REDIS_REPLY_STRING, "%s has no score", words->at[1]);
    scn_int(ret, strtoll(score->str, NULL, 10) - (int64_t)(time_us() / 1000));
    freeReplyObject(score);
}

/* `set-due job MEMBER -1` */
static void do_set_due(const struct scn_words *words, struct value *ret)
{
    int64_t at = (int64_t)(time_us() / 1000) + scn_number(words, 2);

    (void)ret;
    ck_assert_int_eq(redis_ask_int(redis,
                                   "ZADD redisson_lock_timeout:{%s} XX CH %lld %s",
                                   words->at[0], (long long)at, words->at[1]),
                     1);
}

/* `pass job 6000`: as if the queue and the lease had been made so long ago. */
static void do_pass(const struct scn_words *words, struct value *ret)
{
    static const char SCRIPT[] =
        "local all = redis.call('ZRANGE', KEYS[1], 0, -1) "
        "for _, m in ipairs(all) do redis.call('ZINCRBY', KEYS[1], -ARGV[1], m) end "
        "all = redis.call('HKEYS', KEYS[2]) "
        "for _, i in ipairs(all) do "
        "  local at = tonumber(redis.call('HGET', KEYS[2], i)) "
        "  if at then redis.call('HSET', KEYS[2], i, "
        "string.format('%.0f', at - ARGV[1])) end "
        "end "
        "local left = redis.call('PTTL', KEYS[3]) - ARGV[1] "
        "if left > 0 then redis.call('PEXPIRE', KEYS[3], left) "
        "else redis.call('DEL', KEYS[3]) end "
        "return 1";
    const char *name = scn_word(words, 0);

    (void)ret;
    ck_assert_int_eq(redis_ask_int(redis,
                                   "EVAL %s 3 redisson_lock_timeout:{%s} "
                                   "latchd:fair:{%s} %s %s",
                                   SCRIPT, name, name, name, scn_word(words, 1)),
                     1);
}

/* --- the stage ------------------------------------------------------------------ */

static void start(void)
{
    redis = redis_start();
}

static void stop(void)
{
    redis_stop(redis);
}

static void begin(void)
{
    struct value none = { 0 };

    room_used = together_count = said_item_count = said_name_count = 0;
    memset(said_items, 0, sizeof said_items);
    redis_expect(redis, "OK", "FLUSHALL");
    redis_expect(redis, "OK", "CONFIG SET maxmemory 0"); /* a scenario may have */
    do_load_scripts(NULL, &none);
    value_fini(&none);
}

static void end(void)
{
    redisFree(pattern_ear);
    pattern_ear = NULL;
    free(remembered);
    remembered = NULL;
    stop_all_listening();
}

/* Redis has done what an op does when it answers: between two looks nothing passes. */
static void wait(void)
{
}

static const struct scn_verb VERBS[] = {
    { "redis", SCN_WORDS_MAX, do_redis },
    { "redisson", 6, do_redisson },
    { "listen", 2, do_listen },
    { "listen-all", 0, do_listen_all },
    { "hear", 2, do_hear },
    { "time", 0, do_time },
    { "load-scripts", 0, do_load_scripts },
    { "item", SCN_WORDS_MAX, do_item },
    { "name", SCN_WORDS_MAX, do_name },
    { "renew-without-gt", 20, do_renew_without_gt },
    { "calls", 1, do_calls },
    { "marks", 1, do_marks },
    { "remember", 1, do_remember },
    { "unchanged", 0, do_unchanged },
    { "with", SCN_WORDS_MAX, do_with },
    { "permit-ends", 3, do_permit_ends },
    { "end-permit", 4, do_end_permit },
    { "permit-row", 2, do_permit_row },
    { "take-permit", 4, do_take_permit },
    { "give-permit", 3, do_give_permit },
    { "reclaim-permits", 2, do_reclaim_permits },
    { "queue", 1, do_queue },
    { "due", 2, do_due },
    { "set-due", 3, do_set_due },
    { "pass", 2, do_pass },
    { NULL, 0, NULL },
};

const struct scn_stage scn_stage = {
    .timeout_s = 60,
    .start = start,
    .stop = stop,
    .begin = begin,
    .end = end,
    .wait = wait,
    .now = test_now_ms,
    .say = say,
    .look_up = look_up,
    .verbs = VERBS,
};
