#include "backend/sentinel_watch.h"

#include "util/alloc.h"
#include "util/clock.h"
#include "util/list.h"
#include "util/log.h"
#include "util/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool sentinel_claim_same_address(const struct sentinel_claim *a,
                                 const struct sentinel_claim *b)
{
    return strcmp(a->host, b->host) == 0 && strcmp(a->port, b->port) == 0;
}

static bool is_same(const struct sentinel_claim *a, const struct sentinel_claim *b)
{
    return a->epoch == b->epoch && sentinel_claim_same_address(a, b);
}

void sentinel_vote_hear(struct sentinel_vote *b, size_t who,
                        const struct sentinel_claim *claim)
{
    b->sentinels[who].state = SENTINEL_CLAIMS;
    b->sentinels[who].claim = *claim;
    if (b->first_ms == 0) {
        b->first_ms = claim->heard_ms;
    }
}

size_t sentinel_vote_count(const struct sentinel_vote *b, bool only_heard)
{
    size_t count = 0;

    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        enum sentinel_state state = b->sentinels[i].state;

        count += state == SENTINEL_CLAIMS || (!only_heard && state != SENTINEL_NOBODY);
    }
    return count;
}

/* The claim of Sentinel `i`; NULL: none that counts. */
static const struct sentinel_claim *claim_of(const struct sentinel_vote *b, size_t i,
                                             uint64_t now_ms)
{
    const struct sentinel_claim *claim = &b->sentinels[i].claim;

    if (b->sentinels[i].state != SENTINEL_CLAIMS ||
        now_ms - claim->heard_ms > SENTINEL_FRESH_MS) {
        return NULL;
    }
    return claim;
}

/* How many Sentinels name the same address as `claim`, whatever the epoch. */
static size_t count_supporters(const struct sentinel_vote *b,
                               const struct sentinel_claim *claim, uint64_t now_ms)
{
    size_t count = 0;

    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        const struct sentinel_claim *other = claim_of(b, i, now_ms);

        count += other != NULL && sentinel_claim_same_address(other, claim);
    }
    return count;
}

static bool is_majority(const struct sentinel_vote *b, size_t count)
{
    return count * 2 > sentinel_vote_count(b, false);
}

static bool is_ignored(const struct sentinel_vote *b,
                       const struct sentinel_claim *claim, uint64_t now_ms)
{
    return b->ignores && is_same(&b->ignored, claim) &&
           !is_majority(b, count_supporters(b, claim, now_ms));
}

/* The claim with the highest epoch; among equals, the one of most Sentinels. NULL:
 * there is none. */
static const struct sentinel_claim *newest_claim(const struct sentinel_vote *b,
                                                 uint64_t now_ms)
{
    const struct sentinel_claim *best = NULL;

    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        const struct sentinel_claim *claim = claim_of(b, i, now_ms);

        if (claim == NULL || is_ignored(b, claim, now_ms)) {
            continue;
        }
        if (best == NULL || claim->epoch > best->epoch ||
            (claim->epoch == best->epoch &&
             count_supporters(b, claim, now_ms) > count_supporters(b, best, now_ms))) {
            best = claim;
        }
    }
    return best;
}

/* The first answer may come from a Sentinel that is behind: others get a moment. */
static bool may_begin(const struct sentinel_vote *b, uint64_t now_ms)
{
    size_t unheard = 0;

    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        unheard += b->sentinels[i].state == SENTINEL_ASKED;
    }
    return unheard == 0 || is_majority(b, sentinel_vote_count(b, true)) ||
           now_ms - b->first_ms >= SENTINEL_FIRST_MS;
}

/* The claim of a majority that names another master than ours; NULL: none. */
static const struct sentinel_claim *opposed_claim(const struct sentinel_vote *b,
                                                  uint64_t now_ms)
{
    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        const struct sentinel_claim *claim = claim_of(b, i, now_ms);

        if (claim != NULL && is_majority(b, count_supporters(b, claim, now_ms))) {
            return sentinel_claim_same_address(claim, &b->master) ? NULL : claim;
        }
    }
    return NULL;
}

static bool is_outvoted(struct sentinel_vote *b, uint64_t now_ms, bool usable)
{
    const struct sentinel_claim *claim = usable ? NULL : opposed_claim(b, now_ms);

    if (claim == NULL) {
        b->insists_ms = 0;
        return false;
    }
    if (b->insists_ms == 0 || !sentinel_claim_same_address(claim, &b->insisted)) {
        b->insists_ms = now_ms;
    }
    b->insisted = *claim;
    return now_ms - b->insists_ms >= SENTINEL_OUTVOTED_MS;
}

