#include "ways.h"

#include "latch_ways.h"
#include "names.h"
#include "support/stand.h"

#include <stdio.h>
#include <string.h>

#define CHANNEL "redisson_lock__channel:{one}"
#define POOL_CHANNEL "redisson_sc:{pool}"

static const char DELETE_IF_MINE[] = "if redis.call('get', KEYS[1]) == ARGV[1] then "
                                     "return redis.call('del', KEYS[1]) end "
                                     "return 0";
static const char TAKE[] = "if redis.call('exists', KEYS[1]) == 0 or "
                           "redis.call('hexists', KEYS[1], ARGV[1]) == 1 then "
                           "redis.call('hincrby', KEYS[1], ARGV[1], 1) "
                           "redis.call('pexpire', KEYS[1], 30000) return nil end "
                           "return redis.call('pttl', KEYS[1])";
static const char GIVE[] =
    "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end "
    "if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then return 0 end "
    "redis.call('del', KEYS[1]) redis.call('publish', KEYS[2], '0') "
    "return 1";

/* Of RPermitExpirableSemaphore; a message is `1` always, as its length is to be known.
 */
static const char TAKE_PERMIT[] =
    "local dead = redis.call('zrangebyscore', '{pool}:timeout', 0, 1, 'LIMIT', 0, 1) "
    "if #dead > 0 then redis.call('zrem', '{pool}:timeout', unpack(dead)) "
    "redis.call('incrby', KEYS[1], #dead) end "
    "local free = redis.call('get', KEYS[1]) "
    "if free and tonumber(free) >= 1 then redis.call('decrby', KEYS[1], 1) "
    "redis.call('zadd', '{pool}:timeout', 922337203685477, ARGV[1]) return nil end "
    "return 30000";
static const char GIVE_PERMIT[] =
    "local had = redis.call('zscore', '{pool}:timeout', ARGV[1]) "
    "if redis.call('zrem', '{pool}:timeout', ARGV[1]) == 0 then return 0 end "
    "redis.call('incrby', KEYS[1], 1) redis.call('publish', KEYS[2], '1') "
    "return had and 1";

static char delete_sha[41];

/* A lock of Redisson's, or its semaphore. */
struct redisson {
    const char *name, *take, *give, *channel, *message, *subscribed;
    char take_sha[41], give_sha[41];
};

#define MESSAGES(channel, length, payload)                                             \
    channel,                                                                           \
        "*3\r\n$7\r\nmessage\r\n$" length "\r\n" channel "\r\n$1\r\n" payload "\r\n",  \
        "*3\r\n$9\r\nsubscribe\r\n$" length "\r\n" channel "\r\n:1\r\n"

static struct redisson lock_way = { "one", TAKE, GIVE, MESSAGES(CHANNEL, "28", "0"),
                                    "",    "" };
static struct redisson permit_way = { "pool",      TAKE_PERMIT,
                                      GIVE_PERMIT, MESSAGES(POOL_CHANNEL, "18", "1"),
                                      "",          "" };

static const struct workload *workload_of(const struct lane *lane)
{
    return lane->peer->load->ctx;
}

static void next_or_stop(struct lane *lane, void (*begin)(struct lane *lane))
{
    if (lane_done(lane)) {
        if (workload_of(lane)->storm) {
            peer_again(lane->peer);
        }
        begin(lane);
    }
}

static void freed(struct lane *lane)
{
    lane->peer->load->freed_us = bench_now_us();
}

/* --- through latchd --------------------------------------------------------------- */

