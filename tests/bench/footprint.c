#include "footprint.h"

#include "meter.h"
#include "results.h"
#include "support/stand.h"
#include "ways.h"

enum { CONNECTIONS = 5000 };

/* Counts replies, and is content. */
static void on_reply(struct lane *lane, const char *line)
{
    if (line[0] == '-') {
        bench_die("latchd: %s", line);
    }
    lane->peer->load->done++;
}

static double bytes_since(int64_t before)
{
    return (double)(meter_read().daemon_bytes - before) / CONNECTIONS;
}

void footprint_of_connections(void)
{
    int64_t before = meter_read().daemon_bytes;
    struct load l;

    load_init(&l);
    for (int i = 0; i < CONNECTIONS; i++) {
        struct peer *p = load_connect(&l, daemon_port(stand.daemon), 1, on_reply);

        lane_send(&p->lanes[0], "PING\r\n");
        peer_flush(p);
    }
    load_until(&l, CONNECTIONS);
    results_value("bytes of an idle connection", bytes_since(before));
    for (size_t i = 0; i < l.peer_count; i++) {
        lane_send(&l.peers[i]->lanes[0], "LOCK crowded\r\n");
        peer_flush(l.peers[i]);
    }
    await_waiters(CONNECTIONS - 1);
    results_value("bytes of a waiting connection", bytes_since(before));
    load_fini(&l);
    await_waiters(0);
}
