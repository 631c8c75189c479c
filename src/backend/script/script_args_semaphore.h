/* script_args_semaphore: the part of script_args.h that is about semaphores. */
#ifndef LATCHD_BACKEND_SCRIPT_SCRIPT_ARGS_SEMAPHORE_H
#define LATCHD_BACKEND_SCRIPT_SCRIPT_ARGS_SEMAPHORE_H

#include "backend/redis/redis_command.h"
#include "backend/script/script_select.h"

static void put_permits(struct script_source *from)
{
    command_uint(from->out, from->claim->permits);
}

static void put_new_limit(struct script_source *from)
{
    command_uint(from->out, from->op->limit.limit);
}

/* The same where a counter that is gone is made anew. */
static void put_known_limit(struct script_source *from)
{
    command_uint(from->out, from->renewed->limit);
}

static void put_limit(struct script_source *from)
{
    command_uint(from->out, from->claim->limit);
}

#endif
