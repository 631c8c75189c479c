#include "footprint.h"

#include "meter.h"
#include "support/stand.h"
#include "ways.h"

#include <stdlib.h>
#include <string.h>

enum { CONNECTIONS = 5000, HOLDS = 50000, HOLDERS = 50, WATCH_S = 6 };

static void send_ping(struct lane *lane)
{
    lane_send(lane, "PING\r\n");
}

/* Counts replies, and is content. */
static void on_reply(struct lane *lane, const char *line)
{
    if (line[0] == '-') {
        bench_die("latchd: %s", line);
    }
    lane->peer->load->done++;
}

static int64_t bytes_now(void)
{
    return meter_read().daemon_bytes;
}

static struct lane *join(struct load *l, unsigned depth)
{
    return load_connect(l, daemon_port(stand.daemon), depth, on_reply)->lanes;
}

static void print_bytes(FILE *file, const char *what, int64_t bytes, int count)
{
    (void)fprintf(file, "%-34s %6lld bytes of the daemon\n", what,
                  (long long)(bytes / count));
}

static void connections(FILE *file)
{
    int64_t before = bytes_now(), idle;
    struct load l;

    load_init(&l);
    for (int i = 0; i < CONNECTIONS; i++) {
        struct lane *lane = join(&l, 1);

        send_ping(lane);
        peer_flush(lane->peer);
    }
    load_until(&l, CONNECTIONS);
    idle = bytes_now();
    print_bytes(file, "an idle connection", idle - before, CONNECTIONS);
    for (size_t i = 0; i < l.peer_count; i++) {
        lane_send(&l.peers[i]->lanes[0], "LOCK crowded\r\n");
        peer_flush(l.peers[i]);
    }
    await_waiters(CONNECTIONS - 1);
    print_bytes(file, "..and what it needs more to wait", bytes_now() - idle,
                CONNECTIONS);
    load_fini(&l);
    await_waiters(0);
}

static void holds(FILE *file)
{
    int64_t before;
    struct meter start, spent;
    struct load l;

    load_init(&l);
    before = bytes_now();
    for (unsigned i = 0; i < HOLDERS; i++) {
        struct lane *lanes = join(&l, HOLDS / HOLDERS);

        for (unsigned j = 0; j < HOLDS / HOLDERS; j++) {
            lane_send(&lanes[j], "LOCK held:%u\r\n", lanes[j].number);
        }
        peer_flush(lanes[0].peer);
    }
    load_until(&l, HOLDS);
    print_bytes(file, "a hold with its name", bytes_now() - before, HOLDS);
    start = meter_read();
    test_sleep_ms(WATCH_S * 1000);
    spent = meter_since(meter_read(), start);
    (void)fprintf(file,
                  "%d holds, each renewed once a second: %.1f %% of a core here, "
                  "%.1f %% in Redis; %.0f scripts a second\n",
                  HOLDS, spent.daemon_us / WATCH_S / 1e4,
                  spent.redis_us / WATCH_S / 1e4, (double)spent.scripts / WATCH_S);
    load_fini(&l);
}

void footprint_print(FILE *file)
{
    connections(file);
    holds(file);
    (void)fflush(file);
}
