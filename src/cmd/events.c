#include "cmd/events.h"

#include "cmd/cmd_priv.h"
#include "util/log.h"

static uint16_t copy_cut(char *to, size_t room, struct span from)
{
    size_t len = from.len < room ? from.len : room;

    if (len > 0) {
        memcpy(to, from.ptr, len);
    }
    return (uint16_t)len;
}

void losses_add(struct losses *l, uint64_t now_ms, const struct effect_notice *notice,
                const char *forced_from)
{
    struct loss *loss = &l->ring[l->count++ % LOSSES_MAX];

    loss->at_ms = now_ms;
    loss->token = notice->token;
    loss->client = notice->conn_count == 0 ? 0 : notice->conns[0];
    loss->cause = notice->cause;
    loss->forced_by = notice->forced_by;
    loss->name_len = copy_cut(loss->name, sizeof(loss->name), notice->name);
    loss->owner_len = copy_cut(loss->owner, sizeof(loss->owner), notice->owner);
    loss->taker_len = copy_cut(loss->taker, sizeof(loss->taker), notice->taker);
    (void)snprintf(loss->forced_from, sizeof(loss->forced_from), "%s", forced_from);
}

size_t losses_known(const struct losses *l)
{
    return l->count < LOSSES_MAX ? (size_t)l->count : LOSSES_MAX;
}

const struct loss *losses_at(const struct losses *l, size_t newer)
{
    return &l->ring[(l->count - 1 - newer) % LOSSES_MAX];
}

size_t losses_lately(const struct losses *l, uint64_t now_ms)
{
    size_t known = losses_known(l), n = 0;

    while (n < known && now_ms - losses_at(l, n)->at_ms < LOSSES_LATELY_MS) {
        n++;
    }
    return n;
}

const char *loss_cause_word(enum loss_cause cause)
{
    static const char *const WORDS[] = {
        [LOSS_GONE] = "gone",
        [LOSS_TAKEN] = "taken",
        [LOSS_FORCED] = "forced",
        [LOSS_UNCONFIRMED] = "unconfirmed",
    };

    return WORDS[cause];
}

struct span loss_name(const struct loss *loss)
{
    return span_of(loss->name, loss->name_len);
}

struct span loss_owner(const struct loss *loss)
{
    return span_of(loss->owner, loss->owner_len);
}

struct span loss_taker(const struct loss *loss)
{
    return span_of(loss->taker, loss->taker_len);
}

/* Informs connections that track about their holds, by `invalidate` pushes. The names
 * of one turn are collected per connection, and sent together. */

static void tracker_free(struct tracking *t, struct tracker *tr);
static bool tracker_note(struct tracking *t, struct tracker *tr, struct span name);
static void tracker_clear(struct tracker *tr);

static void write_names(struct conn *conn, const struct tracker *tr)
{
    struct buf *out = conn_out(conn);

    resp_push(out, 3, 2);
    resp_bulk_str(out, "invalidate");
    resp_array(out, tr->name_count);
    buf_add_span(out, buf_span(&tr->names));
}

static void push_names(struct conn *conn, struct tracker *tr)
{
    if (tr->name_count > 0 && conn != NULL && !conn_overflows(conn)) {
        write_names(conn, tr);
    }
    tracker_clear(tr);
}

static void note_name(struct cmd *c, uint64_t id, bool bcast, struct span name)
{
    struct conn *conn = net_find(c->env.net, id);
    const struct client *client = conn == NULL ? NULL : conn_data(conn);
    struct tracker *tr = client == NULL ? NULL : client->tracker;

    /* RESP2 has no pushes. HELLO 2 does not end the tracking: HELLO 3 goes on with it,
     * as in Redis. */
    if (tr != NULL && tr->bcast == bcast && client->proto == 3 &&
        (!bcast || sight_of(c, client, name, 0) != SIGHT_NOTHING) &&
        tracker_note(&c->tracking, tr, name)) {
        push_names(conn, tr);
    }
}

