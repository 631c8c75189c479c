/* Passes the engine's answers and events on to clients. */
#include "cmd/acl/sight.h"
#include "cmd/cmd_priv.h"
#include "cmd/library/library_publish.h"
#include "cmd/pipeline.h"

#include "util/log.h"

static const char *const ERROR_WORDS[] = {
    [LOCK_ERR] = LATCHD_ERR,
    [LOCK_WRONGTYPE] = LATCHD_ERR_WRONGTYPE,
    [LOCK_NOTHELD] = LATCHD_ERR_NOTHELD,
    [LOCK_DEADLOCK] = LATCHD_ERR_DEADLOCK,
    [LOCK_BACKEND] = LATCHD_ERR_BACKEND,
    [LOCK_LIMIT] = LATCHD_ERR_LIMIT,
    [LOCK_GOAWAY] = LATCHD_ERR_GOAWAY,
    [LOCK_NOPERM] = LATCHD_ERR_NOPERM,
    [LOCK_UNBLOCKED] = LATCHD_ERR_UNBLOCKED,
    [LOCK_NOREPLICAS] = LATCHD_ERR_NOREPLICAS,
    [LOCK_CROSSSLOT] = LATCHD_ERR_CROSSSLOT,
};

const char *lock_error_word(enum lock_error error)
{
    return ERROR_WORDS[error];
}

/* LATCH INFO */
static void latch_write(struct buf *out, int proto, const struct effect_reply *reply)
{
    static const char *const STATES[] = {
        [LATCH_NONE] = "none", [LATCH_SET] = "set",   [LATCH_OPEN] = "open",
        [LATCH_GONE] = "gone", [LATCH_LOST] = "lost",
    };

    resp_map(out, proto, 3);
    resp_bulk_str(out, "left");
    resp_int(out, reply->value);
    resp_bulk_str(out, "state");
    resp_bulk_str(out, STATES[reply->latch_state]);
    resp_bulk_str(out, "waiting");
    resp_int(out, (int64_t)reply->waiting);
}

void reply_write(const struct cmd *c, struct buf *out, const struct client *client,
                 const struct library_call *library, const struct effect_reply *reply)
{
    if (library != NULL) {
        library_write(out, client->proto, library, reply);
        return;
    }
    switch (reply->kind) {
    case REPLY_TOKENS:
        resp_array(out, reply->token_count);
        for (size_t i = 0; i < reply->token_count; i++) {
            resp_int(out, (int64_t)reply->tokens[i]);
        }
        break;
    case REPLY_TOKEN:
    case REPLY_INT:
        resp_int(out, reply->token != 0 ? (int64_t)reply->token : reply->value);
        break;
    case REPLY_NULL:
        resp_null(out, client->proto);
        break;
    case REPLY_ERROR:
        resp_error(out, ERROR_WORDS[reply->error], reply->text);
        break;
    case REPLY_INFO:
        lockinfo_write(c, client, out, reply->info);
        break;
    case REPLY_LEADER:
        resp_array(out, 3);
        resp_int(out, (int64_t)reply->token);
        resp_bulk(out, reply->text);
        resp_bulk(out, reply->data);
        break;
    case REPLY_LATCH:
        latch_write(out, client->proto, reply);
        break;
    case REPLY_WRITTEN:
        buf_add_span(out, reply->text);
        break;
    case REPLY_UNREACHED: /* handled by the pipeline, never written */
        break;
    }
}

enum outcome reply_outcome(const struct library_call *library,
                           const struct effect_reply *reply)
{
    if (library != NULL) {
        return library_outcome(library, reply);
    }
    if (reply->kind == REPLY_ERROR) {
        return outcome_of_error(ERROR_WORDS[reply->error]);
    }
    return reply->kind == REPLY_NULL ? OUTCOME_NULL : OUTCOME_OK;
}

void cmd_reply(struct cmd *c, const struct effect_reply *reply)
{
    struct conn *conn = net_find(c->env.net, reply->to.conn);
    struct client *client = conn == NULL ? NULL : conn_data(conn);
    struct library_call *library;
    bool running;

    if (client != NULL && client->pipeline != NULL) {
        pipeline_reply(c, conn, reply);
        return;
    }
    /* The client is gone; the engine learned of the close. */
    if (client == NULL || client->call == 0 || client->call != reply->to.call) {
        return;
    }
    library = client_library(client);
    if (library != NULL && library_goes_on(c, library, reply)) {
        return;
    }
    tracking_push(
        c, client); /* losses from before must not seem to come after this reply */
    running = multi_is_running(client->multi);
    stats_answered(c, client_last(client), client->call_us,
                   reply_outcome(library, reply));
    if (!client->call_muted) {
        bool granted = reply->kind == REPLY_TOKEN || reply->kind == REPLY_TOKENS;

        reply_write(c, running ? multi_out(client->multi) : conn_out(conn), client,
                    library, reply);
        if (granted && running) {
            multi_granted(client->multi, reply->grant);
        } else if (granted) {
            client_granted(client, reply->grant, conn_input_count(conn));
        }
    }
    client->call = 0;
    library_call_free(client_library(client));
    client_set_library(client, NULL);
    if (!running || multi_answered(c, conn)) {
        conn_resume(conn);
    }
}

/* --- events ----------------------------------------------------------- */

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
    struct span payload[SIGHT_ALL + 1]; /* for who has that sight */
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

    if (library_has_channels(PUBSUB_CHANNEL, channel)) {
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
    bool sent = library_has_channels(PUBSUB_CHANNEL, channel) &&
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
