/* sub_channel: the channels of names that are wanted, or still open, on the pub/sub
 * link. A part of redis_sub, for nobody else. */
#ifndef LATCHD_BACKEND_REDIS_SUB_CHANNEL_H
#define LATCHD_BACKEND_REDIS_SUB_CHANNEL_H

#include "engine/lock_kind.h"
#include "util/list.h"
#include "util/span.h"
#include "util/table.h"

#include <stdbool.h>

/* One channel. The names `n` and `{n}` share theirs. `asked` and `open` are about this
 * link: only the confirmation of what was asked last counts. */
struct sub_channel {
    struct table_node in_channels;
    struct list todo;   /* on sub_channels.todo: something is to be asked */
    bool want_unbraced; /* the name is `text` without its outer braces */
    bool want_braced;   /* the name is `text` */
    bool want_member;   /* of this instance, in a fair queue: only sharded, by itself */
    enum lock_class lock_class;
    bool asked;    /* for: SUBSCRIBE */
    unsigned open; /* confirmations that have not come */
    /* Of the sharded channel of that name, if there is one: */
    bool shard_on;
    bool shard_adds; /* what was asked last */
    bool shard_refused;
    struct list in_shard; /* an answer is to come, or it was refused */
    size_t len;
    char text[]; /* the channel without the prefix */
};

struct sub_channels {
    struct table by_class[LOCK_CLASSES];
    struct list todo;
};

void sub_channels_init(struct sub_channels *cs);
void sub_channels_fini(struct sub_channels *cs);

struct sub_channel *sub_channel_in(struct table_node *n);
struct sub_channel *sub_channel_find(struct sub_channels *cs, struct span text,
                                     enum lock_class lock_class);
/* The channel of a name, made if `make`. */
struct sub_channel *sub_channel_of(struct sub_channels *cs, struct span name,
                                   enum lock_class lock_class, bool make);
bool sub_channel_is_wanted(const struct sub_channel *ch);
/* By a name, so the plain channel is wanted as well. */
bool sub_channel_is_named(const struct sub_channel *ch);
/* `text`: the channel of a member without the prefix. */
void sub_channel_want_member(struct sub_channels *cs, struct span text, bool wanted);
/* Puts it at the end of the todo list. */
void sub_channel_ask(struct sub_channels *cs, struct sub_channel *ch);
void sub_channel_free(struct sub_channels *cs, struct sub_channel *ch);

#endif