enum sentinel_verdict sentinel_vote_decide(struct sentinel_vote *b, uint64_t now_ms,
                                           bool usable)
{
    const struct sentinel_claim *best = newest_claim(b, now_ms);
    struct sentinel_claim before = b->master;

    if (best == NULL || (!b->knows && !may_begin(b, now_ms))) {
        return SENTINEL_STAYS;
    }
    if (!b->knows) {
        b->knows = true;
        b->master = *best;
        return SENTINEL_MOVED;
    }
    if (best->epoch > b->master.epoch) {
        b->master = *best;
        b->insists_ms = 0;
        return sentinel_claim_same_address(best, &before) ? SENTINEL_CONFIRMED
                                                          : SENTINEL_MOVED;
    }
    if (is_outvoted(b, now_ms, usable)) {
        b->ignores = true;
        b->ignored = before;
        b->master = b->insisted;
        b->insists_ms = 0;
        return SENTINEL_OVERRULED;
    }
    return SENTINEL_STAYS;
}

enum { WHY_ROOM = 160 };

enum {
    CALM_MS = 1000,         /* between two askings */
    EAGER_MS = 250,         /* the same, while the master cannot be used */
    OTHERS_MS = 10000,      /* between two askings for other Sentinels */
    OTHERS_GONE_MS = 60000, /* nobody names it any more, and it is out of reach */
};

/* One Sentinel. A question is one write: which master, the epoch before and after (so
 * that the two belong together), and from time to time which other Sentinels there are.
 * Only one is open at a time. */
struct sentinel_client {
    struct sentinel_watch *watch;
    size_t at;               /* its place in watch->clients */
    bool is_found;           /* by another one; else the configuration names it */
    uint64_t named_ms;       /* by another one */
    struct redis_conn *conn; /* for questions */
    struct redis_conn *news; /* for announcements; the other one logs for it */
    struct backend_url url;
    bool closed;
    bool is_open, is_ready;
    bool news_started;
    bool is_asking;
    bool again, again_others; /* asked while an asking was open */
    bool has_epoch, has_address;
    struct sentinel_claim claim;  /* as far as it has come */
    char id[SENTINEL_ID_LEN + 1]; /* empty: not known yet */
    char why[WHY_ROOM];           /* it gave no claim; what was logged last */
};

struct sentinel_watch {
    uv_timer_t timer;
    struct io *io;
    const struct backend_config *config;
    uint64_t timeout_ms;
    uint64_t seed;
    sentinel_master_fn *on_master;
    void *ctx;
    bool closed;
    bool usable;
    bool is_alone; /* no Sentinel is heard, and that was logged */
    uint64_t others_ms;
    struct sentinel_client *clients[SENTINELS_MAX];     /* NULL: nobody */
    struct sentinel_client *retired[2 * SENTINELS_MAX]; /* closed, to be freed */
    size_t retired_count;
    struct sentinel_vote votes;
};

static void take_claim(struct sentinel_client *p, const struct sentinel_claim *claim);
static void take_other(struct sentinel_watch *w, struct span host, struct span port,
                       struct span id);
static void drop_twin(struct sentinel_client *p);
static void ask_all(struct sentinel_watch *w, bool others);
static void client_ask(struct sentinel_client *p, bool others);

static const char *master_of(const struct sentinel_client *p)
{
    return p->watch->config->sentinel.master;
}

/* --- what it answers ------------------------------------------------------------- */

static void say_why(struct sentinel_client *p, const char *why)
{
    if (strcmp(p->why, why) != 0) {
        (void)snprintf(p->why, sizeof(p->why), "%s", why);
        log_warning("sentinel", "Sentinel %s does not name the master \"%s\": %s",
                    redis_conn_address(p->conn), master_of(p), why);
    }
}

static struct span text_of(const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_STRING && reply->type != REDIS_REPLY_STATUS) {
        return SPAN_NONE;
    }
    return span_of(reply->str, (size_t)reply->len);
}

