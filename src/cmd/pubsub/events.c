#include "cmd/pubsub/events.h"

#include "cmd/acl/sight.h"
#include "cmd/cmd_priv.h"
#include "util/log.h"

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

/* What Redis sends back is delivered then. */
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
