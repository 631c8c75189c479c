/* Clients. */
#include "engine/engine_state.h"
#include "engine/entry.h"
#include "engine/hold.h"
#include "engine/session.h"
#include "sim/quorum/quorum.h"

#include <inttypes.h>
#include <stdio.h>

enum { ANSWER_SLACK_MS = 4000 };

static void later(struct quorum *q, struct qclient *c, uint64_t most)
{
    c->next_at = q->now + 1 + dice_below(&q->dice, most);
}

static bool pick_daemon(struct quorum *q, struct qclient *c)
{
    c->daemon = dice_below(&q->dice, q->daemon_count);
    return q->daemons[c->daemon].engine != NULL;
}

/* Sends the LOCK, for the first time or again. */
static void send_lock(struct quorum *q, struct qclient *c)
{
    struct qdaemon *d = &q->daemons[c->daemon];
    struct lock_req req = { .name = quorum_name(c->name),
                            .terms = { .owner = span_str(c->owner),
                                       .id = span_str(c->id),
                                       .priority = (uint64_t)((c - q->clients) % 4) } };

    c->conn = ++q->next_conn;
    c->call = ++q->next_call;
    c->asked_at = q->now;
    c->shared = false;
    c->state = QCLIENT_WAITS;
    c->next_at = UINT64_MAX;
    req.from = (struct call_ref){ c->conn, c->call };
    req.terms.wait_ms = c->wait_ms;
    req.terms.has = c->wait_ms == UINT64_MAX ? 0 : OPT_WAIT;
    if (q->orderly && c->id[0] != '\0') {
        req.terms.has |= OPT_KEEP; /* 0: who leaves, leaves nothing */
    }
    if (c->lease_ms != 0) {
        req.terms.lease_ms = c->lease_ms;
        req.terms.has |= OPT_LEASE;
    }
    qdaemon_begin(q, d);
    engine_lock(d->engine, &req);
    qdaemon_end(q, d);
}

/* Anonymous, by an ID, or by an owner that others have as well. Of an owner an entry
 * may be left at a minority until its lease is over. */
static void choose_who(struct quorum *q, struct qclient *c)
{
    uint64_t kind = dice_below(&q->dice, 10);

    c->again = false;
    c->id[0] = c->owner[0] = '\0';
    if (kind < 4) {
        (void)snprintf(c->id, sizeof(c->id), "request-%08" PRIu64, ++q->next_id);
    } else if (kind < 6 && !q->orderly) {
        (void)snprintf(c->owner, sizeof(c->owner), "o%d", (int)dice_below(&q->dice, 2));
    }
}

static void ask(struct quorum *q, struct qclient *c)
{
    choose_who(q, c);
    c->name = dice_below(&q->dice, q->name_count);
    c->wait_ms = dice_chance(&q->dice, 200)   ? 0
                 : dice_chance(&q->dice, 500) ? dice_below(&q->dice, 5000)
                                              : UINT64_MAX;
    c->lease_ms = dice_chance(&q->dice, 300)
                      ? dice_between(&q->dice, q->lease_ms / 4, q->lease_ms)
                      : 0;
    send_lock(q, c);
}

static void gone(struct quorum *q, struct qclient *c)
{
    c->state = QCLIENT_IDLE;
    c->conn = 0;
    c->token = 0;
    if (q->draining) {
        c->next_at = UINT64_MAX;
    } else {
        later(q, c, 300);
    }
}

static void close_conn(struct quorum *q, struct qclient *c)
{
    struct qdaemon *d = &q->daemons[c->daemon];
    uint64_t conn = c->conn;

    quorum_trace(q, "connection %" PRIu64 " closes", conn);
    gone(q, c);
    qdaemon_begin(q, d);
    engine_on_conn_closed(d->engine, conn);
    qdaemon_end(q, d);
}

/* An ID is enough, else the token has to be said. */
static struct hold_req hold_of(const struct qclient *c)
{
    bool has_id = c->id[0] != '\0';

    return (struct hold_req){ .name = quorum_name(c->name),
                              .owner = span_str(c->owner),
                              .id = span_str(c->id),
                              .token = has_id ? 0 : c->token };
}

/* Asks with the same ID, elsewhere if need be; false: it has none. */
static bool ask_again(struct quorum *q, struct qclient *c)
{
    if (c->id[0] == '\0' || q->draining || q->orderly || !pick_daemon(q, c)) {
        return false;
    }
    c->again = true;
    quorum_trace(q, "%s is asked again at d%zu", c->id, c->daemon);
    send_lock(q, c);
    return true;
}

static bool is_its_own(const struct qclient *c, const struct entry *e)
{
    for (const struct attach *a = entry_first_attach(e); a != NULL;
         a = attach_next(a)) {
        if (a->session->conn.key == c->conn) {
            return !entry_is_ending(e) && e->hold->token == c->token;
        }
    }
    return false;
}

