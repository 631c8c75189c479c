/* script_args_renew: arguments of the scripts that renew holds and loans. A part of
 * script_args.h. */
#ifndef LATCHD_BACKEND_SCRIPT_SCRIPT_ARGS_RENEW_H
#define LATCHD_BACKEND_SCRIPT_SCRIPT_ARGS_RENEW_H

#include "backend/redis/redis_command.h"
#include "backend/script/script_args_words.h"
#include "backend/script/script_call_priv.h"

static void put_outlive(struct script_source *from)
{
    command_uint(from->out, op_fence_ttl(from->op));
}

static void put_short(struct script_source *from)
{
    command_uint(from->out, from->short_count);
}

static void put_short_lease(struct script_source *from)
{
    command_uint(from->out,
                 from->short_count > 0 ? from->op->renew.items[0].lease_ms : 0);
}

static void put_loan_token(struct script_source *from)
{
    put_number(from, from->renewed->subscribed, from->token);
}

static void put_hold_letters(struct script_source *from)
{
    const struct renew_item *item = from->renewed;
    struct span letters[] = {
        kind_letter(item->kind),
        item->exact ? SPAN("x") : SPAN_NONE,
        item->fence ? SPAN("f") : SPAN_NONE,
        item->has_keeper_key ? SPAN("k") : SPAN_NONE,
        item->loan_token != 0 ? SPAN("l") : SPAN_NONE,
        lock_kind_letter(item->lock_kind, SPAN_NONE),
    };

    put_letters(from, letters, sizeof(letters) / sizeof(letters[0]));
}

static void put_field(struct script_source *from)
{
    command_word(from->out, from->field);
}

static void put_token(struct script_source *from)
{
    command_uint(from->out, from->token);
}

static void put_entry(struct script_source *from)
{
    command_word(from->out, from->entry);
}

static void put_entry_or_loan(struct script_source *from)
{
    if (from->loan_token != 0) {
        command_uint(from->out, from->loan_token);
    } else {
        put_entry(from);
    }
}

#endif
