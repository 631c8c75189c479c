/* redis_command: writes Redis commands, and the names of latchd's keys, into a buffer.
 *
 * The caller says beforehand how many words a command has, and then adds just as many.
 * Pure functions over bytes. */
#ifndef LATCHD_BACKEND_REDIS_REDIS_COMMAND_H
#define LATCHD_BACKEND_REDIS_REDIS_COMMAND_H

#include "engine/op.h"
#include "util/buf.h"
#include "util/span.h"

#include <stdint.h>

/* channel_name: the channels of lock names, and which names a channel is of.
 *
 *   redisson_lock__channel:{N}            plain and fair locks
 *   redisson_lock__channel:{N}:<member>   one member of the fair queue
 *   redisson_rwlock:{N}                   read/write locks
 *   redisson_sc:{N}                       semaphores
 *   redisson_countdownlatch__channel__{N} latches
 *   latchd:daemons:<db>                   what daemons announce to each other
 *
 * `{N}` is N itself where N has a `{`, so the names `n` and `{n}` share their channels;
 * but the channel of a latch has braces around every name.
 * Pure functions over bytes. */

/* The part of a channel that all members of one instance share: `:latchd:<instance>:`.
 */
enum { CHANNEL_MEMBER_LEN = sizeof(":latchd::") - 1 + OP_INSTANCE_LEN };

struct channel_member {
    char text[CHANNEL_MEMBER_LEN + 1];
};

struct channel_names {
    struct span unbraced; /* `n`; empty: there is no such name */
    struct span braced;   /* `{n}`, or any name that has a `{`; empty: likewise */
};

/* The channel of a lock of that class, up to the name. */
struct span channel_prefix(enum lock_class lock_class);
/* The class of the locks whose channel it is, and what follows the prefix. False: it is
 * no lock's. */
bool channel_split(struct span channel, enum lock_class *ret_class,
                   struct span *ret_text);
/* Whether N has a `{`, and so needs no braces. */
bool channel_is_tagged(struct span name, enum lock_class lock_class);

/* The channel of daemons. All databases of a server share all channels, so its name
 * says which database it is for. */
enum { CHANNEL_DAEMONS_MAX = 32 };
struct span channel_daemons(char out[static CHANNEL_DAEMONS_MAX], unsigned db);

void channel_member_init(struct channel_member *m, const char *instance);
/* The names for which the channel is that of a member; both empty: none. */
struct channel_names channel_member_names(const struct channel_member *m,
                                          struct span channel);

void command_begin(struct buf *out, size_t words);
void command_word(struct buf *out, struct span word);
void command_uint(struct buf *out, uint64_t value);

/* A word made of several parts. */
void command_join(struct buf *out, const struct span *parts, size_t count);

/* Redisson's rule for the keys beside a lock: prefix, then the name, in braces unless
 * it has one, then the suffix. */
void command_key(struct buf *out, struct span prefix, struct span name,
                 struct span suffix);

/* A whole command of constant words. */
void command_words(struct buf *out, size_t count, const char *const *words);

#endif