/* An owner alone tells its connection's entry, and if that has none there, any. */
static bool tells_entry(const struct qdaemon *d, const struct qclient *c)
{
    const struct hold *h;

    if (c->owner[0] == '\0') {
        return true;
    }
    LIST_EACH(h, &d->engine->holds, in_all) {
        for (const struct entry *e = h->entries; e != NULL; e = e->next) {
            if (is_its_own(c, e)) {
                return true;
            }
        }
    }
    return false;
}

/* By its owner alone it may get at another client's entry. */
static void may_take(struct quorum *q, const struct qdaemon *d, struct qclient *c)
{
    for (size_t i = 0; !tells_entry(d, c) && i < q->client_count; i++) {
        struct qclient *other = &q->clients[i];

        if (other != c && other->name == c->name &&
            strcmp(other->owner, c->owner) == 0) {
            c->shared = other->shared = true; /* either may end it */
        }
    }
}

/* UNLOCK, at times through another daemon, or nothing but a closed connection. */
static void give_back(struct quorum *q, struct qclient *c)
{
    struct qdaemon *d = &q->daemons[c->daemon];
    struct hold_req req = hold_of(c);

    if (!q->draining && !q->orderly && dice_chance(&q->dice, 150)) {
        close_conn(q, c);
        return;
    }
    if (!q->orderly && dice_chance(&q->dice, 200)) {
        struct qdaemon *other = &q->daemons[dice_below(&q->dice, q->daemon_count)];

        d = other->engine != NULL ? other : d;
    }
    c->state = QCLIENT_LEAVES;
    c->asked = d->index;
    c->call = ++q->next_call;
    c->next_at = UINT64_MAX;
    req.from = (struct call_ref){ c->conn, c->call };
    quorum_trace(q, "%" PRIu64 " unlocks %s at d%zu", c->conn, quorum_name(c->name).ptr,
                 d->index);
    qdaemon_begin(q, d);
    may_take(q, d, c);
    engine_unlock(d->engine, &req);
    qdaemon_end(q, d);
}

static void close_at(struct quorum *q, size_t daemon, uint64_t conn)
{
    struct qdaemon *d = &q->daemons[daemon];

    if (d->engine != NULL) {
        qdaemon_begin(q, d);
        engine_on_conn_closed(d->engine, conn);
        qdaemon_end(q, d);
    }
}

void qclient_left(struct quorum *q, const struct qevent *e)
{
    close_at(q, e->daemon, e->life);
}

/* The client was answered where it is now, by a daemon whose effects are under way. */
static void close_left(struct quorum *q, struct qclient *c)
{
    if (c->left_conn != 0) {
        struct qevent *e = qevent_new(q, QEVENT_LEFT, q->now);

        e->daemon = c->left_daemon;
        e->life = c->left_conn;
        c->left_conn = 0;
    }
}

/* The client goes on through another daemon. Its connection is gone by then, or is
 * closed once the other daemon has answered. */
static bool move(struct quorum *q, struct qclient *c)
{
    size_t to = dice_below(&q->dice, q->daemon_count);
    struct qdaemon *d = &q->daemons[to];
    struct hold_req req = hold_of(c);
    uint64_t conn = c->conn;

    if (q->draining || q->orderly || d->engine == NULL || to == c->daemon) {
        return false;
    }
    quorum_trace(q, "%" PRIu64 " goes on at d%zu", conn, to);
    c->left_daemon = c->daemon;
    c->left_conn = q->slow ? conn : 0;
    c->daemon = to;
    c->conn = ++q->next_conn;
    c->call = ++q->next_call;
    c->state = QCLIENT_MOVES;
    req.from = (struct call_ref){ c->conn, c->call };
    if (!q->slow) {
        close_at(q, c->left_daemon, conn);
    }
    qdaemon_begin(q, d);
    may_take(q, d, c);
    engine_renew(d->engine, &req);
    qdaemon_end(q, d);
    return true;
}

void qclient_act(struct quorum *q, struct qclient *c)
{
    c->next_at = UINT64_MAX;
    if (c->state == QCLIENT_CLOSES) {
        close_conn(q, c);
    } else if (c->state == QCLIENT_HOLDS) {
        if (!dice_chance(&q->dice, 150) || !move(q, c)) {
            give_back(q, c);
        }
    } else if (c->state == QCLIENT_IDLE && !q->draining) {
        if (pick_daemon(q, c)) {
            ask(q, c);
        } else {
            later(q, c, 300);
        }
    }
}

void qclient_leave(struct quorum *q, struct qclient *c)
{
    struct qdaemon *d = &q->daemons[c->daemon];

    if (c->state == QCLIENT_HOLDS) {
        give_back(q, c);
    } else if (c->state != QCLIENT_IDLE && d->engine != NULL) {
        close_conn(q, c);
    }
}

void qclient_daemon_died(struct quorum *q, size_t daemon)
{
    for (size_t i = 0; i < q->client_count; i++) {
        struct qclient *c = &q->clients[i];

        if (c->daemon == daemon && c->state != QCLIENT_IDLE) {
            bool asks = c->state == QCLIENT_WAITS || c->state == QCLIENT_HOLDS;

            if (!asks || !ask_again(q, c)) {
                gone(q, c);
            }
        } else if (c->state == QCLIENT_LEAVES && c->asked == daemon) {
            c->state = QCLIENT_CLOSES; /* its UNLOCK is not answered any more */
            c->next_at = q->now;
        }
    }
}

