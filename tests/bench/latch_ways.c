#include "latch_ways.h"

#include "support/stand.h"

#include <stdio.h>
#include <string.h>

#define CHANNEL "redisson_countdownlatch__channel__{gate}"
#define SUBSCRIBED "*3\r\n$9\r\nsubscribe\r\n$40\r\n" CHANNEL "\r\n:1\r\n"
#define MESSAGE "*3\r\n$7\r\nmessage\r\n$40\r\n" CHANNEL "\r\n$1\r\n0\r\n"
#define FOR_EVER "9000000000000000000"

static const char COUNT_DOWN[] =
    "local left = redis.call('decrby', KEYS[1], 1) "
    "if left <= 0 then redis.call('del', KEYS[1]) end "
    "if left == 0 then redis.call('publish', KEYS[2], '0') end return false";

static char count_sha[41];

void latch_ways_init(void)
{
    ways_load_script(COUNT_DOWN, count_sha);
}

static void send_redisson_count(struct lane *lane)
{
    lane_send(
        lane,
        "*5\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n2\r\n$%zu\r\n%s\r\n$40\r\n%s\r\n",
        count_sha, strlen(lane->name), lane->name, CHANNEL);
}

/* --- counting: each lane has a latch that is never opened ---------------------------
 */

enum { SETTING, COUNTING };

/* A latch remembers no more than 100,000 counts: so each run has latches of its own. */
static unsigned runs;

static struct lane *connect_counter(struct load *l, int port, lane_reply_fn *on_reply)
{
    struct lane *lane = &load_connect(l, port, 1, on_reply)->lanes[0];

    (void)snprintf(lane->name, sizeof lane->name, "gate:%u:%u", runs, lane->number);
    lane->step = SETTING;
    return lane;
}

/* True: the lane is to count once more. */
static bool take_counted(struct lane *lane)
{
    if (lane->step == SETTING) {
        lane->step = COUNTING;
        lane->began_us = bench_now_us();
        return true;
    }
    lane_granted(lane);
    return lane_done(lane);
}

static void counter_on_reply(struct lane *lane, const char *line)
{
    if (line[0] != ':') {
        bench_die("LATCH: %s", line);
    }
    if (take_counted(lane)) {
        lane_send(lane, "*3\r\n$5\r\nLATCH\r\n$5\r\nCOUNT\r\n$%zu\r\n%s\r\n",
                  strlen(lane->name), lane->name);
    }
}

static void redisson_counter_on_reply(struct lane *lane, const char *line)
{
    if (line[0] == '-') {
        bench_die("script: %s", line);
    }
    if (take_counted(lane)) {
        send_redisson_count(lane);
    }
}

static void start_counter(struct load *l, bool is_redisson)
{
    struct lane *lane;

    if (is_redisson) {
        lane = connect_counter(l, redis_port(stand.redis), redisson_counter_on_reply);
        lane_send(lane, "SET theirs:%s " FOR_EVER "\r\n", lane->name);
        (void)snprintf(lane->name, sizeof lane->name, "theirs:gate:%u:%u", runs,
                       lane->number);
    } else {
        lane = connect_counter(l, daemon_port(stand.daemon), counter_on_reply);
        lane_send(lane, "LATCH SET %s " FOR_EVER "\r\n", lane->name);
    }
    peer_flush(lane->peer);
}

/* --- opening: one lane sets a latch to 1 and counts it down when all wait ------------
 */

/* Of a waiting peer: one lane awaits, and the other asks for an answer before that, so
 * that it is known to wait. */
enum { ASKING, AWAITING, WAITER_LANES };

static struct gate {
    struct load *load;
    struct lane *opener;
    unsigned waiting, told;
    bool is_counted; /* the opener has its answer */
    void (*set)(struct lane *opener);
    void (*count)(struct lane *opener);
    void (*await)(struct peer *waiter);
} gate;

static unsigned waiters(void)
{
    return ((const struct workload *)gate.load->ctx)->peers - 1;
}

static void begin_opening(void)
{
    gate.waiting = gate.told = 0;
    gate.is_counted = false;
    gate.opener->step = SETTING;
    gate.set(gate.opener);
    peer_flush(gate.opener->peer);
}

static void end_opening_if_done(void)
{
    if (gate.told == waiters() && gate.is_counted && lane_done(gate.opener)) {
        begin_opening();
    }
}

static void note_waiting(void)
{
    if (++gate.waiting == waiters()) {
        gate.opener->step = COUNTING;
        gate.count(gate.opener);
        gate.load->freed_us = bench_now_us();
        peer_flush(gate.opener->peer);
    }
}

/* The time of an opening is that of who is told last. */
static void note_told(struct lane *lane)
{
    if (++gate.told == waiters()) {
        lane_granted(lane);
    }
    end_opening_if_done();
}

