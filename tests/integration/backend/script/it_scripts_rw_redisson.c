/* Redisson's read/write locks and latchd's on one name. The steps are those that
 * Redisson's own scripts were seen to do; each of three parties is a Redisson client or
 * a latchd client with the same owner, in all combinations, and the replies, the hash
 * and the TTL must be the same. Where latchd differs on purpose the step says so. The
 * defects of Redisson that latchd must not have are in scripts_rw_defects.scn. */
#include "scripts_rw.h"

#include "support/redisson.h"
#include "support/runner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define A "aaaaaaaa-0000-0000-0000-000000000001:1"
#define B "bbbbbbbb-0000-0000-0000-000000000002:1"
#define C "cccccccc-0000-0000-0000-000000000003:7"

static const char *const OWNERS[] = { A, B, C };

enum verb { READ, WRITE, UNREAD, UNWRITE };
enum outcome { GRANTED, BUSY, STAYS, FREE, DOWN, NOT_HELD };

static const struct step {
    int who;
    enum verb verb;
    uint64_t lease;
    enum outcome outcome;
    const char *hash;
    int64_t ttl;        /* after it; 0: no lock */
    int64_t ttl_latchd; /* 0: the same */
    const char *heard;  /* payloads */
    const char *heard_latchd;
} STEPS[] = {
    { 0, READ, 30000, GRANTED, "mode=read A=1 ", 30000, 0, "", "" },
    /* The hold key of a second entry has the longest lease of that reader. */
    { 0, READ, 5000, GRANTED, "mode=read A=2 ", 30000, 0, "", "" },
    { 1, READ, 60000, GRANTED, "mode=read A=2 B=1 ", 60000, 0, "", "" },
    { 2, WRITE, 30000, BUSY, "mode=read A=2 B=1 ", 60000, 0, "", "" },
    { 2, UNREAD, 0, NOT_HELD, "mode=read A=2 B=1 ", 60000, 0, "", "" },
    { 2, UNWRITE, 0, NOT_HELD, "mode=read A=2 B=1 ", 60000, 0, "", "" },
    { 0, UNREAD, 0, STAYS, "mode=read A=1 B=1 ", 60000, 0, "", "" },
    { 0, UNREAD, 0, STAYS, "mode=read B=1 ", 60000, 0, "", "" },
    { 0, UNREAD, 0, NOT_HELD, "mode=read B=1 ", 60000, 0, "", "" },
    { 1, UNREAD, 0, FREE, "", 0, 0, "0", "0" },
    /* Redisson publishes even if there was nothing to unlock. */
    { 1, UNREAD, 0, NOT_HELD, "", 0, 0, "0", "" },
    { 0, WRITE, 30000, GRANTED, "mode=write A:write=1 ", 30000, 0, "", "" },
    /* Redisson adds leases up; a lease of latchd's is what it says. */
    { 0, WRITE, 30000, GRANTED, "mode=write A:write=2 ", 60000, 30000, "", "" },
    { 0, READ, 30000, GRANTED, "mode=write A:write=2 A=1 ", 60000, 30000, "", "" },
    { 1, READ, 30000, BUSY, "mode=write A:write=2 A=1 ", 60000, 30000, "", "" },
    { 1, WRITE, 30000, BUSY, "mode=write A:write=2 A=1 ", 60000, 30000, "", "" },
    { 0, UNWRITE, 0, STAYS, "mode=write A:write=1 A=1 ", 30000, 0, "", "" },
    /* Redisson tells nobody that readers may come in now: W3. */
    { 0, UNWRITE, 0, DOWN, "mode=read A=1 ", 30000, 0, "", "10" },
    { 1, READ, 30000, GRANTED, "mode=read A=1 B=1 ", 30000, 0, "", "" },
    { 0, UNREAD, 0, STAYS, "mode=read B=1 ", 30000, 0, "", "" },
    { 1, UNREAD, 0, FREE, "", 0, 0, "0", "0" },
    { 2, WRITE, 10000, GRANTED, "mode=write C:write=1 ", 10000, 0, "", "" },
    { 0, WRITE, 30000, BUSY, "mode=write C:write=1 ", 10000, 0, "", "" },
    /* A 0 after the 1: see rw_release.lua. */
    { 2, UNWRITE, 0, FREE, "", 0, 0, "1", "10" },
};

