/* script_args: writes each argument that a script may be called with: one put_<name>()
 * for every name that a script declares with `--@arg`. See script_keys.h. */
#ifndef LATCHD_BACKEND_SCRIPT_SCRIPT_ARGS_H
#define LATCHD_BACKEND_SCRIPT_SCRIPT_ARGS_H

#include "backend/redis/redis_command.h"
#include "backend/script/script_args_fair.h"
#include "backend/script/script_args_latch.h"
#include "backend/script/script_args_renew.h"
#include "backend/script/script_args_semaphore.h"
#include "backend/script/script_args_words.h"
#include "backend/script/script_select.h"
#include "util/digits.h"

#include <inttypes.h>
#include <stdio.h>

/* What is known of Redis's clock may be wrong by half a round trip, which is far less;
 * a fence key outlives a clock that was set back by less. */
enum { CLOCK_ERROR_US = 1000000 };

/* Every call */

static void put_deadline(struct script_source *from)
{
    command_uint(from->out, from->times.deadline_us);
}

/* When the client asked that is to be granted the lock; else when the call is sent. */
static uint64_t asked_us(const struct script_source *from)
{
    uint64_t us = from->times.asked_us;
    uint64_t ago_us = 0;

    if (from->op->kind == OP_ACQUIRE) {
        ago_us = from->op->acquire.claim.asked_ago_ms * 1000;
    } else if (from->op->kind == OP_RELEASE) {
        ago_us = from->op->release.next.asked_ago_ms * 1000;
    }
    return ago_us < us ? us - ago_us : 0;
}

static void put_asked(struct script_source *from)
{
    command_uint(from->out, asked_us(from));
}

static void put_instance(struct script_source *from)
{
    command_word(from->out, span_str(from->instance));
}

/* The clock of Redis counts as seen, too, less what may be wrong about it: it may have
 * been set back since it was last asked for. */
static uint64_t highest_seen(const struct script_source *from)
{
    uint64_t seen = from->times.asked_us > CLOCK_ERROR_US
                        ? from->times.asked_us - CLOCK_ERROR_US
                        : 0;

    for (size_t i = 0; i < from->op_count; i++) {
        seen = from->op[i].seen_token > seen ? from->op[i].seen_token : seen;
    }
    return seen;
}

static void put_seen(struct script_source *from)
{
    command_uint(from->out, highest_seen(from));
}

/* A line end sets the data apart from what stands before it in a key. */
static struct span data_line_end(struct span data)
{
    return data.len == 0 ? SPAN_NONE : SPAN("\n");
}

static void put_data(struct script_source *from)
{
    struct span parts[] = { data_line_end(from->claim->data), from->claim->data };

    command_join(from->out, parts, sizeof(parts) / sizeof(parts[0]));
}

enum { TERMS_ROOM = DIGITS_MAX + 1, TERMS_PARTS = 3 };

/* What a plain claim has beside its owner, as part_terms.lua reads it; `room` is for
 * the first part. */
static void make_terms(const struct claim *claim, char room[static TERMS_ROOM],
                       struct span parts[static TERMS_PARTS])
{
    char *end = room + TERMS_ROOM;
    char *at = end;

    if (claim->atleast_ms != 0) {
        at = digits_before(end, claim->atleast_ms);
        *--at = '\t';
    }
    parts[0] = span_of(at, (size_t)(end - at));
    parts[1] = data_line_end(claim->data);
    parts[2] = claim->data;
}

static void put_terms(struct script_source *from)
{
    char room[TERMS_ROOM];
    struct span parts[TERMS_PARTS];

    make_terms(from->claim, room, parts);
    command_join(from->out, parts, TERMS_PARTS);
}

enum { STAMP_DIGITS = 16, STAMP_NUMBERS = 3 };
#define STAMP_END UINT64_C(10000000000000000) /* us: the year 2286 */