static void ask_latchd(struct lane *lane)
{
    const struct workload *w = workload_of(lane);
    const char *words = w->words;

    lane->step = 0;
    names_choose(lane, w->names);
    if (w->read_share != 0) {
        words = names_dice() % 100 < w->read_share ? "READ" : "WRITE";
    }
    if (w->names == NAMES_SEMAPHORE) {
        lane_send(lane, "*6\r\n$4\r\nLOCK\r\n$4\r\npool\r\n$7\r\nPERMITS\r\n$1\r\n1\r\n"
                        "$2\r\nOF\r\n$2\r\n10\r\n");
    } else if (words == NULL) {
        lane_send(lane, "*2\r\n$4\r\nLOCK\r\n$%zu\r\n%s\r\n", strlen(lane->name),
                  lane->name);
    } else {
        lane_send(lane, "*3\r\n$4\r\nLOCK\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n",
                  strlen(lane->name), lane->name, strlen(words), words);
    }
}

static void latchd_on_reply(struct lane *lane, const char *line)
{
    int digits = (int)strcspn(line + 1, "\r");

    if (line[0] != ':') {
        bench_die("latchd: %s", line);
    }
    if (lane->step == 1) {
        next_or_stop(lane, ask_latchd);
        return;
    }
    lane_granted(lane);
    lane->step = 1;
    lane_send(lane,
              "*4\r\n$6\r\nUNLOCK\r\n$%zu\r\n%s\r\n$5\r\nTOKEN\r\n$%d\r\n%.*s\r\n",
              strlen(lane->name), lane->name, digits, digits, line + 1);
    freed(lane);
}

static void begin_all(struct peer *p, void (*begin)(struct lane *lane))
{
    for (unsigned i = 0; i < p->depth; i++) {
        p->lanes[i].began_us = p->load->one_name ? 0 : bench_now_us();
        begin(&p->lanes[i]);
    }
    peer_flush(p);
}

static void latchd_start(struct load *l, unsigned i)
{
    const struct workload *w = l->ctx;

    if (workload_is_of_latches(w)) {
        latch_start_latchd(l, i);
        return;
    }
    begin_all(load_connect(l, daemon_port(stand.daemon), w->depth, latchd_on_reply),
              ask_latchd);
}

const struct way WAY_LATCHD = { .name = "latchd", .start = latchd_start };

static void send_ping(struct lane *lane)
{
    lane_send(lane, "*1\r\n$4\r\nPING\r\n");
}

static void ping_on_reply(struct lane *lane, const char *line)
{
    if (line[0] != '+') {
        bench_die("PING: %s", line);
    }
    lane_granted(lane);
    next_or_stop(lane, send_ping);
}

static void ping_start(struct load *l, unsigned i)
{
    const struct workload *w = l->ctx;

    begin_all(load_connect(l, daemon_port(stand.daemon), w->depth, ping_on_reply),
              send_ping);
}

const struct way WAY_PING = { .name = "PING", .start = ping_start };

/* --- SET NX PX, compare and delete ------------------------------------------------ */

static void send_set(struct lane *lane)
{
    lane->step = 0;
    names_choose(lane, workload_of(lane)->names);
    lane_send(lane,
              "*6\r\n$3\r\nSET\r\n$%zu\r\n%s\r\n$12\r\nowner-%06u\r\n"
              "$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n30000\r\n",
              strlen(lane->name), lane->name, lane->number);
}

static void direct_on_reply(struct lane *lane, const char *line)
{
    if (lane->step == 1) {
        next_or_stop(lane, send_set);
        return;
    }
    if (line[0] != '+') {
        bench_die("SET: %s", line);
    }
    lane_granted(lane);
    lane->step = 1;
    lane_send(lane,
              "*5\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n1\r\n$%zu\r\n%s\r\n"
              "$12\r\nowner-%06u\r\n",
              delete_sha, strlen(lane->name), lane->name, lane->number);
}

static void direct_start(struct load *l, unsigned i)
{
    const struct workload *w = l->ctx;

    begin_all(load_connect(l, redis_port(stand.redis), w->depth, direct_on_reply),
              send_set);
}

const struct way WAY_DIRECT = { .name = "SET NX", .start = direct_start };

/* --- Redisson's way --------------------------------------------------------------- */

enum { TRYING, SLEEPING, GIVING };

