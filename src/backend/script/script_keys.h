/* script_keys: writes each key that a script may be called with, and each prefix of
 * keys.
 *
 * For every name that a script declares with `--@key` there is one put_<name>() here;
 * `name|other` is put_<name>_or_<other>(). The same is script_args.h for `--@arg`.
 * Which words a script is called with, and in which order, only its tags say: the build
 * makes script_write.c from them, the one file that includes these headers. A name that
 * has no function does not compile, and neither does a function whose name no script
 * declares. */
#ifndef LATCHD_BACKEND_SCRIPT_SCRIPT_KEYS_H
#define LATCHD_BACKEND_SCRIPT_SCRIPT_KEYS_H

#include "backend/redis/channel_name.h"
#include "backend/redis/redis_command.h"
#include "backend/script/script_select.h"

/* Prefixes of keys that also stand before what follows the name. */
static const char KEEPER[] = "latchd:keeper:";
static const char ENDED[] = "latchd:ended:";

/* Begins a call with so many keys and arguments. */
static void begin_script(struct script_source *from, enum lua_id script, size_t keys,
                         size_t args)
{
    const struct lua_script *s = &LUA_SCRIPTS[from->times.publish][script];

    keys += from->op->grouped ? 1 : 0;
    command_begin(from->out, 3 + keys + args);
    buf_add(from->out, s->call, s->call_len);
    command_uint(from->out, keys);
}

/* After the last key. In a cluster this adds the key that never exists: while its slot
 * is on its way to another node neither of them takes a script for whole, so that none
 * runs half here and half there. */
static void end_keys(struct script_source *from)
{
    if (from->op->grouped) {
        command_key(from->out, SPAN("latchd:moving:"), from->name, SPAN_NONE);
    }
}

/* `<prefix>{N}:<what>` */
static void put_key_of(struct script_source *from, struct span prefix, struct span what)
{
    bool tagged = memchr(from->name.ptr, '{', from->name.len) != NULL;
    struct span parts[] = {
        prefix,     tagged ? SPAN_NONE : SPAN("{"),
        from->name, tagged ? SPAN_NONE : SPAN("}"),
        SPAN(":"),  what,
    };

    command_join(from->out, parts, sizeof(parts) / sizeof(parts[0]));
}

/* Keys. Those of a claim alone are the lock again for an anonymous one. */

static void put_lock(struct script_source *from)
{
    command_word(from->out, from->name);
}

static void put_fence_key(struct script_source *from)
{
    command_key(from->out, SPAN("latchd:fence:"), from->name, SPAN_NONE);
}

static void put_entries_key(struct script_source *from)
{
    command_key(from->out, SPAN("latchd:entries:"), from->name, SPAN_NONE);
}

static void put_writer_key(struct script_source *from)
{
    command_key(from->out, SPAN("latchd:writer:"), from->name, SPAN_NONE);
}

/* Of a semaphore: Redisson's zset, and what latchd keeps beside it. */
static void put_ends(struct script_source *from)
{
    put_key_of(from, SPAN_NONE, SPAN("timeout"));
}

static void put_holds_key(struct script_source *from)
{
    command_key(from->out, SPAN("latchd:holds:"), from->name, SPAN_NONE);
}

/* Beside Redisson's counter of a latch: its mark, and who has counted. */
static void put_latch_key(struct script_source *from)
{
    command_key(from->out, SPAN("latchd:latch:"), from->name, SPAN_NONE);
}

static void put_counted_key(struct script_source *from)
{
    command_key(from->out, SPAN("latchd:counted:"), from->name, SPAN_NONE);
}

static void put_queue(struct script_source *from)
{
    command_key(from->out, SPAN("redisson_lock_queue:"), from->name, SPAN_NONE);
}

static void put_scores(struct script_source *from)
{
    command_key(from->out, SPAN("redisson_lock_timeout:"), from->name, SPAN_NONE);
}

static void put_marks(struct script_source *from)
{
    command_key(from->out, SPAN("latchd:fair:"), from->name, SPAN_NONE);
}

/* At which Redisson's RFencedLock counts its tokens. */
static void put_counter(struct script_source *from)
{
    command_key(from->out, SPAN("redisson_lock_token:"), from->name, SPAN_NONE);
}

static void put_entries_key_or_claim_keeper(struct script_source *from)
{
    if (is_named(from)) {
        put_entries_key(from);
    } else if (is_owned(from)) {
        put_key_of(from, SPAN(KEEPER), from->claim->field);
    } else {
        put_lock(from);
    }
}

static void put_tombstone_key(struct script_source *from)
{
    if (is_owned(from)) {
        put_key_of(from, SPAN(ENDED),
                   is_named(from) ? from->claim->entry : from->claim->field);
    } else {
        put_lock(from);
    }
}

/* The keeper key of what is renewed, or a named owner's entries hash. */
static void put_helper_key(struct script_source *from)
{
    if (from->renewed->kind == OWNER_NAMED) {
        put_entries_key(from);
    } else {
        put_key_of(from, SPAN(KEEPER), from->field);
    }
}

/* How keys begin */

static void put_hold_of(struct script_source *from)
{
    command_key(from->out, SPAN_NONE, from->name, SPAN(":"));
}

static void put_keeper_of(struct script_source *from)
{
    command_key(from->out, SPAN(KEEPER), from->name, SPAN(":"));
}

static void put_tombstone_of(struct script_source *from)
{
    command_key(from->out, SPAN(ENDED), from->name, SPAN(":"));
}

static void put_reader_of(struct script_source *from)
{
    command_key(from->out, SPAN("latchd:reader:"), from->name, SPAN(":"));
}

/* Redisson puts braces around every name here, also one that has a brace. */
static void put_latch_channel(struct script_source *from)
{
    struct span parts[] = { channel_prefix(CLASS_LATCH), SPAN("{"), from->name,
                            SPAN("}") };

    command_join(from->out, parts, sizeof(parts) / sizeof(parts[0]));
}

static void put_channel(struct script_source *from)
{
    command_key(from->out, channel_prefix(from->op->lock_class), from->name, SPAN_NONE);
}

#endif