/* Collects a notice for the connections that it concerns. */
static void tracking_notice(struct cmd *c, const struct effect_notice *notice)
{
    const struct tracker *tr;

    if (c->tracking.count == 0 || notice->kind == NOTICE_GRANTED ||
        notice->kind == NOTICE_RELEASED) {
        return;
    }
    for (size_t i = 0; i < notice->conn_count; i++) {
        note_name(c, notice->conns[i], false, notice->name);
    }
    LIST_EACH(tr, &c->tracking.bcast, in_bcast) {
        if (tracker_wants(tr, notice->name)) {
            note_name(c, tr->conn, true, notice->name);
        }
    }
}

void tracking_push(struct cmd *c, struct client *client)
{
    if (client->tracker != NULL && client->tracker->name_count > 0) {
        push_names(net_find(c->env.net, client->id), client->tracker);
    }
}

void cmd_push(struct cmd *c)
{
    struct tracker *tr;

    c->answered_us = 0;
    while (LIST_FIRST(tr, &c->tracking.dirty, in_dirty)) {
        push_names(net_find(c->env.net, tr->conn), tr);
    }
}

void client_untrack(struct cmd *c, struct client *client)
{
    tracker_free(&c->tracking, client->tracker);
    client->tracker = NULL;
}

void tracking_init(struct tracking *t)
{
    *t = (struct tracking){ 0 };
    list_init(&t->bcast);
    list_init(&t->dirty);
}

struct tracker *tracker_new(struct tracking *t, uint64_t conn)
{
    struct tracker *tr = xcalloc(1, sizeof(*tr));

    tr->conn = conn;
    list_init(&tr->in_bcast);
    list_init(&tr->in_dirty);
    list_init(&tr->prefixes);
    t->count++;
    return tr;
}

/* Unlinks and frees a tracker. Accepts NULL. */
static void tracker_free(struct tracking *t, struct tracker *tr)
{
    struct track_prefix *prefix;

    if (tr == NULL) {
        return;
    }
    LIST_EACH_SAFE(prefix, &tr->prefixes, in_tracker) {
        free(prefix);
    }
    list_del(&tr->in_bcast);
    list_del(&tr->in_dirty);
    buf_reset(&tr->names);
    t->count--;
    free(tr);
}

bool prefixes_overlap(struct span a, struct span b)
{
    return span_starts(a, b) || span_starts(b, a);
}

bool tracker_overlaps(const struct tracker *tr, struct span prefix, struct span *ret)
{
    const struct track_prefix *p;

    LIST_EACH(p, &tr->prefixes, in_tracker) {
        *ret = span_of(p->text, p->len);
        if (prefixes_overlap(*ret, prefix)) {
            return true;
        }
    }
    return false;
}

void tracker_add_prefix(struct tracking *t, struct tracker *tr, struct span prefix)
{
    struct track_prefix *p = xmalloc(sizeof(*p) + prefix.len);

    p->len = prefix.len;
    if (prefix.len != 0) {
        memcpy(p->text, prefix.ptr, prefix.len);
    }
    list_append(&tr->prefixes, &p->in_tracker);
    tr->prefix_count++;
    if (!tr->bcast) {
        tr->bcast = true;
        list_append(&t->bcast, &tr->in_bcast);
    }
}

bool tracker_wants(const struct tracker *tr, struct span name)
{
    const struct track_prefix *p;

    LIST_EACH(p, &tr->prefixes, in_tracker) {
        if (span_starts(name, span_of(p->text, p->len))) {
            return true;
        }
    }
    return false;
}

/* Adds a name to be sent. True: the push is full now. */
static bool tracker_note(struct tracking *t, struct tracker *tr, struct span name)
{
    if (list_empty(&tr->in_dirty)) {
        list_append(&t->dirty, &tr->in_dirty);
    }
    resp_bulk(&tr->names, name);
    return ++tr->name_count >= TRACK_NAMES_MAX;
}

/* Forgets the unsent names. */
static void tracker_clear(struct tracker *tr)
{
    list_del(&tr->in_dirty);
    buf_reset(&tr->names);
    tr->name_count = 0;
}

