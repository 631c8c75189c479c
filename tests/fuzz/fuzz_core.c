/* A whole server: what clients send in, and what Redis says, in any order. It never
 * crashes, spins or forgets memory, every reply is one, and when all have left nothing
 * is left.
 *
 * The input is lines. The first one: its length's lowest two bits say whether names are
 * in groups and whether Redis is a quorum. Then by their first byte: 0..3   that client
 * sends the rest, and CR LF x X    this client leaves; X: and has not read what came
 * last =h n   the oldest op is answered by h (core_redis.c), with a number +h n   the
 * newest t n    time passes; j n: in one go d u U  Redis is gone, the same is there,
 * another is f F n  a failover of all names; of those in group 1; it turned out to be
 * harmless c      its clock jumped m r    a message on the channel of that name; r: of
 * read/write locks s S    subscriptions are confirmed; gone a      another daemon
 * announces the rest q      the daemon stops */
#include "fuzz.h"

#include "core_world.h"

#include <stdlib.h>

enum { LINES_MAX = 400, PASS_MAX = 200000 };

static uint64_t number_of(struct span s)
{
    uint64_t n = 0;

    for (size_t i = 0; i < s.len && n < 1000000000; i++) {
        if (s.ptr[i] >= '0' && s.ptr[i] <= '9') {
            n = 10 * n + (uint64_t)(s.ptr[i] - '0');
        }
    }
    return n;
}

static bool is_one(void *ctx, unsigned group)
{
    return group == 1;
}

static bool is_any(void *ctx, unsigned group)
{
    return true;
}

static void send_line(size_t conn, struct span line)
{
    world_turn_begin();
    world_send(conn, line);
    world_send(conn, SPAN("\r\n"));
    world_turn_end();
}

static void confirm(void)
{
    size_t count = world.wanted_count < WORLD_SUBS ? world.wanted_count : WORLD_SUBS;

    world.wanted_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct wanted w = world.wanted[i];

        engine_on_subscribed(world.engine, span_of(w.name, w.len), w.lock_class);
    }
}

static void about_redis(char what, struct span rest)
{
    world_turn_begin();
    switch (what) {
    case 'f':
        engine_on_failover(world.engine, NULL, NULL);
        break;
    case 'F':
        engine_on_failover(world.engine, world.grouped ? is_one : NULL, NULL);
        break;
    case 'n':
        engine_on_lossless_failover(world.engine, is_any, NULL);
        break;
    case 'c':
        engine_on_clock_jump(world.engine);
        break;
    case 'm':
    case 'r':
        engine_on_message(world.engine, rest, what == 'r', SPAN("0"));
        break;
    case 's':
        confirm();
        break;
    case 'S':
        engine_on_subscriptions_lost(world.engine);
        break;
    case 'a':
        engine_announced(world.engine, rest);
        break;
    case 'q':
        engine_stop(world.engine);
        cmd_stop(world.cmd);
        break;
    default:
        break;
    }
    world_turn_end();
}

static void leave(char who, bool unread)
{
    world_turn_begin();
    world_close((size_t)(who - '0') % WORLD_CONNS, unread);
    world_turn_end();
}

static void run_line(struct span line)
{
    char what = line.len == 0 ? '\0' : line.ptr[0];
    struct span rest = line.len == 0 ? line : span_after(line, 1);
    uint64_t n = number_of(rest);

    switch (what) {
    case '0':
    case '1':
    case '2':
    case '3':
        send_line((size_t)(what - '0'), rest);
        break;
    case 'x':
    case 'X':
        leave(rest.len > 0 ? rest.ptr[0] : '0', what == 'X');
        break;
    case '=':
    case '+':
        world_answer(what == '+', rest.len > 0 ? rest.ptr[0] : 'o', n);
        break;
    case 't':
        world_pass(n % PASS_MAX);
        break;
    case 'j':
        world_jump(n % PASS_MAX);
        break;
    case 'd':
        world_down();
        break;
    case 'u':
    case 'U':
        world_up(what == 'u');
        break;
    default:
        about_redis(what, rest);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = span_of((const char *)data, size);
    const char *end = memchr(text.ptr, '\n', text.len);

    world_begin(end == NULL ? 0 : (unsigned)(end - text.ptr) % 4);
    for (int i = 0; i < LINES_MAX && end != NULL; i++) {
        text = span_after(text, (size_t)(end - text.ptr) + 1);
        end = text.len == 0 ? NULL : memchr(text.ptr, '\n', text.len);
        run_line(end == NULL ? text : span_of(text.ptr, (size_t)(end - text.ptr)));
    }
    world_end();
    return 0;
}
