#include "backend/redis/channel_name.h"

#include <stdio.h>

struct span channel_prefix(enum lock_class lock_class)
{
    static const char *const PREFIXES[LOCK_CLASSES] = {
        [CLASS_PLAIN] = "redisson_lock__channel:",
        [CLASS_RW] = "redisson_rwlock:",
        [CLASS_SEMAPHORE] = "redisson_sc:",
        [CLASS_LATCH] = "redisson_countdownlatch__channel__",
    };

    return span_str(PREFIXES[lock_class]);
}

bool channel_split(struct span channel, enum lock_class *ret_class,
                   struct span *ret_text)
{
    for (enum lock_class lock_class = 0; lock_class < LOCK_CLASSES; lock_class++) {
        if (span_starts(channel, channel_prefix(lock_class))) {
            *ret_class = lock_class;
            *ret_text = span_after(channel, channel_prefix(lock_class).len);
            return true;
        }
    }
    return false;
}

bool channel_is_tagged(struct span name, enum lock_class lock_class)
{
    return lock_class != CLASS_LATCH && name.len != 0 &&
           memchr(name.ptr, '{', name.len) != NULL;
}

struct span channel_daemons(char out[static CHANNEL_DAEMONS_MAX], unsigned db)
{
    int len = snprintf(out, CHANNEL_DAEMONS_MAX, "latchd:daemons:%u", db);

    return span_of(out, (size_t)len);
}

void channel_member_init(struct channel_member *m, const char *instance)
{
    (void)snprintf(m->text, sizeof(m->text), ":latchd:%.*s:", OP_INSTANCE_LEN,
                   instance);
}

/* Returns the text before the member that ends `s`, or none; a name may have the same
 * words inside. */
static struct span before_member(const struct channel_member *m, struct span s)
{
    size_t at = s.len;

    /* The number at the end has no colon. */
    while (at > 0 && s.ptr[at - 1] != ':') {
        at--;
    }
    if (at < CHANNEL_MEMBER_LEN ||
        memcmp(s.ptr + at - CHANNEL_MEMBER_LEN, m->text, CHANNEL_MEMBER_LEN) != 0) {
        return SPAN_NONE;
    }
    return span_of(s.ptr, at - CHANNEL_MEMBER_LEN);
}

struct channel_names channel_member_names(const struct channel_member *m,
                                          struct span channel)
{
    struct span prefix = channel_prefix(CLASS_PLAIN);
    struct channel_names ret = { SPAN_NONE, SPAN_NONE };
    struct span name;

    if (!span_starts(channel, prefix)) {
        return ret;
    }
    name = before_member(m, span_after(channel, prefix.len));
    if (channel_is_tagged(name, CLASS_PLAIN)) {
        ret.braced = name;
    }
    if (name.len > 2 && name.ptr[0] == '{' && name.ptr[name.len - 1] == '}') {
        struct span inner = span_of(name.ptr + 1, name.len - 2);

        ret.unbraced = channel_is_tagged(inner, CLASS_PLAIN) ? SPAN_NONE : inner;
    }
    return ret;
}