bool channel_is_of_library(enum pubsub_kind kind, struct span name)
{
    static const char *const OTHERS[] = {
        LATCHD_CHANNEL_GRANTED,
        LATCHD_CHANNEL_RELEASED,
        LATCHD_CHANNEL_UNCERTAIN,
        LATCHD_CHANNEL_LOST,
        LATCHD_CHANNEL_LEADER,
        LATCHD_RESERVED_OWNER_PREFIX,
        "redisson_",
        "__",
    };
    size_t len = 0;

    while (len < name.len &&
           (kind == PUBSUB_CHANNEL || strchr("*?[\\", name.ptr[len]) == NULL)) {
        len++;
    }
    name.len = len;
    for (size_t i = 0; i < sizeof(OTHERS) / sizeof(OTHERS[0]); i++) {
        if (span_starts(name, span_str(OTHERS[i]))) {
            return false;
        }
    }
    return kind == PUBSUB_CHANNEL || len > 0;
}

static const char *const CHANNELS[] = {
    [NOTICE_GRANTED] = LATCHD_CHANNEL_GRANTED,
    [NOTICE_RELEASED] = LATCHD_CHANNEL_RELEASED,
    [NOTICE_UNCERTAIN] = LATCHD_CHANNEL_UNCERTAIN,
    [NOTICE_LOST] = LATCHD_CHANNEL_LOST,
    [NOTICE_EXPIRED] = LATCHD_CHANNEL_EXPIRED,
};

struct event {
    struct cmd *cmd;
    struct span channel;
    struct span payload[SIGHT_ALL + 1]; /* for clients with that sight */
    struct span name; /* SPAN_NONE: of no lock, but a message of a lock library */
    uint32_t user;    /* whose hold it is; 0: not known */
};

static void deliver_event(void *ctx, struct subscriber *s, struct span pattern)
{
    const struct event *ev = ctx;
    struct client *client = container_of(s, struct client, sub);
    struct conn *conn = net_find(ev->cmd->env.net, client->id);
    enum sight sight = ev->name.ptr == NULL
                           ? SIGHT_ALL
                           : sight_of(ev->cmd, client, ev->name, ev->user);
    struct buf *out;

    if (conn == NULL || conn_overflows(conn) || sight == SIGHT_NOTHING) {
        return;
    }
    out = conn_out(conn);
    resp_push(out, client->proto, pattern.ptr == NULL ? 3 : 4);
    resp_bulk_str(out, pattern.ptr == NULL ? "message" : "pmessage");
    if (pattern.ptr != NULL) {
        resp_bulk(out, pattern);
    }
    resp_bulk(out, ev->channel);
    resp_bulk(out, ev->payload[sight]);
}

static void log_notice_of(const struct effect_notice *notice)
{
    const struct log_about about = {
        .client = notice->conn_count == 0 ? 0 : notice->conns[0],
        .name = notice->name,
        .owner = notice->owner,
        .token = notice->token,
    };

    if (notice->kind == NOTICE_LOST) {
        log_about(LOG_NOTICE, "locks", &about,
                  "a hold is lost: what it protects may be in use by others; its "
                  "clients are told, see that they stop");
    } else if (notice->kind == NOTICE_EXPIRED) {
        log_about(LOG_INFO, "locks", &about,
                  "a hold has expired: its LEASE is over, or its client had left");
    } else if (notice->kind == NOTICE_UNCERTAIN) {
        log_about(LOG_INFO, "locks", &about, "a hold is uncertain");
    }
}

bool cmd_has_subscribers(const struct cmd *c)
{
    return pubsub_total(c->pubsub, PUBSUB_CHANNEL) != 0 ||
           pubsub_total(c->pubsub, PUBSUB_PATTERN) != 0;
}

static void keep_loss(struct cmd *c, const struct effect_notice *notice)
{
    struct conn *by =
        notice->forced_by == 0 ? NULL : net_find(c->env.net, notice->forced_by);
    struct conn_info info = { .peer = "" };

    if (by != NULL) {
        conn_info(by, &info);
    }
    losses_add(c->losses, c->env.now_ms(c->env.ctx), notice, info.peer);
}

const struct losses *cmd_losses(const struct cmd *c)
{
    return c->losses;
}

const struct losses *cmd_expired(const struct cmd *c)
{
    return c->expired;
}