static void put_stamp(struct script_source *from)
{
    const uint64_t numbers[STAMP_NUMBERS] = { from->times.deadline_us, asked_us(from),
                                              highest_seen(from) };
    char text[STAMP_NUMBERS * STAMP_DIGITS];
    char room[TERMS_ROOM];
    struct span parts[2 + TERMS_PARTS] = { span_of(text, sizeof(text)),
                                           span_str(from->instance) };

    if (from->claim != NULL) {
        make_terms(from->claim, room, parts + 2);
    }
    memset(text, '0', sizeof(text));
    for (size_t i = 0; i < STAMP_NUMBERS; i++) {
        (void)digits_before(text + (i + 1) * STAMP_DIGITS,
                            numbers[i] < STAMP_END ? numbers[i] : STAMP_END - 1);
    }
    command_join(from->out, parts, sizeof(parts) / sizeof(parts[0]));
}

/* Claims and leases */

static void put_kind(struct script_source *from)
{
    command_word(from->out, kind_letter(from->claim->kind));
}

static void put_kind_or_only_reenter(struct script_source *from)
{
    struct span letters[] = {
        kind_letter(from->claim->kind),
        from->op->acquire.reenter_only ? SPAN("r") : SPAN_NONE,
    };

    put_letters(from, letters, sizeof(letters) / sizeof(letters[0]));
}

static void put_all_or_none(struct script_source *from)
{
    put_bool(from, from->op->batch.all_or_none);
}

static void put_only_reenter(struct script_source *from)
{
    put_bool(from, from->op->kind == OP_ACQUIRE_BATCH ? from->op->batch.reenter_only
                                                      : from->op->acquire.reenter_only);
}

static void put_for_write(struct script_source *from)
{
    command_word(from->out, lock_kind_letter(from->claim->lock_kind, SPAN("r")));
}

/* The same of a hold that is put back. */
static void put_writes(struct script_source *from)
{
    put_for_write(from);
}

static void put_claim(struct script_source *from)
{
    command_word(from->out, is_known_by_request(from->claim) ? from->claim->entry
                                                             : from->claim->field);
}

static void put_claim_entry(struct script_source *from)
{
    command_word(from->out, from->claim->entry);
}

static void put_claim_entry_or_block(struct script_source *from)
{
    if (from->claim->block_us != 0) {
        command_uint(from->out, from->claim->block_us);
    } else {
        put_claim_entry(from);
    }
}

/* How long the helper keys of a hold live. */
static uint64_t helper_ttl(const struct script_source *from, uint64_t lease_ms)
{
    return lease_ms + op_fence_ttl(from->op);
}

static void put_lease(struct script_source *from)
{
    command_uint(from->out, from->lease_ms);
}

static void put_helper_ttl(struct script_source *from)
{
    uint64_t atleast_ms = from->claim == NULL ? 0 : from->claim->atleast_ms;

    command_uint(
        from->out,
        helper_ttl(from, from->lease_ms > atleast_ms ? from->lease_ms : atleast_ms));
}

static void put_first_lease(struct script_source *from)
{
    select_claim(from, 0);
    put_lease(from);
}

static void put_first_ttl(struct script_source *from)
{
    select_claim(from, 0);
    put_number(from, from->op->kind == OP_ACQUIRE_BATCH,
               helper_ttl(from, from->lease_ms));
}

static void put_block(struct script_source *from)
{
    command_uint(from->out, from->block_us);
}

/* An anonymous one of several, of which others may be lent. */
static void put_lent_claim(struct script_source *from)
{
    bool is_not_lent = from->block_us != 0 && from->claim->block_us == 0;
    struct span parts[] = { is_not_lent ? SPAN("-") : SPAN_NONE, from->claim->entry };

    command_join(from->out, parts, sizeof(parts) / sizeof(parts[0]));
}

/* A quorum's */

static void put_proposed(struct script_source *from)
{
    command_uint(from->out, from->op->acquire.propose);
}

static void put_raise_flags(struct script_source *from)
{
    struct span letters[] = {
        from->op->acquire.raise_token ? SPAN("l") : SPAN_NONE,
        from->op->acquire.leave_keeper ? SPAN("k") : SPAN_NONE,
    };

    put_letters(from, letters, sizeof(letters) / sizeof(letters[0]));
}