/* The value of a name among pairs; empty: it is not there. */
static struct span reply_field(const redisReply *reply, struct span name)
{
    if (reply->type != REDIS_REPLY_ARRAY) {
        return SPAN_NONE;
    }
    for (size_t i = 0; i + 1 < (size_t)reply->elements; i += 2) {
        if (span_eq(text_of(reply->element[i]), name)) {
            return text_of(reply->element[i + 1]);
        }
    }
    return SPAN_NONE;
}

/* Whether the address can be connected to. */
static bool is_address(struct span host, struct span port)
{
    uint64_t number;

    return host.len != 0 && host.len <= SENTINEL_HOST_MAX &&
           memchr(host.ptr, '\0', host.len) == NULL &&
           parse_u64(port, UINT16_MAX, &number) && number != 0;
}

static void on_others(void *ctx, void *of, const redisReply *reply)
{
    struct sentinel_client *p = ctx;

    if (reply->type != REDIS_REPLY_ARRAY) {
        return; /* may not be asked */
    }
    for (size_t i = 0; i < (size_t)reply->elements && !p->closed; i++) {
        const redisReply *one = reply->element[i];
        struct span host = reply_field(one, SPAN("ip")),
                    port = reply_field(one, SPAN("port"));

        if (is_address(host, port)) {
            take_other(p->watch, host, port, reply_field(one, SPAN("runid")));
        }
    }
}

static bool take_epoch(struct sentinel_client *p, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR) {
        say_why(p, reply->str);
        return false;
    }
    if (!parse_u64(reply_field(reply, SPAN("config-epoch")), UINT64_MAX,
                   &p->claim.epoch)) {
        say_why(p, "it tells no epoch");
        return false;
    }
    return true;
}

static void on_epoch_before(void *ctx, void *of, const redisReply *reply)
{
    struct sentinel_client *p = ctx;

    p->has_epoch = take_epoch(p, reply);
}

static void on_address(void *ctx, void *of, const redisReply *reply)
{
    struct sentinel_client *p = ctx;
    struct span host, port;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2) {
        return; /* on_epoch_before() has said why */
    }
    host = text_of(reply->element[0]);
    port = text_of(reply->element[1]);
    if (!is_address(host, port)) {
        return;
    }
    (void)snprintf(p->claim.host, sizeof(p->claim.host), "%.*s", (int)host.len,
                   host.ptr);
    (void)snprintf(p->claim.port, sizeof(p->claim.port), "%.*s", (int)port.len,
                   port.ptr);
    p->has_address = true;
}

static void asking_is_over(struct sentinel_client *p)
{
    bool again = p->again, others = p->again_others;

    p->is_asking = false;
    p->again = p->again_others = false;
    if (p->has_epoch && p->has_address) {
        p->why[0] = '\0';
        p->claim.heard_ms = clock_boot_ms();
        take_claim(p, &p->claim);
    } else if (!p->has_address) {
        take_claim(p, NULL);
    } /* else it switched in between: the next asking finds out */
    if (again) {
        client_ask(p, others);
    }
}

static void on_epoch_after(void *ctx, void *of, const redisReply *reply)
{
    struct sentinel_client *p = ctx;
    uint64_t before = p->claim.epoch;

    p->has_epoch = take_epoch(p, reply) && p->has_epoch && p->claim.epoch == before;
    if (p->has_address && !p->is_ready) {
        p->is_ready = true;
        redis_conn_ready(p->conn, "a Sentinel");
    }
    asking_is_over(p);
}

/* --- asking ---------------------------------------------------------------------- */

/* The epoch before and after, so that the address belongs to it. */
static void ask_everything(struct sentinel_client *p, bool others)
{
    const char *const master[] = { "SENTINEL", "MASTER", master_of(p) };
    const char *const where[] = { "SENTINEL", "GET-MASTER-ADDR-BY-NAME", master_of(p) };
    const char *const peers[] = { "SENTINEL", "SENTINELS", master_of(p) };

    p->is_asking = true;
    p->has_epoch = p->has_address = false;
    p->claim = (struct sentinel_claim){ 0 };
    if (others) {
        redis_conn_ask(p->conn, 3, peers, on_others, NULL);
    }
    redis_conn_ask(p->conn, 3, master, on_epoch_before, NULL);
    redis_conn_ask(p->conn, 3, where, on_address, NULL);
    redis_conn_ask(p->conn, 3, master, on_epoch_after, NULL);
}

/* Asks now, or as soon as the open question is answered, or, if the Sentinel is out of
 * reach, when it is back. `others`: also for the other Sentinels. */
