#include "backend/redis/sub_channel.h"

#include "backend/redis/channel_name.h"
#include "util/alloc.h"
#include "util/hash.h"

#include <stdlib.h>

void sub_channels_init(struct sub_channels *cs)
{
    *cs = (struct sub_channels){ 0 };
    list_init(&cs->todo);
}

void sub_channels_fini(struct sub_channels *cs)
{
    struct table_walk walk;
    struct table_node *n;

    for (enum lock_class lock_class = 0; lock_class < LOCK_CLASSES; lock_class++) {
        TABLE_FOREACH(n, &walk, &cs->by_class[lock_class])
        {
            sub_channel_free(cs, sub_channel_in(n));
        }
        table_fini(&cs->by_class[lock_class]);
    }
}

bool sub_channel_is_named(const struct sub_channel *ch)
{
    return ch->want_unbraced || ch->want_braced;
}

bool sub_channel_is_wanted(const struct sub_channel *ch)
{
    return sub_channel_is_named(ch) || ch->want_member;
}

void sub_channel_free(struct sub_channels *cs, struct sub_channel *ch)
{
    table_remove(&cs->by_class[ch->lock_class], &ch->in_channels);
    list_del(&ch->todo);
    list_del(&ch->in_shard);
    free(ch);
}

struct sub_channel *sub_channel_in(struct table_node *n)
{
    return container_of(n, struct sub_channel, in_channels);
}

struct sub_channel *sub_channel_find(struct sub_channels *cs, struct span text,
                                     enum lock_class lock_class)
{
    struct table_node *n =
        table_find(&cs->by_class[lock_class], hash_bytes(text.ptr, text.len));

    for (; n != NULL; n = table_next(n)) {
        struct sub_channel *ch = sub_channel_in(n);

        if (span_eq(span_of(ch->text, ch->len), text)) {
            return ch;
        }
    }
    return NULL;
}

struct sub_channel *sub_channel_of(struct sub_channels *cs, struct span name,
                                   enum lock_class lock_class, bool make)
{
    bool tagged = channel_is_tagged(name, lock_class);
    size_t len = name.len + (tagged ? 0 : 2);
    struct sub_channel *ch = xcalloc(1, sizeof(*ch) + len);
    struct sub_channel *found;

    memcpy(ch->text + (tagged ? 0 : 1), name.ptr, name.len);
    if (!tagged) {
        ch->text[0] = '{';
        ch->text[len - 1] = '}';
    }
    found = sub_channel_find(cs, span_of(ch->text, len), lock_class);
    if (found != NULL || !make) {
        free(ch);
        return found;
    }
    ch->len = len;
    ch->lock_class = lock_class;
    list_init(&ch->todo);
    list_init(&ch->in_shard);
    ch->in_channels.key = hash_bytes(ch->text, ch->len);
    table_add(&cs->by_class[lock_class], &ch->in_channels);
    return ch;
}

void sub_channel_ask(struct sub_channels *cs, struct sub_channel *ch)
{
    list_del(&ch->todo);
    list_append(&cs->todo, &ch->todo);
}

/* The text of a member has a brace, and so is its own channel. */
void sub_channel_want_member(struct sub_channels *cs, struct span text, bool wanted)
{
    struct sub_channel *ch = sub_channel_of(cs, text, CLASS_PLAIN, wanted);

    if (ch != NULL && ch->want_member != wanted) {
        ch->want_member = wanted;
        sub_channel_ask(cs, ch);
    }
}
