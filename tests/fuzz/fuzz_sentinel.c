/* Answers and news of Sentinels, and the master that is believed in: whatever they say,
 * it is a place that can be used, of a higher epoch than the one before, but for a
 * majority that insists while that one cannot be used; no connection is forgotten, no
 * Sentinel counted twice.
 *
 * The input is lines. The first one: an odd length: they want a password. Then by their
 * first byte; c is a connection: '0' is the first one (sentinel_conn.h).
 *   o c, O     that one is connected; all
 *   d c        it is refused, or lost
 *   r c bytes  it receives the rest of the line, and CR LF
 *   a c e h i x...  it answers all that it was asked: epoch e, place h, that it is i,
 *              and that there are the Sentinels x...
 *   A e h      so do all, as who they are
 *   m c text   it tells of a switch: text
 *   t n        time passes, n ms
 *   u, U       the master can be used; it cannot */
#include "fuzz.h"

#include "announces.h"
#include "backend/sentinel_watch.h"
#include "sentinel_conn.h"
#include "util/log.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_MAX = 400, PASS_MAX = 120000, TIMERS_MAX = 20000, TIMEOUT_MS = 3000 };

#define MASTER "main"

static struct {
    struct sentinel_watch *watch;
    bool usable, knows;
    struct sentinel_claim master;
    struct sentinel_watch_info info;
    size_t listed, reachable;
    char addresses[SENTINELS_MAX][512];
} world;

/* --- what comes out --------------------------------------------------------------- */

static void on_master(void *ctx, enum sentinel_verdict verdict,
                      const struct sentinel_claim *master)
{
    bool same = sentinel_claim_same_address(&world.master, master);
    unsigned long port = strtoul(master->port, NULL, 10);

    if (master->host[0] == '\0' || port < 1 || port > UINT16_MAX) {
        sentinel_fail("a master that is nowhere");
    }
    if (verdict == SENTINEL_STAYS || (!world.knows && verdict != SENTINEL_MOVED) ||
        (world.knows && same != (verdict == SENTINEL_CONFIRMED))) {
        sentinel_fail("a verdict that says something else");
    }
    if (verdict == SENTINEL_OVERRULED
            ? world.usable
            : world.knows && master->epoch <= world.master.epoch) {
        sentinel_fail("it is led back");
    }
    if (!sentinel_watch_named_since(world.watch, conns_now() - SENTINEL_FRESH_MS)) {
        sentinel_fail("nobody said that");
    }
    world.knows = true;
    world.master = *master;
}

static void count_one(void *ctx, const char *address, bool is_reachable)
{
    for (size_t i = 0; i < world.listed; i++) {
        if (strcmp(world.addresses[i], address) == 0) {
            sentinel_fail("a Sentinel is there twice");
        }
    }
    (void)snprintf(world.addresses[world.listed], sizeof(world.addresses[0]), "%s",
                   address);
    world.listed++;
    world.reachable += is_reachable;
}

static void check(void)
{
    struct sentinel_watch_info info;

    sentinel_watch_info(world.watch, &info);
    world.listed = world.reachable = 0;
    sentinel_watch_each(world.watch, count_one, NULL);
    if (info.known > SENTINELS_MAX || info.reachable > info.known ||
        world.listed != info.known || world.reachable != info.reachable) {
        sentinel_fail("they are counted wrongly");
    }
    if (conns_count() != 2 * info.known) {
        sentinel_fail("a connection is forgotten");
    }
    if (world.knows && info.epoch != world.master.epoch) {
        sentinel_fail("another epoch than what was told");
    }
}

/* --- what goes in ----------------------------------------------------------------- */

static void add_text(struct buf *out, const char *text)
{
    buf_printf(out, "$%zu\r\n%s\r\n", strlen(text), text);
}

static void add_id(struct buf *out, char who)
{
    char id[SENTINEL_ID_LEN + 1] = "";

    memset(id, who, SENTINEL_ID_LEN);
    add_text(out, id);
}

static void add_other(struct buf *out, char who)
{
    char host[2] = { who, '\0' };

    buf_add_str(out, "*6\r\n$2\r\nip\r\n");
    add_text(out, host);
    buf_add_str(out, "$4\r\nport\r\n$5\r\n26379\r\n$5\r\nrunid\r\n");
    add_id(out, who);
}

struct said {
    char epoch, place, id;
    struct span others;
};

/* Letters only: what comes between is for `r`. */
static char letter(char ch)
{
    return isalnum((unsigned char)ch) ? ch : 'x';
}

static void add_answer(struct buf *out, enum asked asked, const struct said *s)
{
    char place[2] = { letter(s->place), '\0' };

    switch (asked) {
    case ASKED_AUTH:
        buf_add_str(out, "+OK\r\n");
        break;
    case ASKED_ID:
        add_id(out, letter(s->id));
        break;
    case ASKED_OTHERS:
        buf_printf(out, "*%zu\r\n", s->others.len);
        for (size_t i = 0; i < s->others.len; i++) {
            add_other(out, letter(s->others.ptr[i]));
        }
        break;
    case ASKED_EPOCH:
        buf_printf(out, "*4\r\n$4\r\nname\r\n$4\r\n" MASTER "\r\n$12\r\nconfig-epoch");
        buf_printf(out, "\r\n$3\r\n%03u\r\n", (unsigned)(unsigned char)s->epoch % 100);
        break;
    case ASKED_PLACE:
        buf_add_str(out, "*2\r\n");
        add_text(out, place);
        buf_add_str(out, "$4\r\n6379\r\n");
        break;
    case ASKED_NEWS:
        buf_add_str(out, "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n");
        break;
    }
}