static void client_ask(struct sentinel_client *p, bool others)
{
    if (!p->is_open || p->closed) {
        return;
    }
    if (p->is_asking) {
        p->again = true;
        p->again_others |= others;
        return;
    }
    ask_everything(p, others);
    redis_conn_flush(p->conn);
}

/* --- the connection for questions --------------------------------------------------
 */

/* Redis before 6.2 does not know it. */
static void take_id(void *ctx, void *of, const redisReply *reply)
{
    struct sentinel_client *p = ctx;
    struct span id = text_of(reply);

    if (id.len == SENTINEL_ID_LEN) {
        memcpy(p->id, id.ptr, id.len);
        drop_twin(p);
    }
}

static void on_open(void *ctx)
{
    struct sentinel_client *p = ctx;

    p->is_open = true;
    p->is_ready = false;
    redis_conn_ask(p->conn, 2, (const char *const[]){ "SENTINEL", "MYID" }, take_id,
                   NULL);
    ask_everything(p, true);
    if (!p->news_started) {
        p->news_started = true;
        redis_conn_start(p->news);
    }
}

static void on_lost(void *ctx)
{
    struct sentinel_client *p = ctx;

    p->is_open = p->is_asking = p->again = p->again_others = false;
    take_claim(p, NULL);
}

static const struct redis_conn_events ASK_EVENTS = {
    .on_open = on_open,
    .on_lost = on_lost,
    .on_refused = on_lost,
};

/* --- the connection for announcements ----------------------------------------------
 */

static bool is_text(const redisReply *reply, const char *text)
{
    return reply->type == REDIS_REPLY_STRING && strcmp(reply->str, text) == 0;
}

/* Announcements before this were missed. */
static void on_subscribed(void *ctx, void *of, const redisReply *reply)
{
    struct sentinel_client *p = ctx;

    if (reply->type == REDIS_REPLY_ERROR) {
        redis_conn_fail(p->news, "%s", reply->str);
        return;
    }
    redis_conn_ready(p->news, "for messages");
    client_ask(p, false);
}

static void on_news_open(void *ctx)
{
    struct sentinel_client *p = ctx;

    redis_conn_ask(p->news, 2, (const char *const[]){ "SUBSCRIBE", "+switch-master" },
                   on_subscribed, NULL);
}

/* ["message", channel, "name old-host old-port new-host new-port"]. The epoch is not in
 * it, so the Sentinel has to be asked. */
static bool on_news(void *ctx, const redisReply *reply)
{
    struct sentinel_client *p = ctx;
    size_t len = strlen(master_of(p));
    const redisReply *text;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
        !is_text(reply->element[0], "message")) {
        return false;
    }
    text = reply->element[2];
    if (text->type == REDIS_REPLY_STRING &&
        strncmp(text->str, master_of(p), len) == 0 && text->str[len] == ' ') {
        ask_all(p->watch, false);
    }
    return true;
}

static const struct redis_conn_events NEWS_EVENTS = {
    .on_open = on_news_open,
    .on_push = on_news,
};

/* --- for the watch --------------------------------------------------------------- */

static struct sentinel_client *client_add(struct sentinel_watch *w, size_t at,
                                          const struct backend_url *url)
{
    struct sentinel_client *p = xcalloc(1, sizeof(*p));
    struct redis_conn_setup conn = {
        .io = w->io,
        .url = &p->url,
        .module = "sentinel",
        .what = "the Sentinel",
        .timeout_ms = w->timeout_ms,
        .seed = w->seed + at * 0x9E3779B97F4A7C15U,
        .events = &ASK_EVENTS,
        .ctx = p,
    };

    backend_url_copy(&p->url, url);
    p->watch = w;
    p->at = at;
    p->conn = redis_conn_new(&conn);
    conn.seed = ~conn.seed;
    conn.is_quiet = true;
    conn.pings = true;
    conn.events = &NEWS_EVENTS;
    p->news = redis_conn_new(&conn);
    w->clients[at] = p;
    w->votes.sentinels[at].state = SENTINEL_ASKED;
    return p;
}

/* Takes the login, and the TLS if its own URL wants TLS, for connections from now on.
 */
static void client_configure(struct sentinel_client *p, const struct backend_url *from,
                             uint64_t timeout_ms)
{
    backend_url_set_tls(&p->url, from->tls);
    (void)backend_url_set_login(&p->url, from);
    redis_conn_set_timeout(p->conn, timeout_ms);
    redis_conn_set_timeout(p->news, timeout_ms);
}