static void opener_on_reply(struct lane *lane, const char *line)
{
    if (line[0] == '-') {
        bench_die("who opens a latch: %s", line);
    }
    if (lane->step == COUNTING) {
        gate.is_counted = true;
        end_opening_if_done();
        return;
    }
    for (size_t i = 0; i < gate.load->peer_count; i++) {
        struct peer *p = gate.load->peers[i];

        if (p->depth == WAITER_LANES) {
            gate.await(p);
            peer_flush(p);
        }
    }
}

/* A waiter has nothing to end by itself: the opener ends when all of them were told. */
static struct peer *connect_waiter(struct load *l, int port, lane_reply_fn *on_reply)
{
    struct peer *p = load_connect(l, port, WAITER_LANES, on_reply);

    for (unsigned i = 0; i < p->depth; i++) {
        p->lanes[i].idle = true;
        p->lanes[i].step = (int)i;
    }
    return p;
}

static void connect_opener(struct load *l, int port)
{
    gate.load = l;
    gate.opener = &load_connect(l, port, 1, opener_on_reply)->lanes[0];
    (void)snprintf(gate.opener->name, sizeof gate.opener->name, "gate");
}

/* Begins when all have connected. */
static void start_opening(struct load *l, unsigned i)
{
    if (i + 1 == ((const struct workload *)l->ctx)->peers) {
        begin_opening();
    }
}

/* --- opening, through latchd --------------------------------------------------------
 */

static void set_gate(struct lane *opener)
{
    lane_send(opener, "*4\r\n$5\r\nLATCH\r\n$3\r\nSET\r\n$4\r\ngate\r\n$1\r\n1\r\n");
}

static void count_gate(struct lane *opener)
{
    lane_send(opener, "*3\r\n$5\r\nLATCH\r\n$5\r\nCOUNT\r\n$4\r\ngate\r\n");
}

static void await_gate(struct peer *waiter)
{
    lane_send(&waiter->lanes[ASKING], "*1\r\n$4\r\nPING\r\n");
    lane_send(&waiter->lanes[AWAITING],
              "*3\r\n$5\r\nLATCH\r\n$5\r\nAWAIT\r\n$4\r\ngate\r\n");
}

static void waiter_on_reply(struct lane *lane, const char *line)
{
    if (line[0] == '-') {
        bench_die("LATCH AWAIT: %s", line);
    }
    if (lane->step == ASKING) {
        note_waiting();
    } else {
        note_told(lane);
    }
}

void latch_start_latchd(struct load *l, unsigned i)
{
    int port = daemon_port(stand.daemon);

    runs += i == 0;
    if (((const struct workload *)l->ctx)->names == NAMES_LATCHES) {
        start_counter(l, false);
        return;
    }
    if (i == 0) {
        gate =
            (struct gate){ .set = set_gate, .count = count_gate, .await = await_gate };
        connect_opener(l, port);
    } else {
        (void)connect_waiter(l, port, waiter_on_reply);
    }
    start_opening(l, i);
}

/* --- opening, as Redisson does it ---------------------------------------------------
 */

/* Without the message of a set, which is not what is measured. */
static void redisson_set_gate(struct lane *opener)
{
    lane_send(opener, "*3\r\n$3\r\nSET\r\n$4\r\ngate\r\n$1\r\n1\r\n");
}

/* In place of GET, whose reply is no single line. */
static void look_at_gate(struct peer *waiter)
{
    lane_send(&waiter->lanes[ASKING], "*2\r\n$6\r\nSTRLEN\r\n$4\r\ngate\r\n");
}

static void redisson_waiter_on_reply(struct lane *lane, const char *line)
{
    if (line[0] != ':') {
        bench_die("STRLEN: %s", line);
    }
    if (line[1] == '1') {
        note_waiting();
    } else {
        note_told(lane);
    }
}

static void redisson_waiter_on_message(struct peer *listener)
{
    look_at_gate(listener->wakes->peer);
}

static void start_redisson_waiter(struct load *l, int port)
{
    struct peer *p = connect_waiter(l, port, redisson_waiter_on_reply);
    struct peer *listener = load_connect(l, port, 0, NULL);

    listener->wakes = &p->lanes[ASKING];
    peer_ask(listener, "SUBSCRIBE " CHANNEL "\r\n", SUBSCRIBED);
    listener->message_len = strlen(MESSAGE);
    listener->on_message = redisson_waiter_on_message;
}

void latch_start_redisson(struct load *l, unsigned i)
{
    int port = redis_port(stand.redis);

    runs += i == 0;
    if (((const struct workload *)l->ctx)->names == NAMES_LATCHES) {
        start_counter(l, true);
        return;
    }
    if (i == 0) {
        gate = (struct gate){ .set = redisson_set_gate,
                              .count = send_redisson_count,
                              .await = look_at_gate };
        connect_opener(l, port);
    } else {
        start_redisson_waiter(l, port);
    }
    start_opening(l, i);
}