/* A client beside others of the same owner may get an older or a later one. */
static void granted(struct quorum *q, struct qclient *c, uint64_t token)
{
    uint64_t *last = &q->last_token[c->name];
    bool known = c->owner[0] != '\0' || (c->again && token == c->token);

    q->grants++;
    if (token <= *last && !known) {
        quorum_fail(q, "token %" PRIu64 " of %s is not above %" PRIu64, token,
                    quorum_name(c->name).ptr, *last);
    }
    *last = token > *last ? token : *last;
    c->token = token;
    c->state = QCLIENT_HOLDS;
    quorum_trace(q, "granted %s token %" PRIu64 " at d%zu to %" PRIu64,
                 quorum_name(c->name).ptr, token, c->daemon, c->conn);
    later(q, c, dice_chance(&q->dice, 100) ? 2 * q->lease_ms : 200);
}

/* With slow links a hold that is renewed is there until it is released. A daemon that
 * did not renew it cannot tell. */
static void check_unlocked(struct quorum *q, const struct qclient *c,
                           const struct effect_reply *r)
{
    if (q->slow && !q->draining && c->state == QCLIENT_LEAVES &&
        c->asked == c->daemon && c->lease_ms == 0 && c->owner[0] == '\0' &&
        r->kind == REPLY_ERROR && r->error == LOCK_NOTHELD) {
        quorum_fail(q, "UNLOCK of %" PRIu64 " is answered %.*s", c->token,
                    (int)r->text.len, r->text.ptr);
    }
}

void qclient_reply(struct quorum *q, struct qdaemon *d, const struct effect_reply *r)
{
    (void)d;
    for (size_t i = 0; i < q->client_count; i++) {
        struct qclient *c = &q->clients[i];

        if (c->conn != r->to.conn || c->call != r->to.call) {
            continue;
        }
        if (c->state == QCLIENT_WAITS && c->wait_ms != UINT64_MAX &&
            q->now > c->asked_at + c->wait_ms + q->timeout_ms + ANSWER_SLACK_MS) {
            quorum_fail(q, "an answer came %" PRIu64 " ms after a wait of %" PRIu64,
                        q->now - c->asked_at, c->wait_ms);
        }
        if (c->state == QCLIENT_WAITS && r->kind == REPLY_TOKEN) {
            granted(q, c, (uint64_t)r->value);
        } else if (c->state == QCLIENT_MOVES && r->kind != REPLY_ERROR) {
            c->state = QCLIENT_HOLDS;
            later(q, c, 500);
            close_left(q, c);
        } else {
            check_unlocked(q, c, r);
            q->orderly =
                q->orderly && (c->state == QCLIENT_WAITS || r->kind == REPLY_INT);
            c->state = QCLIENT_CLOSES; /* it may hold yet, if an UNLOCK failed */
            c->next_at = q->now;
            quorum_trace(q, "%" PRIu64 " is answered %d %.*s", c->conn, r->kind,
                         (int)r->text.len, r->text.len ? r->text.ptr : "");
            close_left(q, c);
        }
        return;
    }
}

/* A client that only comes back to it has no part in the time before. */
static bool is_told(const struct effect_notice *n, const struct qclient *c)
{
    for (size_t i = 0; i < n->conn_count; i++) {
        if (n->conns[i] == c->conn) {
            return c->name == quorum_name_index(n->name);
        }
    }
    return false;
}

void qclient_notice(struct quorum *q, struct qdaemon *d, const struct effect_notice *n)
{
    if (n->kind != NOTICE_LOST && n->kind != NOTICE_EXPIRED) {
        return;
    }
    quorum_trace(q, "%s %.*s token %" PRIu64 " at d%zu",
                 n->kind == NOTICE_LOST ? "lost" : "expired", (int)n->name.len,
                 n->name.ptr, n->token, d->index);
    q->lost += n->kind == NOTICE_LOST;
    q->orderly = false; /* a minority may have it until its lease is over */
    for (size_t i = 0; i < q->client_count; i++) {
        struct qclient *c = &q->clients[i];

        if (c->state == QCLIENT_HOLDS && is_told(n, c)) {
            gone(q, c);
        }
    }
    if (!q->faults && !q->draining) {
        bool fixed = true; /* only what was held for longer than its lease */

        for (size_t i = 0; i < n->conn_count; i++) {
            for (size_t k = 0; k < q->client_count; k++) {
                fixed = fixed && (q->clients[k].conn != n->conns[i] ||
                                  q->clients[k].state >= QCLIENT_LEAVES ||
                                  q->clients[k].lease_ms != 0);
            }
        }
        if (!fixed) {
            quorum_fail(q, "token %" PRIu64 " was lost, although nothing failed",
                        n->token);
        }
    }
}
