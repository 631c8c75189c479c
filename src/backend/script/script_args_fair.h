/* script_args_fair: the arguments of what moves the fair queue. A part of
 * script_args.h. */
#ifndef LATCHD_BACKEND_SCRIPT_SCRIPT_ARGS_FAIR_H
#define LATCHD_BACKEND_SCRIPT_SCRIPT_ARGS_FAIR_H

#include "backend/redis/redis_command.h"
#include "backend/script/script_args_words.h"
#include "backend/script/script_call_priv.h"

static void put_member(struct script_source *from)
{
    command_word(from->out, from->member);
}

static void put_fair_wait(struct script_source *from)
{
    command_uint(from->out, from->op->fair_wait_ms);
}

static void put_enqueue(struct script_source *from)
{
    put_bool(from, from->op->acquire.enqueue);
}

static void put_was_in(struct script_source *from)
{
    put_bool(from, from->op->acquire.was_queued);
}

static void put_whole_or_ordered(struct script_source *from)
{
    command_uint(from->out, from->op->queue.waited_ms != NULL ? 2
                            : from->op->queue.whole           ? 1
                                                              : 0);
}

static void put_were_in(struct script_source *from)
{
    command_uint(from->out, from->op->queue.known);
}

/* In Redis's time. */
static void put_waits_since(struct script_source *from)
{
    uint64_t now_ms = from->times.asked_us / 1000;

    command_uint(from->out, from->for_ms < now_ms ? now_ms - from->for_ms : 0);
}

#endif