static void client_close(struct sentinel_client *p)
{
    if (!p->closed) {
        p->closed = true;
        redis_conn_close(p->conn);
        redis_conn_close(p->news);
    }
}

/* After the loop has run out, or at least once. NULL is fine. */
static void client_free(struct sentinel_client *p)
{
    if (p != NULL) {
        backend_url_fini(&p->url);
        free(p);
    }
}

/* --- who there is ---------------------------------------------------------------- */

/* The client's memory is freed in a later turn of the loop. */
static void client_retire(struct sentinel_client *p)
{
    struct sentinel_watch *w = p->watch;

    client_close(p);
    w->retired[w->retired_count++] = p;
    w->clients[p->at] = NULL;
    w->votes.sentinels[p->at].state = SENTINEL_NOBODY;
}

static void free_retired(struct sentinel_watch *w)
{
    while (w->retired_count != 0) {
        client_free(w->retired[--w->retired_count]);
    }
}

/* NULL: the Sentinel is new. */
static struct sentinel_client *find_client(const struct sentinel_watch *w,
                                           struct span host, struct span port,
                                           struct span id)
{
    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        struct sentinel_client *p = w->clients[i];

        if (p != NULL && ((span_eq(span_str(p->url.host), host) &&
                           span_eq(span_str(p->url.port), port)) ||
                          span_eq(span_str(p->id), id))) {
            return p;
        }
    }
    return NULL;
}

/* The Sentinel knows another one, at a valid address. */
static void take_other(struct sentinel_watch *w, struct span host, struct span port,
                       struct span id)
{
    struct sentinel_client *p = find_client(w, host, port, id);
    struct backend_url url;
    size_t at = 0;

    if (id.len != SENTINEL_ID_LEN) {
        return;
    }
    if (p != NULL) {
        p->named_ms = clock_boot_ms();
        return;
    }
    while (at < SENTINELS_MAX && w->clients[at] != NULL) {
        at++;
    }
    if (at == SENTINELS_MAX || w->retired_count >= SENTINELS_MAX) {
        return;
    }
    backend_url_copy(&url, &w->config->urls[0]);
    backend_url_set_server(&url, host, port);
    p = client_add(w, at, &url);
    backend_url_fini(&url);
    p->is_found = true;
    p->named_ms = clock_boot_ms();
    redis_conn_start(p->conn);
}

/* The Sentinel has told its id: drops its second address, which would have two votes
 * otherwise. */
static void drop_twin(struct sentinel_client *p)
{
    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        struct sentinel_client *other = p->watch->clients[i];

        if (other != NULL && other != p && strcmp(other->id, p->id) == 0) {
            client_retire(other->is_found ? other : p);
            return;
        }
    }
}

static void drop_gone(struct sentinel_watch *w, uint64_t now_ms)
{
    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        struct sentinel_client *p = w->clients[i];

        if (p != NULL && p->is_found &&
            w->votes.sentinels[i].state != SENTINEL_CLAIMS &&
            now_ms - p->named_ms > OTHERS_GONE_MS) {
            client_retire(p);
        }
    }
}

/* --- what they say --------------------------------------------------------------- */

static void note_alone(struct sentinel_watch *w)
{
    bool is_alone = sentinel_vote_count(&w->votes, true) == 0;

    if (is_alone == w->is_alone || !w->votes.knows) {
        return;
    }
    w->is_alone = is_alone;
    if (is_alone) {
        log_warning("sentinel",
                    "no Sentinel answers for \"%s\": %s:%s goes on being used, but a "
                    "failover would not be noticed; bring the Sentinels back",
                    w->config->sentinel.master, w->votes.master.host,
                    w->votes.master.port);
    } else {
        log_notice("sentinel", "a Sentinel answers again for \"%s\"",
                   w->config->sentinel.master);
    }
}

static void decide_master(struct sentinel_watch *w)
{
    enum sentinel_verdict verdict =
        sentinel_vote_decide(&w->votes, clock_boot_ms(), w->usable);

    note_alone(w);
    if (verdict != SENTINEL_STAYS) {
        w->on_master(w->ctx, verdict, &w->votes.master);
    }
}

