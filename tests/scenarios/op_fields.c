#include "scenarios/op_fields.h"

#include <stdio.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

const char *const LOCK_KINDS[] = {
    "plain", "fair", "read", "write", "permits", "latch"
};
const size_t LOCK_KIND_COUNT = COUNT(LOCK_KINDS);

const char *const OWNER_KINDS[] = { "anonymous", "id", "named", "rest" };

const char *const TARGETS[] = {
    [TARGET_FIELD] = "field", [TARGET_REQUEST] = "request", [TARGET_TOKEN] = "token",
    [TARGET_ID] = "id",       [TARGET_ENTRY] = "entry",     [TARGET_OWNER] = "owner",
    [TARGET_VALUE] = "value", [TARGET_ANY] = "any",
};
const size_t TARGET_COUNT = COUNT(TARGETS);

const char *const YIELDS[] = { "never", "if-others", "always" };
const size_t YIELD_COUNT = COUNT(YIELDS);

const char *const LATCH_VERBS[] = {
    [LATCH_TO_SET] = "set",
    [LATCH_TO_COUNT] = "count",
    [LATCH_TO_DELETE] = "delete",
    [LATCH_TO_LOOK] = "look",
};
const size_t LATCH_VERB_COUNT = COUNT(LATCH_VERBS);

const char *const LATCH_STATES[] = {
    [LATCH_NONE] = "none", [LATCH_SET] = "set",   [LATCH_OPEN] = "open",
    [LATCH_GONE] = "gone", [LATCH_LOST] = "lost",
};
const size_t LATCH_STATE_COUNT = COUNT(LATCH_STATES);

int find_word(const char *const *words, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++) {
        if (words[i] != NULL && strcmp(words[i], word) == 0) {
            return (int)i;
        }
    }
    return -1;
}

int read_choice(const char *word, const char *key, const char *const *words,
                size_t count)
{
    const char *choice = scn_option(word, key);
    int i = choice == NULL ? -1 : find_word(words, count, choice);

    if (choice != NULL && i < 0) {
        scn_fail("there is no %s '%s'", key, choice);
    }
    return i;
}

static const struct scn_field ACQUIRE_FIELDS[] = {
    SCN_MEMBER(struct op, "propose", acquire.propose),
    SCN_MEMBER(struct op, "retract_from", acquire.retract_from),
    SCN_MEMBER(struct op, "raise_token", acquire.raise_token),
    SCN_MEMBER(struct op, "leave_keeper", acquire.leave_keeper),
    SCN_MEMBER(struct op, "reenter_only", acquire.reenter_only),
    SCN_MEMBER(struct op, "fair", acquire.fair),
    SCN_MEMBER(struct op, "enqueue", acquire.enqueue),
    SCN_MEMBER(struct op, "was_queued", acquire.was_queued),
};
static const struct scn_field BATCH_FIELDS[] = {
    SCN_MEMBER(struct op, "all_or_none", batch.all_or_none),
    SCN_MEMBER(struct op, "reenter_only", batch.reenter_only),
};
static const struct scn_field RELEASE_FIELDS[] = {
    SCN_MEMBER(struct op, "token", release.target.token),
    SCN_MEMBER(struct op, "ends_in_ms", release.ends_in_ms),
    SCN_MEMBER(struct op, "tombstone_ms", release.tombstone_ms),
    SCN_MEMBER(struct op, "retract_from", release.retract_from),
    SCN_MEMBER(struct op, "has_next", release.has_next),
    SCN_MEMBER(struct op, "subscribed", release.subscribed),
    SCN_MEMBER(struct op, "if_keeper", release.if_keeper),
    SCN_MEMBER(struct op, "force", release.force),
    SCN_MEMBER(struct op, "leave_tombstone", release.leave_tombstone),
    SCN_MEMBER(struct op, "tombstone_if_missing", release.tombstone_if_missing),
    SCN_MEMBER(struct op, "may_rest", release.may_rest),
    SCN_MEMBER(struct op, "skips_rest", release.skips_rest),
    SCN_MEMBER(struct op, "was_held", release.was_held),
};
static const struct scn_field ATTACH_FIELDS[] = {
    SCN_MEMBER(struct op, "token", attach.target.token),
    SCN_MEMBER(struct op, "lease_ms", attach.lease_ms),
    SCN_MEMBER(struct op, "asked_ago_ms", attach.asked_ago_ms),
    SCN_MEMBER(struct op, "exact", attach.exact),
};
static const struct scn_field RESTORE_FIELDS[] = {
    SCN_MEMBER(struct op, "token", restore.token),
    SCN_MEMBER(struct op, "entries", restore.entry_count),
    SCN_MEMBER(struct op, "has_keeper_key", restore.has_keeper_key),
    SCN_MEMBER(struct op, "presumed", restore.presumed),
    SCN_MEMBER(struct op, "loan_token", restore.loan_token),
    SCN_MEMBER(struct op, "raise_token", restore.raise_token),
};
static const struct scn_field QUEUE_FIELDS[] = {
    SCN_MEMBER(struct op, "known", queue.known),
    SCN_MEMBER(struct op, "whole", queue.whole),
};
static const struct scn_field RENEW_FIELDS[] = {
    SCN_MEMBER(struct op, "loans", renew.loans),
};
static const struct scn_field ITEM_FIELDS[] = {
    SCN_FIELD(struct renew_item, lease_ms),
    SCN_FIELD(struct renew_item, token),
    SCN_FIELD(struct renew_item, loan_token),
    SCN_FIELD(struct renew_item, limit),
    SCN_FIELD(struct renew_item, exact),
    SCN_FIELD(struct renew_item, fence),
    SCN_FIELD(struct renew_item, has_keeper_key),
    SCN_FIELD(struct renew_item, subscribed),
};
static const struct scn_field LIMIT_FIELDS[] = {
    SCN_MEMBER(struct op, "limit", limit.limit),
};
static const struct scn_field LATCH_FIELDS[] = {
    SCN_MEMBER(struct op, "count", latch.count),
    SCN_MEMBER(struct op, "generation", latch.generation),
    SCN_MEMBER(struct op, "only_tells", latch.only_tells),
    SCN_MEMBER(struct op, "most_counted", latch.most_counted),
};
static const struct scn_field OP_FIELDS[] = {
    SCN_MEMBER(struct op, "class", lock_class),
    SCN_MEMBER(struct op, "group", group),
    SCN_MEMBER(struct op, "grouped", grouped),
    SCN_MEMBER(struct op, "seen_token", seen_token),
    SCN_MEMBER(struct op, "fair_wait_ms", fair_wait_ms),
    SCN_MEMBER(struct op, "fence_ttl_ms", fence_ttl_ms),
};
static const struct scn_field CLAIM_FIELDS[] = {
    SCN_FIELD(struct claim, block_us),   SCN_FIELD(struct claim, permits),
    SCN_FIELD(struct claim, limit),      SCN_FIELD(struct claim, lease_ms),
    SCN_FIELD(struct claim, atleast_ms), SCN_FIELD(struct claim, asked_ago_ms),
};

