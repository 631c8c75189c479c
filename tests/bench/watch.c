#include "watch.h"

#include "meter.h"
#include "results.h"
#include "support/stand.h"
#include "util/alloc.h"
#include "ways.h"

#include <stdlib.h>
#include <string.h>

enum {
    HOLDERS = 50,
    DEPTH = 16,
    WATCH_MS = 10000, /* a third of the default lease: each is renewed once */
    SLOW_US = 1000,
    SLOW_MAX = 10000,
};

/* How many locks there are to be. */
static unsigned wanted, asked;

static void take_next(struct lane *lane)
{
    if (asked < wanted) {
        lane_send(lane, "LOCK held:%u\r\n", asked++);
    }
}

static void on_reply(struct lane *lane, const char *line)
{
    if (line[0] != ':') {
        bench_die("latchd: %s", line);
    }
    lane->peer->load->done++;
    take_next(lane);
}

static void hold_so_many(struct load *l, unsigned count)
{
    wanted = count;
    for (size_t i = 0; i < l->peer_count; i++) {
        for (unsigned j = 0; j < DEPTH; j++) {
            take_next(&l->peers[i]->lanes[j]);
        }
        peer_flush(l->peers[i]);
    }
    load_until(l, count);
}

/* The number behind that text in what INFO says. */
static double info(const char *text)
{
    struct value v = ask(stand.admin, "INFO");
    const char *at = strstr(v.text, text);
    double number = at == NULL ? 0 : atof(at + strlen(text));

    value_fini(&v);
    return number;
}

/* Of the scripts of Redis that took longer than SLOW_US. */
static double longest_script_ms(long long *ret_count)
{
    redisReply *r = redis_ask(stand.redis, "SLOWLOG GET %d", SLOW_MAX);
    long long longest = 0;

    *ret_count = (long long)r->elements;
    for (size_t i = 0; i < r->elements; i++) {
        long long us = r->element[i]->element[2]->integer;

        longest = us > longest ? us : longest;
    }
    freeReplyObject(r);
    return (double)longest / 1e3;
}

static void forget_slow_scripts(void)
{
    redis_expect(stand.redis, "OK", "CONFIG SET slowlog-log-slower-than %d", SLOW_US);
    redis_expect(stand.redis, "OK", "CONFIG SET slowlog-max-len %d", SLOW_MAX);
    redis_expect(stand.redis, "OK", "SLOWLOG RESET");
}

static void keep(const char *what, unsigned count, double value)
{
    char name[64];

    (void)snprintf(name, sizeof name, "%s %u holds", what, count);
    results_value(xstrdup(name), value); /* kept until the end, as results are */
}

static void watch(unsigned count)
{
    struct meter start, spent;
    double here, redis, renewals, commands, missed, longest;
    long long slow;

    ask_ok(stand.admin, "CONFIG RESETSTAT");
    forget_slow_scripts();
    renewals = info("\nrenewals:");
    missed = info("\ndoubts:") + info("\nlost:");
    start = meter_read();
    test_sleep_ms(WATCH_MS);
    spent = meter_since(meter_read(), start);
    renewals = info("\nrenewals:") - renewals;
    missed = info("\ndoubts:") + info("\nlost:") + info("\nuncertain:") - missed;
    here = spent.daemon_us / WATCH_MS / 10;
    redis = spent.redis_us / WATCH_MS / 10;
    commands = (double)spent.commands / (renewals > 0 ? renewals : 1);
    longest = longest_script_ms(&slow);
    printf("%7u holds: %6.0f renewals/s, %5.1f %% of a core here, %5.1f %% in Redis; "
           "%4.2f commands and %4.2f + %4.2f us each; %.0f late; %lld scripts over "
           "1 ms, the longest %.1f ms\n",
           count, renewals * 1e3 / WATCH_MS, here, redis, commands,
           spent.daemon_us / (renewals > 0 ? renewals : 1),
           spent.redis_us / (renewals > 0 ? renewals : 1), missed, slow, longest);
    (void)fflush(stdout);
    keep("late renewals of", count, missed);
    keep("latchd % for", count, here);
    keep("Redis % for", count, redis);
    keep("ms, the longest script for", count, longest);
}

void watch_print(unsigned most)
{
    double before, bytes;
    struct load l;

    asked = 0;
    load_init(&l);
    for (unsigned i = 0; i < HOLDERS; i++) {
        (void)load_connect(&l, daemon_port(stand.daemon), DEPTH, on_reply);
    }
    before = (double)meter_read().daemon_bytes;
    for (unsigned count = 1000; count <= most; count *= 10) {
        hold_so_many(&l, count);
        bytes = (double)meter_read().daemon_bytes - before;
        watch(count);
        if (count == 100000) {
            results_value("bytes of a hold", bytes / count);
        }
    }
    load_fini(&l);
}
