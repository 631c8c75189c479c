#include "backend/redis/redis_command.h"

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

enum { HEAD_MAX = 1 + DIGITS_MAX + 2 };

static char *put_part(char *at, struct span part)
{
    return part.len == 0 ? at : (char *)memcpy(at, part.ptr, part.len) + part.len;
}

static char *put_end(char *at)
{
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

/* The type byte, a number, CRLF; returns where it ends. */
static char *put_head(char *at, char type, size_t count)
{
    *at++ = type;
    if (count < 10) {
        *at++ = (char)('0' + count);
    } else if (count < 100) {
        *at++ = (char)('0' + count / 10);
        *at++ = (char)('0' + count % 10);
    } else {
        char text[DIGITS_MAX], *end = text + sizeof(text);
        const char *from = digits_before(end, count);

        at = put_part(at, span_of(from, (size_t)(end - from)));
    }
    return put_end(at);
}

void command_begin(struct buf *out, size_t words)
{
    char *at = buf_reserve(out, HEAD_MAX);

    buf_grew(out, (size_t)(put_head(at, '*', words) - at));
}

/* Room for a word of so many bytes, with its head; end_word() follows. */
static char *begin_word(struct buf *out, size_t len)
{
    return put_head(buf_reserve(out, HEAD_MAX + len + 2), '$', len);
}

static void end_word(struct buf *out, char *at)
{
    buf_grew(out, (size_t)(put_end(at) - (out->data + out->tail)));
}

void command_join(struct buf *out, const struct span *parts, size_t count)
{
    size_t len = 0;
    char *at;

    for (size_t i = 0; i < count; i++) {
        len += parts[i].len;
    }
    at = begin_word(out, len);
    for (size_t i = 0; i < count; i++) {
        at = put_part(at, parts[i]);
    }
    end_word(out, at);
}

void command_word(struct buf *out, struct span word)
{
    end_word(out, put_part(begin_word(out, word.len), word));
}

void command_uint(struct buf *out, uint64_t value)
{
    char text[DIGITS_MAX], *end = text + sizeof(text);
    const char *at = digits_before(end, value);

    command_word(out, span_of(at, (size_t)(end - at)));
}

void command_key(struct buf *out, struct span prefix, struct span name,
                 struct span suffix)
{
    bool tagged = name.len != 0 && memchr(name.ptr, '{', name.len) != NULL;
    char *at = begin_word(out, prefix.len + name.len + (tagged ? 0 : 2) + suffix.len);

    at = put_part(at, prefix);
    if (tagged) {
        at = put_part(at, name);
    } else {
        *at++ = '{';
        at = put_part(at, name);
        *at++ = '}';
    }
    end_word(out, put_part(at, suffix));
}

void command_words(struct buf *out, size_t count, const char *const *words)
{
    command_begin(out, count);
    for (size_t i = 0; i < count; i++) {
        command_word(out, span_str(words[i]));
    }
}