static const struct scn_field RESULT[] = {
    SCN_MEMBER(struct op_result, "token", token),
    SCN_MEMBER(struct op_result, "loan_token", loan_token),
    SCN_MEMBER(struct op_result, "ttl", ttl_ms),
    SCN_MEMBER(struct op_result, "count", count),
    SCN_MEMBER(struct op_result, "attached", attached),
    SCN_MEMBER(struct op_result, "elsewhere", elsewhere),
    SCN_MEMBER(struct op_result, "moved", moved),
    SCN_MEMBER(struct op_result, "fair", fair),
    SCN_MEMBER(struct op_result, "withheld", withheld),
    SCN_MEMBER(struct op_result, "foreign", foreign),
    SCN_MEMBER(struct op_result, "by_latchd", by_latchd),
    SCN_MEMBER(struct op_result, "lent", lent),
    SCN_MEMBER(struct op_result, "free", permits.free),
    SCN_MEMBER(struct op_result, "limit", permits.limit),
    SCN_MEMBER(struct op_result, "is_lock", is_lock),
    SCN_MEMBER(struct op_result, "class", lock_class),
};
static const struct scn_field RELEASED[] = {
    SCN_MEMBER(struct op_result, "freed", release.freed),
    SCN_MEMBER(struct op_result, "own_head", release.own_head),
    SCN_MEMBER(struct op_result, "shared", release.shared),
    SCN_MEMBER(struct op_result, "listeners", release.listeners),
    SCN_MEMBER(struct op_result, "rest_ms", release.rest_ms),
};
static const struct scn_field RESTORED[] = {
    SCN_MEMBER(struct op_result, "restored", restore.restored),
};
static const struct scn_field ATTACHED[] = {
    SCN_MEMBER(struct op_result, "permits", attach.permits),
    SCN_MEMBER(struct op_result, "atleast_ms", attach.atleast_ms),
};
static const struct scn_field LATCHED[] = {
    SCN_MEMBER(struct op_result, "value", latch.value),
    SCN_MEMBER(struct op_result, "generation", latch.generation),
    SCN_MEMBER(struct op_result, "last_gone", latch.last_gone),
    SCN_MEMBER(struct op_result, "last_lost", latch.last_lost),
};