static struct redisson *redisson_of(const struct workload *w)
{
    return w->names == NAMES_SEMAPHORE ? &permit_way : &lock_way;
}

static void send_take(struct lane *lane)
{
    const struct redisson *how = redisson_of(workload_of(lane));

    lane->step = TRYING;
    lane->again = false;
    lane_send(lane,
              "*5\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n1\r\n$%zu\r\n%s\r\n"
              "$12\r\nowner-%06u\r\n",
              how->take_sha, strlen(how->name), how->name, lane->number);
}

static void send_give(struct lane *lane)
{
    const struct redisson *how = redisson_of(workload_of(lane));

    lane->step = GIVING;
    lane_send(
        lane,
        "*6\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n2\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n"
        "$12\r\nowner-%06u\r\n",
        how->give_sha, strlen(how->name), how->name, strlen(how->channel), how->channel,
        lane->number);
    freed(lane);
}

static void redisson_on_reply(struct lane *lane, const char *line)
{
    if (line[0] == '-') {
        bench_die("script: %s", line);
    }
    if (lane->step == GIVING) {
        next_or_stop(lane, send_take);
    } else if (line[0] == '$') {
        lane_granted(lane);
        send_give(lane);
    } else if (lane->again) {
        send_take(lane);
    } else {
        lane->step = SLEEPING;
    }
}

static void redisson_on_message(struct peer *listener)
{
    struct lane *lane = listener->wakes;

    lane->again = true;
    if (lane->step == SLEEPING && !lane->idle) {
        send_take(lane);
    }
}

static void redisson_start(struct load *l, unsigned i)
{
    const struct redisson *how = redisson_of(l->ctx);
    char subscribe[64];
    int port = redis_port(stand.redis);
    struct peer *p, *listener;

    if (workload_is_of_latches(l->ctx)) {
        latch_start_redisson(l, i);
        return;
    }
    p = load_connect(l, port, 1, redisson_on_reply);
    listener = load_connect(l, port, 0, NULL);
    listener->wakes = &p->lanes[0];
    (void)snprintf(subscribe, sizeof(subscribe), "SUBSCRIBE %s\r\n", how->channel);
    peer_ask(listener, subscribe, how->subscribed);
    listener->message_len = strlen(how->message);
    listener->on_message = redisson_on_message;
    begin_all(p, send_take);
}

const struct way WAY_REDISSON = { .name = "Redisson's",
                                  .one_name_only = true,
                                  .start = redisson_start };

/* --- all -------------------------------------------------------------------------- */

void ways_load_script(const char *text, char *ret_sha)
{
    redisReply *r = redis_ask(stand.redis, "SCRIPT LOAD %s", text);

    (void)snprintf(ret_sha, 41, "%s", r->str);
    freeReplyObject(r);
}

static void load_redisson(struct redisson *how)
{
    ways_load_script(how->take, how->take_sha);
    ways_load_script(how->give, how->give_sha);
}

void ways_init(void)
{
    ways_load_script(DELETE_IF_MINE, delete_sha);
    load_redisson(&lock_way);
    load_redisson(&permit_way);
    latch_ways_init();
    redis_expect(stand.redis, "OK", "SET pool %d", BENCH_PERMITS);
    /* It knows one loopback address only; load.c has many. */
    redis_expect(stand.redis, "OK", "CONFIG SET protected-mode no");
}

void ways_start(struct load *l, const struct workload *w, const struct way *way)
{
    load_init(l);
    l->ctx = w;
    l->one_name = (w->names == NAMES_ONE || w->names == NAMES_SEMAPHORE ||
                   w->names == NAMES_GATE) &&
                  w->read_share == 0;
    for (unsigned i = 0; i < w->idle; i++) {
        peer_ask(load_connect(l, daemon_port(stand.daemon), 0, NULL), "PING\r\n",
                 "+PONG\r\n");
    }
    for (unsigned i = 0; i < w->peers; i++) {
        way->start(l, i);
    }
}
