/* script_args_latch: the part of script_args.h that is about latches. */
#ifndef LATCHD_BACKEND_SCRIPT_SCRIPT_ARGS_LATCH_H
#define LATCHD_BACKEND_SCRIPT_SCRIPT_ARGS_LATCH_H

#include "backend/redis/redis_command.h"
#include "backend/script/script_select.h"

static void put_latch_count(struct script_source *from)
{
    command_uint(from->out, (uint64_t)from->op->latch.count);
}

static void put_only_gen(struct script_source *from)
{
    command_uint(from->out, from->op->latch.generation);
}

static void put_only_tells(struct script_source *from)
{
    put_bool(from, from->op->latch.only_tells);
}

static void put_most_counted(struct script_source *from)
{
    command_uint(from->out, from->op->latch.most_counted);
}

#endif