void cmd_leader_changed(struct cmd *c, const struct effect_leader *change)
{
    const struct leader *leader = &change->leader;
    struct buf channel = { 0 }, payload = { 0 };
    struct event ev = { .cmd = c, .name = change->name };

    buf_add_str(&channel, LATCHD_CHANNEL_LEADER);
    buf_add_span(&channel, change->name);
    buf_add_int(&payload, (int64_t)leader->token);
    if (leader->owner.len != 0) {
        buf_add_str(&payload, " ");
        buf_add_span(&payload, leader->owner);
    }
    if (leader->data.len != 0) {
        buf_add_str(&payload, " ");
        buf_add_span(&payload, leader->data);
    }
    ev.channel = buf_span(&channel);
    ev.payload[SIGHT_HOLDER] = ev.payload[SIGHT_ALL] = buf_span(&payload);
    pubsub_publish(c->pubsub, ev.channel, deliver_event, &ev);
    buf_reset(&channel);
    buf_reset(&payload);
}

void cmd_published(struct cmd *c, struct span pattern, struct span channel,
                   struct span text)
{
    enum pubsub_kind kind = pattern.ptr == NULL ? PUBSUB_CHANNEL : PUBSUB_PATTERN;
    struct event ev = { .cmd = c, .channel = channel, .payload[SIGHT_ALL] = text };

    if (channel_is_of_library(PUBSUB_CHANNEL, channel)) {
        pubsub_deliver(c->pubsub, kind, pattern.ptr == NULL ? channel : pattern,
                       deliver_event, &ev);
    }
}

/* A message that Redis sends back is delivered then. */
static void deliver_unheard(void *ctx, struct subscriber *s, struct span pattern)
{
    const struct event *ev = ctx;
    struct cmd *c = ev->cmd;
    bool is_pattern = pattern.ptr != NULL;

    if (!c->env.hears(c->env.ctx, is_pattern, is_pattern ? pattern : ev->channel)) {
        deliver_event(ctx, s, pattern);
    }
}

void cmd_publish(struct cmd *c, struct span channel, struct span text)
{
    struct event ev = { .cmd = c, .channel = channel, .payload[SIGHT_ALL] = text };
    bool sent = channel_is_of_library(PUBSUB_CHANNEL, channel) &&
                c->env.publish(c->env.ctx, channel, text);

    pubsub_publish(c->pubsub, channel, sent ? deliver_unheard : deliver_event, &ev);
}

void cmd_notice(struct cmd *c, const struct effect_notice *notice)
{
    struct buf channel = { 0 }, payload[SIGHT_ALL + 1] = { { 0 } };
    struct event ev = { .cmd = c, .name = notice->name, .user = notice->user };

    log_notice_of(notice);
    if (notice->kind == NOTICE_LOST) {
        keep_loss(c, notice);
    } else if (notice->kind == NOTICE_EXPIRED) {
        losses_add(c->expired, c->env.now_ms(c->env.ctx), notice, "");
    }
    tracking_notice(c, notice);
    if (notice->kind == NOTICE_CERTAIN) {
        return;
    }
    if (!cmd_has_subscribers(c)) {
        return;
    }
    buf_add_str(&channel, CHANNELS[notice->kind]);
    buf_add_span(&channel, notice->name);
    for (enum sight sight = SIGHT_HOLDER; sight <= SIGHT_ALL; sight++) {
        uint64_t token = sight_token(sight, notice->owner, notice->token);

        buf_add_span(&payload[sight], notice->owner);
        buf_add_str(&payload[sight], " ");
        buf_add_int(&payload[sight], (int64_t)token);
        ev.payload[sight] = buf_span(&payload[sight]);
    }
    ev.channel = buf_span(&channel);
    pubsub_publish(c->pubsub, ev.channel, deliver_event, &ev);
    buf_reset(&channel);
    buf_reset(&payload[SIGHT_HOLDER]);
    buf_reset(&payload[SIGHT_ALL]);
}

/* A subscriber to the channel of a leader follows the name; one to a channel that is
 * none of latchd's waits for the message of a lock library's script. */
void events_follow(void *cmd, enum pubsub_kind kind, struct span channel, bool heard)
{
    const struct cmd *c = cmd;
    struct span name =
        kind == PUBSUB_CHANNEL ? leader_channel_name(channel) : SPAN_NONE;

    if (name.len != 0) {
        engine_follow(c->env.engine, name, heard);
    } else if (channel_is_of_library(kind, channel)) {
        c->env.hear(c->env.ctx, kind == PUBSUB_PATTERN, channel, heard);
    }
}