static void ask_all(struct sentinel_watch *w, bool others)
{
    for (size_t i = 0; i < SENTINELS_MAX && !w->closed; i++) {
        if (w->clients[i] != NULL) {
            client_ask(w->clients[i], others);
        }
    }
}

/* The answer to a question; NULL: the Sentinel does not know the master, gave no
 * answer, or is out of reach. */
static void take_claim(struct sentinel_client *p, const struct sentinel_claim *claim)
{
    struct sentinel_watch *w = p->watch;

    if (claim != NULL) {
        sentinel_vote_hear(&w->votes, p->at, claim);
    } else {
        w->votes.sentinels[p->at].state = SENTINEL_SILENT;
    }
    decide_master(w);
}

/* --- time ------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer);

static void arm_timer(struct sentinel_watch *w)
{
    uv_update_time(w->io->loop);
    (void)uv_timer_start(&w->timer, on_timer, w->usable ? CALM_MS : EAGER_MS, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct sentinel_watch *w = container_of(timer, struct sentinel_watch, timer);
    uint64_t now_ms = clock_boot_ms();
    bool others = now_ms - w->others_ms >= OTHERS_MS;

    free_retired(w);
    if (others) {
        w->others_ms = now_ms;
        drop_gone(w, now_ms);
    }
    ask_all(w, others);
    arm_timer(w);
    decide_master(w);
}

/* --- for the backend ------------------------------------------------------------- */

struct sentinel_watch *sentinel_watch_new(const struct sentinel_watch_setup *setup)
{
    struct sentinel_watch *w = xcalloc(1, sizeof(*w));

    w->io = setup->io;
    w->config = setup->config;
    w->timeout_ms = setup->timeout_ms;
    w->seed = setup->seed;
    w->on_master = setup->on_master;
    w->ctx = setup->ctx;
    (void)uv_timer_init(w->io->loop, &w->timer);
    for (size_t i = 0; i < w->config->url_count && i < SENTINELS_MAX; i++) {
        (void)client_add(w, i, &w->config->urls[i]);
    }
    return w;
}

void sentinel_watch_start(struct sentinel_watch *w)
{
    w->others_ms = clock_boot_ms();
    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        if (w->clients[i] != NULL) {
            redis_conn_start(w->clients[i]->conn);
        }
    }
    arm_timer(w);
}

void sentinel_watch_configure(struct sentinel_watch *w, uint64_t timeout_ms)
{
    w->timeout_ms = timeout_ms;
    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        if (w->clients[i] != NULL) {
            client_configure(w->clients[i], &w->config->urls[0], timeout_ms);
        }
    }
}

void sentinel_watch_set_usable(struct sentinel_watch *w, bool usable)
{
    bool was = w->usable;

    w->usable = usable;
    if (was && !usable && !w->closed) {
        ask_all(w, false);
        arm_timer(w);
    }
}

bool sentinel_watch_named_since(const struct sentinel_watch *w, uint64_t since_ms)
{
    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        const struct sentinel_claim *claim = &w->votes.sentinels[i].claim;

        if (w->clients[i] != NULL && claim->heard_ms >= since_ms &&
            claim->epoch >= w->votes.master.epoch &&
            sentinel_claim_same_address(claim, &w->votes.master)) {
            return true;
        }
    }
    return false;
}

void sentinel_watch_info(const struct sentinel_watch *w,
                         struct sentinel_watch_info *ret)
{
    ret->known = sentinel_vote_count(&w->votes, false);
    ret->reachable = sentinel_vote_count(&w->votes, true);
    ret->epoch = w->votes.master.epoch;
}

void sentinel_watch_each(const struct sentinel_watch *w, sentinel_watch_fn *fn,
                         void *ctx)
{
    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        if (w->clients[i] != NULL) {
            fn(ctx, redis_conn_address(w->clients[i]->conn),
               w->votes.sentinels[i].state == SENTINEL_CLAIMS);
        }
    }
}

void sentinel_watch_close(struct sentinel_watch *w)
{
    if (w->closed) {
        return;
    }
    w->closed = true;
    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        if (w->clients[i] != NULL) {
            client_close(w->clients[i]);
        }
    }
    uv_close((uv_handle_t *)&w->timer, NULL);
}

void sentinel_watch_free(struct sentinel_watch *w)
{
    if (w == NULL) {
        return;
    }
    free_retired(w);
    for (size_t i = 0; i < SENTINELS_MAX; i++) {
        client_free(w->clients[i]);
    }
    free(w);
}