struct table {
    const struct scn_field *fields;
    size_t count;
};
#define TABLE(fields)                                                                  \
    {                                                                                  \
        fields, COUNT(fields)                                                          \
    }

/* Of struct op. */
static const struct table OP_TABLES[] = {
    [OP_ACQUIRE] = TABLE(ACQUIRE_FIELDS),
    [OP_ACQUIRE_BATCH] = TABLE(BATCH_FIELDS),
    [OP_RELEASE] = TABLE(RELEASE_FIELDS),
    [OP_RENEW] = TABLE(RENEW_FIELDS),
    [OP_ATTACH] = TABLE(ATTACH_FIELDS),
    [OP_RESTORE] = TABLE(RESTORE_FIELDS),
    [OP_INSPECT] = { NULL, 0 },
    [OP_QUEUE] = TABLE(QUEUE_FIELDS),
    [OP_LEAVE] = { NULL, 0 },
    [OP_LIMIT] = TABLE(LIMIT_FIELDS),
    [OP_LATCH] = TABLE(LATCH_FIELDS),
    [OP_SCAN] = { NULL, 0 },
};

/* Of struct op_result, beside RESULT. */
static const struct table RESULT_TABLES[] = {
    [OP_RELEASE] = TABLE(RELEASED), [OP_ATTACH] = TABLE(ATTACHED),
    [OP_RESTORE] = TABLE(RESTORED), [OP_LATCH] = TABLE(LATCHED),
    [OP_SCAN] = { NULL, 0 },
};

void put_op_fields(struct value *map, const struct op *op,
                   const struct renew_item *items)
{
    const struct table *t = &OP_TABLES[op->kind];

    scn_put_fields(map, op, OP_FIELDS, COUNT(OP_FIELDS));
    scn_put_fields(map, op, t->fields, t->count);
    if (op->kind == OP_RENEW) {
        scn_put_fields(map, items, ITEM_FIELDS, COUNT(ITEM_FIELDS));
    }
}

void put_claim_fields(struct value *map, const struct claim *claim)
{
    scn_put_fields(map, claim, CLAIM_FIELDS, COUNT(CLAIM_FIELDS));
}

/* False: none of them has that name. */
static bool set_one(void *to, const struct scn_field *fields, size_t count,
                    const char *word)
{
    for (size_t i = 0; i < count; i++) {
        if (scn_option(word, fields[i].name) != NULL) {
            scn_set_field(to, &fields[i], 1, word);
            return true;
        }
    }
    return false;
}

bool set_claim_field(struct claim *claim, const char *word)
{
    const char *data = scn_option(word, "data");

    if (data != NULL) {
        claim->data = span_str(data);
        return true;
    }
    return set_one(claim, CLAIM_FIELDS, COUNT(CLAIM_FIELDS), word);
}

bool set_item_field(struct renew_item *item, const char *word)
{
    return set_one(item, ITEM_FIELDS, COUNT(ITEM_FIELDS), word);
}

bool set_op_field(struct op *op, const char *word)
{
    const struct table *t = &OP_TABLES[op->kind];

    return set_one(op, t->fields, t->count, word) ||
           set_one(op, OP_FIELDS, COUNT(OP_FIELDS), word);
}

static const struct {
    const char *name;
    size_t offset;
} RESULT_TEXTS[] = {
    { "text", offsetof(struct op_result, text) },
    { "field", offsetof(struct op_result, attach.field) },
    { "entry", offsetof(struct op_result, attach.entry) },
    { "attached_data", offsetof(struct op_result, attach.data) },
    { "who", offsetof(struct op_result, inspect.who) },
    { "data", offsetof(struct op_result, inspect.data) },
};

void set_result_field(struct op_result *r, const char *word)
{
    for (size_t i = 0; i < COUNT(RESULT_TEXTS); i++) {
        const char *text = scn_option(word, RESULT_TEXTS[i].name);

        if (text != NULL) {
            struct span s = span_str(text);

            memcpy((char *)r + RESULT_TEXTS[i].offset, &s, sizeof s);
            return;
        }
    }
    for (size_t i = 0; i < COUNT(RESULT_TABLES); i++) {
        if (set_one(r, RESULT_TABLES[i].fields, RESULT_TABLES[i].count, word)) {
            return;
        }
    }
    scn_set_field(r, RESULT, COUNT(RESULT), word);
}

void put_result_fields(struct value *map, const struct op_result *r, enum op_kind kind)
{
    const struct table *t = &RESULT_TABLES[kind];

    scn_put_fields(map, r, RESULT, COUNT(RESULT));
    scn_put_fields(map, r, t->fields, t->count);
}