/* The fields of the hash, in its order, with short names for owners. */
static void hash_text(char *text, size_t room)
{
    redisReply *r = redis_ask(peer_redis(), "HGETALL n");
    size_t at = 0;

    text[0] = '\0';
    for (size_t i = 0; i + 1 < r->elements; i += 2) {
        const char *field = r->element[i]->str;
        char name[64];

        (void)snprintf(name, sizeof name, "%s", field);
        for (int who = 0; who < 3; who++) {
            size_t len = strlen(OWNERS[who]);

            if (strncmp(field, OWNERS[who], len) == 0) {
                (void)snprintf(name, sizeof name, "%c%s", 'A' + who, field + len);
            }
        }
        at += (size_t)snprintf(text + at, room - at, "%s=%s ", name,
                               r->element[i + 1]->str);
    }
    freeReplyObject(r);
}

static enum outcome of_redisson(const struct step *s)
{
    struct redisson r = { .redis = peer_redis(), .owner = OWNERS[s->who] };
    int64_t said;

    if (s->verb == READ || s->verb == WRITE) {
        said = s->verb == READ ? redisson_read_lock(&r, "n", (int64_t)s->lease)
                               : redisson_write_lock(&r, "n", (int64_t)s->lease);
        return said == REDISSON_NIL ? GRANTED : BUSY;
    }
    said = s->verb == UNREAD ? redisson_read_unlock(&r, "n", NULL)
                             : redisson_write_unlock(&r, "n", NULL);
    if (said == REDISSON_NIL) {
        return NOT_HELD;
    }
    if (said == 0 || s->outcome == STAYS) {
        return STAYS;
    }
    return redis_ask_int(peer_redis(), "EXISTS n") == 0 ? FREE : DOWN;
}

static enum outcome of_latchd(const struct step *s, int number)
{
    bool write = s->verb == WRITE || s->verb == UNWRITE;
    enum lock_kind kind = write ? KIND_WRITE : KIND_READ;
    const struct op_result *r;
    char field[80], entry[16];
    struct op op;

    (void)snprintf(field, sizeof field, "%s%s", OWNERS[s->who], write ? ":write" : "");
    if (s->verb == READ || s->verb == WRITE) {
        struct claim claim;

        (void)snprintf(entry, sizeof entry, "id:%d", number);
        claim = rw_claim(kind, OWNER_NAMED, field, entry);
        claim.lease_ms = s->lease;
        op = rw_acquire(claim);
        r = run_as(INSTANCE_A, &op);
        ck_assert_msg(r->status == OP_OK || r->status == OP_BUSY, "%d", (int)r->status);
        return r->status == OP_OK ? GRANTED : BUSY;
    }
    op = rw_release(TARGET_OWNER, kind, OWNERS[s->who], NULL);
    r = run_as(INSTANCE_A, &op);
    ck_assert_msg(r->status == OP_OK || r->status == OP_NOTHELD, "%d", (int)r->status);
    return r->status != OP_OK  ? NOT_HELD
           : r->release.freed  ? FREE
           : r->release.shared ? DOWN
                               : STAYS;
}

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

/* Rows: bit i: party i is latchd. */
START_TEST(redissons_steps_are_latchds_in_any_company, 8)
{
    redisContext *c = rw_listen();

    for (int i = 0; i < (int)(sizeof STEPS / sizeof STEPS[0]); i++) {
        const struct step *s = &STEPS[i];
        /* A writes alone from step 11 to 17: what it does is its own. */
        bool latchd = (_i >> s->who & 1) != 0;
        bool ours = i >= 11 && i < 18 ? (_i & 1) != 0 : latchd;
        int64_t want = ours && s->ttl_latchd != 0 ? s->ttl_latchd : s->ttl;
        const char *heard = latchd ? s->heard_latchd : s->heard;
        enum outcome got = latchd ? of_latchd(s, i) : of_redisson(s);
        char text[400];

        ck_assert_msg(got == s->outcome, "step %d: %d, not %d", i, (int)got,
                      (int)s->outcome);
        hash_text(text, sizeof text);
        ck_assert_msg(strcmp(text, s->hash) == 0, "step %d: %s, not %s", i, text,
                      s->hash);
        if (want == 0) {
            ck_assert_int_eq(rw_ttl(), -2);
        } else {
            rw_about(rw_ttl(), want);
        }
        for (; *heard != '\0'; heard++) {
            char payload[2] = { *heard, '\0' };

            rw_hear(c, payload);
        }
        rw_hear(c, NULL);
    }
    redisFree(c);
}