static void put_untold(struct script_source *from)
{
    const struct op_acquire *acquire = &from->op->acquire;

    command_uint(from->out,
                 acquire->unsent_from != 0 ? acquire->unsent_from : acquire->propose);
}

/* What is released, or attached to */

static void put_what(struct script_source *from)
{
    static const char *const WORDS[] = {
        [TARGET_FIELD] = "field", [TARGET_REQUEST] = "request",
        [TARGET_TOKEN] = "token", [TARGET_ID] = "id",
        [TARGET_ENTRY] = "entry", [TARGET_OWNER] = "owner",
        [TARGET_VALUE] = "value", [TARGET_ANY] = "any",
    };

    command_word(from->out, span_str(WORDS[from->target->kind]));
}

static void put_t_field(struct script_source *from)
{
    command_word(from->out, from->target->field);
}

static void put_t_entry(struct script_source *from)
{
    command_word(from->out, from->target->entry);
}

static void put_t_token(struct script_source *from)
{
    command_uint(from->out, from->target->token);
}

static void put_t_kind(struct script_source *from)
{
    command_word(from->out, lock_kind_letter(from->target->lock_kind, SPAN("-")));
}

static void put_exact(struct script_source *from)
{
    put_bool(from, from->op->attach.exact);
}

static void put_flags(struct script_source *from)
{
    const struct op_release *r = &from->op->release;
    char unsent[24];
    int len = r->unsent_from == 0
                  ? 0
                  : snprintf(unsent, sizeof(unsent), "u%" PRIu64, r->unsent_from);
    struct span letters[] = {
        r->if_keeper ? SPAN("o") : SPAN_NONE,
        r->force ? SPAN("f") : SPAN_NONE,
        r->leave_tombstone ? SPAN("m") : SPAN_NONE,
        r->tombstone_if_missing ? SPAN("b") : SPAN_NONE,
        r->yield == YIELD_ALWAYS ? SPAN("y") : SPAN_NONE,
        r->yield == YIELD_IF_OTHERS ? SPAN("q") : SPAN_NONE,
        r->subscribed ? SPAN("s") : SPAN_NONE,
        r->untold     ? SPAN("n")
        : r->may_rest ? SPAN("r")
                      : SPAN_NONE,
        span_of(unsent, (size_t)len),
    };

    put_letters(from, letters, sizeof(letters) / sizeof(letters[0]));
}

/* The tombstones' times differ if the configuration changed between the ops. */
static void put_tombstone_ms(struct script_source *from)
{
    uint64_t longest = 0;

    for (size_t i = 0; i < from->op_count; i++) {
        uint64_t ms = op_tombstone_ms(&from->op[i]);

        longest = ms > longest ? ms : longest;
    }
    command_uint(from->out, longest);
}

/* The token of a hold that is released with others. */
static void put_released(struct script_source *from)
{
    put_number(from, !from->released->leave_tombstone, from->released->target.token);
}

/* Holds that a restore puts back */

static void put_request(struct script_source *from)
{
    struct span of_claim = from->claim != NULL && is_known_by_request(from->claim)
                               ? from->claim->entry
                               : SPAN_NONE;

    command_word(from->out,
                 from->op->kind == OP_LATCH ? from->op->latch.request : of_claim);
}

static void put_has_keeper(struct script_source *from)
{
    const struct op_restore *restore = &from->op->restore;

    put_bool(from,
             restore->has_keeper_key || restore->raise_token || restore->presumed);
}

/* Redis's time, us, in the digits that keepers and entries have. */
static void put_since(struct script_source *from)
{
    uint64_t asked_us = from->times.asked_us;
    uint64_t for_us = from->for_ms > asked_us / 1000 ? asked_us : from->for_ms * 1000;
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%016" PRIu64, asked_us - for_us);

    command_word(from->out, span_of(digits, (size_t)len));
}

/* What is looked at */

static void put_cursor(struct script_source *from)
{
    command_uint(from->out, from->op->scan.cursor);
}

static void put_count(struct script_source *from)
{
    command_uint(from->out, from->op->scan.count);
}

static void put_most(struct script_source *from)
{
    command_uint(from->out, SCRIPT_FIELDS_MAX);
}

#endif
