#include "lock_script_words.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

struct writer {
    uint64_t dice;
    struct buf *out;
    const char *key; /* how the script names its key */
};

static const char *const CONDITIONS[] = {
    "redis.call('get', @) == ARGV[1]",
    "redis.call('get', @) ~= ARGV[1]",
    "redis.call('exists', @) == 0",
    "redis.call('exists', @) == 1",
    "not redis.call('get', @)",
    "redis.pcall('get', @) == ARGV[1]",
    "redis.call('set', @, ARGV[1], 'NX', 'PX', ARGV[2])",
    "redis.call('setnx', @, ARGV[1]) == 1",
    "redis.call('del', @) == 1",
    "redis.call('pexpire', @, ARGV[2]) == 1",
    "redis.call('pttl', @) < 0",
    "redis.call('pttl', @) > 0",
    "redis.call('ttl', @) == -1",
    "ARGV[3] == 'x'",
    "redis.call('getrange', @, 0, ARGV[4] - 1) == string.sub(ARGV[1], 1, ARGV[4])",
    "v == ARGV[1]",
    "v",
    "not v",
    "t < 0",
    "t > 0",
};
static const char *const ACTIONS[] = {
    "redis.call('del', @)",
    "redis.call('unlink', @)",
    "redis.call('set', @, ARGV[1], 'PX', ARGV[2])",
    "redis.call('set', @, ARGV[1], 'XX', 'PX', ARGV[2])",
    "redis.call('set', @, ARGV[1])",
    "redis.call('pexpire', @, ARGV[2])",
    "redis.call('pexpire', @, t + ARGV[2])",
    "redis.call('setnx', @, ARGV[1])",
    "redis.call('set', @, ARGV[1], 'NX', 'PX', ARGV[2])",
    "redis.call('expire', @, ARGV[2])",
};
static const char *const VALUES[] = {
    "0",
    "1",
    "-1",
    "nil",
    "true",
    "false",
    "n",
    "#KEYS",
    "v",
    "t",
    "ARGV[1]",
    "redis.status_reply('OK')",
    "redis.error_reply('LOST it')",
    "'held'",
    "{v, t}",
    "{1, v}",
    "{redis.call('get', @), redis.call('pttl', @)}",
    "{false, redis.call('ttl', @), 'held'}",
};
static const char *const READS[] = {
    "v = redis.call('get', @)",     "t = redis.call('pttl', @)",
    "v = redis.pcall('get', @)",    "n = n + 1",
    "n = n + redis.call('del', @)", "n = redis.call('exists', @)",
};

static void write_block(struct writer *w, int depth);

static unsigned roll(struct writer *w, size_t sides)
{
    w->dice ^= w->dice << 13;
    w->dice ^= w->dice >> 7;
    w->dice ^= w->dice << 17;
    return (unsigned)((w->dice >> 11) % sides);
}

/* Writes a text, with the key for each '@'. */
static void write_text(struct writer *w, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '@') {
            buf_add_str(w->out, w->key);
        } else {
            buf_add(w->out, text, 1);
        }
    }
}

static void write_condition(struct writer *w)
{
    unsigned more = roll(w, 6);

    write_text(w, CONDITIONS[roll(w, COUNT(CONDITIONS))]);
    if (more < 2) {
        write_text(w, more == 0 ? " and " : " or ");
        write_text(w, CONDITIONS[roll(w, COUNT(CONDITIONS))]);
    }
}

static void write_if(struct writer *w, int depth)
{
    write_text(w, "if ");
    write_condition(w);
    write_text(w, " then ");
    write_block(w, depth - 1);
    if (roll(w, 2) == 0) {
        write_text(w, "else ");
        write_block(w, depth - 1);
    }
    write_text(w, "end ");
}

static void write_return(struct writer *w)
{
    unsigned what = roll(w, COUNT(VALUES) + COUNT(ACTIONS));

    write_text(w, "return ");
    write_text(w, what < COUNT(VALUES) ? VALUES[what] : ACTIONS[what - COUNT(VALUES)]);
    write_text(w, " ");
}

static void write_block(struct writer *w, int depth)
{
    for (unsigned i = roll(w, 2) + 1; i > 0; i--) {
        unsigned what = roll(w, 8);

        if (what < 3 && depth > 0) {
            write_if(w, depth);
        } else if (what < 6) {
            write_text(w, ACTIONS[roll(w, COUNT(ACTIONS))]);
            write_text(w, " ");
        } else if (what < 7) {
            write_text(w, READS[roll(w, COUNT(READS))]);
            write_text(w, " ");
        }
    }
    if (roll(w, 2) == 0) {
        write_return(w);
    }
}

static void write_loop(struct writer *w)
{
    w->key = "k";
    write_text(w, "for i, k in ipairs(KEYS) do ");
    if (roll(w, 2) == 0) {
        write_text(w, READS[roll(w, COUNT(READS))]);
        write_text(w, " ");
    }
    write_if(w, 1);
    write_text(w, "end ");
    w->key = "KEYS[1]";
}

void lock_script_words(uint64_t seed, struct buf *out)
{
    struct writer w = { .dice = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15),
                        .out = out,
                        .key = "KEYS[1]" };

    write_text(&w, "local n, v, t = 0 ");
    if (roll(&w, 4) == 0) {
        write_loop(&w);
        if (roll(&w, 2) == 0) {
            write_loop(&w);
        }
    } else {
        for (unsigned i = roll(&w, 3); i > 0; i--) {
            write_text(&w, READS[roll(&w, 3)]);
            write_text(&w, " ");
        }
        write_if(&w, 2);
    }
    write_return(&w);
}