static void answer(struct redis_conn *c, const struct said *s)
{
    enum asked asked[ASKED_MAX];
    size_t count = c == NULL ? 0 : conn_asked(c, asked);
    struct buf out = { 0 };

    for (size_t i = 0; i < count; i++) {
        add_answer(&out, asked[i], s);
    }
    conn_receive(c, buf_span(&out));
    buf_reset(&out);
}

static void receive(struct redis_conn *c, struct span line)
{
    struct buf bytes = { 0 };

    buf_add_span(&bytes, line);
    buf_add_str(&bytes, "\r\n");
    conn_receive(c, buf_span(&bytes));
    buf_reset(&bytes);
}

static void tell(struct redis_conn *c, struct span text)
{
    struct buf bytes = { 0 };

    buf_add_str(&bytes, "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n");
    buf_printf(&bytes, "$%zu\r\n", text.len);
    buf_add_span(&bytes, text);
    buf_add_str(&bytes, "\r\n");
    conn_receive(c, buf_span(&bytes));
    buf_reset(&bytes);
}

static void pass(struct span digits)
{
    uint64_t ms = 0, end;
    int timers = 0;

    for (size_t i = 0; i < digits.len && ms < PASS_MAX; i++) {
        ms = isdigit((unsigned char)digits.ptr[i])
                 ? 10 * ms + (uint64_t)(digits.ptr[i] - '0')
                 : ms;
    }
    end = conns_now() + ms % PASS_MAX;
    while (conns_run_timer(end)) {
        conns_end_turn();
        if (++timers > TIMERS_MAX) {
            sentinel_fail("it is always late");
        }
    }
    conns_set_now(end);
}

/* Those that come to be meanwhile are left alone. */
static void all_answer(char epoch, char place)
{
    for (size_t i = 0, count = conns_count(); i < count && i < conns_count(); i++) {
        struct said s = { epoch, place, (char)('a' + i / 2 % 26), SPAN_NONE };

        answer(conns_at(i), &s);
    }
}

static char at(struct span line, size_t i)
{
    return i < line.len ? line.ptr[i] : '0';
}

static void run_line(struct span line)
{
    size_t number = (size_t)(unsigned char)at(line, 1) - '0';
    struct redis_conn *c = conns_at(number);
    struct span rest = span_after(line, line.len < 2 ? line.len : 2);
    struct said said = { at(line, 2), at(line, 3), at(line, 4),
                         span_after(line, line.len < 5 ? line.len : 5) };

    switch (at(line, 0)) {
    case 'o':
        conn_open(c);
        break;
    case 'O':
        for (size_t i = 0, count = conns_count(); i < count; i++) {
            conn_open(conns_at(i));
        }
        break;
    case 'd':
        conn_break(c);
        break;
    case 'r':
        receive(c, rest);
        break;
    case 'a':
        answer(c, &said);
        break;
    case 'A':
        all_answer(at(line, 1), at(line, 2));
        break;
    case 'm':
        tell(c, rest);
        break;
    case 't':
        pass(line);
        break;
    case 'u':
    case 'U':
        world.usable = line.ptr[0] == 'u';
        sentinel_watch_set_usable(world.watch, world.usable);
        break;
    default:
        break;
    }
    conns_end_turn();
    check();
}

/* --- one run ---------------------------------------------------------------------- */

static void run(struct span text, const struct backend_config *place)
{
    struct io io = { 0 };
    struct sentinel_watch_setup setup = { .io = &io,
                                          .config = place,
                                          .timeout_ms = TIMEOUT_MS,
                                          .seed = 1,
                                          .on_master = on_master };
    bool more = text.len != 0;

    world.watch = sentinel_watch_new(&setup);
    sentinel_watch_start(world.watch);
    for (int i = 0; i < LINES_MAX && more; i++) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end == NULL ? text.len : (size_t)(end - text.ptr);

        run_line(span_of(text.ptr, len));
        more = end != NULL;
        text = span_after(text, len + (more ? 1 : 0));
    }
    sentinel_watch_close(world.watch);
    conns_end_turn();
    if (conns_count() != 0) {
        sentinel_fail("a connection is left");
    }
    sentinel_watch_free(world.watch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = span_of((const char *)data, size);
    const char *end = size == 0 ? NULL : memchr(data, '\n', size);
    struct conns_rules rules = { .master = MASTER };
    struct backend_config place;
    const char *err;

    if (end == NULL || announces_too_many(text.ptr, text.len)) {
        return 0;
    }
    rules.wants_auth = (size_t)(end - text.ptr) % 2 == 1;
    if (!backend_config_parse(rules.wants_auth ? "sentinel://a,b,c/" MASTER
                                                 "?sentinel-password=p"
                                               : "sentinel://a,b,c/" MASTER,
                              &place, &err)) {
        sentinel_fail(err);
    }
    log_set_level(LOG_ERROR);
    memset(&world, 0, sizeof(world));
    conns_begin(&rules);
    run(span_after(text, (size_t)(end - text.ptr) + 1), &place);
    backend_config_fini(&place);
    return 0;
}
